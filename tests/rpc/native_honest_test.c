/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The limits a second, and peers that are no more than fast: what they send because calls move, or
 * end, is no flood; and what is like it but for that is one still.
 */
#include "tests/rpc/native_pair.h"

#include <bowline/limits.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define OPENING "b04f5701 00000000 00 00 000000000000 "
#define PING "00000008 07 00 000000000000 0000000000000000 "
#define ACK "00000008 07 01 000000000000 0000000000000001 "
#define CALL "00000007 01 00 000000000001 06 12042f732f6d "
#define MESSAGE "00000001 03 08 000000000001 aa "
#define PING_FLOOD "PING frame: more than BOW_LIMIT_PINGS_PER_SECOND (100)"
#define MS UINT64_C(1000000)

static int set_up(void **state)
{
    struct pair *pair = calloc(1, sizeof(*pair));

    pair_init(pair);
    assert_int_equal(pair_open(pair), 0);
    *state = pair;
    return 0;
}

static int tear_down(void **state)
{
    struct pair *pair = *state;

    pair_fini(pair);
    free(pair);
    return 0;
}

/* What it has to say goes nowhere. */
static void drain(struct side *side)
{
    static uint8_t out[1 << 16];

    while (side_take(side, out, sizeof(out)) > 0) {
    }
}

static void feed_many(struct side *side, const char *hex, size_t n)
{
    for (size_t i = 0; i < n && side->rc == 0; i++) {
        side_feed_hex(side, hex);
        drain(side);
    }
}

/* `format` has one place, for the stream. */
static void feed_id(struct side *side, const char *format, uint64_t id)
{
    char hex[128];

    snprintf(hex, sizeof(hex), format, (unsigned long long)id);
    side_feed_hex(side, hex);
}

static void finish(struct side *server, uint64_t key)
{
    struct bow_status ok = BOW_STATUS_OK_INIT;

    assert_int_equal(server->session->ops->finish(server->session, key, &ok), 0);
}

static void consume(struct side *side, uint64_t key, struct bow__message *message)
{
    side->session->ops->consumed(side->session, key, bow__consumed_bytes(message->bytes.len));
}

/* PINGs. */

static void test_f41_native_pings_between_messages_that_come_are_excused(void **state)
{
    struct pair *pair = *state;

    pair->server.on_message = consume;
    feed_many(&pair->server, OPENING CALL, 1);
    feed_many(&pair->server, MESSAGE PING, 10000);
    assert_int_equal(pair->server.rc, 0);
    assert_int_equal(pair->server.n_messages, 10000);
}

static void test_f41_native_pings_between_messages_that_go_are_excused(void **state)
{
    struct pair *pair = *state;

    feed_many(&pair->server,
              OPENING CALL "00000004 06 00 000000000000 3fffffff 00000004 06 00 000000000001 "
                           "3fffffff ",
              1);
    for (int i = 0; i < 10000; i++) {
        assert_int_equal(side_say(&pair->server, 1, 0, "x", 1), 0);
        feed_many(&pair->server, PING, 1);
    }
    assert_int_equal(pair->server.rc, 0);
}

/* As large ones go, in fragments. */
static void test_f41_native_pings_between_fragments_are_excused(void **state)
{
    struct pair *pair = *state;
    struct bow__session *server = pair->server.session;

    feed_many(&pair->server, OPENING CALL "00000004 06 00 000000000000 3fffffff ", 1);
    struct bow__block *block = pattern_block(pair->context, 1 << 20, 1);
    assert_int_equal(server->ops->send(server, 1, 0, block, 0, 1 << 20), 0);
    for (int i = 0; i < 500; i++) {
        feed_many(&pair->server, "00000004 06 00 000000000001 00000400 " PING, 1);
    }
    assert_int_equal(pair->server.rc, 0);
}

static void test_f41_native_pings_between_answers_are_excused(void **state)
{
    struct pair *pair = *state;

    drain(&pair->client);
    side_feed_hex(&pair->client, OPENING);
    for (int i = 0; i < 5000; i++) {
        uint64_t key = side_call(&pair->client, "/s/m", 0, "x", 1);
        drain(&pair->client);
        side_feed_hex(&pair->client, PING);
        feed_id(&pair->client, "00000001 04 01 %012llx 00 " PING, key);
        drain(&pair->client);
    }
    assert_int_equal(pair->client.rc, 0);
    assert_int_equal(pair->client.n_statuses, 5000);
}

static void test_f41_native_pings_alone_are_a_flood(void **state)
{
    struct pair *pair = *state;

    /* One frame excuses one. */
    feed_many(&pair->server, OPENING CALL, 1);
    feed_many(&pair->server, PING, 1 + BOW_LIMIT_PINGS_PER_SECOND);
    assert_int_equal(pair->server.rc, 0);
    side_feed_hex(&pair->server, PING);
    side_assert_broken(&pair->server, BOW_RESOURCE_EXHAUSTED, PING_FLOOD);
}

static void test_f41_native_pings_are_not_excused_far_ahead(void **state)
{
    struct pair *pair = *state;

    pair->server.on_message = consume;
    feed_many(&pair->server, OPENING CALL, 1);
    feed_many(&pair->server, MESSAGE, 5000);
    feed_many(&pair->server, PING, 2 * BOW_LIMIT_PINGS_PER_SECOND);
    assert_int_equal(pair->server.rc, 0);
    side_feed_hex(&pair->server, PING);
    side_assert_broken(&pair->server, BOW_RESOURCE_EXHAUSTED, PING_FLOOD);
}

static void test_f41_native_empty_frames_excuse_no_ping(void **state)
{
    struct pair *pair = *state;

    feed_many(&pair->server, OPENING CALL "00000005 03 0a 000000000001 00000009 aa " PING PING, 1);
    feed_many(&pair->server, "00000000 03 02 000000000001 " PING, BOW_LIMIT_PINGS_PER_SECOND);
    assert_int_equal(pair->server.rc, 0);
    side_feed_hex(&pair->server, "00000000 03 02 000000000001 " PING);
    side_assert_broken(&pair->server, BOW_RESOURCE_EXHAUSTED, PING_FLOOD);
}

/* Of either side; each only as often as it asked. */
static void assert_acks(struct side *side, struct pair *pair)
{
    feed_many(side, OPENING, 1);
    for (int i = 0; i < 10000; i++) {
        pair->now_ns += 10000;
        assert_int_equal(side->session->ops->on_time(side->session, pair->now_ns), 0);
        feed_many(side, ACK, 1);
        assert_int_equal(side->rc, 0);
    }
    assert_int_equal(side->session->heartbeats_sent, 10000);
    feed_many(side, ACK, BOW_LIMIT_PINGS_PER_SECOND);
    assert_int_equal(side->rc, 0);
    side_feed_hex(side, ACK);
    side_assert_broken(side, BOW_RESOURCE_EXHAUSTED, PING_FLOOD);
}

static void test_f41_native_answers_to_our_pings_are_not_counted(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    struct bow__session_options client = pair_options(&pair, false);
    struct bow__session_options server = pair_options(&pair, true);
    client.heartbeat_ns = 10000;
    server.heartbeat_ns = 10000;
    assert_int_equal(side_open(&pair.client, &client), 0);
    assert_int_equal(side_open(&pair.server, &server), 0);
    drain(&pair.client);
    drain(&pair.server);
    side_call(&pair.client, "/s/m", 0, "x", 1);
    assert_acks(&pair.client, &pair);
    assert_acks(&pair.server, &pair);
    pair_fini(&pair);
}

/* Late frames. */

static void begin_and_finish(struct side *server, uint64_t id)
{
    feed_id(server, "00000007 01 00 %012llx 06 12042f732f6d ", id);
    finish(server, id);
    drain(server);
}

static void test_f41_native_late_credit_of_many_calls_is_not_counted(void **state)
{
    struct pair *pair = *state;
    struct side *server = &pair->server;
    uint64_t id = 1;

    feed_many(server, OPENING, 1);
    for (int round = 0; round < 30; round++) {
        for (uint64_t i = 0; i < 1000; i++) {
            begin_and_finish(server, id + 2 * i);
        }
        for (uint64_t i = 0; i < 1000; i++, id += 2) {
            feed_id(server, "00000004 06 00 %012llx 00000001 ", id);
            feed_id(server, "00000000 03 01 %012llx ", id);
        }
    }
    assert_int_equal(server->rc, 0);
    assert_int_equal(server->n_opens, 30000);
}

static void test_f41_native_late_credit_of_one_call_is_bounded(void **state)
{
    struct pair *pair = *state;
    struct side *server = &pair->server;
    const char *window = "00000004 06 00 000000000001 00000001 ";

    feed_many(server, OPENING, 1);
    begin_and_finish(server, 1);
    feed_many(server, window, BOW_LIMIT_LATE_FRAMES_PER_SECOND);
    assert_int_equal(server->rc, 0);
    /* A few are forgiven it. */
    feed_many(server, window, 6);
    assert_int_equal(server->rc, 0);
    side_feed_hex(server, window);
    side_assert_broken(server, BOW_RESOURCE_EXHAUSTED,
                       "WINDOW frame, stream 1: more than BOW_LIMIT_LATE_FRAMES_PER_SECOND "
                       "(10000)");
}

/* A long past of calls is no licence. */
static void test_f41_native_late_frames_are_not_forgiven_far_ahead(void **state)
{
    struct pair *pair = *state;
    struct side *server = &pair->server;

    feed_many(server, OPENING, 1);
    for (uint64_t id = 1; id < 100000; id += 2) {
        begin_and_finish(server, id);
    }
    feed_many(server, "00000004 06 00 000000000001 00000001 ",
              5 * (size_t)BOW_LIMIT_LATE_FRAMES_PER_SECOND);
    assert_int_equal(server->rc, 0);
    feed_many(server, "00000004 06 00 000000000001 00000001 ", 1);
    assert_int_equal(server->rc, -EPROTO);
}

static uint64_t open_call(struct side *client, uint64_t time_left_ns)
{
    struct bow__request_head head = {.path = {(const uint8_t *)"/s/m", 4},
                                     .time_left_ns = time_left_ns};
    uint64_t key = 0;

    assert_int_equal(client->session->ops->open(client->session, &head, client, &key), 0);
    assert_int_equal(side_say(client, key, 0, "x", 1), 0);
    return key;
}

static void cancel(struct side *client, uint64_t key)
{
    client->session->ops->cancel(client->session, key, BOW_DEADLINE_EXCEEDED);
}

static void test_f41_native_late_answers_to_a_client_are_not_counted(void **state)
{
    struct pair *pair = *state;
    struct side *client = &pair->client;

    feed_many(client, OPENING, 1);
    for (int i = 0; i < 15000; i++) {
        uint64_t key = open_call(client, BOW_NEVER);
        cancel(client, key);
        drain(client);
        feed_id(client, "00000004 06 00 %012llx 00000001 ", key);
        feed_id(client, "00000000 02 00 %012llx ", key);
        feed_id(client, "00000001 04 01 %012llx 00 ", key);
        assert_int_equal(client->rc, 0);
    }
}

/* Cancels. */

/* Calls are given up after `lived_ns`, and `answered` meanwhile. Returns after how many calls the
 * server had enough. */
static int give_up(struct pair *pair, uint64_t time_left_ns, uint64_t lived_ns, bool answered)
{
    uint64_t keys[50];

    pair_run(pair);
    for (int n = 0; n < 5000; n += 50) {
        for (int i = 0; i < 50; i++) {
            keys[i] = open_call(&pair->client, time_left_ns);
        }
        pair_move(pair, &pair->client, SIZE_MAX);
        for (int i = 0; i < 50 && answered; i++) {
            finish(&pair->server, pair->server.key - 98 + 2 * (uint64_t)i);
        }
        pair->now_ns += lived_ns;
        for (int i = 0; i < 50; i++) {
            cancel(&pair->client, keys[i]);
        }
        pair_run(pair);
        pair->now_ns -= lived_ns; /* all in one second */
        if (pair->server.rc != 0) {
            return n + 50;
        }
    }
    return 0;
}

static void test_f41_native_cancels_for_deadlines_are_not_counted(void **state)
{
    assert_int_equal(give_up(*state, MS, MS, false), 0);
}

static void test_f41_native_cancels_shortly_before_deadlines_are_not_counted(void **state)
{
    assert_int_equal(give_up(*state, 500 * MS, 490 * MS, false), 0);
}

static void test_f41_native_cancels_that_meet_answers_are_not_counted(void **state)
{
    assert_int_equal(give_up(*state, 500 * MS, 0, true), 0);
}

static void test_f41_native_cancels_before_deadlines_are_counted(void **state)
{
    assert_int_equal(give_up(*state, 500 * MS, 480 * MS, false), 1050);
}

static void test_f41_native_cancels_of_short_calls_at_once_are_counted(void **state)
{
    assert_int_equal(give_up(*state, 4 * MS, MS, false), 1050);
}

static void test_f41_native_late_cancels_without_deadlines_are_counted(void **state)
{
    assert_int_equal(give_up(*state, BOW_NEVER, 0, true), 1050);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_f41_native_pings_between_messages_that_come_are_excused),
        TEST(test_f41_native_pings_between_messages_that_go_are_excused),
        TEST(test_f41_native_pings_between_fragments_are_excused),
        TEST(test_f41_native_pings_between_answers_are_excused),
        TEST(test_f41_native_pings_alone_are_a_flood),
        TEST(test_f41_native_pings_are_not_excused_far_ahead),
        TEST(test_f41_native_empty_frames_excuse_no_ping),
        cmocka_unit_test(test_f41_native_answers_to_our_pings_are_not_counted),
        TEST(test_f41_native_late_credit_of_many_calls_is_not_counted),
        TEST(test_f41_native_late_credit_of_one_call_is_bounded),
        TEST(test_f41_native_late_frames_are_not_forgiven_far_ahead),
        TEST(test_f41_native_late_answers_to_a_client_are_not_counted),
        TEST(test_f41_native_cancels_for_deadlines_are_not_counted),
        TEST(test_f41_native_cancels_shortly_before_deadlines_are_not_counted),
        TEST(test_f41_native_cancels_that_meet_answers_are_not_counted),
        TEST(test_f41_native_cancels_before_deadlines_are_counted),
        TEST(test_f41_native_cancels_of_short_calls_at_once_are_counted),
        TEST(test_f41_native_late_cancels_without_deadlines_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
