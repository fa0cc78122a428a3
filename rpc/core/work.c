/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "rpc/core/work.h"

#define SECOND_NS UINT64_C(1000000000)

/* The excess that is over by itself within a second. */
static const uint64_t per_second = BOW_LIMIT_EXPANDED_BYTES_PER_SECOND;

static uint64_t above(uint64_t n, uint64_t free_bytes)
{
    return n > free_bytes ? n - free_bytes : 0;
}

/* Within a second all of it is over, so nothing overflows. */
static void sink(struct bow__work *work)
{
    uint64_t elapsed_ns = work->now_ns - work->sunk_ns;
    uint64_t n = elapsed_ns / SECOND_NS * per_second +
                 elapsed_ns % SECOND_NS * (per_second >> 10) / (SECOND_NS >> 10);

    work->n_excess = above(work->n_excess, n);
    work->sunk_ns = work->now_ns;
}

void bow__work_count(struct bow__work *work, size_t n_wire, size_t n_made, bool undecodable)
{
    uint64_t n_excess =
        above(n_made, BOW_LIMIT_EXPANSION * (uint64_t)n_wire + BOW__WORK_FREE_BYTES);

    if (undecodable) {
        if (work->now_ns - work->second_ns >= SECOND_NS) {
            work->second_ns = work->now_ns;
            work->n_undecodable = 0;
        }
        work->n_undecodable++;
        n_excess *= BOW__WORK_UNDECODABLE_FACTOR;
    }
    sink(work);
    work->n_excess += n_excess;
    work->n_turn += above(n_made, BOW__WORK_FREE_FACTOR * (uint64_t)n_wire);
    if (work->n_excess > per_second || bow__work_is_hostile(work)) {
        work->n_turn += BOW__WORK_TURN_BYTES; /* that was it */
    }
}

uint64_t bow__work_next_turn(struct bow__work *work)
{
    work->n_turn = 0;
    sink(work);
    uint64_t n = above(work->n_excess, per_second);
    return work->now_ns + n / per_second * SECOND_NS +
           n % per_second * (SECOND_NS >> 10) / (per_second >> 10);
}
