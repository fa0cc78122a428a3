/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Validation of UTF-8, a word or more at a time over ASCII, a character at a time elsewhere.
 */
#include "rpc/core/codec/utf8.h"
#include "base/hints.h"
#include <string.h>

static const uint64_t ones = UINT64_C(0x0101010101010101);
static const uint64_t highs = UINT64_C(0x8080808080808080);

static inline uint64_t load64(const uint8_t *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/*
 * Bits of `highs` are set in the result when a byte of `word` is not ASCII or is
 * NUL: taking 1 from each byte borrows only where a byte is 0.
 */
static inline uint64_t blemishes(uint64_t word)
{
    return (word - ones) | word;
}

static inline bool is_tail(uint8_t byte)
{
    return (byte & 0xc0) == 0x80;
}

/* The second byte has a narrower range after these four, and that is all that tells overlong
 * forms, surrogates and what lies above U+10FFFF. */
static bool is_second(uint8_t first, uint8_t second)
{
    switch (first) {
    case 0xe0:
        return second >= 0xa0 && second <= 0xbf;
    case 0xed:
        return second >= 0x80 && second <= 0x9f;
    case 0xf0:
        return second >= 0x90 && second <= 0xbf;
    case 0xf4:
        return second >= 0x80 && second <= 0x8f;
    default:
        return is_tail(second);
    }
}

/* Bytes of the character at `at` (not ASCII), or 0. */
static size_t character_size(const uint8_t *at, size_t left)
{
    uint8_t first = at[0];
    if (first < 0xc2 || first > 0xf4) {
        return 0;
    }
    size_t size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (left < size || !is_second(first, at[1])) {
        return 0;
    }
    for (size_t i = 2; i < size; i++) {
        if (!is_tail(at[i])) {
            return 0;
        }
    }
    return size;
}

/* What compilers have registers for, or make of words. */
typedef uint8_t vector __attribute__((vector_size(16)));

static inline vector load_vector(const uint8_t *at)
{
    vector bytes;
    memcpy(&bytes, at, sizeof bytes);
    return bytes;
}

static inline vector vector_blemishes(vector bytes)
{
    return (bytes - 1) | bytes;
}

static inline uint64_t joined(vector blemish)
{
    uint64_t words[2];
    memcpy(words, &blemish, sizeof words);
    return words[0] | words[1];
}

/* How many bytes at the front are ASCII and not NUL, as far as whole steps tell. */
static size_t plain_steps(const uint8_t *at, size_t len)
{
    enum { N_VECTORS = 4 };
    const size_t step = N_VECTORS * sizeof(vector);
    size_t i = 0;
    for (; i + step <= len; i += step) {
        vector blemish = {0};
        for (size_t k = 0; k < N_VECTORS; k++) {
            blemish |= vector_blemishes(load_vector(at + i + k * sizeof(vector)));
        }
        if ((joined(blemish) & highs) != 0) {
            break;
        }
    }
    return i;
}

size_t bow__utf8_prefix(struct bow_slice bytes, bool allow_nul)
{
    if (bytes.len == 0) { /* and `data` may be NULL */
        return 0;
    }
    size_t n_plain = plain_steps(bytes.data, bytes.len);
    const uint8_t *at = bytes.data + n_plain;
    size_t left = bytes.len - n_plain;
    while (left > 0) {
        if (left >= 8 && (blemishes(load64(at)) & highs) == 0) {
            at += 8;
            left -= 8;
            continue;
        }
        size_t size = at[0] >= 0x80 ? character_size(at, left) : (size_t)(at[0] != 0 || allow_nul);
        if (size == 0) {
            break;
        }
        at += size;
        left -= size;
    }
    return bytes.len - left;
}

static bool copy_short(uint8_t *to, const uint8_t *from, size_t len)
{
    uint8_t blemish = 0;
    for (size_t i = 0; i < len; i++) {
        to[i] = from[i];
        blemish |= (uint8_t)(from[i] - 1u) | from[i];
    }
    return blemish < 0x80;
}

static inline vector copy_vector(uint8_t *to, const uint8_t *from)
{
    vector bytes = load_vector(from);
    memcpy(to, &bytes, sizeof bytes);
    return vector_blemishes(bytes);
}

/* At least 8 bytes. `blemish`: of bytes before them. */
static inline bool copy_words(uint8_t *to, const uint8_t *from, size_t len, uint64_t blemish)
{
    for (size_t i = 0; i + 8 < len; i += 8) {
        uint64_t word = load64(from + i);
        blemish |= blemishes(word);
        memcpy(to + i, &word, sizeof word);
    }
    /* The last word overlaps the one before it, so that no byte is handled alone. */
    uint64_t word = load64(from + len - 8);
    blemish |= blemishes(word);
    memcpy(to + len - 8, &word, sizeof word);
    return (blemish & highs) == 0;
}

#define LONG_STEP ((size_t)2 * sizeof(vector))
#define LONG (2 * LONG_STEP)
/* More than LONG bytes. */
BOW__LONG_WAY static bool copy_long(uint8_t *to, const uint8_t *from, size_t len)
{
    vector blemish[2] = {{0}, {0}};
    size_t i = 0;
    for (; i + LONG_STEP + 8 <= len; i += LONG_STEP) {
        blemish[0] |= copy_vector(to + i, from + i);
        blemish[1] |= copy_vector(to + i + sizeof(vector), from + i + sizeof(vector));
    }
    return copy_words(to + i, from + i, len - i, joined(blemish[0] | blemish[1]));
}

bool bow__utf8_copy(uint8_t *to, const uint8_t *from, size_t len)
{
    if (len < 8) {
        return copy_short(to, from, len);
    }
    return len > LONG ? copy_long(to, from, len) : copy_words(to, from, len, 0);
}
