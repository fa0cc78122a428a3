/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What time it is inside of callbacks, which may have held the loop since it took its
 * time. Knows nothing of timers.
 */

#include "base/clock.h"
#include "transport/loop/loop_core.h"
#include "transport/system/system_linux.h"

/* The coarse clock stands still between two ticks, which are 10 ms apart at most. The rest is for
 * a virtual machine that does not get its turn. */
#define COARSE_LAG_NS UINT64_C(100000000)

/* The coarse clock costs a tenth of the other, which matters when each call asks. A system with a
 * clock of its own has no such pair. */
static bool is_far(const struct bow_loop *loop, uint64_t time_ns)
{
    return loop->has_coarse_clock && bow__linux_coarse_ns() + COARSE_LAG_NS < time_ns;
}

bool bow__loop_has_passed(const struct bow_loop *loop, uint64_t time_ns)
{
    if (time_ns == BOW_NEVER || is_far(loop, time_ns)) {
        return false;
    }
    return time_ns <= bow__loop_clock(loop);
}

uint64_t bow__loop_read_clock(const struct bow_loop *loop)
{
    return bow__loop_clock(loop);
}
