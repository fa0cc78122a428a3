/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_MESSAGE_MESSAGE_QUEUE_H
#define BOWLINE_RPC_CORE_MESSAGE_MESSAGE_QUEUE_H

/*
 * Encoded messages that wait: to be sent, or to be taken. Each is one allocation, in front
 * of its bytes, but for one whose bytes lie in a block that others share.
 *
 *     block  | struct bow__queued_message | bytes …          own
 *     block  | struct bow__queued_message | ──► shared block, of a message received or of a payload
 */

#include "base/block.h"
#include <bowline/slice.h>

struct bow__message;
struct bow_payload;

struct bow__queued_message {
    struct bow__queued_message *next;
    struct bow__block *shared;   /* a reference; NULL: the bytes are its own */
    struct bow_payload *payload; /* a reference; NULL: they are not a payload's */
    size_t offset;               /* of the bytes, in the block that has them */
    size_t len;
    bool compressed;     /* a received one, with: */
    uint8_t encoding;    /* an enum bow__encoding */
    uint8_t compression; /* of one to be sent: an enum bow_compression */
};

struct bow__message_queue {
    struct bow__queued_message *first;
    struct bow__queued_message *last;
};

/** One with room for `len` bytes of its own; NULL out of memory. */
struct bow__queued_message *bow__queued_message_new(struct bow_context *context, size_t len);
/** One whose bytes are a payload's, to which it takes a reference. NULL out of memory. */
struct bow__queued_message *bow__queued_message_share(struct bow_context *context,
                                                      struct bow_payload *payload);
/** Keep a received message: its block is taken if it has one, else its bytes are copied. */
struct bow__queued_message *bow__queued_message_keep(struct bow_context *context,
                                                     struct bow__message *message);
/** Another of the same bytes, which both have then. NULL out of memory. */
struct bow__queued_message *bow__queued_message_dup(struct bow_context *context,
                                                    struct bow__queued_message *queued);
void bow__queued_message_free(struct bow__queued_message *queued);
/** What one that keeps `message` takes in memory, and the same of one that is there. */
size_t bow__queued_message_memory_for(const struct bow__message *message);
size_t bow__queued_message_memory(const struct bow__queued_message *queued);
/** The message that was kept, with a reference to the block that has its bytes; `queued` is gone.
 */
struct bow__message bow__queued_message_release(struct bow__queued_message *queued);

/** The block that holds the bytes. */
struct bow__block *bow__queued_message_block(struct bow__queued_message *queued);
static inline uint8_t *bow__queued_message_bytes(struct bow__queued_message *queued)
{
    return bow__queued_message_block(queued)->data + queued->offset;
}
/** The block's reference has been given away: what else there is goes. */
void bow__queued_message_given(struct bow__queued_message *queued);

void bow__message_queue_push(struct bow__message_queue *queue, struct bow__queued_message *queued);
/** NULL when it is empty. */
struct bow__queued_message *bow__message_queue_pop(struct bow__message_queue *queue);
/** Append all of `from`, which is empty then. */
void bow__message_queue_append(struct bow__message_queue *queue, struct bow__message_queue *from);
/** Free all. Returns how many bytes they queued, as bow__consumed_bytes() counts. */
size_t bow__message_queue_clear(struct bow__message_queue *queue);

#endif
