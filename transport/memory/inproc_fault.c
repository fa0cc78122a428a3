/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* When which fault comes; see the header. What it does to a connection is in inproc_pair.c. */

#include "transport/memory/inproc_fault.h"

static void disarm(struct bow__inproc_faults *faults)
{
    atomic_store_explicit(&faults->bytes_left, UINT64_MAX, memory_order_relaxed);
    atomic_store_explicit(&faults->sends_left, UINT64_MAX, memory_order_relaxed);
}

void bow__inproc_faults_clear(struct bow__inproc_faults *faults)
{
    pthread_mutex_init(&faults->mutex, NULL);
    bow__list_init(&faults->pairs);
    atomic_init(&faults->refuses, false);
    atomic_init(&faults->kind, BOW__INPROC_RESET);
    disarm(faults);
}

void bow__inproc_faults_fini(struct bow__inproc_faults *faults)
{
    pthread_mutex_destroy(&faults->mutex);
}

void bow__inproc_break_after(struct bow__inproc_faults *faults, enum bow__inproc_fault kind,
                             uint64_t n_bytes, uint64_t n_sends)
{
    atomic_store_explicit(&faults->kind, (int)kind, memory_order_relaxed);
    atomic_store_explicit(&faults->bytes_left, n_bytes, memory_order_relaxed);
    atomic_store_explicit(&faults->sends_left, n_sends, memory_order_relaxed);
}

uint64_t bow__inproc_faults_room(const struct bow__inproc_faults *faults)
{
    return atomic_load_explicit(&faults->bytes_left, memory_order_relaxed);
}

/* Returns whether it is used up. */
static bool spend(_Atomic(uint64_t) *left, uint64_t n)
{
    uint64_t before = atomic_load_explicit(left, memory_order_relaxed);
    uint64_t after = 0;

    do {
        if (before == UINT64_MAX) {
            return false;
        }
        after = before > n ? before - n : 0;
    } while (!atomic_compare_exchange_weak_explicit(left, &before, after, memory_order_relaxed,
                                                    memory_order_relaxed));
    return after == 0;
}

bool bow__inproc_faults_spend(struct bow__inproc_faults *faults, size_t n_bytes)
{
    bool is_full = n_bytes > 0 && spend(&faults->bytes_left, n_bytes);

    return (n_bytes > 0 && spend(&faults->sends_left, 1)) || is_full;
}

enum bow__inproc_fault bow__inproc_faults_take(struct bow__inproc_faults *faults)
{
    enum bow__inproc_fault kind =
        (enum bow__inproc_fault)atomic_load_explicit(&faults->kind, memory_order_relaxed);

    disarm(faults);
    return kind;
}
