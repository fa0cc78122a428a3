/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_E2E_MISBEHAVING_CHILD_H
#define BOWLINE_TESTS_E2E_MISBEHAVING_CHILD_H

/*
 * Within a child of misbehaving.h: what it runs, and how it speaks with its parent.
 */

#include "misbehaving.h"

#include <stddef.h>

/** Until the parent closes its end. */
void child_run_good(int from_parent, int to_parent, unsigned n);
/** `n` that are silent, drip, send garbage, reset or never read, of both protocols. */
void child_run_bad(int from_parent, int to_parent, unsigned n);

/** False: the parent has closed. */
bool child_read(int fd, void *bytes, size_t n);
void child_write(int fd, const void *bytes, size_t n);

void child_fail(const char *what, int line);
#define child_assert(condition)                                                                    \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            child_fail(#condition, __LINE__);                                                      \
        }                                                                                          \
    } while (0)

#endif
