/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CODEC_VALUE_H
#define BOWLINE_RPC_CORE_CODEC_VALUE_H

/*
 * How a field's value lies in memory, as protobuf-c lays out its structs. Knows nothing of how it
 * travels.
 */

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

/** Bytes of one value of `type` in a struct or an array. */
static inline size_t bow__value_size(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_INT64:
    case PROTOBUF_C_TYPE_SINT64:
    case PROTOBUF_C_TYPE_SFIXED64:
    case PROTOBUF_C_TYPE_UINT64:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_DOUBLE:
        return 8;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_MESSAGE:
        return sizeof(void *);
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    default:
        return 4;
    }
}

#endif
