/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_RPC_MESSAGE_FIXTURE_H
#define BOWLINE_TESTS_RPC_MESSAGE_FIXTURE_H

/*
 * One test of messages, run twice: with an arena, and in the heap, where all must be free at its
 * end.
 *
 *     static void test_x(void **state) { struct place *p = *state; ... p->arena ...; drop(p, m); }
 *     const struct CMUnitTest tests[] = {IN_BOTH(test_x)};
 */

#include "codec2.pb-c.h"
#include "codec3.pb-c.h"
#include "codec_plain.pb-c.h"
#include "tests/support/alloc.h"
#include "tests/support/heap_watch.h"
#include "tests/support/random_message.h"
#include <bowline/message.h>
#include <bowline/message_field.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BYTES(literal) ((struct bow_slice){(const uint8_t *)(literal), sizeof(literal) - 1})
#define IN_BOTH(test)                                                                              \
    {#test "_arena", test, in_arena, end_place, NULL},                                             \
    {                                                                                              \
#test "_heap", test, in_heap, end_place, NULL                                              \
    }

struct place {
    struct test_alloc alloc;
    struct bow_context *context;
    struct bow_arena *arena; /* NULL: the heap */
    long n_blocks;           /* of the heap, before */
};

static inline int in_arena(void **state)
{
    static struct place place;

    place.n_blocks = heap_watch()->n_blocks;
    test_alloc_init(&place.alloc);
    place.context = test_context_new(&place.alloc);
    place.arena = bow_arena_new(place.context, 0);
    assert_non_null(place.arena);
    *state = &place;
    return 0;
}

static inline int in_heap(void **state)
{
    static struct place place;

    place = (struct place){.n_blocks = heap_watch()->n_blocks};
    *state = &place;
    return 0;
}

static inline int end_place(void **state)
{
    struct place *p = *state;

    if (p->arena != NULL) {
        bow_arena_free(p->arena);
        test_context_end(p->context, &p->alloc);
    }
    assert_int_equal(heap_watch()->n_blocks, p->n_blocks);
    return 0;
}

/* A message that is no longer needed. */
static inline void drop(struct place *p, void *message)
{
    if (p->arena == NULL) {
        bow_message_free(message);
    }
}

static inline const ProtobufCFieldDescriptor *field_of(const ProtobufCMessageDescriptor *type,
                                                       const char *name)
{
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(type, name);

    assert_non_null(field);
    return field;
}

/* The field of `message` called `name`. */
static inline const ProtobufCFieldDescriptor *named(const void *message, const char *name)
{
    return field_of(((const ProtobufCMessage *)message)->descriptor, name);
}

/* A message of `type` that is good. */
static inline void *decoded(struct place *p, const ProtobufCMessageDescriptor *type,
                            struct bow_slice bytes)
{
    ProtobufCMessage *message = NULL;

    assert_int_equal(bow_message_decode(type, bytes, NULL, p->arena, &message, NULL, 0), 0);
    return message;
}

#define N_RANDOM_MESSAGES 400u

/* Message `i` at random, of a type of its own and up to four levels, in `arena`. */
static inline ProtobufCMessage *random_message(struct bow__arena *arena, unsigned i)
{
    static const ProtobufCMessageDescriptor *const types[] = {
        &codec3__everything__descriptor, &codec3__maps__descriptor,
        &codec3__choice__descriptor,     &codec3__tree__descriptor,
        &codec2__optional__descriptor,   &codec2__defaults__descriptor,
        &codec2__holder__descriptor,     &codec2__lists__descriptor,
        &codec2__map__descriptor,        &codec_plain__plain__descriptor,
    };
    struct test_random random = {20261130 + i};

    return test_random_message(&random, arena, types[i % 10], i / 10 % 4);
}

/* The encoding of `message` by protobuf-c, from malloc(). */
static inline struct bow_slice packed(const ProtobufCMessage *message)
{
    size_t len = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = malloc(len + 1);

    assert_non_null(bytes);
    assert_int_equal(protobuf_c_message_pack(message, bytes), len);
    return (struct bow_slice){bytes, len};
}

static inline void free_bytes(struct bow_slice bytes)
{
    free((void *)(uintptr_t)bytes.data);
}

static inline void assert_encodes_to(const void *message, struct bow_slice bytes)
{
    uint8_t room[1024];
    size_t len = 0;

    assert_int_equal(bow_message_encode(message, room, sizeof(room), &len), 0);
    assert_int_equal(len, bytes.len);
    assert_memory_equal(room, bytes.data, len);
}

/* protobuf-c frees what is in the heap, by a walk of its own. */
static inline void *plain_alloc(void *user, size_t size)
{
    (void)user;
    return malloc(size);
}

static inline void plain_free(void *user, void *memory)
{
    (void)user;
    free(memory);
}

static inline void drop_by_protobuf_c(struct place *p, void *message)
{
    ProtobufCAllocator allocator = {plain_alloc, plain_free, NULL};

    if (p->arena == NULL) {
        protobuf_c_message_free_unpacked(message, &allocator);
    }
}

#endif
