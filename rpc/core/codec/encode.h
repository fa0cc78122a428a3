/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CODEC_ENCODE_H
#define BOWLINE_RPC_CORE_CODEC_ENCODE_H

/*
 * protobuf-c structs → protobuf bytes, in one pass and without allocation. The
 * message is written from its end to its beginning, so that the length of a
 * sub-message is known when its prefix is due: linear at any depth. Who can take the
 * bytes where they are then has them from bow__encode_at_end(); bow__encode() moves
 * them to the front of the buffer, unless they fill it.
 *
 *     buf                                            buf + cap
 *      |                    | field 1 | .. | field n | unknown fields |
 *      | field 1 | .. | field n | unknown fields |
 *
 * The bytes are those of protobuf_c_message_pack(), except where that one loses
 * what the protobuf specification sends:
 *  - proto3 floating-point fields that are -0.0 are sent;
 *  - a group (BOW_DESCRIPTOR_GROUP) is sent as one, between its two tags;
 *  - a string selected by a oneof (so also a proto3 optional one) is sent when it
 *    is empty, whatever its pointer: NULL and protobuf_c_empty_string are "".
 */

#include "base/text.h"
#include <errno.h>
#include <protobuf-c/protobuf-c.h>
#include <sys/types.h>

/**
 * Encode `message` at the front of [buf, buf + cap).
 *
 * All of the buffer may be written to, also on failure. For -EINVAL, what is wrong
 * is appended to `reason` (may be NULL): the field's path, and what, as in
 * "demo.Order.items[3].name is NULL, but a string is needed: set it ("" for an empty one)".
 *
 * Thread:  any
 * Owns:    borrows `message`, `buf`, `reason`
 * Returns: the length; when that is above `cap`, the message did not fit and needs so
 *          much, as with snprintf(); or -EINVAL when a pointer that is needed is NULL, at more
 *          than BOW_LIMIT_MESSAGE_DEPTH levels, or over 2 GiB - 1
 */
ssize_t bow__encode(const ProtobufCMessage *message, uint8_t *buf, size_t cap,
                    struct bow__text *reason);

/**
 * Encode `message` so that it ends at buf + cap, where it stays: its bytes are the last ones of the
 * buffer, as many as are returned. For the rest as bow__encode().
 */
ssize_t bow__encode_at_end(const ProtobufCMessage *message, uint8_t *buf, size_t cap,
                           struct bow__text *reason);

/** Append that the message is being written to; `reason` may be NULL. */
void bow__encode_say_changed(struct bow__text *reason);

/** The same into a buffer of the length that bow__encode() or bow__encoded_size() told. -EINVAL,
 * too, when the message has grown meanwhile: another thread writes to it. */
static inline ssize_t bow__encode_sized(const ProtobufCMessage *message, uint8_t *buf, size_t size,
                                        struct bow__text *reason)
{
    ssize_t n = bow__encode(message, buf, size, reason);

    if (n >= 0 && (size_t)n > size) {
        bow__encode_say_changed(reason);
        return -EINVAL;
    }
    return n;
}

/** Append why bow__encode() says -EINVAL. Thread: any. */
void bow__encode_explain(const ProtobufCMessage *message, struct bow__text *reason);

/** The name of the type of `message`, for errors; "NULL" for none, or one without its INIT. */
static inline const char *bow__type_name(const ProtobufCMessage *message)
{
    return message != NULL && message->descriptor != NULL ? message->descriptor->name : "NULL";
}

/** The length of `message` encoded; SIZE_MAX when bow__encode() would say -EINVAL. Thread: any. */
size_t bow__encoded_size(const ProtobufCMessage *message);

#endif
