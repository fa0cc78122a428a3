/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls over two native sessions, whatever the pieces in which their bytes arrive.
 */
#include "tests/rpc/native_pair.h"

#include <bowline/limits.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void reply_hello(struct side *side, uint64_t key, struct bow__message *message)
{
    (void)message;
    assert_int_equal(side_say(side, key, BOW__SEND_END, "hello", 5), 0);
}

static void run_unary_call(size_t step, uint64_t random)
{
    struct pair pair;

    pair_init(&pair);
    pair.step = step;
    pair.random = random;
    assert_int_equal(pair_open(&pair), 0);
    pair.server.on_message = reply_hello;
    uint64_t key = side_call(&pair.client, "/demo.Greeter/SayHello", 0, "world", 5);
    pair_run(&pair);

    assert_int_equal(pair.server.n_opens, 1);
    assert_string_equal(pair.server.path, "/demo.Greeter/SayHello");
    assert_true(pair.server.time_left_ns == BOW_NEVER);
    assert_null(pair.server.path_cache);
    assert_int_equal(pair.server.message_len, 5);
    assert_memory_equal(pair.server.message, "world", 5);
    assert_true(pair.server.message_end);
    assert_false(pair.server.message_had_block);
    assert_ptr_equal(pair.server.stream, (void *)(uintptr_t)(key + 1000));
    assert_int_equal(pair.client.n_messages, 1);
    assert_memory_equal(pair.client.message, "hello", 5);
    assert_int_equal(pair.client.n_statuses, 1);
    assert_int_equal(pair.client.code, BOW_OK);
    assert_ptr_equal(pair.client.stream, &pair.client);
    assert_int_equal(pair.client.session->n_streams, 0);
    assert_int_equal(pair.server.session->n_streams, 0);
    pair_fini(&pair);
}

static void test_native_call_unary_replies(void **state)
{
    (void)state;
    run_unary_call(0, 0);
}

/* Whatever order they are asked for in, the last one opened included. */
static void test_native_call_each_of_many_open_ones_is_found(void **state)
{
    static const unsigned orders[][4] = {{0, 1, 2, 3}, {3, 2, 1, 0}, {3, 0, 2, 1}, {1, 3, 0, 2}};
    struct pair pair;
    uint64_t keys[4];

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        for (size_t at = 0; at < 4; at++) {
            keys[at] = side_call(&pair.client, "/demo.Greeter/SayHello", 0, "world", 5);
        }
        pair_run(&pair);
        for (size_t at = 0; at < 4; at++) {
            uint64_t key = keys[orders[i][at]];
            assert_int_equal(side_say(&pair.server, key, BOW__SEND_END, "hello", 5), 0);
            assert_int_equal(side_say(&pair.server, key, BOW__SEND_END, "hello", 5), -ENOENT);
            pair_run(&pair);
            assert_int_equal(pair.client.n_statuses, 4 * i + at + 1);
            assert_int_equal(pair.client.key, key);
        }
    }
    pair_fini(&pair);
}

static void test_native_call_byte_by_byte_replies(void **state)
{
    (void)state;
    run_unary_call(1, 0);
}

static void test_native_call_any_split_replies(void **state)
{
    (void)state;
    for (size_t step = 2; step < 80; step++) {
        run_unary_call(step, 0);
    }
    for (uint64_t seed = 1; seed <= 200; seed++) {
        run_unary_call(1 + seed % 40, seed);
    }
}

/* What the head of a request says. */

static void test_native_call_deadline_arrives_rounded_up(void **state)
{
    static const struct {
        uint64_t sent_ns;
        uint64_t received_ns;
    } times[] = {
        {0, 0},
        {1, 1000},
        {1000, 1000},
        {1001, 2000},
        {30000000000, 30000000000},
        {BOW_NEVER - 1, BOW_NEVER},
        {BOW_NEVER, BOW_NEVER},
    };
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    struct bow__session *client = pair.client.session;
    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        struct bow__request_head head = {.path = {(const uint8_t *)"/s/m", 4},
                                         .time_left_ns = times[i].sent_ns};
        uint64_t key = 0;
        assert_int_equal(client->ops->open(client, &head, NULL, &key), 0);
        assert_int_equal(side_say(&pair.client, key, BOW__SEND_END, "x", 1), 0);
        pair_run(&pair);
        assert_true(pair.server.time_left_ns == times[i].received_ns);
    }
    pair_fini(&pair);
}

static void test_native_call_method_is_bound_once(void **state)
{
    struct pair pair;
    uint8_t out[256];

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    side_feed_hex(&pair.server, "b04f5701 00000000 00 00 000000000000");
    side_take(&pair.client, out, sizeof(out));
    side_call(&pair.client, "/s/first", 70, "", 0);
    size_t n_first = side_take(&pair.client, out, sizeof(out));
    side_feed(&pair.server, out, n_first);
    assert_string_equal(pair.server.path, "/s/first");
    void **cache = pair.server.path_cache;
    assert_non_null(cache);
    assert_null(*cache);
    *cache = &pair;

    side_call(&pair.client, "/s/first", 70, "", 0);
    size_t n = side_take(&pair.client, out, sizeof(out));
    assert_int_equal(n, 12 + 1 + 2);
    side_feed(&pair.server, out, n);
    assert_string_equal(pair.server.path, "/s/first");
    assert_ptr_equal(pair.server.path_cache, cache);
    assert_ptr_equal(*pair.server.path_cache, &pair);

    side_call(&pair.client, "/s/second", 71, "", 0);
    n = side_take(&pair.client, out, sizeof(out));
    side_feed(&pair.server, out, n);
    assert_string_equal(pair.server.path, "/s/second");
    assert_null(*pair.server.path_cache);
    assert_int_equal(pair.server.rc, 0);
    pair_fini(&pair);
}

static void test_native_call_beyond_the_numbers_sends_its_path(void **state)
{
    struct pair pair;
    char path[16];

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    pair.server.on_message = reply_hello;
    for (int round = 0; round < 2; round++) {
        for (uint64_t i = 1; i <= 70; i++) {
            snprintf(path, sizeof(path), "/s/m%d", (int)i);
            side_call(&pair.client, path, i, "x", 1);
            pair_run(&pair);
            assert_string_equal(pair.server.path, path);
            assert_true((pair.server.path_cache != NULL) == (i <= 64));
        }
    }
    assert_int_equal(pair.client.n_statuses, 140);
    pair_fini(&pair);
}

static void test_native_call_of_a_long_path_is_not_bound(void **state)
{
    struct pair pair;
    static char path[BOW_LIMIT_BOUND_PATH_BYTES + 2];

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    pair.server.on_message = reply_hello;
    memset(path, 'p', sizeof(path) - 1);
    for (int i = 0; i < 2; i++) {
        side_call(&pair.client, path, 7, "x", 1);
        pair_run(&pair);
        assert_null(pair.server.path_cache);
    }
    path[BOW_LIMIT_BOUND_PATH_BYTES] = '\0';
    side_call(&pair.client, path, 8, "x", 1);
    pair_run(&pair);
    assert_non_null(pair.server.path_cache);
    assert_int_equal(pair.client.n_statuses, 3);
    pair_fini(&pair);
}

static void test_native_call_abandoned_leaves_no_trace(void **state)
{
    struct pair pair;
    struct bow__request_head head = {
        .path = {(const uint8_t *)"/s/m", 4}, .time_left_ns = BOW_NEVER, .path_key = 9};
    uint64_t key = 0;
    size_t cap = 0;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    side_assert_output(&pair.client,
                       "b04f5701 0000000c 00 00 000000000000 08808010 1080a004 38a09c01");
    struct bow__session *client = pair.client.session;
    for (int reserved = 0; reserved < 2; reserved++) {
        assert_int_equal(client->ops->open(client, &head, NULL, &key), 0);
        if (reserved) {
            assert_non_null(client->ops->reserve(client, key, BOW__SEND_END, &cap));
            assert_int_equal(cap, BOW__IN_PLACE_BYTES);
        }
        client->ops->abandon(client, key);
        side_assert_output(&pair.client, "");
        assert_int_equal(client->n_streams, 0);
    }
    /* The number was not bound either. */
    assert_true(side_call(&pair.client, "/s/m", 9, "", 0) == 5);
    side_assert_output(&pair.client, "00000009 01 09 000000000005 08 0801 12042f732f6d");
    pair_fini(&pair);
}

static void test_native_call_with_a_path_too_long_is_refused(void **state)
{
    struct pair pair;
    static uint8_t path[16384];
    struct bow__request_head head = {.path = {path, sizeof(path)}, .time_left_ns = BOW_NEVER};
    uint64_t key = 0;

    (void)state;
    memset(path, 'a', sizeof(path));
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    pair_run(&pair);
    pair.server.on_message = reply_hello;
    struct bow__session *client = pair.client.session;
    assert_int_equal(client->ops->open(client, &head, NULL, &key), -EMSGSIZE);
    assert_int_equal(client->n_streams, 0);
    head.path.len = 16370;
    assert_int_equal(client->ops->open(client, &head, NULL, &key), 0);
    assert_int_equal(side_say(&pair.client, key, BOW__SEND_END, path, 16384), 0);
    pair_run(&pair);
    assert_int_equal(pair.client.n_statuses, 1);
    assert_int_equal(pair.server.message_len, 16384);
    pair_fini(&pair);
}

/* How calls end. */

static void finish_in_open(struct side *side, uint64_t key)
{
    static const uint8_t details[] = "more";
    struct bow_status status = {
        .code = BOW_UNIMPLEMENTED,
        .message = "no such method",
        .details = {details, 4},
        .not_processed = true,
        .retry_after_ns = 1500001000,
    };

    assert_int_equal(side->session->ops->finish(side->session, key, &status), 0);
    assert_int_equal(side->session->ops->finish(side->session, key, &status), -ENOENT);
}

static void test_native_call_refused_at_open_has_its_status(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    pair.server.on_open = finish_in_open;
    side_call(&pair.client, "/s/m", 0, "x", 1);
    pair_run(&pair);
    assert_int_equal(pair.server.n_messages, 0);
    assert_int_equal(pair.server.n_resets, 0);
    assert_int_equal(pair.client.n_messages, 0);
    assert_int_equal(pair.client.n_statuses, 1);
    assert_int_equal(pair.client.code, BOW_UNIMPLEMENTED);
    assert_string_equal(pair.client.text, "no such method");
    assert_string_equal(pair.client.details, "more");
    assert_true(pair.client.not_processed);
    assert_true(pair.client.retry_after_ns == 1500001000);
    pair_fini(&pair);
}

static void answer_large(struct side *side, uint64_t key)
{
    static uint8_t reply[100000];

    assert_int_equal(side_say(side, key, BOW__SEND_END, reply, sizeof(reply)), 0);
}

/* The reply still waits for credit, but the host has said its last. */
static void test_native_call_answered_at_open_brings_nothing_more(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    pair.server.on_open = answer_large;
    side_feed_hex(&pair.server, "b04f5701 00000000 00 00 000000000000 "
                                "00000007 01 01 000000000001 06 12042f732f6d "
                                "00000007 01 00 000000000003 06 12042f732f6d "
                                "00000000 03 01 000000000003 "
                                "00000008 01 09 000000000005 06 12042f732f6d 61");
    assert_int_equal(pair.server.n_opens, 3);
    assert_int_equal(pair.server.n_half_closes, 0);
    assert_int_equal(pair.server.n_messages, 0);
    assert_int_equal(pair.server.session->n_streams, 3);
    side_feed_hex(&pair.server, "00000004 05 00 000000000001 00000001");
    assert_int_equal(pair.server.n_resets, 0);
    assert_int_equal(pair.server.session->n_streams, 2);
    pair_fini(&pair);
}

static void test_native_call_status_too_long_is_cut(void **state)
{
    struct pair pair;
    static char text[6000];
    static uint8_t details[17000];
    struct bow_status status = {.code = BOW_ABORTED, .message = text, .details = {details, 17000}};
    uint8_t out[8000];

    (void)state;
    memset(text, 'a', 4095);
    /* The cut would fall into this one, which is two bytes. */
    memcpy(text + 4095, "\xc3\xa4", 2);
    memset(text + 4097, 'b', 1000);
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    side_call(&pair.client, "/s/m", 0, "x", 1);
    pair_move(&pair, &pair.client, SIZE_MAX);
    side_take(&pair.server, out, sizeof(out));
    assert_int_equal(pair.server.session->ops->finish(pair.server.session, 1, &status), 0);
    size_t n = side_take(&pair.server, out, sizeof(out));
    /* Frame header, length of the block, code, tag and length of the message. */
    assert_int_equal(n, 12 + 2 + 2 + 3 + 4095);
    assert_int_equal(out[n - 1], 'a');
    pair_fini(&pair);
}

static void test_native_call_f63_status_that_is_none_is_quoted_in_utf8(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    side_call(&pair.client, "/s/m", 0, "x", 1);
    side_call(&pair.client, "/s/m", 0, "x", 1);
    /* 'a' ff 'b' 00 c3 a4; a code that is none; more than four bytes of an unknown field */
    side_feed_hex(&pair.client, "b04f5701 00000000 00 00 000000000000 "
                                "0000000b 04 01 000000000001 0a 1206 61ff6200c3a4 0811 ");
    assert_int_equal(pair.client.code, BOW_UNKNOWN);
    assert_string_equal(pair.client.text, "the peer's status code 17 is none: a?b?\xc3\xa4");
    assert_int_equal(pair.client.rc, 0);
    pair_fini(&pair);
}

static void test_native_call_cancelled_is_told_to_the_server(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    struct bow__session *client = pair.client.session;
    uint64_t key = side_call(&pair.client, "/s/m", 0, "x", 1);
    pair_run(&pair);
    client->ops->cancel(client, key, BOW_CANCELLED);
    client->ops->cancel(client, key, BOW_CANCELLED);
    /* The answer crosses it: late, and nobody minds. */
    assert_int_equal(side_say(&pair.server, key, BOW__SEND_END, "late", 4), 0);
    pair_run(&pair);
    assert_int_equal(pair.server.n_resets, 0);
    assert_int_equal(pair.client.n_statuses, 0);
    assert_int_equal(pair.client.rc, 0);
    assert_int_equal(pair.server.rc, 0);

    key = side_call(&pair.client, "/s/m", 0, "x", 1);
    pair_run(&pair);
    client->ops->cancel(client, key, BOW_DEADLINE_EXCEEDED);
    pair_run(&pair);
    assert_int_equal(pair.server.n_resets, 1);
    assert_int_equal(pair.server.code, BOW_DEADLINE_EXCEEDED);
    assert_int_equal(side_say(&pair.server, key, BOW__SEND_END, "late", 4), -ENOENT);
    assert_int_equal(pair.client.n_statuses, 0);
    pair_fini(&pair);
}

static void test_native_call_warm_allocates_nothing(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    pair.server.on_message = reply_hello;
    size_t n_calls = 0;
    for (int round = 0; round < 20; round++) {
        if (round == 2) {
            n_calls = pair.alloc.n_calls;
        }
        for (int i = 0; i < 64; i++) {
            side_call(&pair.client, "/demo.Greeter/SayHello", 5, "world", 5);
        }
        pair_run(&pair);
    }
    assert_int_equal(pair.client.n_statuses, 20 * 64);
    assert_int_equal(pair.alloc.n_calls, n_calls);
    pair_fini(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_native_call_unary_replies),
        cmocka_unit_test(test_native_call_each_of_many_open_ones_is_found),
        cmocka_unit_test(test_native_call_byte_by_byte_replies),
        cmocka_unit_test(test_native_call_any_split_replies),
        cmocka_unit_test(test_native_call_deadline_arrives_rounded_up),
        cmocka_unit_test(test_native_call_method_is_bound_once),
        cmocka_unit_test(test_native_call_beyond_the_numbers_sends_its_path),
        cmocka_unit_test(test_native_call_of_a_long_path_is_not_bound),
        cmocka_unit_test(test_native_call_abandoned_leaves_no_trace),
        cmocka_unit_test(test_native_call_with_a_path_too_long_is_refused),
        cmocka_unit_test(test_native_call_refused_at_open_has_its_status),
        cmocka_unit_test(test_native_call_answered_at_open_brings_nothing_more),
        cmocka_unit_test(test_native_call_status_too_long_is_cut),
        cmocka_unit_test(test_native_call_f63_status_that_is_none_is_quoted_in_utf8),
        cmocka_unit_test(test_native_call_cancelled_is_told_to_the_server),
        cmocka_unit_test(test_native_call_warm_allocates_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
