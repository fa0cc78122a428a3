/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Messages that are bytes. Knows nothing of calls.
 */

#include "rpc/core/codec/raw.h"

#include <errno.h>

const ProtobufCMessageDescriptor bow__raw_message__descriptor = {
    .magic = PROTOBUF_C__MESSAGE_DESCRIPTOR_MAGIC,
    .name = "message of bytes",
    .short_name = "bytes",
    .c_name = "bow__raw_message",
    .package_name = "",
    .sizeof_message = sizeof(struct bow__raw_message),
};

int bow__raw_decode(struct bow_slice bytes, bool has_adopted, struct bow__arena *arena,
                    ProtobufCMessage **ret_message, struct bow__text *reason)
{
    struct bow__raw_message *raw = bow__arena_alloc(arena, sizeof(*raw));

    if (raw != NULL && !has_adopted) {
        bytes.data = (const uint8_t *)bow__arena_dup(arena, bytes.data, bytes.len);
    }
    if (raw == NULL || bytes.data == NULL) {
        bow__text_printf(reason, "there is no memory for its %zu bytes", bytes.len);
        return -ENOMEM;
    }
    bow__raw_message_init(raw, bytes);
    *ret_message = &raw->base;
    return 0;
}
