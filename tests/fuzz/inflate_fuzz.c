/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Compressed messages of a peer: any bytes, in any encoding, within the limit. What inflates is
 * compressed again and has to come back.
 */

#include "rpc/core/compression/encodings.h"

#include <stdlib.h>
#include <string.h>

#define MAX_BYTES ((size_t)256 << 10)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void back_and_forth(struct bow__coders *coders, enum bow__encoding encoding,
                           struct bow_slice bytes)
{
    struct bow__block *small = NULL;
    struct bow__block *back = NULL;
    struct bow__text reason;
    size_t n_small = 0;
    size_t n_back = 0;

    bow__text_clear(&reason);
    if (bow__deflate(coders, encoding, 1, bytes, &small, &n_small) < 0) {
        return;
    }
    if (bow__inflate(coders, encoding, (struct bow_slice){small->data, n_small}, MAX_BYTES, &back,
                     &n_back, &reason) < 0 ||
        n_back != bytes.len || memcmp(back->data, bytes.data, n_back) != 0) {
        abort();
    }
    bow__block_unref(small);
    bow__block_unref(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context = NULL;
    struct bow__coders coders;
    struct bow__block *block = NULL;
    struct bow__text reason;
    size_t len = 0;

    if (size == 0 || bow_context_new(&options, &context) < 0) {
        return 0;
    }
    enum bow__encoding encoding = (enum bow__encoding)(data[0] % (BOW__N_ENCODINGS + 1));
    bow__coders_init(&coders, context);
    bow__text_clear(&reason);
    int rc = bow__inflate(&coders, encoding, (struct bow_slice){data + 1, size - 1}, MAX_BYTES,
                          &block, &len, &reason);
    if (rc < 0 && (block != NULL || reason.len == 0)) {
        abort();
    }
    if (rc == 0 && len > MAX_BYTES) {
        abort();
    }
    if (rc == 0 && block != NULL) {
        back_and_forth(&coders, encoding, (struct bow_slice){block->data, len});
    }
    bow__block_unref(block);
    bow__coders_trim(&coders);
    if (bow_context_bytes(context) != 0) {
        abort();
    }
    bow_context_unref(context);
    return 0;
}
