/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Encodings: what each side says that it can decode, and where the one of a
 * side's messages is named.
 */
#include "tests/rpc/native_pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OPENING "b04f5701 00000000 00 00 000000000000 "
#define KIB ((size_t)1 << 10)

static const struct bow_metadata none = BOW_METADATA_INIT;

/* A call that has begun without a message. */
static uint64_t begin(struct pair *pair, enum bow__encoding encoding)
{
    struct bow__request_head head = {
        .path = {(const uint8_t *)"/s/m", 4}, .time_left_ns = BOW_NEVER, .encoding = encoding};
    struct bow__session *client = pair->client.session;
    uint64_t key = 0;

    assert_int_equal(client->ops->open(client, &head, &pair->client, &key), 0);
    assert_int_equal(client->ops->begin(client, key), 0);
    pair_run(pair);
    return key;
}

static int respond(struct side *side, uint64_t key, struct bow_metadata metadata,
                   enum bow__encoding encoding)
{
    return side->session->ops->respond(side->session, key, &metadata, encoding);
}

#define ZSTD_AND_GZIP (1u << BOW__ENCODING_ZSTD | 1u << BOW__ENCODING_GZIP)

static void open_with_encodings(struct pair *pair, uint32_t of_client, uint32_t of_server)
{
    struct bow__session_options options = pair_options(pair, false);

    options.encodings = of_client;
    assert_int_equal(side_open(&pair->client, &options), 0);
    options = pair_options(pair, true);
    options.encodings = of_server;
    assert_int_equal(side_open(&pair->server, &options), 0);
}

static uint32_t encodings(const struct side *side)
{
    return side->session->ops->encodings(side->session, 1);
}

static void test_native_encodings_are_told_the_other_side(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    open_with_encodings(&pair, ZSTD_AND_GZIP, 1u << BOW__ENCODING_GZIP);
    assert_int_equal(encodings(&pair.client), 1u);
    pair_run(&pair);
    assert_int_equal(encodings(&pair.client), 1u | 1u << BOW__ENCODING_GZIP);
    assert_int_equal(encodings(&pair.server), 1u | ZSTD_AND_GZIP);
    pair_fini(&pair);
}

/* What is assumed of a server holds until it has spoken. */
static void test_native_encodings_assumed_are_those_until_settings_come(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    struct bow__session_options options = pair_options(&pair, false);
    options.assumed_encodings = ZSTD_AND_GZIP;
    assert_int_equal(side_open(&pair.client, &options), 0);
    options = pair_options(&pair, true);
    options.encodings = 1u << BOW__ENCODING_DEFLATE;
    assert_int_equal(side_open(&pair.server, &options), 0);
    assert_int_equal(encodings(&pair.client), 1u | ZSTD_AND_GZIP);
    assert_int_equal(encodings(&pair.server), 1u);
    pair_run(&pair);
    assert_int_equal(encodings(&pair.client), 1u | 1u << BOW__ENCODING_DEFLATE);
    pair_fini(&pair);
}

static void test_native_encoding_of_a_call_is_that_of_its_messages(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    open_with_encodings(&pair, ZSTD_AND_GZIP, ZSTD_AND_GZIP);
    pair_run(&pair);
    for (size_t len = 2; len < 100 * KIB; len *= 100) {
        uint64_t key = begin(&pair, BOW__ENCODING_GZIP);
        assert_int_equal(pair.server.encoding, BOW__ENCODING_GZIP);
        struct bow__block *block = pattern_block(pair.context, len, 1);
        assert_int_equal(pair.client.session->ops->send(pair.client.session, key,
                                                        BOW__SEND_COMPRESSED, block, 0, len),
                         0);
        pair_run(&pair);
        assert_int_equal(pair.server.message_len, len);
        assert_true(pair.server.message_compressed);
        assert_int_equal(pair.server.message_encoding, BOW__ENCODING_GZIP);
    }
    pair_fini(&pair);
}

static void test_native_encoding_not_known_is_told(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    side_feed_hex(&pair.server, OPENING "0000000c 01 0d 000000000001 0a 12042f732f6d 2a02 6272 78");
    assert_int_equal(pair.server.encoding, BOW__ENCODING_UNKNOWN);
    assert_int_equal(pair.server.message_encoding, BOW__ENCODING_UNKNOWN);
    assert_int_equal(pair.server.rc, 0);
    pair_fini(&pair);
}

/* The reply of a unary call names its encoding in the STATUS that it travels in. */
static void test_native_encoding_of_one_reply_is_in_its_status(void **state)
{
    struct pair pair;

    (void)state;
    for (int waits = 0; waits < 2; waits++) {
        pair_init(&pair);
        open_with_encodings(&pair, ZSTD_AND_GZIP, 0);
        pair_run(&pair);
        uint64_t key = begin(&pair, BOW__ENCODING_IDENTITY);
        assert_int_equal(respond(&pair.server, key, none, BOW__ENCODING_ZSTD), 0);
        side_assert_output(&pair.server, "");
        uint32_t flags = BOW__SEND_END | BOW__SEND_COMPRESSED;
        if (waits) {
            struct bow__block *block = pattern_block(pair.context, 2, 1);
            assert_int_equal(
                pair.server.session->ops->send(pair.server.session, key, flags, block, 0, 2), 0);
        } else {
            assert_int_equal(side_say(&pair.server, key, flags, "\x01\x08", 2), 0);
        }
        side_assert_output(&pair.server, "00000009 04 0d 000000000001 06 3a04 7a737464 0108");
        side_feed_hex(&pair.client, "00000009 04 0d 000000000001 06 3a04 7a737464 0108");
        assert_int_equal(pair.client.n_statuses, 1);
        assert_int_equal(pair.client.n_headers, 0);
        assert_true(pair.client.message_compressed);
        assert_int_equal(pair.client.message_encoding, BOW__ENCODING_ZSTD);
        pair_fini(&pair);
    }
}

static void test_native_encoding_of_an_answer_is_named_once(void **state)
{
    struct pair pair;
    static const struct bow_metadata_entry entry = {"k", {(const uint8_t *)"v", 1}};
    struct bow_metadata metadata = {&entry, 1};

    (void)state;
    for (int how = 0; how < 3; how++) {
        pair_init(&pair);
        open_with_encodings(&pair, ZSTD_AND_GZIP, 0);
        pair_run(&pair);
        uint64_t key = begin(&pair, BOW__ENCODING_IDENTITY);
        assert_int_equal(respond(&pair.server, key, how == 0 ? metadata : none, BOW__ENCODING_GZIP),
                         0);
        for (int i = 0; i < 2; i++) {
            size_t len = how == 2 ? 100 * KIB : 10;
            struct bow__block *block = pattern_block(pair.context, len, 1);
            assert_int_equal(pair.server.session->ops->send(pair.server.session, key,
                                                            BOW__SEND_COMPRESSED, block, 0, len),
                             0);
        }
        assert_int_equal(side_say(&pair.server, key, BOW__SEND_END, "plain", 5), 0);
        pair_run(&pair);
        for (int i = 0; i < 2; i++) { /* what lies unread holds back what follows */
            pair.client.session->ops->consumed(pair.client.session, key, 100 * KIB);
            pair_run(&pair);
        }
        assert_int_equal(pair.client.rc, 0);
        assert_int_equal(pair.client.n_headers, how == 0);
        assert_int_equal(pair.client.n_messages, 3);
        assert_false(pair.client.message_compressed);
        assert_int_equal(pair.client.message_encoding, BOW__ENCODING_GZIP);
        assert_int_equal(pair.client.code, BOW_OK);
        pair_fini(&pair);
    }
}

/* In place, without an END: RESPONSE goes before the message. */
static void test_native_encoding_goes_before_the_first_of_many(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    open_with_encodings(&pair, ZSTD_AND_GZIP, 0);
    pair_run(&pair);
    uint64_t key = begin(&pair, BOW__ENCODING_IDENTITY);
    assert_int_equal(respond(&pair.server, key, none, BOW__ENCODING_ZSTD), 0);
    assert_int_equal(side_say(&pair.server, key, BOW__SEND_COMPRESSED, "x", 1), 0);
    assert_int_equal(side_say(&pair.server, key, 0, "y", 1), 0);
    side_assert_output(&pair.server, "00000006 02 00 000000000001 1204 7a737464"
                                     "00000001 03 0c 000000000001 78"
                                     "00000001 03 08 000000000001 79");
    pair_fini(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_native_encodings_are_told_the_other_side),
        cmocka_unit_test(test_native_encodings_assumed_are_those_until_settings_come),
        cmocka_unit_test(test_native_encoding_of_a_call_is_that_of_its_messages),
        cmocka_unit_test(test_native_encoding_not_known_is_told),
        cmocka_unit_test(test_native_encoding_of_one_reply_is_in_its_status),
        cmocka_unit_test(test_native_encoding_of_an_answer_is_named_once),
        cmocka_unit_test(test_native_encoding_goes_before_the_first_of_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
