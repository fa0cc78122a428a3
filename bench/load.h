/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BENCH_LOAD_H
#define BOWLINE_BENCH_LOAD_H

/*
 * What every bench client measures: the time of each call and the whole run, and what it
 * cost, printed as one JSON object for tools/bench. Knows nothing of what is called.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The bytes of the echoed string, unless arguments say otherwise. */
#define BENCH_TEXT_BYTES 32u

/** Counts of system calls. */
struct io_counts {
    uint64_t receives;
    uint64_t sends;
    uint64_t others; /* of the poller; not counted by all programs */
};

/** What this process has cost so far. */
struct costs {
    uint64_t minor_faults;
    uint64_t system_calls;
};

struct load {
    const char *target;
    uint32_t n_connections;
    uint32_t n_in_flight; /* on each connection */
    uint32_t text_bytes;
    uint64_t n_calls; /* measured, after the warm-up */
    uint64_t n_warmup;
    uint64_t n_started;
    uint64_t n_done;
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t begin_cpu_ns;
    uint64_t end_cpu_ns;
    const struct io_counts *io;
    struct costs begin;
    struct costs end;
    uint32_t *samples_ns; /* n_calls of them */
};

uint64_t bench_now_ns(void);

struct costs costs_now(const struct io_counts *io);

/** Arguments: TARGET CONNECTIONS IN_FLIGHT CALLS WARMUP [BYTES]. Keeps `io`. Exits with a message
 * when they are wrong. */
void load_parse(struct load *load, const struct io_counts *io, int argc, char **argv);

/** Whether another call is to be started; counts it. */
bool load_start(struct load *load);

/** A call that was started at `start_ns` is done. Returns true when it was the last. */
bool load_done(struct load *load, uint64_t start_ns);

void load_print(struct load *load);

#endif
