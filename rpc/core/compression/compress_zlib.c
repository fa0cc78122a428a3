/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * gzip (RFC 1952) and deflate (the zlib format, RFC 1950) over zlib, its memory the context's.
 * Several members of gzip one after the other are one message, as its RFC says; deflate has no such
 * thing.
 */

#include "rpc/core/compression/compress_zlib.h"
#include "base/alloc.h"

#include <errno.h>
#include <limits.h>
#include <zlib.h>

/* A window of 32 KiB; more asks for gzip's header instead of zlib's. */
#define ZLIB_WINDOW_BITS 15
#define GZIP_WINDOW_BITS (15 + 16)
#define MEMORY_LEVEL 8

struct state {
    z_stream stream;
    int level;
};

/* zlib frees without a size, so each block carries its own. */
struct sized {
    size_t size;
    _Alignas(16) uint8_t data[];
};

static void *zlib_alloc(void *opaque, uInt count, uInt size)
{
    size_t n = (size_t)count * size + sizeof(struct sized);
    struct sized *sized = bow__alloc(opaque, n);

    if (sized == NULL) {
        return NULL;
    }
    sized->size = n;
    return sized->data;
}

static void zlib_free(void *opaque, void *memory)
{
    struct sized *sized =
        (struct sized *)(void *)((uint8_t *)memory - offsetof(struct sized, data));

    bow__free(opaque, sized, sized->size);
}

static struct state *state_new(struct bow_context *context)
{
    struct state *state = bow__alloc_zero(context, sizeof(*state));

    if (state != NULL) {
        state->stream.zalloc = zlib_alloc;
        state->stream.zfree = zlib_free;
        state->stream.opaque = context;
    }
    return state;
}

static void *encoder_new(struct bow_context *context, int window_bits)
{
    struct state *state = state_new(context);

    if (state == NULL) {
        return NULL;
    }
    state->level = Z_DEFAULT_COMPRESSION;
    if (deflateInit2(&state->stream, state->level, Z_DEFLATED, window_bits, MEMORY_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        bow__free(context, state, sizeof(*state));
        return NULL;
    }
    return state;
}

static void *gzip_encoder_new(struct bow_context *context)
{
    return encoder_new(context, GZIP_WINDOW_BITS);
}

static void *deflate_encoder_new(struct bow_context *context)
{
    return encoder_new(context, ZLIB_WINDOW_BITS);
}

static void encoder_free(struct bow_context *context, void *encoder)
{
    struct state *state = encoder;

    deflateEnd(&state->stream);
    bow__free(context, state, sizeof(*state));
}

static int set_level(struct state *state, int level)
{
    if (level == 0) {
        level = Z_DEFAULT_COMPRESSION;
    } else if (level > Z_BEST_COMPRESSION) {
        level = Z_BEST_COMPRESSION;
    } else if (level < 0) {
        level = Z_BEST_SPEED;
    }
    if (level == state->level) {
        return 0;
    }
    state->level = level;
    return deflateParams(&state->stream, level, Z_DEFAULT_STRATEGY) == Z_OK ? 0 : -ENOMEM;
}

static ssize_t encode(void *encoder, int level, struct bow_slice bytes, uint8_t *to, size_t cap)
{
    struct state *state = encoder;
    z_stream *stream = &state->stream;

    if (bytes.len > UINT_MAX || cap > UINT_MAX) {
        return -ENOBUFS;
    }
    deflateReset(stream);
    stream->avail_in = 0;
    stream->next_out = to;
    stream->avail_out = (uInt)cap;
    if (set_level(state, level) < 0) {
        return -ENOMEM;
    }
    stream->next_in = (Bytef *)(uintptr_t)bytes.data;
    stream->avail_in = (uInt)bytes.len;
    return deflate(stream, Z_FINISH) == Z_STREAM_END ? (ssize_t)(cap - stream->avail_out)
                                                     : -ENOBUFS;
}

static void *decoder_new(struct bow_context *context, int window_bits)
{
    struct state *state = state_new(context);

    if (state != NULL && inflateInit2(&state->stream, window_bits) != Z_OK) {
        bow__free(context, state, sizeof(*state));
        return NULL;
    }
    return state;
}

static void *gzip_decoder_new(struct bow_context *context)
{
    return decoder_new(context, GZIP_WINDOW_BITS);
}

static void *deflate_decoder_new(struct bow_context *context)
{
    return decoder_new(context, ZLIB_WINDOW_BITS);
}

static void decoder_free(struct bow_context *context, void *decoder)
{
    struct state *state = decoder;

    inflateEnd(&state->stream);
    bow__free(context, state, sizeof(*state));
}

/* Some of a member. Returns as inflate(). */
static int decode_some(z_stream *stream, struct bow__inflated *out)
{
    size_t room = out->block->cap - out->len;
    uInt n_room = room < UINT_MAX ? (uInt)room : UINT_MAX;

    stream->next_out = out->block->data + out->len;
    stream->avail_out = n_room;
    int rc = inflate(stream, Z_NO_FLUSH);
    out->len += n_room - stream->avail_out;
    return rc;
}

static int fail(int zlib_rc, const z_stream *stream, const char **ret_what)
{
    if (zlib_rc == Z_MEM_ERROR) {
        return -ENOMEM;
    }
    *ret_what = zlib_rc == Z_BUF_ERROR || stream->msg == NULL ? "it is cut" : stream->msg;
    return -EBADMSG;
}

/* One member, to its end. */
static int decode_member(z_stream *stream, struct bow__inflated *out, const char **ret_what)
{
    int rc = Z_OK;

    inflateReset(stream);
    while (rc != Z_STREAM_END) {
        bool is_full = out->block == NULL || out->len == out->block->cap;
        int grown = is_full ? bow__inflated_grow(out) : 0;
        if (grown < 0) {
            return grown;
        }
        rc = decode_some(stream, out);
        bool needs_room = rc == Z_BUF_ERROR && out->len == out->block->cap;
        if (rc != Z_OK && rc != Z_STREAM_END && !needs_room) {
            return fail(rc, stream, ret_what);
        }
        if (rc == Z_OK && stream->avail_in == 0 && out->len < out->block->cap) {
            return fail(Z_BUF_ERROR, stream, ret_what);
        }
    }
    return 0;
}

/* What the last member ends with (RFC 1952, 2.3.1); as a rule there is one. */
static size_t expected(struct bow_slice bytes)
{
    const uint8_t *end = bytes.data + bytes.len;

    return bytes.len < 4
               ? 0
               : (size_t)end[-1] << 24 | (size_t)end[-2] << 16 | (size_t)end[-3] << 8 | end[-4];
}

static int begin_decoding(struct state *state, struct bow_slice bytes)
{
    if (bytes.len > UINT_MAX) {
        return -EMSGSIZE;
    }
    state->stream.next_in = (Bytef *)(uintptr_t)bytes.data;
    state->stream.avail_in = (uInt)bytes.len;
    return 0;
}

static int gzip_decode(void *decoder, struct bow_slice bytes, struct bow__inflated *out,
                       const char **ret_what)
{
    struct state *state = decoder;
    int rc = begin_decoding(state, bytes);

    out->expected = expected(bytes);
    if (rc < 0) {
        return rc;
    }
    do {
        rc = decode_member(&state->stream, out, ret_what);
    } while (rc == 0 && state->stream.avail_in > 0);
    return rc;
}

static int deflate_decode(void *decoder, struct bow_slice bytes, struct bow__inflated *out,
                          const char **ret_what)
{
    struct state *state = decoder;
    int rc = begin_decoding(state, bytes);

    rc = rc == 0 ? decode_member(&state->stream, out, ret_what) : rc;
    if (rc == 0 && state->stream.avail_in > 0) {
        *ret_what = "something follows it";
        return -EBADMSG;
    }
    return rc;
}

const struct bow__coder bow__gzip_coder = {
    .encoder_new = gzip_encoder_new,
    .encoder_free = encoder_free,
    .encode = encode,
    .decoder_new = gzip_decoder_new,
    .decoder_free = decoder_free,
    .decode = gzip_decode,
};

const struct bow__coder bow__deflate_coder = {
    .encoder_new = deflate_encoder_new,
    .encoder_free = encoder_free,
    .encode = encode,
    .decoder_new = deflate_decoder_new,
    .decoder_free = decoder_free,
    .decode = deflate_decode,
};
