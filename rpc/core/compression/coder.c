/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The block that inflated bytes grow into. Knows nothing of encodings.
 */

#include "rpc/core/compression/coder.h"

#include <errno.h>

#define FIRST_BLOCK_BYTES ((size_t)4 << 10)

int bow__inflated_grow(struct bow__inflated *out)
{
    size_t cap = out->block != NULL ? 2 * out->block->cap : FIRST_BLOCK_BYTES;

    if (out->len >= out->max_bytes) {
        return -EMSGSIZE;
    }
    cap = cap < out->max_bytes ? cap : out->max_bytes;
    if (out->block == NULL && out->expected > cap && out->expected < out->max_bytes) {
        out->block = bow__block_new_spare(out->context, out->expected + 1);
    }
    if (out->block != NULL && out->len == 0) {
        return 0;
    }
    if (out->block != NULL) {
        return bow__block_grow(&out->block, cap);
    }
    out->block = bow__block_new(out->context, cap);
    return out->block != NULL ? 0 : -ENOMEM;
}
