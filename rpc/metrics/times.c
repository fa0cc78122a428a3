/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Times counted by a loop, and read by others. Memory is taken when a part of the buckets counts
 * for the first time, and stays: a handful of times for a method, never once for a call.
 */

#include "rpc/metrics/times.h"
#include "base/alloc.h"
#include "base/hints.h"

BOW__LONG_WAY static struct bow__times *make(_Atomic(struct bow__times *) *times,
                                             struct bow_context *context)
{
    struct bow__times *made = bow__alloc_zero(context, sizeof(*made));

    if (made != NULL) {
        atomic_store_explicit(times, made, memory_order_release);
    }
    return made;
}

BOW__LONG_WAY static struct bow__times_part *make_part(struct bow__times *times, size_t i,
                                                       struct bow_context *context)
{
    struct bow__times_part *part = bow__alloc_zero(context, sizeof(*part));

    if (part != NULL) {
        atomic_store_explicit(&times->parts[i], part, memory_order_release);
    }
    return part;
}

void bow__times_record(_Atomic(struct bow__times *) *times, struct bow_context *context,
                       uint64_t ns, uint64_t n)
{
    size_t bucket = bow__bucket_of(ns);
    size_t i = bucket / BOW__TIMES_PART_BUCKETS;
    struct bow__times *to = atomic_load_explicit(times, memory_order_relaxed);

    to = to != NULL ? to : make(times, context);
    if (to == NULL) {
        return;
    }
    struct bow__times_part *part = atomic_load_explicit(&to->parts[i], memory_order_relaxed);
    part = part != NULL ? part : make_part(to, i, context);
    if (part == NULL) {
        return;
    }
    bow__count(&part->n[bucket % BOW__TIMES_PART_BUCKETS], n);
    bow__count(&to->sum_ns, n * ns);
    bow__count_most(&to->max_ns, ns);
}

static void add_part(const struct bow__times_part *part, size_t first, struct bow_histogram *sum)
{
    for (size_t i = 0; i < BOW__TIMES_PART_BUCKETS && first + i < BOW_HISTOGRAM_BUCKETS; i++) {
        uint64_t n = bow__counted(&part->n[i]);
        sum->buckets[first + i] += n;
        sum->count += n;
    }
}

void bow__times_add(_Atomic(struct bow__times *) const *times, struct bow_histogram *sum)
{
    const struct bow__times *from = atomic_load_explicit(times, memory_order_acquire);

    if (from == NULL) {
        return;
    }
    for (size_t i = 0; i < BOW__TIMES_PARTS; i++) {
        const struct bow__times_part *part =
            atomic_load_explicit(&from->parts[i], memory_order_acquire);
        if (part != NULL) {
            add_part(part, i * BOW__TIMES_PART_BUCKETS, sum);
        }
    }
    uint64_t max_ns = bow__counted(&from->max_ns);
    sum->sum += bow__counted(&from->sum_ns);
    sum->max = max_ns > sum->max ? max_ns : sum->max;
}

void bow__times_free(_Atomic(struct bow__times *) *times, struct bow_context *context)
{
    struct bow__times *from = atomic_load_explicit(times, memory_order_relaxed);

    if (from == NULL) {
        return;
    }
    for (size_t i = 0; i < BOW__TIMES_PARTS; i++) {
        bow__free(context, atomic_load_explicit(&from->parts[i], memory_order_relaxed),
                  sizeof(struct bow__times_part));
    }
    bow__free(context, from, sizeof(*from));
    atomic_store_explicit(times, NULL, memory_order_relaxed);
}
