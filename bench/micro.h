/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BENCH_MICRO_H
#define BOWLINE_BENCH_MICRO_H

/*
 * What the micro-benchmarks have in common: rounds, their median and spread, and
 * two CPUs to be on. Knows nothing of what is measured.
 */

#include "load.h"
#include <stdnoreturn.h>

/** One round: returns the nanoseconds of one operation. */
typedef double (*micro_round_fn)(void *user);

/** Run one round to warm up, then some that count; prints a JSON object on a line:
 * name, median_ns, and the quartiles low_ns and high_ns. */
void micro_run(const char *name, micro_round_fn round, void *user);

/** For the results of several quantities measured at once: rounds of them all. */
#define MICRO_ROUNDS 15
void micro_print(const char *name, double *values);

/** The `i`-th CPU that this process may use; the last when there are fewer. */
int micro_cpu(int i);
/** Put the calling thread there. */
void micro_pin(int i);
/** How many there are. */
int micro_n_cpus(void);

/** A number below `below` that does not repeat soon. */
uint64_t micro_random(uint64_t *state, uint64_t below);

noreturn void micro_fail(const char *what, int error);

#endif
