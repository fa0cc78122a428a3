/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_INTEROP_PUBLIC_FLAGS_H
#define BOWLINE_TESTS_INTEROP_PUBLIC_FLAGS_H

/*
 * Flags as gRPC's public programs have them: --name=value, --name value, and for a bool --name.
 */

#include <stdbool.h>
#include <stdint.h>

struct flag {
    const char *name;
    /* One of these: where the value goes. */
    const char **text;
    uint64_t *number;
    bool *truth;
};

/** Read `argv` into what `flags` (ends with a NULL name) say. Returns false, and has told stderr
 * why, for one that is not among them, or has no such value. */
bool flags_read(const struct flag *flags, int argc, char **argv);

#endif
