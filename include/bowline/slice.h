/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_SLICE_H
#define BOWLINE_SLICE_H

/* Bytes by address and length, where who owns them is clear from elsewhere. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Bytes that somebody else owns. `data` may be NULL when `len` is 0. A slice is
 * not terminated by a NUL.
 */
struct bow_slice {
    const uint8_t *data;
    size_t len;
};

#ifdef __cplusplus
}
#endif
#endif
