/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_CLOCK_H
#define BOWLINE_BASE_CLOCK_H

/*
 * Arithmetic of times: unsigned nanoseconds of the monotonic clock, saturating.
 * BOW_NEVER is the deadline that does not come. Reading the clock is the system
 * table's business.
 */

#include <bowline/system.h>

static inline uint64_t bow__time_add(uint64_t time_ns, uint64_t delay_ns)
{
    return delay_ns >= BOW_NEVER - time_ns ? BOW_NEVER : time_ns + delay_ns;
}

/** Time from `now_ns` until `time_ns`; 0 when it has passed, BOW_NEVER stays BOW_NEVER. */
static inline uint64_t bow__time_left(uint64_t time_ns, uint64_t now_ns)
{
    if (time_ns == BOW_NEVER) {
        return BOW_NEVER;
    }
    return time_ns > now_ns ? time_ns - now_ns : 0;
}

static inline uint64_t bow__time_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

#endif
