/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_COMPRESSION_CODER_H
#define BOWLINE_RPC_CORE_COMPRESSION_CODER_H

/*
 * What one encoding is to the others: a table of functions, and the block that inflated bytes grow
 * into. Which encodings there are, and who uses them, is in encodings.h.
 */

#include "base/block.h"
#include <bowline/slice.h>
#include <sys/types.h>

/** Where inflated bytes go. */
struct bow__inflated {
    struct bow_context *context;
    struct bow__block *block;
    size_t len;
    size_t max_bytes; /* one more than allowed: to see whether there is more */
    size_t expected;  /* what it says it inflates to, or 0; takes a spare at most */
};

/** Room for more. Returns 0, -EMSGSIZE, or -ENOMEM. */
int bow__inflated_grow(struct bow__inflated *out);

/** One encoding. States are of its own kind; NULL ones are not passed in. */
struct bow__coder {
    void *(*encoder_new)(struct bow_context *context);
    void (*encoder_free)(struct bow_context *context, void *encoder);
    /** Returns bytes written, -ENOBUFS when `cap` is too small, or -ENOMEM. */
    ssize_t (*encode)(void *encoder, int level, struct bow_slice bytes, uint8_t *to, size_t cap);
    void *(*decoder_new)(struct bow_context *context);
    void (*decoder_free)(struct bow_context *context, void *decoder);
    /** Returns 0, -EBADMSG with `*ret_what` set to a constant text, or as bow__inflated_grow(). */
    int (*decode)(void *decoder, struct bow_slice bytes, struct bow__inflated *out,
                  const char **ret_what);
};

#endif
