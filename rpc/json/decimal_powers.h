/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_JSON_DECIMAL_POWERS_H
#define BOWLINE_RPC_JSON_DECIMAL_POWERS_H

/* The table of decimal_write.c: 10^k at [k - BOW__DECIMAL_POWER_MIN], scaled to 128 bits. */

#include <stdint.h>

#define BOW__DECIMAL_POWER_MIN (-292)
#define BOW__DECIMAL_POWER_MAX 324
#define BOW__DECIMAL_POWERS (BOW__DECIMAL_POWER_MAX - BOW__DECIMAL_POWER_MIN + 1)

struct bow__decimal_power {
    uint64_t high;
    uint64_t low;
};

extern const struct bow__decimal_power bow__decimal_powers[BOW__DECIMAL_POWERS];

#endif
