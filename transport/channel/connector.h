/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_CHANNEL_CONNECTOR_H
#define BOWLINE_TRANSPORT_CHANNEL_CONNECTOR_H

/*
 * Connecting, for who goes on to the next address of a name when one that was connected to does
 * not serve.
 */

#include "transport/address/address_list.h"

#include <bowline/channel.h>
#include <errno.h>

/** Whether `error` says nothing of the server: this host, or the source, has no way there, as often
 * to all addresses of one family. */
static inline bool bow__is_out_of_reach(int error)
{
    return error == -EAFNOSUPPORT || error == -EADDRNOTAVAIL || error == -ENETUNREACH;
}

/**
 * As bow_connect_start(), with the addresses that are left in `list`, or, when it is empty, those
 * that the name has. `list` is kept until `done` has run, and no other attempt uses it meanwhile.
 * While `options->on_channel` runs, list->connected says which one it is; that one and those that
 * failed are not left any more.
 */
BOW_MUST_USE int bow__connect_start(struct bow_loop *loop, const char *target,
                                    const struct bow_channel_options *options, uint64_t timeout_ns,
                                    struct bow__address_list *list, bow_connect_fn done, void *user,
                                    struct bow_connect **ret_connect,
                                    struct bow_transport_error *ret_error);

#endif
