/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * zstd (RFC 8878). Its contexts come from malloc, as the library's stable interface has it: one
 * each way and loop. A frame's window is bounded, so that a few bytes cannot ask for gigabytes.
 */

#include "rpc/core/compression/compress_zstd.h"

#include <errno.h>
#include <zstd.h>

#define DEFAULT_LEVEL 3
/* 8 MiB: what RFC 8878 (3.1.1.1.2) asks every decoder to support. */
#define MAX_WINDOW_LOG 23

static void *encoder_new(struct bow_context *context)
{
    (void)context;
    return ZSTD_createCCtx();
}

static void encoder_free(struct bow_context *context, void *encoder)
{
    (void)context;
    ZSTD_freeCCtx(encoder);
}

static ssize_t encode(void *encoder, int level, struct bow_slice bytes, uint8_t *to, size_t cap)
{
    size_t n = ZSTD_compressCCtx(encoder, to, cap, bytes.data, bytes.len,
                                 level != 0 ? level : DEFAULT_LEVEL);

    if (!ZSTD_isError(n)) {
        return (ssize_t)n;
    }
    /* Of what can go wrong only memory is nothing that room would mend. */
    return cap < ZSTD_compressBound(bytes.len) ? -ENOBUFS : -ENOMEM;
}

static void *decoder_new(struct bow_context *context)
{
    ZSTD_DCtx *decoder = ZSTD_createDCtx();

    (void)context;
    if (decoder != NULL) {
        (void)ZSTD_DCtx_setParameter(decoder, ZSTD_d_windowLogMax, MAX_WINDOW_LOG);
    }
    return decoder;
}

static void decoder_free(struct bow_context *context, void *decoder)
{
    (void)context;
    ZSTD_freeDCtx(decoder);
}

static size_t expected(struct bow_slice bytes)
{
    unsigned long long n = ZSTD_getFrameContentSize(bytes.data, bytes.len);

    return n < ZSTD_CONTENTSIZE_ERROR && n < SIZE_MAX ? (size_t)n : 0;
}

static int decode(void *decoder, struct bow_slice bytes, struct bow__inflated *out,
                  const char **ret_what)
{
    ZSTD_inBuffer in = {bytes.data, bytes.len, 0};
    size_t left = 1; /* 0: a frame has ended */

    out->expected = expected(bytes);
    (void)ZSTD_DCtx_reset(decoder, ZSTD_reset_session_only);
    while (in.pos < in.size || left > 0) {
        int rc = out->block == NULL || out->len == out->block->cap ? bow__inflated_grow(out) : 0;
        if (rc < 0) {
            return rc;
        }
        ZSTD_outBuffer to = {out->block->data, out->block->cap, out->len};
        size_t before = in.pos;
        left = ZSTD_decompressStream(decoder, &to, &in);
        if (ZSTD_isError(left)) {
            *ret_what = ZSTD_getErrorName(left);
            return -EBADMSG;
        }
        bool stands_still = in.pos == before && to.pos == out->len;
        out->len = to.pos;
        if (stands_still) {
            *ret_what = "it is cut";
            return -EBADMSG;
        }
    }
    return 0;
}

const struct bow__coder bow__zstd_coder = {
    .encoder_new = encoder_new,
    .encoder_free = encoder_free,
    .encode = encode,
    .decoder_new = decoder_new,
    .decoder_free = decoder_free,
    .decode = decode,
};
