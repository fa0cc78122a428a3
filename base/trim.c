/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * When malloc is asked to give back what it keeps. Knows nothing of the blocks.
 *
 * malloc_trim() takes as long as the kernel needs for the pages, and a walk over the free blocks:
 * about as long as freeing them took. So it is for what a whole window of time has not wanted; load
 * that comes and goes within one keeps its memory and pays no fault for it.
 */

#include "base/trim.h"

#include "base/clock.h"

#include <bowline/limits.h>
#include <bowline/system.h>
#include <malloc.h>

#ifdef __GLIBC__
/* All but `n_top` bytes at the top of the heap, which are about to be wanted. */
static void give_back(size_t n_top)
{
    (void)malloc_trim(n_top);
}
#else
static void give_back(size_t n_top)
{
    (void)n_top; /* others give back on their own, or cannot */
}
#endif

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static size_t most_of(const struct bow__malloc_trim *trim)
{
    return larger(atomic_load_explicit(&trim->most, memory_order_relaxed),
                  atomic_load_explicit(&trim->most_lately, memory_order_relaxed));
}

void bow__trim_init(struct bow__malloc_trim *trim, bool is_on)
{
    trim->is_on = is_on;
    atomic_init(&trim->most, 0);
    atomic_init(&trim->most_lately, 0);
    atomic_init(&trim->look_at_ns, 0);
}

size_t bow__trim_kept(const struct bow__malloc_trim *trim, size_t n_bytes)
{
    size_t most = trim->is_on ? most_of(trim) : 0;

    return most > n_bytes ? most - n_bytes : 0;
}

/* Whether it is this thread that looks. */
static bool is_due(struct bow__malloc_trim *trim, uint64_t now_ns)
{
    uint64_t due_ns = atomic_load_explicit(&trim->look_at_ns, memory_order_relaxed);

    return trim->is_on && now_ns >= due_ns &&
           atomic_compare_exchange_strong_explicit(&trim->look_at_ns, &due_ns,
                                                   bow__time_add(now_ns, BOW__TRIM_QUIET_NS),
                                                   memory_order_relaxed, memory_order_relaxed);
}

void bow__trim_look(struct bow__malloc_trim *trim, size_t n_used, size_t n_bytes,
                    const struct bow_system *system, uint64_t now_ns)
{
    if (!is_due(trim, now_ns)) {
        return;
    }
    size_t most = most_of(trim);
    size_t wanted =
        larger(atomic_exchange_explicit(&trim->most_lately, n_used, memory_order_relaxed), n_bytes);
    if (most < wanted + BOW_LIMIT_KEPT_BYTES) {
        atomic_store_explicit(&trim->most, larger(most, wanted), memory_order_relaxed);
        return;
    }
    atomic_store_explicit(&trim->most, wanted, memory_order_relaxed);
    uint64_t began_ns = system->now_ns(system->user);
    give_back(wanted - n_bytes);
    uint64_t rest_ns = (system->now_ns(system->user) - began_ns) * BOW__TRIM_REST;
    if (rest_ns > BOW__TRIM_QUIET_NS) {
        atomic_store_explicit(&trim->look_at_ns, bow__time_add(now_ns, rest_ns),
                              memory_order_relaxed);
    }
}

void bow__trim_now(struct bow__malloc_trim *trim, size_t n_bytes)
{
    atomic_store_explicit(&trim->most, n_bytes, memory_order_relaxed);
    atomic_store_explicit(&trim->most_lately, n_bytes, memory_order_relaxed);
    give_back(0);
}
