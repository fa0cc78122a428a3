/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Messages that wait, and their queues. Knows neither who sends nor who takes.
 */

#include "rpc/core/message/message_queue.h"
#include "base/list.h"
#include "rpc/core/message/payload.h"
#include "rpc/core/session.h"

#include <string.h>

static struct bow__block *own_block(struct bow__queued_message *held)
{
    return BOW__CONTAINER(held, struct bow__block, data);
}

struct bow__queued_message *bow__queued_message_new(struct bow_context *context, size_t len)
{
    struct bow__block *block =
        len <= SIZE_MAX - sizeof(struct bow__queued_message)
            ? bow__block_new(context, sizeof(struct bow__queued_message) + len)
            : NULL;

    if (block == NULL) {
        return NULL;
    }
    struct bow__queued_message *held = (struct bow__queued_message *)(void *)block->data;
    *held = (struct bow__queued_message){.offset = sizeof(*held), .len = len};
    return held;
}

struct bow__queued_message *bow__queued_message_share(struct bow_context *context,
                                                      struct bow_payload *payload)
{
    struct bow__queued_message *held = bow__queued_message_new(context, 0);

    if (held != NULL) {
        held->payload = bow_payload_ref(payload);
        held->shared = bow__block_ref(payload->block);
        held->offset = BOW__PAYLOAD_OFFSET;
        held->len = payload->len;
    }
    return held;
}

struct bow__queued_message *bow__queued_message_keep(struct bow_context *context,
                                                     struct bow__message *message)
{
    bool has_block = message->block != NULL;
    struct bow__queued_message *held =
        bow__queued_message_new(context, has_block ? 0 : message->bytes.len);

    if (held == NULL) {
        return NULL;
    }
    if (has_block) {
        held->shared = message->block;
        held->offset = (size_t)(message->bytes.data - message->block->data);
        held->len = message->bytes.len;
        message->block = NULL;
    } else if (message->bytes.len > 0) {
        memcpy(bow__queued_message_bytes(held), message->bytes.data, message->bytes.len);
    }
    held->compressed = message->compressed;
    held->encoding = (uint8_t)message->encoding;
    return held;
}

struct bow__message bow__queued_message_release(struct bow__queued_message *held)
{
    struct bow__message message = {
        .bytes = {bow__queued_message_bytes(held), held->len},
        .block = bow__queued_message_block(held),
        .compressed = held->compressed,
        .encoding = (enum bow__encoding)held->encoding,
    };

    bow__queued_message_given(held);
    return message;
}

void bow__queued_message_free(struct bow__queued_message *held)
{
    if (held != NULL) {
        bow__block_unref(held->shared);
        bow_payload_unref(held->payload);
        bow__block_unref(own_block(held));
    }
}

struct bow__block *bow__queued_message_block(struct bow__queued_message *held)
{
    return held->shared != NULL ? held->shared : own_block(held);
}

void bow__queued_message_given(struct bow__queued_message *held)
{
    if (held->shared != NULL) {
        bow_payload_unref(held->payload);
        bow__block_unref(own_block(held));
    }
}

void bow__message_queue_push(struct bow__message_queue *queue, struct bow__queued_message *held)
{
    held->next = NULL;
    if (queue->first == NULL) {
        queue->first = held;
    } else {
        queue->last->next = held;
    }
    queue->last = held;
}

struct bow__queued_message *bow__message_queue_pop(struct bow__message_queue *queue)
{
    struct bow__queued_message *held = queue->first;

    if (held != NULL) {
        queue->first = held->next;
    }
    return held;
}

void bow__message_queue_append(struct bow__message_queue *queue, struct bow__message_queue *from)
{
    if (from->first == NULL) {
        return;
    }
    if (queue->first == NULL) {
        queue->first = from->first;
    } else {
        queue->last->next = from->first;
    }
    queue->last = from->last;
    from->first = NULL;
}

size_t bow__message_queue_clear(struct bow__message_queue *queue)
{
    struct bow__queued_message *held;
    size_t n = 0;

    while ((held = bow__message_queue_pop(queue)) != NULL) {
        n += bow__consumed_bytes(held->len);
        bow__queued_message_free(held);
    }
    return n;
}
