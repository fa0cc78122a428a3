/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_OPTIONS_H
#define BOWLINE_BASE_OPTIONS_H

/*
 * How an options struct grows without breaking its users: it begins with its own
 * size, a caller compiled against an older header gives a smaller one, and the
 * fields it does not know keep their defaults. A larger one asks for something
 * that this library does not have, so it is refused rather than ignored.
 *
 *     struct bow_x_options options = BOW_X_OPTIONS_INIT;
 *     int rc = bow__options_read(&options, sizeof(options), given);
 *
 * Invariant: a field that is added later never lies in what was padding.
 */

#include <errno.h>
#include <stddef.h>
#include <string.h>

/**
 * Lay what `given` holds over the defaults in `ret_options`, which is `known_size`
 * bytes. Returns 0, or -EINVAL when `given` is NULL or its size is not a known one
 * (`ret_options` is untouched).
 */
static inline int bow__options_read(void *ret_options, size_t known_size, const void *given)
{
    size_t size = 0;

    if (given == NULL) {
        return -EINVAL;
    }
    memcpy(&size, given, sizeof(size));
    if (size < sizeof(size) || size > known_size) {
        return -EINVAL;
    }
    memcpy(ret_options, given, size);
    memcpy(ret_options, &known_size, sizeof(known_size));
    return 0;
}

#endif
