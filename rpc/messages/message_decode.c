/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The decoder as programs have it: with its limits, in an arena or in the heap.
 *
 * The decoder works in arenas only, so what is to lie in the heap is decoded in one of its own, and
 * copied. Bytes that may stay where they are, it takes for a block that others hold, too: so it
 * writes nothing there, and copies the strings.
 */
#include "base/block.h"
#include "base/options.h"
#include "rpc/core/codec/decode.h"
#include "rpc/core/codec/wire.h"
#include "rpc/messages/reason.h"
#include "rpc/messages/storage.h"
#include <bowline/message.h>

static int read_options(const struct bow_decode_options *given, struct bow_decode_options *ret,
                        struct bow__text *reason)
{
    *ret = (struct bow_decode_options)BOW_DECODE_OPTIONS_INIT;
    if (given != NULL && bow__options_read(ret, sizeof(*ret), given) < 0) {
        bow__text_printf(reason, "begin the options with BOW_DECODE_OPTIONS_INIT: their size is "
                                 "none that this library knows");
        return -EINVAL;
    }
    if (ret->max_message_bytes == 0) {
        ret->max_message_bytes = BOW_LIMIT_MESSAGE_BYTES;
    }
    return 0;
}

static int refuse_size(uint64_t len, size_t most, struct bow__text *reason)
{
    bow__text_printf(reason, "a message of %llu bytes is over the limit of %zu",
                     (unsigned long long)len, most);
    return -EMSGSIZE;
}

/* Decode into `arena`, which may grow by what the bytes allow. */
static int decode_in_arena(const ProtobufCMessageDescriptor *type, struct bow_slice bytes,
                           const struct bow_decode_options *options, struct bow__arena *arena,
                           ProtobufCMessage **ret_message, struct bow__text *reason)
{
    struct bow__block others = {.refs = 2};
    const struct bow__decode_options inner = {
        .block = options->borrow ? &others : NULL,
        .max_depth = options->max_depth,
        .allow_nul = options->allow_nul,
    };
    size_t max_bytes = arena->max_bytes;
    size_t cap = bow__decode_cap(bytes.len);

    if (cap < max_bytes - arena->used) {
        arena->max_bytes = arena->used + cap;
    }
    int rc = bow__decode(type, bytes, &inner, arena, ret_message, reason);
    arena->max_bytes = max_bytes;
    return rc;
}

static int decode_in_heap(const ProtobufCMessageDescriptor *type, struct bow_slice bytes,
                          const struct bow_decode_options *options, ProtobufCMessage **ret_message,
                          struct bow__text *reason)
{
    struct bow_decode_options borrowing = *options;
    ProtobufCMessage *decoded = NULL;
    struct bow__arena arena;

    borrowing.borrow = true;
    bow__arena_init(&arena, NULL, NULL, 0, SIZE_MAX);
    int rc = decode_in_arena(type, bytes, &borrowing, &arena, &decoded, reason);
    ProtobufCMessage *copy = rc == 0 ? bow_message_clone(decoded, NULL) : NULL;
    bow__arena_fini(&arena);
    if (rc < 0) {
        return rc;
    }
    if (copy == NULL) {
        bow__text_printf(reason, "no memory");
        return -ENOMEM;
    }
    *ret_message = copy;
    return 0;
}

/* By options that have been read. */
static int decode(const ProtobufCMessageDescriptor *type, struct bow_slice bytes,
                  const struct bow_decode_options *options, struct bow_arena *arena,
                  ProtobufCMessage **ret_message, struct bow__text *reason)
{
    if (bytes.len > options->max_message_bytes) {
        return refuse_size(bytes.len, options->max_message_bytes, reason);
    }
    if (arena == NULL) {
        return decode_in_heap(type, bytes, options, ret_message, reason);
    }
    return decode_in_arena(type, bytes, options, bow__arena_of(arena), ret_message, reason);
}

int bow_message_decode(const ProtobufCMessageDescriptor *type, struct bow_slice bytes,
                       const struct bow_decode_options *options, struct bow_arena *arena,
                       ProtobufCMessage **ret_message, char *reason, size_t reason_size)
{
    struct bow_decode_options read;
    struct bow__text text;

    bow__text_clear(&text);
    int rc = read_options(options, &read, &text);
    if (rc == 0) {
        rc = decode(type, bytes, &read, arena, ret_message, &text);
    }
    bow__reason_give(&text, reason, reason_size);
    return rc;
}

/* The message behind its length at the front of `bytes`. What no message can have is refused at
 * once, be the limit above it: nobody is to wait for its bytes, and the sum has room. */
static int find_body(struct bow_slice bytes, size_t max_bytes, struct bow_slice *ret_body,
                     size_t *ret_used, struct bow__text *reason)
{
    size_t most = max_bytes < INT32_MAX ? max_bytes : INT32_MAX;
    uint64_t len = 0;

    int n = bow__wire_decode_varint(bytes, &len);
    if (n == -EAGAIN) {
        *ret_used = bytes.len + 1;
        return n;
    }
    if (n < 0) {
        bow__text_printf(reason, "a length above 64 bits");
        return n;
    }
    if (len > most) {
        return refuse_size(len, most, reason);
    }
    *ret_used = (size_t)n + (size_t)len;
    if (*ret_used > bytes.len) {
        return -EAGAIN;
    }
    *ret_body = (struct bow_slice){bytes.data + n, (size_t)len};
    return 0;
}

int bow_message_decode_delimited(const ProtobufCMessageDescriptor *type, struct bow_slice bytes,
                                 const struct bow_decode_options *options, struct bow_arena *arena,
                                 ProtobufCMessage **ret_message, size_t *ret_used, char *reason,
                                 size_t reason_size)
{
    struct bow_decode_options read;
    struct bow_slice body = {NULL, 0};
    struct bow__text text;
    size_t n_used = 0;

    bow__text_clear(&text);
    int rc = read_options(options, &read, &text);
    if (rc == 0) {
        rc = find_body(bytes, read.max_message_bytes, &body, &n_used, &text);
    }
    if (rc == 0) {
        rc = decode(type, body, &read, arena, ret_message, &text);
    }
    if (rc == 0 || rc == -EAGAIN) {
        *ret_used = n_used;
    }
    bow__reason_give(&text, reason, reason_size);
    return rc;
}
