/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TOOLS_BOWLINE_SAMPLE_H
#define BOWLINE_TOOLS_BOWLINE_SAMPLE_H

/*
 * What an operations listener told at one time: the JSON of /debug/all, read.
 */

#include "told.pb-c.h"
#include <bowline/arena.h>
#include <bowline/slice.h>

struct sample {
    struct bow_arena *arena;
    const Told__Server *told; /* in `arena`; `config` and `counters` are never NULL */
    uint64_t at_ns;           /* of clock_ns() */
};

/**
 * Read `json`, which came at `at_ns`. When it is none of an operations listener's, `reason` says
 * why. Returns: 0; -EBADMSG; -ENOMEM, also for what is too large
 */
int sample_read(struct bow_slice json, uint64_t at_ns, struct sample *ret_sample, char *reason,
                size_t reason_size);
/** Takes zeroed memory, which it leaves. */
void sample_fini(struct sample *sample);

#endif
