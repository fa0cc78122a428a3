/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_CONTEXT_H
#define BOWLINE_BASE_CONTEXT_H

/*
 * What a context holds, for the files that make up the context: context.c (its
 * life), alloc.c (its memory), log.c (its sink), refuse.c (what it hears of refusals),
 * misuse.c (what is done about programs' faults), slot.c (what upper layers keep in it), large.c
 * (its default allocator), trim.c (what that keeps), process.c (the process that uses it). All
 * others go through their functions. Everything but the counters and the slots is constant after
 * bow_context_new().
 */

#include "base/large.h"
#include "base/process.h"
#include "base/slot.h"
#include "base/trim.h"

#include <bowline/context.h>
#include <stdatomic.h>

struct bow_context {
    atomic_uint refs;
    atomic_size_t n_bytes;  /* allocated now; a statistic that publishes nothing, so relaxed */
    atomic_size_t n_mapped; /* of those, in mappings of their own; relaxed, too */
    size_t max_bytes;       /* 0: none */
    struct bow_allocator allocator;
    struct bow__large large;      /* what the default allocator works on */
    struct bow__malloc_trim trim; /* off with an allocator of the user's */
    const struct bow_system *system;
    struct bow__process process;
    bow_log_fn log;
    void *log_user;
    enum bow_log_level log_level;
    _Atomic(uint64_t) refusals_ns; /* up to when lines about them are booked; refuse.c */
    bool aborts_on_misuse;         /* misuse.c */
    bool quarantines;
    _Atomic(void *) slots[BOW__N_SLOTS]; /* slot.c */
};

#endif
