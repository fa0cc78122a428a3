/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_MESSAGE_RECEIVE_QUEUE_H
#define BOWLINE_RPC_CORE_MESSAGE_RECEIVE_QUEUE_H

/*
 * Received messages that wait until somebody reads them, counted as in flight as long. Loop.
 */

#include "rpc/core/in_flight.h"
#include "rpc/core/message/message_queue.h"
#include "rpc/core/session.h"

struct bow__receive_queue {
    struct bow__message_queue queue;
    struct bow__in_flight_share *share; /* NULL: not counted */
    size_t n_bytes;                     /* counted there */
};

/** Keep `message`: its block is taken if it has one. Returns 0; -ENOMEM; -ENOBUFS: there is no room
 * in flight. */
int bow__receive_queue_push(struct bow__receive_queue *pending, struct bow_context *context,
                            struct bow__message *message);
/** The oldest, which is the caller's then; false: there is none. */
bool bow__receive_queue_pop(struct bow__receive_queue *pending, struct bow__message *ret_message);
static inline bool bow__receive_queue_is_empty(const struct bow__receive_queue *pending)
{
    return pending->queue.first == NULL;
}
void bow__receive_queue_clear(struct bow__receive_queue *pending);
/** What a client is told when push() failed with `rc`. */
void bow__receive_queue_describe(const struct bow__receive_queue *pending, int rc,
                                 struct bow__text *text);

#endif
