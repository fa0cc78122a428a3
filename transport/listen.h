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
    char unix_path[BOW__ADDRESS_TEXT_BYTES]; /* ours to unlink; "" for none */
};

/** Bind and listen. A name is resolved at once, blocking. Returns 0, or a negative errno with
 * `ret_error` (may be NULL) filled. */
int bow__listening_open(struct bow__listening *listening, const struct bow_system *system,
                        const char *address, int backlog, struct bow_transport_error *ret_error);

/** Idempotent. */
void bow__listening_close(struct bow__listening *listening, const struct bow_system *system);

#endif
