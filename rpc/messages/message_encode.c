/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The encoder as programs have it. Knows nothing of the bytes but a delimiter's.
 */
#include "rpc/core/codec/encode.h"
#include "rpc/core/codec/wire.h"
#include "rpc/messages/reason.h"
#include "rpc/messages/storage.h"
#include <bowline/message.h>

int bow_message_size(const ProtobufCMessage *message, size_t *ret_size)
{
    size_t size = message != NULL ? bow__encoded_size(message) : SIZE_MAX;

    if (size == SIZE_MAX) {
        return -EINVAL;
    }
    *ret_size = size;
    return 0;
}

int bow_message_encode(const ProtobufCMessage *message, void *data, size_t size, size_t *ret_len)
{
    uint8_t nothing[1];

    if (message == NULL) {
        return -EINVAL;
    }
    ssize_t n = bow__encode(message, size > 0 ? data : nothing, size, NULL);
    if (n < 0) {
        return (int)n;
    }
    if ((size_t)n > size) {
        return -ENOSPC;
    }
    *ret_len = (size_t)n;
    return 0;
}

int bow_message_encode_new(const ProtobufCMessage *message, struct bow_arena *arena,
                           struct bow_slice *ret_bytes)
{
    size_t size = 0;
    size_t len = 0;

    int rc = bow_message_size(message, &size);
    if (rc < 0) {
        return rc;
    }
    uint8_t *data = bow__storage_take(arena, size);
    if (data == NULL) {
        return -ENOMEM;
    }
    rc = bow_message_encode(message, data, size, &len);
    if (rc < 0) { /* another thread writes to it */
        bow__storage_drop(arena, data);
        return -EINVAL;
    }
    *ret_bytes = (struct bow_slice){data, len};
    return 0;
}

int bow_message_encode_delimited(const ProtobufCMessage *message, void *data, size_t size,
                                 size_t *ret_len)
{
    uint8_t nothing[1];

    if (message == NULL) {
        return -EINVAL;
    }
    ssize_t n = bow__encode_at_end(message, size > 0 ? data : nothing, size, NULL);
    if (n < 0) {
        return (int)n;
    }
    size_t len = (size_t)n;
    size_t n_delimiter = bow__wire_varint_size(len);
    if (len > size || n_delimiter > size - len) {
        return -ENOSPC;
    }
    uint8_t *body = (uint8_t *)data + n_delimiter;
    memmove(body, (uint8_t *)data + size - len, len);
    bow__wire_write_varint(data, len);
    *ret_len = n_delimiter + len;
    return 0;
}

int bow_message_check(const ProtobufCMessage *message, char *reason, size_t reason_size)
{
    struct bow__text text;

    bow__text_clear(&text);
    if (message == NULL) {
        bow__text_printf(&text, "the message is NULL");
    } else {
        bow__encode_explain(message, &text);
    }
    bow__reason_give(&text, reason, reason_size);
    return text.len > 0 ? -EINVAL : 0;
}
