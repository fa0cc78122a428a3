/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CODEC_WIRE_H
#define BOWLINE_RPC_CORE_CODEC_WIRE_H

/*
 * The protobuf wire format's smallest pieces: varints, tags, zigzag and
 * little-endian words. Knows nothing of messages and of descriptors.
 * https://protobuf.dev/programming-guides/encoding/
 *
 *     tag = varint(field number << 3 | wire type)
 *
 * A varint has at most ten bytes, and the tenth is at most 1: what does not fit
 * 64 bits is refused, never cut. Encodings longer than needed are taken, as
 * every other implementation does.
 *
 * Readers take [at, end) and return the first byte after what they read, or NULL;
 * they never look at or beyond `end`. Writers come in two directions: forward
 * (the caller has made room) and before (they end where they are told).
 */

#include <bowline/slice.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define BOW__WIRE_VARINT_BYTES 10
#define BOW__WIRE_MAX_NUMBER ((UINT32_C(1) << 29) - 1)

enum bow__wire_type {
    BOW__WIRE_VARINT = 0,
    BOW__WIRE_FIXED64 = 1,
    BOW__WIRE_LEN = 2,
    BOW__WIRE_GROUP_START = 3,
    BOW__WIRE_GROUP_END = 4,
    BOW__WIRE_FIXED32 = 5,
};

/** A tag is a varint of 32 bits; C++ and protobuf-c refuse one that takes more bytes, too. */
#define BOW__WIRE_TAG_BYTES 5

static inline uint32_t bow__wire_tag(uint32_t number, enum bow__wire_type type)
{
    return number << 3 | (uint32_t)type;
}

static inline uint32_t bow__wire_zigzag32(int32_t value)
{
    return (uint32_t)value << 1 ^ (value < 0 ? UINT32_MAX : 0);
}

static inline uint64_t bow__wire_zigzag64(int64_t value)
{
    return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

static inline uint32_t bow__wire_unzigzag32(uint32_t value)
{
    return value >> 1 ^ (0u - (value & 1));
}

static inline uint64_t bow__wire_unzigzag64(uint64_t value)
{
    return value >> 1 ^ (UINT64_C(0) - (value & 1));
}

/** Bytes of the shortest encoding: 1 to 10. */
static inline size_t bow__wire_varint_size(uint64_t value)
{
    size_t bits = (size_t)(64 - __builtin_clzll(value | 1));
    return (bits * 9 + 64) / 64; /* bits / 7, rounded up, for 1 to 64 */
}

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define BOW__WIRE_IS_LITTLE_ENDIAN 0

static inline uint32_t bow__wire_order32(uint32_t value)
{
    return __builtin_bswap32(value);
}

static inline uint64_t bow__wire_order64(uint64_t value)
{
    return __builtin_bswap64(value);
}
#else
#define BOW__WIRE_IS_LITTLE_ENDIAN 1

static inline uint32_t bow__wire_order32(uint32_t value)
{
    return value;
}

static inline uint64_t bow__wire_order64(uint64_t value)
{
    return value;
}
#endif

static inline uint32_t bow__wire_load32(const void *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return bow__wire_order32(value);
}

static inline uint64_t bow__wire_load64(const void *at)
{
    uint64_t value;
    memcpy(&value, at, sizeof value);
    return bow__wire_order64(value);
}

static inline void bow__wire_store32(void *at, uint32_t value)
{
    value = bow__wire_order32(value);
    memcpy(at, &value, sizeof value);
}

static inline void bow__wire_store64(void *at, uint64_t value)
{
    value = bow__wire_order64(value);
    memcpy(at, &value, sizeof value);
}

/** One of up to four bytes, of which as many can be read; NULL when it is longer. */
static inline const uint8_t *bow__wire_read_varint_word(const uint8_t *at, uint64_t *ret_value)
{
    uint32_t word = bow__wire_load32(at);
    uint32_t ends = ~word & 0x80808080u; /* the top bit of a last byte */

    if (ends == 0) {
        return NULL;
    }
    word &= ends ^ (ends - 1); /* up to the first end */
    *ret_value = (word & 0x7fu) | (word >> 1 & 0x7fu << 7) | (word >> 2 & 0x7fu << 14) |
                 (word >> 3 & 0x7fu << 21);
    return at + __builtin_ctz(ends) / 8 + 1;
}

/** The part of bow__wire_read_varint() that is seldom needed: any length. */
static inline const uint8_t *bow__wire_read_long_varint(const uint8_t *at, const uint8_t *end,
                                                        uint64_t *ret_value)
{
    uint64_t value = 0;

    if (end - at >= 4) {
        const uint8_t *next = bow__wire_read_varint_word(at, ret_value);
        if (next != NULL) {
            return next;
        }
    }
    for (unsigned shift = 0; shift < 64 && at < end; shift += 7) {
        uint64_t byte = *at++;
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80) {
            *ret_value = value;
            return shift == 63 && byte > 1 ? NULL : at;
        }
    }
    return NULL;
}

/** Read a varint. NULL when it is cut off by `end` or does not fit 64 bits. */
static inline const uint8_t *bow__wire_read_varint(const uint8_t *at, const uint8_t *end,
                                                   uint64_t *ret_value)
{
    if (at < end && *at < 0x80) {
        *ret_value = *at;
        return at + 1;
    }
    if (end - at >= 2 && at[1] < 0x80) {
        *ret_value = (at[0] & 0x7fu) | (uint64_t)at[1] << 7;
        return at + 2;
    }
    return bow__wire_read_long_varint(at, end, ret_value);
}

/** Whether a varint at `at` that could not be read lacks bytes (else it is too long). */
static inline bool bow__wire_is_cut(const uint8_t *at, const uint8_t *end)
{
    size_t n = 0;
    while (n < BOW__WIRE_VARINT_BYTES && at + n < end && at[n] >= 0x80) {
        n++;
    }
    return at + n == end && n < BOW__WIRE_VARINT_BYTES;
}

/**
 * Decode the varint at the front of `bytes`.
 *
 * Returns: bytes consumed (1 to 10), or -EAGAIN when more bytes are needed, or
 *          -EBADMSG when it does not fit 64 bits
 */
static inline int bow__wire_decode_varint(struct bow_slice bytes, uint64_t *ret_value)
{
    if (bytes.len == 0) {
        return -EAGAIN;
    }
    const uint8_t *end = bytes.data + bytes.len;
    const uint8_t *next = bow__wire_read_varint(bytes.data, end, ret_value);
    if (next == NULL) {
        return bow__wire_is_cut(bytes.data, end) ? -EAGAIN : -EBADMSG;
    }
    return (int)(next - bytes.data);
}

/** Write forward at `at`, where up to ten bytes have room; returns the first byte after. */
static inline uint8_t *bow__wire_write_varint(uint8_t *at, uint64_t value)
{
    while (value >= 0x80) {
        *at++ = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    *at++ = (uint8_t)value;
    return at;
}

/** Write so that the varint ends at `end`, before which ten bytes have room; returns its start. */
static inline uint8_t *bow__wire_varint_before(uint8_t *end, uint64_t value)
{
    if (value < 0x80) {
        end[-1] = (uint8_t)value;
        return end - 1;
    }
    if (value < 0x4000) {
        end[-2] = (uint8_t)(value | 0x80);
        end[-1] = (uint8_t)(value >> 7);
        return end - 2;
    }
    size_t size = bow__wire_varint_size(value);
    bow__wire_write_varint(end - size, value);
    return end - size;
}

/** The same where there may be less: NULL when [begin, end) is too small. */
static inline uint8_t *bow__wire_write_varint_before(uint8_t *begin, uint8_t *end, uint64_t value)
{
    size_t room = (size_t)(end - begin);
    if (room < BOW__WIRE_VARINT_BYTES && room < bow__wire_varint_size(value)) {
        return NULL;
    }
    return bow__wire_varint_before(end, value);
}

#endif
