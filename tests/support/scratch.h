/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_SUPPORT_SCRATCH_H
#define BOWLINE_TESTS_SUPPORT_SCRATCH_H

/*
 * Where tests put files: below TMPDIR, which tools/test takes away at its end with all that a test
 * that was killed has left there. A path that would not fit (an address of AF_UNIX is short) is
 * below /tmp.
 *
 *     char path[64];
 *     int fd = mkstemp(scratch_path(path, sizeof(path), "tokens-XXXXXX"));
 */

#include <stdio.h>
#include <stdlib.h>

static inline char *scratch_path(char *path, size_t size, const char *name)
{
    const char *folder = getenv("TMPDIR");
    int n = -1;

    if (folder != NULL && folder[0] == '/') {
        n = snprintf(path, size, "%s/bowline-%s", folder, name);
    }
    if (n < 0 || (size_t)n >= size) {
        snprintf(path, size, "/tmp/bowline-%s", name);
    }
    return path;
}

#endif
