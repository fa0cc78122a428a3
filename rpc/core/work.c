/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "rpc/core/work.h"

#define SECOND_NS UINT64_C(1000000000)

/* The excess that is over by itself within a second. */
static const uint64_t per_second = BOW_LIMIT_EXPANDED_BYTES_PER_SECOND;
static const uint64_t vain_per_second = BOW_LIMIT_VAIN_BYTES_PER_SECOND;

static uint64_t above(uint64_t n, uint64_t free_bytes)
{
    return n > free_bytes ? n - free_bytes : 0;
}

/* Of a time in which a century is nothing, so it does not overflow. */
static uint64_t bytes_of(uint64_t elapsed_ns, uint64_t n_per_second)
{
    return elapsed_ns / SECOND_NS * n_per_second +
           elapsed_ns % SECOND_NS * (n_per_second >> 10) / (SECOND_NS >> 10);
}

static void sink(struct bow__work *work)
{
    uint64_t elapsed_ns = work->now_ns - work->sunk_ns;

    work->n_excess = above(work->n_excess, bytes_of(elapsed_ns, per_second));
    work->n_vain = above(work->n_vain, bytes_of(elapsed_ns, vain_per_second));
    work->sunk_ns = work->now_ns;
}

void bow__work_count(struct bow__work *work, size_t n_wire, size_t n_made, bool undecodable)
{
    uint64_t n_excess =
        above(n_made, BOW_LIMIT_EXPANSION * (uint64_t)n_wire + BOW__WORK_FREE_BYTES);

    sink(work);
    if (undecodable) {
        if (work->now_ns - work->second_ns >= SECOND_NS) {
            work->second_ns = work->now_ns;
            work->n_undecodable = 0;
        }
        work->n_undecodable++;
        work->n_vain += n_excess;
        n_excess *= BOW__WORK_UNDECODABLE_FACTOR;
    }
    work->n_excess += n_excess;
    work->n_turn += above(n_made, BOW__WORK_FREE_FACTOR * (uint64_t)n_wire);
    if (work->n_excess > per_second || bow__work_is_hostile(work)) {
        work->n_turn += BOW__WORK_TURN_BYTES; /* that was it */
    }
}

void bow__work_go_on(struct bow__work *work)
{
    struct bow__link told;
    struct bow__link *link;

    bow__list_init(&told);
    bow__list_move(&told, &work->waiting);
    while ((link = bow__list_pop_front(&told)) != NULL) {
        struct bow__work_waiter *waiter = BOW__CONTAINER(link, struct bow__work_waiter, link);
        waiter->fn(waiter);
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
