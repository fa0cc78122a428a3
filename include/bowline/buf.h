/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BUF_H
#define BOWLINE_BUF_H

/*
 * Bytes that travel a pipeline. A buf is either borrowed (`block` NULL: valid
 * until the callback that received it returns) or counted (`block` set: this buf
 * holds one reference).
 *
 *     borrowed ── bow_buf_share() ──► counted ── bow_buf_unref() ──► gone
 */

#include <bowline/context.h>
#include <bowline/slice.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow__block;

/** Bytes, and the reference that keeps them if there is one. A copy of the struct holds none of
 * its own: pass it on, or bow_buf_share() it. */
struct bow_buf {
    const uint8_t *data;      /* public, read-only */
    size_t len;               /* public, read-only */
    struct bow__block *block; /* private */
};

/** A borrowed buf over bytes of the caller's, which must stay as long as the buf is used. Thread:
 * any. */
static inline struct bow_buf bow_buf_borrow(const void *data, size_t len)
{
    struct bow_buf buf = {(const uint8_t *)data, len, (struct bow__block *)0};
    return buf;
}

/**
 * Make a counted buf of the same bytes: a further reference when `buf` is
 * counted, else a copy.
 *
 * Thread:  any
 * Owns:    gives `*ret_shared`; drop it with bow_buf_unref()
 * Returns: 0, or -ENOMEM
 */
BOW_EXPORT BOW_MUST_USE int bow_buf_share(struct bow_context *context, const struct bow_buf *buf,
                                          struct bow_buf *ret_shared);

/** Drop the reference of a counted buf and make it empty; nothing on a borrowed one. Thread: any.
 */
BOW_EXPORT void bow_buf_unref(struct bow_buf *buf);

#ifdef __cplusplus
}
#endif
#endif
