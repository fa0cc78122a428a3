/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* When to come again, as the richer error model of gRPC says it: the bytes, and who gets them. */
#include "rpc/core/in_flight.h"
#include "rpc/web/grpc_text.h"
#include "rpc/web/retry_info.h"
#include "tests/rpc/http2_fed_server.h"

#include <bowline/system.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

/* Of protoc: code 8, "busy", and a RetryInfo of 1.5 s. */
#define GOLDEN                                                                                     \
    "\x08\x08\x12\x04"                                                                             \
    "busy\x1a\x36\x0a\x28type.googleapis.com/google.rpc.RetryInfo\x12\x0a\x0a\x08"                 \
    "\x08\x01\x10\x80\xca\xb5\xee\x01"
#define GOLDEN_BASE64                                                                              \
    "CAgSBGJ1c3kaNgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIKCggIARCAyrXuAQ"

/* An Any of another type, as others put in front: google.rpc.Help, with six bytes. */
#define OTHER_ANY "\x1a\x12\x0a\x08x.y/Help\x12\x06help!?"

static struct bow_slice slice(const char *bytes, size_t len)
{
    return (struct bow_slice){(const uint8_t *)bytes, len};
}

#define SLICE(literal) slice(literal, sizeof(literal) - 1)

static void test_retry_info_f67_is_written_as_protobuf_does(void **state)
{
    uint8_t out[BOW__RETRY_INFO_BYTES];

    (void)state;
    size_t len = bow__retry_info_encode(BOW_RESOURCE_EXHAUSTED, SLICE("busy"), 1500, out);
    assert_int_equal(len, sizeof(GOLDEN) - 1);
    assert_memory_equal(out, GOLDEN, len);
    /* Without what is zero. */
    len = bow__retry_info_encode(BOW_UNAVAILABLE, SLICE(""), 2000, out);
    assert_int_equal(out[0], 0x08);
    assert_int_equal(out[2], 0x1a);
    assert_memory_equal(out + len - 6, "\x12\x04\x0a\x02\x08\x02", 6);
}

static void test_retry_info_f67_that_was_written_is_found(void **state)
{
    static const uint64_t delays_ms[] = {1, 999, 1000, 1001, 86400000, 2147482999};
    static const char message[BOW_LIMIT_STATUS_MESSAGE_BYTES] = "long";
    uint8_t out[BOW__RETRY_INFO_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof(delays_ms) / sizeof(delays_ms[0]); i++) {
        size_t len = bow__retry_info_encode(
            BOW_UNAVAILABLE, (struct bow_slice){(const uint8_t *)message, sizeof(message)},
            delays_ms[i], out);
        assert_in_range(len, 1, sizeof(out));
        assert_true(bow__retry_info_find((struct bow_slice){out, len}) == delays_ms[i] * MS);
    }
    /* The longest that can be written. */
    size_t len = bow__retry_info_encode(BOW_UNAVAILABLE, slice(message, sizeof(message)),
                                        UINT64_MAX / MS, out);
    assert_in_range(len, 1, sizeof(out));
}

static void test_retry_info_f67_is_found_among_others(void **state)
{
    (void)state;
    assert_true(bow__retry_info_find(SLICE(OTHER_ANY GOLDEN OTHER_ANY)) == 1500 * MS);
    /* Unknown fields of each kind between: 64 bits, 32 bits, a number. */
    assert_true(bow__retry_info_find(SLICE("\x31"
                                           "12345678\x3d"
                                           "1234\x40\x07" GOLDEN)) == 1500 * MS);
    assert_true(bow__retry_info_find(SLICE(OTHER_ANY)) == 0);
    assert_true(bow__retry_info_find(SLICE("")) == 0);
}

static void test_retry_info_f67_cut_at_each_byte_says_nothing(void **state)
{
    (void)state;
    for (size_t len = 0; len < sizeof(GOLDEN) - 1; len++) {
        char *cut = malloc(len + 1); /* of that size, so that ASan sees a read beyond */
        assert_non_null(cut);
        memcpy(cut, GOLDEN, len);
        assert_true(bow__retry_info_find(slice(cut, len)) == 0);
        free(cut);
    }
}

/* The Duration alone changes: eight bytes, and their tags and lengths. */
#define WITH_DURATION(bytes)                                                                       \
    "\x1a\x39\x0a\x28type.googleapis.com/google.rpc.RetryInfo\x12\x0d\x0a\x0b" bytes

static void test_retry_info_f67_that_nobody_can_mean_says_nothing(void **state)
{
    (void)state;
    assert_true(bow__retry_info_find(SLICE(WITH_DURATION("\x08\x81\x80\x80\x80\x80\x80\x80\x80"
                                                         "\x80\x00"))) == 1 * SECOND);
    /* -1 s. */
    assert_true(bow__retry_info_find(SLICE(WITH_DURATION("\x08\xff\xff\xff\xff\xff\xff\xff"
                                                         "\xff\xff\x01"))) == 0);
    /* 10,000 years. */
    assert_true(bow__retry_info_find(SLICE(WITH_DURATION("\x08\x80\x93\xb3\xcc\x97\x89\x80\x80"
                                                         "\x80\x00"))) == 0);
    /* More than a second of nanoseconds. */
    assert_true(bow__retry_info_find(SLICE(WITH_DURATION("\x10\x80\x80\x80\x80\x90\x80\x80\x80"
                                                         "\x80\x00"))) == 0);
}

/* What a server says when it ends its one call so. */
static void finish(struct fed_server *t, const struct bow_status *status)
{
    struct bow__session *server = t->pair.server.session;

    bytes_preface(&t->in);
    bytes_request(&t->in, 4 | 1, 1, NULL);
    assert_int_equal(fed_server_feed(t), 0);
    assert_int_equal(server->ops->finish(server, 1, status), 0);
    assert_int_equal(fed_server_feed(t), 0);
}

static void test_retry_info_f67_is_beside_the_pushback(void **state)
{
    struct fed_server *t = *state;

    finish(t, &(struct bow_status){.code = BOW_RESOURCE_EXHAUSTED,
                                   .message = "busy",
                                   .not_processed = true,
                                   .retry_after_ns = 1500 * MS - 1});
    assert_true(fed_server_says(t, "grpc-status=8 grpc-message=busy "
                                   "grpc-status-details-bin=" GOLDEN_BASE64
                                   " grpc-retry-pushback-ms=1500\n"));
}

static void on_turn(struct bow__in_flight *in_flight)
{
    (void)in_flight;
}

static void test_retry_info_f67_is_for_messages_that_find_no_room(void **state)
{
    struct fed_server *t = *state;
    struct bow__session *server = t->pair.server.session;
    uint64_t n_refused = 0;
    struct bow__in_flight in_flight = {
        .max_bytes = 1000, .n_refused = &n_refused, .on_turn = on_turn};
    struct bow__in_flight_share part;

    bow__in_flight_share_init(&part, &in_flight);
    server->in_flight = &part;
    server->retry_after_ns = 1500 * MS;
    bytes_preface(&t->in);
    bytes_request(&t->in, 4, 1, NULL);
    bytes_frame(&t->in, 0, 0, 1,
                "\0\0\0\xff\xff"
                "begun",
                10);
    assert_int_equal(fed_server_feed(t), 0);
    assert_true(fed_server_says(t, "grpc-message=no room for a message of 65535 bytes"));
    assert_true(fed_server_says(t, " grpc-status-details-bin="));
    assert_true(fed_server_says(t, " grpc-retry-pushback-ms=1500\n"));
    server->in_flight = NULL;
    bow__in_flight_share_fini(&part);
}

static void test_retry_info_f67_leaves_a_handlers_own_details(void **state)
{
    struct fed_server *t = *state;

    finish(t, &(struct bow_status){.code = BOW_RESOURCE_EXHAUSTED,
                                   .message = "busy",
                                   .details = SLICE("hello"),
                                   .retry_after_ns = 7 * MS});
    assert_true(fed_server_says(t, "grpc-status-details-bin=aGVsbG8 grpc-retry-pushback-ms=7\n"));
}

static void test_retry_info_f67_is_for_those_who_shall_wait_alone(void **state)
{
    struct fed_server *t = *state;

    finish(t, &(struct bow_status){.code = BOW_NOT_FOUND, .message = "no"});
    assert_true(fed_server_says(t, "grpc-status=5 grpc-message=no\n"));
}

/* The same of a stream that has begun to answer. */
static void test_retry_info_f67_ends_an_answer_that_has_begun(void **state)
{
    struct fed_server *t = *state;
    struct bow__session *server = t->pair.server.session;
    struct bow_metadata_entry entry = {"key", SLICE("value")};

    bytes_preface(&t->in);
    bytes_request(&t->in, 4 | 1, 1, NULL);
    assert_int_equal(fed_server_feed(t), 0);
    assert_int_equal(
        server->ops->respond(server, 1, &(struct bow_metadata){&entry, 1}, BOW__ENCODING_IDENTITY),
        0);
    assert_int_equal(server->ops->finish(server, 1,
                                         &(struct bow_status){.code = BOW_RESOURCE_EXHAUSTED,
                                                              .message = "busy",
                                                              .retry_after_ns = 1500 * MS}),
                     0);
    assert_int_equal(fed_server_feed(t), 0);
    assert_true(fed_server_says(t, "grpc-status-details-bin=" GOLDEN_BASE64));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fed_server_setup, fed_server_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_retry_info_f67_is_written_as_protobuf_does),
        cmocka_unit_test(test_retry_info_f67_that_was_written_is_found),
        cmocka_unit_test(test_retry_info_f67_is_found_among_others),
        cmocka_unit_test(test_retry_info_f67_cut_at_each_byte_says_nothing),
        cmocka_unit_test(test_retry_info_f67_that_nobody_can_mean_says_nothing),
        TEST(test_retry_info_f67_is_beside_the_pushback),
        TEST(test_retry_info_f67_is_for_messages_that_find_no_room),
        TEST(test_retry_info_f67_leaves_a_handlers_own_details),
        TEST(test_retry_info_f67_is_for_those_who_shall_wait_alone),
        TEST(test_retry_info_f67_ends_an_answer_that_has_begun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
