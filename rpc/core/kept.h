/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_KEPT_H
#define BOWLINE_RPC_CORE_KEPT_H

/*
 * Received messages that wait until somebody reads them, counted as in flight as long. Loop.
 */

#include "rpc/core/flight.h"
#include "rpc/core/held.h"
#include "rpc/core/session.h"

struct bow__kept {
    struct bow__held_queue queue;
    struct bow__flight_part *part; /* NULL: not counted */
    size_t n_bytes;                /* counted there */
};

/** Keep `message`: its block is taken if it has one. Returns 0; -ENOMEM; -ENOBUFS: there is no room
 * in flight. */
int bow__kept_push(struct bow__kept *kept, struct bow_context *context,
                   struct bow__message *message);
/** The oldest, which is the caller's then; false: there is none. */
bool bow__kept_pop(struct bow__kept *kept, struct bow__message *ret_message);
static inline bool bow__kept_is_empty(const struct bow__kept *kept)
{
    return kept->queue.first == NULL;
}
void bow__kept_clear(struct bow__kept *kept);
/** What a client is told when push() failed with `rc`. */
void bow__kept_describe(const struct bow__kept *kept, int rc, struct bow__text *text);

#endif
