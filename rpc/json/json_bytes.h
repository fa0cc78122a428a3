/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_JSON_JSON_BYTES_H
#define BOWLINE_RPC_JSON_JSON_BYTES_H

/* What ends a run of plain characters in a string of JSON, found eight bytes at a time. */

#include <stdint.h>
#include <string.h>

#define BOW__JSON_ONES UINT64_C(0x0101010101010101)
#define BOW__JSON_HIGHS UINT64_C(0x8080808080808080)

static inline uint64_t bow__json_load(const void *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/** The top bit of each byte that is `c`, which is ASCII. */
static inline uint64_t bow__json_equals(uint64_t word, char c)
{
    uint64_t differing = word ^ BOW__JSON_ONES * (uint8_t)c;
    return ~(((differing & ~BOW__JSON_HIGHS) + ~BOW__JSON_HIGHS) | differing) & BOW__JSON_HIGHS;
}

/** The same of each that is a quotation mark, a backslash or a control character. */
static inline uint64_t bow__json_specials(uint64_t word)
{
    uint64_t others = (word & ~BOW__JSON_HIGHS) + BOW__JSON_ONES * 0x60;
    uint64_t controls = ~others & ~word & BOW__JSON_HIGHS;
    return controls | bow__json_equals(word, '"') | bow__json_equals(word, '\\');
}

#endif
