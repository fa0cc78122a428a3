/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_E2E_STEADY_COUNT_H
#define BOWLINE_TESTS_E2E_STEADY_COUNT_H

/*
 * What this process takes of the system's memory: its minor faults, and its calls of mmap() and
 * the like, for which functions of that name in the test's executable stand before libc's. What
 * malloc() calls for itself shows in the faults that follow.
 */

struct steady_counts {
    unsigned long n_faults;
    unsigned long n_mapping_calls;
};

/** As of now. */
void steady_count(struct steady_counts *counts);
/** Since `before`. */
void steady_taken(const struct steady_counts *before, struct steady_counts *ret_taken);

#endif
