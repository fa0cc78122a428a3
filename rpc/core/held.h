/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_HELD_H
#define BOWLINE_RPC_CORE_HELD_H

/*
 * Encoded messages that wait: to be sent, or to be taken. Each is one allocation, in front
 * of its bytes, but for one whose bytes lie in a block that others share.
 *
 *     block  | struct bow__held | bytes …          own
 *     block  | struct bow__held | ──► shared block, of a message received or of a payload
 */

#include "base/block.h"
#include <bowline/slice.h>

struct bow__message;
struct bow_payload;

struct bow__held {
    struct bow__held *next;
    struct bow__block *shared;   /* a reference; NULL: the bytes are its own */
    struct bow_payload *payload; /* a reference; NULL: they are not a payload's */
    size_t offset;               /* of the bytes, in the block that has them */
    size_t len;
    bool compressed;  /* a received one, with: */
    uint8_t encoding; /* an enum bow__encoding */
};

struct bow__held_queue {
    struct bow__held *first;
    struct bow__held *last;
};

/** One with room for `len` bytes of its own; NULL out of memory. */
struct bow__held *bow__held_new(struct bow_context *context, size_t len);
/** One whose bytes are a payload's, to which it takes a reference. NULL out of memory. */
struct bow__held *bow__held_share(struct bow_context *context, struct bow_payload *payload);
/** Keep a received message: its block is taken if it has one, else its bytes are copied. */
struct bow__held *bow__held_keep(struct bow_context *context, struct bow__message *message);
void bow__held_free(struct bow__held *held);
/** The message that was kept, with a reference to the block that has its bytes; `held` is gone. */
struct bow__message bow__held_release(struct bow__held *held);

/** The block that holds the bytes. */
struct bow__block *bow__held_block(struct bow__held *held);
static inline uint8_t *bow__held_bytes(struct bow__held *held)
{
    return bow__held_block(held)->data + held->offset;
}
/** The block's reference has been given away: what else there is goes. */
void bow__held_given(struct bow__held *held);

void bow__held_push(struct bow__held_queue *queue, struct bow__held *held);
/** NULL when it is empty. */
struct bow__held *bow__held_pop(struct bow__held_queue *queue);
/** Append all of `from`, which is empty then. */
void bow__held_append(struct bow__held_queue *queue, struct bow__held_queue *from);
/** Free all. Returns how many bytes they held, as bow__consumed_bytes() counts. */
size_t bow__held_clear(struct bow__held_queue *queue);

#endif
