/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How connections end: drain without a lost call, refusals that may be retried,
 * ids that are used up, loss.
 */
#include "rpc/native/frame.h"
#include "tests/rpc/native_pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define OPENING "b04f5701 00000000 00 00 000000000000 "
#define SERVER_OPENING "b04f5701 0000000c 00 00 000000000000 08808010 1080a004 38a09c01 "
#define REQUEST(stream) "00000007 01 01 0000000000" stream " 06 12042f732f6d "

static const struct bow_status draining = {.code = BOW_UNAVAILABLE, .message = "bye"};

static void test_native_goaway_of_a_server_drains_in_two_steps(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    struct bow__session *server = pair.server.session;
    side_feed_hex(&pair.server, OPENING REQUEST("01"));
    server->ops->goaway(server, &draining);
    server->ops->goaway(server, &draining);
    side_assert_output(&pair.server,
                       SERVER_OPENING "0000000d 08 00 000000000000 ffffffffffff 080e 1203627965"
                                      "00000008 07 00 000000000000 ffffffffffffffff");
    assert_false(server->ops->is_done(server));
    /* What was on its way is still taken. */
    side_feed_hex(&pair.server, REQUEST("05"));
    assert_int_equal(pair.server.n_opens, 2);
    /* An answer to another PING is not the one. */
    side_feed_hex(&pair.server, "00000008 07 01 000000000000 0000000000000001");
    side_assert_output(&pair.server, "");
    side_feed_hex(&pair.server, "00000008 07 01 000000000000 ffffffffffffffff");
    uint8_t out[128];
    size_t n = side_take(&pair.server, out, sizeof(out));
    assert_true(n > 18);
    assert_int_equal(bow__frame_decode(out).type, BOW__FRAME_GOAWAY);
    assert_int_equal(bow__get_u48(out + 12), 5);
    /* A call behind that was not told in time to a client that breaks the rule. */
    side_feed_hex(&pair.server, REQUEST("07"));
    assert_int_equal(pair.server.n_opens, 2);
    assert_int_equal(pair.server.rc, 0);
    assert_int_equal(strncmp(pair.server.refused, "UNAVAILABLE /", 13), 0);
    assert_non_null(strstr(pair.server.refused, " draining"));
    n = side_take(&pair.server, out, sizeof(out));
    assert_int_equal(bow__frame_decode(out).type, BOW__FRAME_STATUS);
    assert_int_equal(bow__frame_decode(out).stream, 7);

    assert_int_equal(side_say(&pair.server, 1, BOW__SEND_END, "", 0), 0);
    assert_int_equal(side_say(&pair.server, 5, BOW__SEND_END, "", 0), 0);
    assert_false(server->ops->is_done(server));
    side_take(&pair.server, out, sizeof(out));
    assert_true(server->ops->is_done(server));
    pair_fini(&pair);
}

/* The client reads nothing; what it sends after the last word is told to be not processed. */
static void test_native_goaway_is_ended_for_a_client_that_does_not_answer(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    pair_run(&pair);
    struct bow__session *server = pair.server.session;
    server->ops->leave(server);
    assert_false(server->ops->is_done(server));
    server->ops->goaway(server, &draining);
    server->ops->leave(server);
    server->ops->leave(server);
    assert_false(server->ops->is_done(server));
    side_call(&pair.client, "/s/m", 0, "x", 1);
    pair_move(&pair, &pair.client, SIZE_MAX);
    assert_int_equal(pair.server.n_opens, 0);
    pair_run(&pair);
    assert_int_equal(pair.client.n_statuses, 1);
    assert_true(pair.client.not_processed);
    assert_true(server->ops->is_done(server));
    pair_fini(&pair);
}

static void answer(struct side *side, uint64_t key, struct bow__message *message)
{
    (void)message;
    assert_int_equal(side_say(side, key, BOW__SEND_END, "", 0), 0);
}

/* Calls begun at every point of the drain are answered, or end as not processed. */
static void test_native_goaway_loses_no_call(void **state)
{
    (void)state;
    for (size_t cut = 0; cut < 400; cut += 3) {
        struct pair pair;
        pair_init(&pair);
        assert_int_equal(pair_open(&pair), 0);
        pair.server.on_message = answer;
        struct bow__session *client = pair.client.session;
        struct bow__session *server = pair.server.session;
        size_t n_begun = 0;
        size_t moved = 1;
        for (size_t turn = 0; moved > 0 || turn < 3; turn++) {
            if (turn == 1) {
                server->ops->goaway(server, &draining);
            }
            if (client->ops->can_open(client)) {
                side_call(&pair.client, "/s/m", 3, "x", 1);
                n_begun++;
            }
            moved = pair_move(&pair, &pair.server, cut + 1);
            moved += pair_move(&pair, &pair.client, 40);
        }
        assert_true(n_begun > 0);
        assert_int_equal(pair.client.n_statuses, n_begun);
        assert_int_equal(pair.client.n_messages, n_begun);
        assert_int_equal(pair.client.n_goaways, 1);
        assert_true(client->ops->is_done(client));
        assert_true(server->ops->is_done(server));
        pair_fini(&pair);
    }
}

static void test_native_goaway_ends_calls_above_its_last(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    for (int i = 0; i < 3; i++) {
        side_call(&pair.client, "/s/m", 0, "x", 1);
    }
    struct bow__session *client = pair.client.session;
    side_feed_hex(&pair.client, OPENING "0000000d 08 00 000000000000 000000000001 080e 1203627965");
    assert_int_equal(pair.client.n_statuses, 2);
    assert_int_equal(pair.client.code, BOW_UNAVAILABLE);
    assert_true(pair.client.not_processed);
    assert_string_equal(pair.client.text, "the server took no new calls on this connection: "
                                          "UNAVAILABLE: bye");
    assert_int_equal(pair.client.n_goaways, 1);
    assert_int_equal(pair.client.goaway_code, BOW_UNAVAILABLE);
    assert_string_equal(pair.client.goaway_text, "bye");
    assert_int_equal(client->n_streams, 1);
    assert_false(client->ops->can_open(client));
    struct bow__request_head head = {.path = {(const uint8_t *)"/s/m", 4}};
    uint64_t key = 0;
    assert_int_equal(client->ops->open(client, &head, NULL, &key), -EPIPE);
    side_feed_hex(&pair.client, "00000001 04 09 000000000001 00");
    assert_int_equal(pair.client.n_statuses, 3);
    assert_int_equal(pair.client.code, BOW_OK);
    pair_fini(&pair);
}

static void test_native_goaway_of_a_client_is_told(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    pair.server.on_message = answer;
    struct bow__session *client = pair.client.session;
    side_call(&pair.client, "/s/m", 0, "x", 1);
    client->ops->goaway(client, &draining);
    assert_false(client->ops->can_open(client));
    assert_false(client->ops->is_done(client));
    pair_run(&pair);
    assert_int_equal(pair.server.n_goaways, 1);
    assert_string_equal(pair.server.goaway_text, "bye");
    assert_int_equal(pair.client.code, BOW_OK);
    assert_int_equal(pair.client.n_goaways, 0);
    assert_true(client->ops->is_done(client));
    assert_true(pair.server.session->ops->is_done(pair.server.session));
    pair_fini(&pair);
}

static void test_native_goaway_f26_when_ids_are_used_up(void **state)
{
    struct pair pair;
    struct bow__session_options options;

    (void)state;
    pair_init(&pair);
    options = pair_options(&pair, false);
    options.first_key = BOW__FRAME_STREAM_MAX - 4;
    assert_int_equal(side_open(&pair.client, &options), 0);
    options = pair_options(&pair, true);
    assert_int_equal(side_open(&pair.server, &options), 0);
    pair.server.on_message = answer;
    struct bow__session *client = pair.client.session;
    for (uint64_t i = 0; i < 3; i++) {
        assert_true(client->ops->can_open(client));
        assert_true(client->ops->next_time(client) == BOW_NEVER);
        assert_true(side_call(&pair.client, "/s/m", 0, "x", 1) ==
                    BOW__FRAME_STREAM_MAX - 4 + 2 * i);
    }
    assert_false(client->ops->can_open(client));
    struct bow__request_head head = {.path = {(const uint8_t *)"/s/m", 4}};
    uint64_t key = 0;
    assert_int_equal(client->ops->open(client, &head, NULL, &key), -EPIPE);
    assert_int_equal(pair.client.n_goaways, 0);
    assert_true(client->ops->next_time(client) == 0);
    assert_int_equal(client->ops->on_time(client, pair.now_ns), 0);
    assert_int_equal(pair.client.n_goaways, 1);
    assert_string_equal(pair.client.goaway_text, "the connection's stream ids are used up");
    pair_run(&pair);
    assert_int_equal(pair.client.n_statuses, 3);
    assert_int_equal(pair.client.code, BOW_OK);
    assert_int_equal(pair.server.n_goaways, 1);
    assert_true(client->ops->is_done(client));
    pair_fini(&pair);
}

/* Refusals of single calls. */

static void test_native_goaway_not_needed_when_calls_are_too_many(void **state)
{
    struct pair pair;
    struct bow__session_options options;

    (void)state;
    pair_init(&pair);
    options = pair_options(&pair, true);
    options.max_calls = 2; /* below what the protocol promises */
    assert_int_equal(side_open(&pair.server, &options), 0);
    options = pair_options(&pair, false);
    assert_int_equal(side_open(&pair.client, &options), 0);
    pair_run(&pair);
    /* A client that expects more than it was promised. */
    ((struct bow__native *)pair.client.session)->peer.max_calls = 1000;
    for (int i = 0; i < 101; i++) {
        side_call(&pair.client, "/s/m", 5, "x", 1);
    }
    pair_run(&pair);
    assert_int_equal(pair.server.n_opens, 100);
    assert_int_equal(pair.server.n_refused, 1);
    assert_string_equal(pair.server.refused, "RESOURCE_EXHAUSTED /s/m max_calls");
    assert_int_equal(pair.client.n_statuses, 1);
    assert_int_equal(pair.client.code, BOW_RESOURCE_EXHAUSTED);
    assert_string_equal(pair.client.text,
                        "too many calls in flight on this connection; max_calls (100)");
    assert_true(pair.client.not_processed);
    assert_true(pair.client.retry_after_ns > 0);
    assert_int_equal(side_say(&pair.server, 1, BOW__SEND_END, "", 0), 0);
    side_call(&pair.client, "/s/m", 5, "x", 1);
    pair_run(&pair);
    assert_int_equal(pair.server.n_opens, 101);
    pair_fini(&pair);
}

static void test_native_goaway_not_needed_when_slots_are_out(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    struct bow__session *client = pair.client.session;
    for (int i = 0; i < 100; i++) {
        side_call(&pair.client, "/s/m", 5, "x", 1);
    }
    assert_false(client->ops->can_open(client));
    struct bow__request_head head = {.path = {(const uint8_t *)"/s/m", 4}};
    uint64_t key = 0;
    assert_int_equal(client->ops->open(client, &head, NULL, &key), -EAGAIN);
    pair_run(&pair);
    size_t n_readies = pair.client.n_readies;
    assert_int_equal(side_say(&pair.server, 1, BOW__SEND_END, "", 0), 0);
    pair_run(&pair);
    assert_true(client->ops->can_open(client));
    assert_int_equal(pair.client.n_readies, n_readies + 1);
    assert_int_equal(side_say(&pair.server, 3, BOW__SEND_END, "", 0), 0);
    pair_run(&pair);
    assert_int_equal(pair.client.n_readies, n_readies + 1);
    /* A slot that a cancel frees is told as well, later. */
    side_call(&pair.client, "/s/m", 5, "x", 1);
    side_call(&pair.client, "/s/m", 5, "x", 1);
    client->ops->cancel(client, 5, BOW_CANCELLED);
    assert_int_equal(pair.client.n_readies, n_readies + 1);
    assert_true(client->ops->next_time(client) == 0);
    assert_int_equal(client->ops->on_time(client, pair.now_ns), 0);
    assert_int_equal(pair.client.n_readies, n_readies + 2);
    /* A server has no slots to wait for: it was told of the settings. */
    assert_int_equal(pair.server.n_readies, 1);
    pair_fini(&pair);
}

/* Loss. */

static void test_native_goaway_missing_fail_ends_every_call_once(void **state)
{
    struct pair pair;
    /* In brackets, for cmocka has a macro of that name. */
    struct bow_status lost = {.code = BOW_UNAVAILABLE, .message = "connection reset"};

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    for (int i = 0; i < 5; i++) {
        side_call(&pair.client, "/s/m", 5, "x", 1);
    }
    pair_run(&pair);
    /* One has been answered, but waits for credit that never comes. */
    struct bow__block *block = pattern_block(pair.context, 100000, 0);
    struct bow__session *server = pair.server.session;
    assert_int_equal(server->ops->send(server, 1, BOW__SEND_END, block, 0, 100000), 0);
    (pair.client.session->ops->fail)(pair.client.session, &lost);
    (server->ops->fail)(server, &lost);
    assert_int_equal(pair.client.n_statuses, 5);
    assert_string_equal(pair.client.text, "connection reset");
    assert_int_equal(pair.server.n_resets, 4);
    assert_int_equal(pair.client.session->n_streams, 0);
    assert_int_equal(server->n_streams, 0);
    pair_fini(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_native_goaway_of_a_server_drains_in_two_steps),
        cmocka_unit_test(test_native_goaway_is_ended_for_a_client_that_does_not_answer),
        cmocka_unit_test(test_native_goaway_loses_no_call),
        cmocka_unit_test(test_native_goaway_ends_calls_above_its_last),
        cmocka_unit_test(test_native_goaway_of_a_client_is_told),
        cmocka_unit_test(test_native_goaway_f26_when_ids_are_used_up),
        cmocka_unit_test(test_native_goaway_not_needed_when_calls_are_too_many),
        cmocka_unit_test(test_native_goaway_not_needed_when_slots_are_out),
        cmocka_unit_test(test_native_goaway_missing_fail_ends_every_call_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
