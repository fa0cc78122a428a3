/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * From borrowed to counted bytes and back to none. Knows nothing of the pipeline
 * they travel.
 */

#include "base/block.h"

#include <bowline/buf.h>
#include <errno.h>
#include <string.h>

int bow_buf_share(struct bow_context *context, const struct bow_buf *buf,
                  struct bow_buf *ret_shared)
{
    if (buf->block != NULL) {
        struct bow_buf shared = {buf->data, buf->len, bow__block_ref(buf->block)};
        *ret_shared = shared;
        return 0;
    }
    struct bow__block *block = bow__block_new_to_fill(context, buf->len);
    if (block == NULL) {
        return -ENOMEM;
    }
    if (buf->len > 0) {
        memcpy(block->data, buf->data, buf->len);
    }
    *ret_shared = (struct bow_buf){block->data, buf->len, block};
    return 0;
}

void bow_buf_unref(struct bow_buf *buf)
{
    if (buf->block == NULL) {
        return;
    }
    bow__block_unref(buf->block);
    *buf = (struct bow_buf){0};
}
