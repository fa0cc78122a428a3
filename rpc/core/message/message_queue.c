/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Messages that wait, and their queues. Knows neither who sends nor who takes.
 */

#include "rpc/core/message/message_queue.h"
#include "base/list.h"
#include "rpc/core/message/payload.h"
#include "rpc/core/session.h"

#include <string.h>

static struct bow__block *own_block(struct bow__queued_message *queued)
{
    return BOW__CONTAINER(queued, struct bow__block, data);
}

struct bow__queued_message *bow__queued_message_new(struct bow_context *context, size_t len)
{
    struct bow__block *block =
        len <= SIZE_MAX - sizeof(struct bow__queued_message)
            ? bow__block_new_to_fill(context, sizeof(struct bow__queued_message) + len)
            : NULL;

    if (block == NULL) {
        return NULL;
    }
    struct bow__queued_message *queued = (struct bow__queued_message *)(void *)block->data;
    *queued = (struct bow__queued_message){.offset = sizeof(*queued), .len = len};
    return queued;
}

struct bow__queued_message *bow__queued_message_share(struct bow_context *context,
                                                      struct bow_payload *payload)
{
    struct bow__queued_message *queued = bow__queued_message_new(context, 0);

    if (queued != NULL) {
        queued->payload = bow_payload_ref(payload);
        queued->shared = bow__block_ref(payload->block);
        queued->offset = BOW__PAYLOAD_OFFSET;
        queued->len = payload->len;
    }
    return queued;
}

struct bow__queued_message *bow__queued_message_keep(struct bow_context *context,
                                                     struct bow__message *message)
{
    bool has_block = message->block != NULL;
    struct bow__queued_message *queued =
        bow__queued_message_new(context, has_block ? 0 : message->bytes.len);

    if (queued == NULL) {
        return NULL;
    }
    if (has_block) {
        queued->shared = message->block;
        queued->offset = (size_t)(message->bytes.data - message->block->data);
        queued->len = message->bytes.len;
        message->block = NULL;
    } else if (message->bytes.len > 0) {
        memcpy(bow__queued_message_bytes(queued), message->bytes.data, message->bytes.len);
    }
    queued->compressed = message->compressed;
    queued->encoding = (uint8_t)message->encoding;
    return queued;
}

struct bow__queued_message *bow__queued_message_dup(struct bow_context *context,
                                                    struct bow__queued_message *queued)
{
    struct bow__queued_message *dup = bow__queued_message_new(context, 0);

    if (dup != NULL) {
        dup->shared = bow__block_ref(bow__queued_message_block(queued));
        dup->payload = queued->payload != NULL ? bow_payload_ref(queued->payload) : NULL;
        dup->offset = queued->offset;
        dup->len = queued->len;
        dup->compressed = queued->compressed;
        dup->encoding = queued->encoding;
        dup->compression = queued->compression;
    }
    return dup;
}

struct bow__message bow__queued_message_release(struct bow__queued_message *queued)
{
    struct bow__message message = {
        .bytes = {bow__queued_message_bytes(queued), queued->len},
        .block = bow__queued_message_block(queued),
        .compressed = queued->compressed,
        .encoding = (enum bow__encoding)queued->encoding,
    };

    bow__queued_message_given(queued);
    return message;
}

static size_t memory_with(const struct bow__block *shared, size_t len)
{
    size_t n = sizeof(struct bow__block) + sizeof(struct bow__queued_message);

    return n + (shared != NULL ? sizeof(*shared) + shared->cap : len);
}

size_t bow__queued_message_memory_for(const struct bow__message *message)
{
    return memory_with(message->block, message->bytes.len);
}

size_t bow__queued_message_memory(const struct bow__queued_message *queued)
{
    return memory_with(queued->shared, queued->len);
}

void bow__queued_message_free(struct bow__queued_message *queued)
{
    if (queued != NULL) {
        bow__block_unref(queued->shared);
        bow_payload_unref(queued->payload);
        bow__block_unref(own_block(queued));
    }
}

struct bow__block *bow__queued_message_block(struct bow__queued_message *queued)
{
    return queued->shared != NULL ? queued->shared : own_block(queued);
}

void bow__queued_message_given(struct bow__queued_message *queued)
{
    if (queued->shared != NULL) {
        bow_payload_unref(queued->payload);
        bow__block_unref(own_block(queued));
    }
}

void bow__message_queue_push(struct bow__message_queue *queue, struct bow__queued_message *queued)
{
    queued->next = NULL;
    if (queue->first == NULL) {
        queue->first = queued;
    } else {
        queue->last->next = queued;
    }
    queue->last = queued;
}

struct bow__queued_message *bow__message_queue_pop(struct bow__message_queue *queue)
{
    struct bow__queued_message *queued = queue->first;

    if (queued != NULL) {
        queue->first = queued->next;
    }
    return queued;
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
    struct bow__queued_message *queued;
    size_t n = 0;

    while ((queued = bow__message_queue_pop(queue)) != NULL) {
        n += bow__consumed_bytes(queued->len);
        bow__queued_message_free(queued);
    }
    return n;
}
