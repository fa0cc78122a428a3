/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_LISTEN_H
#define BOWLINE_TRANSPORT_LISTEN_H

/*
 * From an address to a listening descriptor and back. Knows nothing of loops.
 */

#include "transport/address.h"

#include <bowline/channel.h>

struct bow__listening {
    int fd; /* -1: closed */
    uint16_t port;
    bool shares_port; /* set before opening: others may listen on the port as well */
    char unix_path[BOW__ADDRESS_TEXT_BYTES]; /* ours to unlink; "" for none */
};

/** Bind and listen; `listening` is zeroed but for shares_port. A name is resolved at once,
 * blocking. The descriptor of "fd:N" is taken on success only. Returns 0, or a negative errno with
 * `ret_error` (may be NULL) filled. */
int bow__listening_open(struct bow__listening *listening, const struct bow_system *system,
                        const char *address, int backlog, struct bow_transport_error *ret_error);

/** One more socket on the port of `first`, which shares it. Returns 0 or a negative errno. */
int bow__listening_open_beside(struct bow__listening *listening, const struct bow_system *system,
                               const struct bow__listening *first, int backlog);

/** Idempotent. */
void bow__listening_close(struct bow__listening *listening, const struct bow_system *system);

#endif
