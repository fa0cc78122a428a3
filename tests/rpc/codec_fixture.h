/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_RPC_CODEC_FIXTURE_H
#define BOWLINE_TESTS_RPC_CODEC_FIXTURE_H

/*
 * A context, an arena and a reason for one test of the codec. BYTES("\x08\x01")
 * is a slice over a literal.
 */

#include "base/arena.h"
#include "rpc/core/codec/decode.h"
#include "rpc/core/codec/encode.h"
#include "tests/support/alloc.h"
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define BYTES(literal) ((struct bow_slice){(const uint8_t *)(literal), sizeof(literal) - 1})
#define FIXTURE_ARENA_BYTES ((size_t)8 << 20)

struct codec_fixture {
    struct test_alloc alloc;
    struct bow_context *context;
    struct bow__arena arena;
    struct bow__text reason;
    struct bow__decode_options options;
};

static inline void codec_begin(struct codec_fixture *f)
{
    test_alloc_init(&f->alloc);
    f->context = test_context_new(&f->alloc);
    bow__arena_init(&f->arena, f->context, NULL, 0, FIXTURE_ARENA_BYTES);
    bow__text_clear(&f->reason);
    f->options = (struct bow__decode_options){0};
}

static inline void codec_end(struct codec_fixture *f)
{
    bow__arena_fini(&f->arena);
    test_context_end(f->context, &f->alloc);
}

/* Decode what must be good. */
static inline void *codec_decode(struct codec_fixture *f, const ProtobufCMessageDescriptor *type,
                                 struct bow_slice bytes)
{
    ProtobufCMessage *message = NULL;
    int rc = bow__decode(type, bytes, &f->options, &f->arena, &message, &f->reason);
    assert_string_equal(f->reason.bytes, "");
    assert_int_equal(rc, 0);
    assert_non_null(message);
    assert_ptr_equal(message->descriptor, type);
    return message;
}

/* Decode what must be refused for exactly `reason`. */
static inline void codec_refuse(struct codec_fixture *f, const ProtobufCMessageDescriptor *type,
                                struct bow_slice bytes, const char *reason)
{
    ProtobufCMessage *message = NULL;
    bow__text_clear(&f->reason);
    int rc = bow__decode(type, bytes, &f->options, &f->arena, &message, &f->reason);
    assert_string_equal(f->reason.bytes, reason);
    assert_int_equal(rc, -EBADMSG);
    assert_null(message);
}

#endif
