/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * CRC-32C, four bits at a time: it is for headers of some hundred bytes, where a large
 * table would cost more cache than it saves time.
 */

#include "base/crc32c.h"

#define POLYNOMIAL UINT32_C(0x82F63B78) /* bits reversed, as the sum takes them */

static uint32_t shift_bit(uint32_t crc)
{
    return crc >> 1 ^ (POLYNOMIAL & (0 - (crc & 1)));
}

uint32_t bow__crc32c(uint32_t crc, const void *bytes, size_t len)
{
    const uint8_t *next = bytes;
    uint32_t nibbles[16];

    for (uint32_t i = 0; i < 16; i++) {
        nibbles[i] = shift_bit(shift_bit(shift_bit(shift_bit(i))));
    }
    crc = ~crc;
    for (size_t i = 0; i < len; i++) {
        crc ^= next[i];
        crc = crc >> 4 ^ nibbles[crc & 15];
        crc = crc >> 4 ^ nibbles[crc & 15];
    }
    return ~crc;
}
