/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What attacks on the decoder get: depth, merging, growth, and each allocation
 * failing in turn. Work is counted in the arena's bytes and allocations, not timed.
 */
#include "codec2.pb-c.h"
#include "codec3.pb-c.h"
#include "rpc/core/codec/wire.h"
#include "tests/rpc/codec_fixture.h"
#include "tests/support/random_message.h"
#include <pthread.h>
#include <stdlib.h>

/* For the 100 levels that are taken, the encoder needs four functions a level: when they are not
 * inlined some 430 bytes on x86-64, and above 1000 where each has to leave 160 bytes to those it
 * calls (s390x). For 100000 levels neither stack would do. */
#ifdef __OPTIMIZE__
#define SMALL_STACK_BYTES ((size_t)64 << 10)
#else
#define SMALL_STACK_BYTES ((size_t)256 << 10)
#endif

/* `levels` of codec3.Tree.left, each in the one before. The caller frees `*ret_memory`. */
static struct bow_slice nested(size_t levels, uint8_t **ret_memory)
{
    size_t cap = levels * 6 + 1;
    uint8_t *memory = malloc(cap);
    assert_non_null(memory);
    uint8_t *at = memory + cap;
    for (size_t i = 0; i < levels; i++) {
        at = bow__wire_write_varint_before(memory, at, (size_t)(memory + cap - at));
        assert_non_null(at);
        *--at = 0x12;
    }
    *ret_memory = memory;
    return (struct bow_slice){at, (size_t)(memory + cap - at)};
}

struct job {
    struct codec_fixture *fixture;
    const ProtobufCMessageDescriptor *type;
    struct bow_slice bytes;
    ProtobufCMessage *message;
    uint8_t encoded[1024];
    ssize_t encoded_len;
    int rc;
};

static void *run_job(void *argument)
{
    struct job *job = argument;
    struct codec_fixture *f = job->fixture;
    job->rc = bow__decode(job->type, job->bytes, &f->options, &f->arena, &job->message, &f->reason);
    if (job->rc == 0) {
        job->encoded_len = bow__encode(job->message, job->encoded, sizeof job->encoded, NULL);
    }
    return NULL;
}

static void run_on_small_stack(struct job *job)
{
    pthread_attr_t attributes;
    pthread_t thread;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, SMALL_STACK_BYTES), 0);
    assert_int_equal(pthread_create(&thread, &attributes, run_job, job), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_attr_destroy(&attributes);
}

static void test_decode_f31_of_100000_levels_is_refused_on_a_small_stack(void **state)
{
    struct codec_fixture f;
    uint8_t *memory;
    (void)state;
    codec_begin(&f);
    struct job job = {.fixture = &f, .type = &codec3__tree__descriptor};
    job.bytes = nested(100000, &memory);
    run_on_small_stack(&job);
    free(memory);
    assert_int_equal(job.rc, -EBADMSG);
    assert_string_equal(f.reason.bytes,
                        "codec3.Tree.left.left.left.left.(92 more).left.left.left.left.left"
                        " at byte 401: nested deeper than 100 levels");
    codec_end(&f);
}

static void test_decode_of_100_levels_is_taken_and_encoded_on_a_small_stack(void **state)
{
    struct codec_fixture f;
    uint8_t *memory;
    (void)state;
    codec_begin(&f);
    struct job job = {.fixture = &f, .type = &codec3__tree__descriptor};
    job.bytes = nested(100, &memory);
    run_on_small_stack(&job);
    assert_string_equal(f.reason.bytes, "");
    assert_int_equal(job.rc, 0);
    assert_int_equal(job.encoded_len, job.bytes.len);
    assert_memory_equal(job.encoded, job.bytes.data, job.bytes.len);
    free(memory);
    job.bytes = nested(101, &memory);
    run_on_small_stack(&job);
    assert_int_equal(job.rc, -EBADMSG);
    free(memory);
    codec_end(&f);
}

static void test_decode_max_depth_lowers_and_raises_the_limit(void **state)
{
    struct codec_fixture f;
    uint8_t *memory;
    (void)state;
    codec_begin(&f);
    f.options.max_depth = 2;
    codec_decode(&f, &codec3__tree__descriptor, BYTES("\x12\x02\x12\x00"));
    codec_refuse(&f, &codec3__tree__descriptor, BYTES("\x12\x04\x12\x02\x12\x00"),
                 "codec3.Tree.left.left.left at byte 5: nested deeper than 2 levels");
    bow__text_clear(&f.reason);
    f.options.max_depth = 5000;
    struct bow_slice bytes = nested(5000, &memory);
    const Codec3__Tree *tree = codec_decode(&f, &codec3__tree__descriptor, bytes);
    free(memory);
    size_t levels = 0;
    for (; tree->left != NULL; tree = tree->left) {
        levels++;
    }
    assert_int_equal(levels, 5000);
    codec_end(&f);
}

static void test_decode_of_deep_groups_is_refused(void **state)
{
    static uint8_t bytes[100000];
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    memset(bytes, 0x7b, sizeof bytes); /* each opens group 15 */
    codec_refuse(&f, &codec3__empty__descriptor, (struct bow_slice){bytes, sizeof bytes},
                 "codec3.Empty.#15 at byte 101: groups nested too deep");
    memset(bytes + 100, 0x7c, 100);
    bow__text_clear(&f.reason);
    codec_decode(&f, &codec3__empty__descriptor, (struct bow_slice){bytes, 200});
    codec_end(&f);
}

static void test_decode_f31_of_a_message_sent_131072_times_merges_in_linear_space(void **state)
{
    enum { N = 131072 };
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    uint8_t *bytes = malloc(4 * (size_t)N);
    assert_non_null(bytes);
    for (size_t i = 0; i < N; i++) { /* everything.lists, with one element */
        memcpy(bytes + 4 * i, "\x12\x02\x08\x07", 4);
    }
    size_t before = f.alloc.n_calls;
    Codec3__Everything *m =
        codec_decode(&f, &codec3__everything__descriptor, (struct bow_slice){bytes, 4 * (size_t)N});
    free(bytes);
    assert_int_equal(m->lists->n_f_int32, N);
    assert_in_range(f.arena.used, N * sizeof(int32_t), 3 * N * sizeof(int32_t));
    assert_in_range(f.alloc.n_calls - before, 1, 64);
    codec_end(&f);
}

static void test_decode_f31_of_input_that_grows_a_hundredfold_ends_at_the_cap(void **state)
{
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    size_t len = (size_t)2 << 20;
    uint8_t *bytes = malloc(len);
    assert_non_null(bytes);
    for (size_t i = 0; i < len; i += 2) { /* everything.more, empty */
        memcpy(bytes + i, "\x32\x00", 2);
    }
    ProtobufCMessage *message = NULL;
    int rc = bow__decode(&codec3__everything__descriptor, (struct bow_slice){bytes, len}, NULL,
                         &f.arena, &message, &f.reason);
    free(bytes);
    assert_int_equal(rc, -ENOMEM);
    assert_null(message);
    assert_in_range(f.arena.used, FIXTURE_ARENA_BYTES / 2, FIXTURE_ARENA_BYTES);
    assert_non_null(strstr(f.reason.bytes, "codec3.Everything.more at byte "));
    assert_non_null(strstr(f.reason.bytes, "of the at most 8388608 of this call"));
    codec_end(&f);
}

static void test_decode_of_over_2_gib_is_refused_unread(void **state)
{
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    codec_refuse(&f, &codec3__empty__descriptor,
                 (struct bow_slice){(const uint8_t *)"", (size_t)INT32_MAX + 1},
                 "a message of 2147483648 bytes is over 2 GiB - 1");
    codec_end(&f);
}

struct scenario {
    const ProtobufCMessageDescriptor *type;
    struct bow_slice bytes;
};

static int decode_in_a_small_arena(struct bow_context *context, void *user)
{
    const struct scenario *scenario = user;
    struct bow__text reason = {0};
    struct bow__arena arena;
    ProtobufCMessage *message = NULL;
    bow__arena_init(&arena, context, NULL, 0, FIXTURE_ARENA_BYTES);
    int rc = bow__decode(scenario->type, scenario->bytes, NULL, &arena, &message, &reason);
    if (rc != 0) {
        assert_int_equal(rc, -ENOMEM);
        assert_null(message);
        assert_non_null(strstr(reason.bytes, "no memory"));
    }
    bow__arena_fini(&arena);
    return rc;
}

static void test_decode_survives_each_failing_allocation(void **state)
{
    static const ProtobufCMessageDescriptor *const types[] = {
        &codec3__everything__descriptor, &codec2__holder__descriptor, &codec2__map__descriptor};
    struct test_random random = {7};
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    for (size_t i = 0; i < 3; i++) {
        const ProtobufCMessage *message = test_random_message(&random, &f.arena, types[i], 3);
        size_t len = protobuf_c_message_get_packed_size(message);
        uint8_t *bytes = malloc(len + 4);
        assert_non_null(bytes);
        protobuf_c_message_pack(message, bytes);
        struct scenario scenario = {types[i], {bytes, len}};
        assert_in_range(test_alloc_fail_each(NULL, decode_in_a_small_arena, &scenario), 1, 1000);
        free(bytes);
    }
    codec_end(&f);
}

/* A cap at each size finds every single request to the arena, where chunks hide most. */
static void test_decode_survives_the_cap_at_each_byte(void **state)
{
    static const char wire[] = "\x1a\x1a\x0a\x06\x0a\x01k\x12\x01v\x12\x04\x08\x05\x12\x00"
                               "\x12\x02\x08\x06\x1a\x02\x12\x00\x9a\x7f\x01u"
                               "\x12\x0c\x0a\x02\x01\x02\x7a\x01x\x82\x01\x02yz";
    struct codec_fixture f;
    (void)state;
    codec_begin(&f);
    _Alignas(16) uint8_t first[4096];
    int rc = -ENOMEM;
    for (size_t size = 0; rc != 0; size++) {
        assert_in_range(size, 0, sizeof first);
        struct bow__arena arena;
        ProtobufCMessage *message = NULL;
        struct bow__text reason = {0};
        bow__arena_init(&arena, f.context, first, size, 0);
        rc = bow__decode(&codec3__everything__descriptor, BYTES(wire), NULL, &arena, &message,
                         &reason);
        if (rc != 0) {
            assert_int_equal(rc, -ENOMEM);
            assert_non_null(strstr(reason.bytes, "of the at most 0 of this call"));
        }
        bow__arena_fini(&arena);
    }
    codec_end(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_decode_f31_of_100000_levels_is_refused_on_a_small_stack),
        cmocka_unit_test(test_decode_of_100_levels_is_taken_and_encoded_on_a_small_stack),
        cmocka_unit_test(test_decode_max_depth_lowers_and_raises_the_limit),
        cmocka_unit_test(test_decode_of_deep_groups_is_refused),
        cmocka_unit_test(test_decode_f31_of_a_message_sent_131072_times_merges_in_linear_space),
        cmocka_unit_test(test_decode_f31_of_input_that_grows_a_hundredfold_ends_at_the_cap),
        cmocka_unit_test(test_decode_of_over_2_gib_is_refused_unread),
        cmocka_unit_test(test_decode_survives_each_failing_allocation),
        cmocka_unit_test(test_decode_survives_the_cap_at_each_byte),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
