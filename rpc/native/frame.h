/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_NATIVE_FRAME_H
#define BOWLINE_RPC_NATIVE_FRAME_H

/*
 * The frame header of the native protocol, all versions; big-endian.
 *
 *      0       4      5       6              12
 *     +--------+------+-------+--------------+----------
 *     | length | type | flags | stream       | body ...      length = bytes of the body
 *     +--------+------+-------+--------------+----------
 *
 * Only reading and writing of these bytes; what a frame means is its reader's business.
 */

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BOW__FRAME_HEADER_BYTES ((size_t)12)
#define BOW__FRAME_STREAM_MAX ((UINT64_C(1) << 48) - 1)
#define BOW__FRAME_VERSION 1

/** A connection's first bytes, from either side; the version follows. */
#define BOW__FRAME_PREFACE                                                                         \
    {                                                                                              \
        0xB0, 'O', 'W', BOW__FRAME_VERSION                                                         \
    }
#define BOW__FRAME_PREFACE_BYTES ((size_t)4)

enum bow__frame_type {
    BOW__FRAME_SETTINGS = 0,
    BOW__FRAME_REQUEST = 1,
    BOW__FRAME_RESPONSE = 2,
    BOW__FRAME_MESSAGE = 3,
    BOW__FRAME_STATUS = 4,
    BOW__FRAME_CANCEL = 5,
    BOW__FRAME_WINDOW = 6,
    BOW__FRAME_PING = 7,
    BOW__FRAME_GOAWAY = 8,
    BOW__FRAME_N_TYPES = 9,
    BOW__FRAME_FIRST_SKIPPED = 128, /* this type and all above are skipped by who does not know */
};

enum bow__frame_flags {
    BOW__FRAME_END = 1,         /* REQUEST, MESSAGE, STATUS: nothing more from this side */
    BOW__FRAME_MORE = 2,        /* the message goes on in the stream's next MESSAGE */
    BOW__FRAME_COMPRESSED = 4,  /* with HAS_MESSAGE: for all of the message */
    BOW__FRAME_HAS_MESSAGE = 8, /* a message begins in this frame, be it empty */
    BOW__FRAME_ACK = 1,         /* PING */
};

/** Credit that the frame a message begins in spends at least: messages without bytes cost their
 * reader memory as well. */
#define BOW__FRAME_MESSAGE_COST ((size_t)64)

struct bow__frame {
    uint32_t length;
    uint8_t type;
    uint8_t flags;
    uint64_t stream;
};

static inline void bow__put_u32(uint8_t *to, uint32_t value)
{
    value = htobe32(value);
    memcpy(to, &value, sizeof(value));
}

static inline uint32_t bow__get_u32(const uint8_t *from)
{
    uint32_t value;

    memcpy(&value, from, sizeof(value));
    return be32toh(value);
}

static inline void bow__put_u64(uint8_t *to, uint64_t value)
{
    value = htobe64(value);
    memcpy(to, &value, sizeof(value));
}

static inline uint64_t bow__get_u64(const uint8_t *from)
{
    uint64_t value;

    memcpy(&value, from, sizeof(value));
    return be64toh(value);
}

static inline void bow__put_u48(uint8_t *to, uint64_t value)
{
    to[0] = (uint8_t)(value >> 40);
    to[1] = (uint8_t)(value >> 32);
    bow__put_u32(to + 2, (uint32_t)value);
}

static inline uint64_t bow__get_u48(const uint8_t *from)
{
    return (uint64_t)from[0] << 40 | (uint64_t)from[1] << 32 | bow__get_u32(from + 2);
}

/* Type, flags and stream lie in one big-endian u64, so that header and body take two stores. */

static inline void bow__frame_encode(uint8_t *to, const struct bow__frame *frame)
{
    bow__put_u32(to, frame->length);
    bow__put_u64(to + 4, (uint64_t)frame->type << 56 | (uint64_t)frame->flags << 48 |
                             (frame->stream & BOW__FRAME_STREAM_MAX));
}

/** The credit that `n` message bytes spend, which begin the message or go on with it. */
static inline size_t bow__frame_cost(bool begins, size_t n)
{
    return begins && n < BOW__FRAME_MESSAGE_COST ? BOW__FRAME_MESSAGE_COST : n;
}

static inline struct bow__frame bow__frame_decode(const uint8_t *from)
{
    uint64_t rest = bow__get_u64(from + 4);

    return (struct bow__frame){
        .length = bow__get_u32(from),
        .type = (uint8_t)(rest >> 56),
        .flags = (uint8_t)(rest >> 48),
        .stream = rest & BOW__FRAME_STREAM_MAX,
    };
}

#endif
