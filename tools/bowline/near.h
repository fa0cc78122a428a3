/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TOOLS_BOWLINE_NEAR_H
#define BOWLINE_TOOLS_BOWLINE_NEAR_H

/*
 * The names that somebody may have meant who wrote one that there is not.
 */

#include <stddef.h>

#define NEAR_MAX 3

struct near {
    const char *wanted;
    const char *names[NEAR_MAX]; /* the nearest first; borrowed */
    size_t distances[NEAR_MAX];
    size_t n;
};

void near_add(struct near *near, const char *name);

/** Write "; did you mean A, B or C?", or "" when none is near. */
void near_text(const struct near *near, char *text, size_t size);

#endif
