/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Compression of messages: there and back, what is no valid input, and the limit on what
 * comes out. Each test runs for every encoding of the build.
 */

#include "rpc/core/compression/encodings.h"
#include "tests/support/alloc.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MAX_BYTES ((size_t)1 << 20)

struct fixture {
    struct test_alloc alloc;
    struct bow_context *context;
    struct bow__coders coders;
    struct bow__text reason;
};

static int setup(void **state)
{
    static struct fixture fixture;

    test_alloc_init(&fixture.alloc);
    fixture.context = test_context_new(&fixture.alloc);
    bow__coders_init(&fixture.coders, fixture.context);
    bow__text_clear(&fixture.reason);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;

    bow__coders_trim(&fixture->coders);
    test_context_end(fixture->context, &fixture->alloc);
    return 0;
}

static void for_each_encoding(struct fixture *t,
                              void (*run)(struct fixture *t, enum bow__encoding encoding))
{
    for (unsigned i = BOW__ENCODING_ZSTD; i < BOW__N_ENCODINGS; i++) {
        if ((bow__encodings_built() >> i & 1u) != 0) {
            run(t, (enum bow__encoding)i);
        }
    }
}

/* Words of a small vocabulary: compresses, but is no run. */
static void fill(uint8_t *bytes, size_t n)
{
    uint32_t x = 1;

    for (size_t i = 0; i < n; i++) {
        x = x * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)("abcd efgh"[(x >> 24) % 9]);
    }
}

static struct bow__block *deflate(struct fixture *t, enum bow__encoding encoding, const void *bytes,
                                  size_t n, size_t *ret_len)
{
    struct bow__block *block = NULL;

    assert_int_equal(
        bow__deflate(&t->coders, encoding, 0, (struct bow_slice){bytes, n}, &block, ret_len), 0);
    assert_true(*ret_len < n);
    assert_int_equal(block->cap, *ret_len); /* what it waits in is small too */
    return block;
}

static int inflate(struct fixture *t, enum bow__encoding encoding, const void *bytes, size_t n,
                   size_t max_bytes, struct bow__block **ret_block, size_t *ret_len)
{
    bow__text_clear(&t->reason);
    *ret_block = NULL;
    *ret_len = 0;
    return bow__inflate(&t->coders, encoding, (struct bow_slice){bytes, n}, max_bytes, ret_block,
                        ret_len, &t->reason);
}

static void refuse(struct fixture *t, enum bow__encoding encoding, const void *bytes, size_t n,
                   int rc, const char *why)
{
    struct bow__block *block = NULL;
    size_t len = 0;

    assert_int_equal(inflate(t, encoding, bytes, n, MAX_BYTES, &block, &len), rc);
    assert_null(block);
    assert_non_null(strstr(t->reason.bytes, why));
}

static void there_and_back(struct fixture *t, enum bow__encoding encoding)
{
    static const size_t sizes[] = {40, 1000, 4096, 4097, 70000, MAX_BYTES - 1, MAX_BYTES};
    uint8_t *bytes = malloc(MAX_BYTES);

    assert_non_null(bytes);
    fill(bytes, MAX_BYTES);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct bow__block *back = NULL;
        size_t n_small = 0;
        size_t n_back = 0;
        struct bow__block *small = NULL;
        /* What does not shrink is said to be so. */
        int rc = bow__deflate(&t->coders, encoding, 0, (struct bow_slice){bytes, sizes[i]}, &small,
                              &n_small);
        if (rc == -ENOBUFS) {
            assert_true(sizes[i] <= 40);
            continue;
        }
        assert_int_equal(rc, 0);
        assert_int_equal(inflate(t, encoding, small->data, n_small, MAX_BYTES, &back, &n_back), 0);
        assert_int_equal(n_back, sizes[i]);
        assert_memory_equal(back->data, bytes, sizes[i]);
        bow__block_unref(small);
        bow__block_unref(back);
    }
    free(bytes);
}

static void test_what_goes_in_comes_out(void **state)
{
    for_each_encoding(*state, there_and_back);
}

static void noise(struct fixture *t, enum bow__encoding encoding)
{
    struct bow__block *block = NULL;
    size_t len = 0;
    uint8_t bytes[500];
    uint32_t x = 7;

    for (size_t i = 0; i < sizeof(bytes); i++) {
        x = x * 1664525u + 1013904223u;
        bytes[i] = (uint8_t)(x >> 24);
    }
    assert_int_equal(bow__deflate(&t->coders, encoding, 0, (struct bow_slice){bytes, sizeof(bytes)},
                                  &block, &len),
                     -ENOBUFS);
    assert_null(block);
    assert_int_equal(
        bow__deflate(&t->coders, encoding, 0, (struct bow_slice){NULL, 0}, &block, &len), -ENOBUFS);
}

static void test_what_does_not_shrink_is_left_alone(void **state)
{
    for_each_encoding(*state, noise);
}

/* 64 MiB of zeros in a few kilobytes: not more than the limit is ever made of them. */
static void bomb(struct fixture *t, enum bow__encoding encoding)
{
    size_t n = (size_t)64 << 20;
    uint8_t *zeros = calloc(1, n);
    size_t n_small = 0;

    assert_non_null(zeros);
    struct bow__block *small = deflate(t, encoding, zeros, n, &n_small);
    free(zeros);
    size_t before = atomic_load(&t->alloc.n_bytes);
    refuse(t, encoding, small->data, n_small, -EMSGSIZE,
           "it inflates to more than max_message_bytes (1048576)");
    /* gzip's own state aside, nothing is kept. */
    assert_true(atomic_load(&t->alloc.n_bytes) <= before + (size_t)64 * 1024);
    bow__block_unref(small);
}

static void test_a_bomb_is_refused_at_the_limit(void **state)
{
    for_each_encoding(*state, bomb);
}

static void exact(struct fixture *t, enum bow__encoding encoding)
{
    static uint8_t bytes[10000];
    struct bow__block *back = NULL;
    size_t n_small = 0;
    size_t n_back = 0;

    fill(bytes, sizeof(bytes));
    struct bow__block *small = deflate(t, encoding, bytes, sizeof(bytes), &n_small);
    assert_int_equal(inflate(t, encoding, small->data, n_small, 10000, &back, &n_back), 0);
    assert_int_equal(n_back, 10000);
    bow__block_unref(back);
    assert_int_equal(inflate(t, encoding, small->data, n_small, 9999, &back, &n_back), -EMSGSIZE);
    assert_null(back);
    assert_int_equal(inflate(t, encoding, small->data, n_small, SIZE_MAX, &back, &n_back), 0);
    assert_int_equal(n_back, 10000);
    bow__block_unref(back);
    bow__block_unref(small);
}

static void test_the_limit_is_exact(void **state)
{
    for_each_encoding(*state, exact);
}

static void broken(struct fixture *t, enum bow__encoding encoding)
{
    static uint8_t bytes[3000];
    size_t n = 0;

    fill(bytes, sizeof(bytes));
    struct bow__block *small = deflate(t, encoding, bytes, sizeof(bytes), &n);
    /* Cut anywhere. */
    for (size_t cut = 0; cut < n; cut++) {
        refuse(t, encoding, small->data, cut, -EBADMSG, "it is no valid");
    }
    /* Followed by something else. */
    uint8_t *more = malloc(n + 3);
    assert_non_null(more);
    memcpy(more, small->data, n);
    memcpy(more + n, "xyz", 3);
    refuse(t, encoding, more, n + 3, -EBADMSG, "it is no valid");
    free(more);
    refuse(t, encoding, "plain text, not compressed", 26, -EBADMSG, "it is no valid");
    bow__block_unref(small);
}

static void test_what_is_cut_or_followed_or_plain_is_refused(void **state)
{
    for_each_encoding(*state, broken);
}

static void after_a_fault(struct fixture *t, enum bow__encoding encoding)
{
    static uint8_t bytes[3000];
    struct bow__block *back = NULL;
    size_t n = 0;
    size_t n_back = 0;

    fill(bytes, sizeof(bytes));
    struct bow__block *small = deflate(t, encoding, bytes, sizeof(bytes), &n);
    refuse(t, encoding, small->data, n / 2, -EBADMSG, "it is no valid");
    assert_int_equal(inflate(t, encoding, small->data, n, MAX_BYTES, &back, &n_back), 0);
    assert_memory_equal(back->data, bytes, sizeof(bytes));
    bow__block_unref(back);
    bow__block_unref(small);
}

static void test_a_decoder_serves_on_after_a_fault(void **state)
{
    for_each_encoding(*state, after_a_fault);
}

static void twice(struct fixture *t, enum bow__encoding encoding)
{
    static uint8_t bytes[3000];
    struct bow__block *back = NULL;
    size_t n = 0;
    size_t n_back = 0;

    fill(bytes, sizeof(bytes));
    struct bow__block *small = deflate(t, encoding, bytes, sizeof(bytes), &n);
    uint8_t *both = malloc(2 * n);
    assert_non_null(both);
    memcpy(both, small->data, n);
    memcpy(both + n, small->data, n);
    if (encoding == BOW__ENCODING_DEFLATE) { /* whose format knows of one */
        refuse(t, encoding, both, 2 * n, -EBADMSG, "it is no valid deflate: something follows it");
        free(both);
        bow__block_unref(small);
        return;
    }
    assert_int_equal(inflate(t, encoding, both, 2 * n, MAX_BYTES, &back, &n_back), 0);
    assert_int_equal(n_back, 6000);
    assert_memory_equal(back->data + 3000, bytes, sizeof(bytes));
    free(both);
    bow__block_unref(back);
    bow__block_unref(small);
}

static void test_several_frames_are_one_message(void **state)
{
    for_each_encoding(*state, twice);
}

static void levels(struct fixture *t, enum bow__encoding encoding)
{
    static uint8_t bytes[50000];
    static const int all[] = {-5, 1, 3, 9, 100};

    fill(bytes, sizeof(bytes));
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct bow__block *small = NULL;
        struct bow__block *back = NULL;
        size_t n = 0;
        size_t n_back = 0;
        assert_int_equal(bow__deflate(&t->coders, encoding, all[i],
                                      (struct bow_slice){bytes, sizeof(bytes)}, &small, &n),
                         0);
        assert_int_equal(inflate(t, encoding, small->data, n, MAX_BYTES, &back, &n_back), 0);
        assert_int_equal(n_back, sizeof(bytes));
        bow__block_unref(small);
        bow__block_unref(back);
    }
}

static void test_every_level_can_be_read(void **state)
{
    for_each_encoding(*state, levels);
}

/* What gRPC calls deflate has the header and the check of zlib. */
static void test_deflate_is_the_zlib_format(void **state)
{
    static const uint8_t hello[] = {0x78, 0x9c, 0xcb, 0x48, 0xcd, 0xc9, 0xc9,
                                    0x07, 0x00, 0x06, 0x2c, 0x02, 0x15};
    struct fixture *t = *state;
    struct bow__block *block = NULL;
    size_t len = 0;

    if ((bow__encodings_built() >> BOW__ENCODING_DEFLATE & 1u) == 0) {
        skip();
    }
    assert_int_equal(
        inflate(t, BOW__ENCODING_DEFLATE, hello, sizeof(hello), MAX_BYTES, &block, &len), 0);
    assert_int_equal(len, 5);
    assert_memory_equal(block->data, "hello", 5);
    bow__block_unref(block);
    /* Neither the bare format of RFC 1951 nor gzip's. */
    refuse(t, BOW__ENCODING_DEFLATE, hello + 2, sizeof(hello) - 6, -EBADMSG, "it is no valid");
    refuse(t, BOW__ENCODING_GZIP, hello, sizeof(hello), -EBADMSG, "it is no valid");
}

static uint32_t encodings_of(const char *list, const char *unknown)
{
    struct bow_slice first = {NULL, 0};
    uint32_t set =
        bow__encodings_of((struct bow_slice){(const uint8_t *)list, strlen(list)}, &first);

    assert_int_equal(first.len, strlen(unknown));
    if (first.len > 0) {
        assert_memory_equal(first.data, unknown, first.len);
    }
    return set;
}

static void test_lists_of_encodings_are_read(void **state)
{
    uint32_t identity = 1u << BOW__ENCODING_IDENTITY;
    struct bow__text all;

    (void)state;
    bow__text_clear(&all);
    bow__encodings_describe(&all);
    assert_int_equal(encodings_of(all.bytes, ""), bow__encodings_built());
    assert_int_equal(encodings_of("", ""), 0);
    assert_int_equal(encodings_of("identity", ""), identity);
    assert_int_equal(encodings_of(" br ,\tidentity , snappy", "br"), identity);
    assert_int_equal(encodings_of(",,identity,", ""), identity);
}

static void test_unknown_encodings_are_named(void **state)
{
    struct fixture *t = *state;
    struct bow__block *block = NULL;
    size_t len = 0;

    assert_int_equal(bow__encoding_of((struct bow_slice){(const uint8_t *)"brotli", 6}),
                     BOW__ENCODING_UNKNOWN);
    assert_int_equal(bow__encoding_of((struct bow_slice){(const uint8_t *)"identity", 8}),
                     BOW__ENCODING_IDENTITY);
    assert_null(bow__encoding_name(BOW__ENCODING_UNKNOWN));
    assert_int_equal(inflate(t, BOW__ENCODING_UNKNOWN, "x", 1, MAX_BYTES, &block, &len), -ENOTSUP);
    assert_int_equal(bow__deflate(&t->coders, BOW__ENCODING_UNKNOWN, 0,
                                  (struct bow_slice){(const uint8_t *)"xx", 2}, &block, &len),
                     -ENOTSUP);
}

static int out_of_memory(struct bow_context *context, void *user)
{
    struct bow__coders coders;
    struct bow__block *small = NULL;
    struct bow__block *back = NULL;
    static uint8_t bytes[20000];
    enum bow__encoding encoding = *(enum bow__encoding *)user;
    struct bow__text reason;
    size_t n = 0;

    bow__text_clear(&reason);
    fill(bytes, sizeof(bytes));
    bow__coders_init(&coders, context);
    int rc =
        bow__deflate(&coders, encoding, 0, (struct bow_slice){bytes, sizeof(bytes)}, &small, &n);
    if (rc == 0) {
        rc = bow__inflate(&coders, encoding, (struct bow_slice){small->data, n}, MAX_BYTES, &back,
                          &n, &reason);
    }
    bow__block_unref(small);
    bow__block_unref(back);
    bow__coders_trim(&coders);
    return rc;
}

static void shortage(struct fixture *t, enum bow__encoding encoding)
{
    (void)t;
    assert_true(test_alloc_fail_each(NULL, out_of_memory, &encoding) > 1);
}

static void test_each_failed_allocation_is_an_error(void **state)
{
    for_each_encoding(*state, shortage);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_what_goes_in_comes_out),
        TEST(test_what_does_not_shrink_is_left_alone),
        TEST(test_a_bomb_is_refused_at_the_limit),
        TEST(test_the_limit_is_exact),
        TEST(test_what_is_cut_or_followed_or_plain_is_refused),
        TEST(test_a_decoder_serves_on_after_a_fault),
        TEST(test_several_frames_are_one_message),
        TEST(test_every_level_can_be_read),
        TEST(test_deflate_is_the_zlib_format),
        TEST(test_lists_of_encodings_are_read),
        TEST(test_unknown_encodings_are_named),
        TEST(test_each_failed_allocation_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
