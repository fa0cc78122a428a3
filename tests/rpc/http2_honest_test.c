/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The limits a second, and peers that are no more than fast: what they send because calls move, or
 * end, is no flood; and what is like it but for that is one still.
 */
#include "tests/rpc/http2_fed_server.h"

#include <bowline/limits.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)

#define PING_FLOOD "more PINGs in a second than BOW_LIMIT_PINGS_PER_SECOND (100)"

/* As fed_server_feed(), and what was said is forgotten. */
static int feed(struct fed_server *t, struct side *side)
{
    int rc = side_feed(side, t->in.data, t->in.len, SIZE_MAX);

    t->in.len = 0;
    while (side_drain(side, t->out.data, sizeof(t->out.data)) > 0) {
    }
    return rc;
}

static void put_pings(struct fed_server *t, uint8_t flags, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bytes_frame(&t->in, 6, flags, 0, "12345678", 8);
    }
}

static int feed_pings(struct fed_server *t, uint8_t flags, size_t n)
{
    put_pings(t, flags, n);
    return feed(t, &t->pair.server);
}

static void expect_failure(struct fed_server *t, const char *why)
{
    assert_string_equal(t->pair.server.session->failure.bytes, why);
    assert_int_equal(t->pair.server.session->failure_code, BOW_RESOURCE_EXHAUSTED);
}

/* A client with a stream open. */
static void begin(struct fed_server *t)
{
    t->pair.server.is_muted = true;
    bytes_preface(&t->in);
    bytes_request(&t->in, 4, 1, NULL);
    assert_int_equal(feed(t, &t->pair.server), 0);
}

/* PINGs. */

static void test_f41_http2_pings_between_data_that_come_are_excused(void **state)
{
    struct fed_server *t = *state;

    begin(t);
    for (int i = 0; i < 10000; i++) {
        bytes_frame(&t->in, 0, 0, 1, "\0\0\0\0\1x", 6);
        assert_int_equal(feed_pings(t, 0, 1), 0);
    }
    assert_int_equal(t->pair.server.n_messages, 10000);
}

static void test_f41_http2_pings_between_data_that_go_are_excused(void **state)
{
    struct fed_server *t = *state;

    begin(t);
    bytes_frame(&t->in, 8, 0, 1, "\0\x10\0\0", 4);
    bytes_frame(&t->in, 8, 0, 0, "\0\x10\0\0", 4);
    for (int i = 0; i < 10000; i++) {
        assert_int_equal(side_send(&t->pair.server, 1, 0, "x"), 0);
        side_drain(&t->pair.server, t->out.data, sizeof(t->out.data));
        assert_int_equal(feed_pings(t, 0, 1), 0);
    }
}

/* An answer is HEADERS alone. */
static void test_f41_http2_pings_between_calls_are_excused(void **state)
{
    struct fed_server *t = *state;
    struct bow_status status = {.code = BOW_NOT_FOUND, .message = ""};
    struct bow__session *server = t->pair.server.session;

    begin(t);
    for (uint32_t id = 3; id < 20000; id += 2) {
        bytes_request(&t->in, 5, id, NULL);
        assert_int_equal(feed_pings(t, 0, 1), 0);
        assert_int_equal(server->ops->finish(server, id, &status), 0);
        side_drain(&t->pair.server, t->out.data, sizeof(t->out.data));
        assert_int_equal(feed_pings(t, 0, 1), 0);
    }
}

/* A client of servers that estimate. */
static void test_f41_http2_pings_to_a_client_are_excused(void **state)
{
    static const char *const header[] = {":status: 200", "content-type: application/grpc", NULL};
    static const char *const trailers[] = {"grpc-status: 0", NULL};
    struct fed_server *t = *state;
    struct side *client = &t->pair.client;

    client->is_muted = true;
    bytes_frame(&t->in, 4, 0, 0, NULL, 0);
    assert_int_equal(feed(t, client), 0);
    for (uint32_t i = 0; i < 5000; i++) {
        uint64_t key = 0;
        assert_int_equal(side_call(client, "/a.B/C", "x", BOW_NEVER, &key), 0);
        side_drain(client, t->out.data, sizeof(t->out.data));
        put_pings(t, 0, 1);
        bytes_headers(&t->in, 4, 2 * i + 1, header);
        bytes_frame(&t->in, 0, 0, 2 * i + 1, "\0\0\0\0\1x", 6);
        put_pings(t, 0, 1);
        bytes_headers(&t->in, 5, 2 * i + 1, trailers);
        put_pings(t, 0, 1);
        assert_int_equal(feed(t, client), 0);
    }
    assert_int_equal(client->n_ended, 5000);
}

static void test_f41_http2_pings_alone_are_a_flood(void **state)
{
    struct fed_server *t = *state;

    /* One frame excuses one. */
    begin(t);
    assert_int_equal(feed_pings(t, 0, 1 + BOW_LIMIT_PINGS_PER_SECOND), 0);
    assert_int_equal(feed_pings(t, 0, 1), -EPROTO);
    expect_failure(t, PING_FLOOD);
}

static void test_f41_http2_pings_are_not_excused_far_ahead(void **state)
{
    struct fed_server *t = *state;

    begin(t);
    for (int i = 0; i < 5000; i++) {
        bytes_frame(&t->in, 0, 0, 1, "\0\0\0\0\1x", 6);
    }
    assert_int_equal(feed_pings(t, 0, 2 * BOW_LIMIT_PINGS_PER_SECOND), 0);
    assert_int_equal(feed_pings(t, 0, 1), -EPROTO);
    expect_failure(t, PING_FLOOD);
}

/* Nor those that hold nothing but padding. */
static void test_f41_http2_empty_data_excuses_no_ping(void **state)
{
    struct fed_server *t = *state;

    begin(t);
    assert_int_equal(feed_pings(t, 0, 1), 0);
    for (uint32_t i = 0; i < BOW_LIMIT_PINGS_PER_SECOND; i++) {
        bytes_frame(&t->in, 0, i % 2 == 0 ? 0 : 8, 1, "\2\0\0", i % 2 == 0 ? 0 : 3);
        assert_int_equal(feed_pings(t, 0, 1), 0);
    }
    bytes_frame(&t->in, 0, 0, 1, NULL, 0);
    assert_int_equal(feed_pings(t, 0, 1), -EPROTO);
    expect_failure(t, PING_FLOOD);
}

static void assert_acks(struct fed_server *t, struct side *side)
{
    for (int i = 0; i < 10000; i++) {
        t->pair.now_ns += 10000;
        assert_int_equal(side->session->ops->on_time(side->session, t->pair.now_ns), 0);
        side_drain(side, t->out.data, sizeof(t->out.data));
        put_pings(t, 1, 1);
        assert_int_equal(feed(t, side), 0);
    }
    assert_int_equal(side->session->heartbeats_sent, 10000);
    put_pings(t, 1, BOW_LIMIT_PINGS_PER_SECOND);
    assert_int_equal(feed(t, side), 0);
    put_pings(t, 1, 1);
    assert_int_equal(feed(t, side), -EPROTO);
    assert_string_equal(side->session->failure.bytes, PING_FLOOD);
}

static void test_f41_http2_answers_to_our_pings_are_not_counted(void **state)
{
    struct fed_server *t = *state;
    struct pair *pair = &t->pair;

    pair_end(pair);
    pair_init(pair, t->context);
    struct bow__session_options client = pair_options(pair, &pair->client, false);
    struct bow__session_options server = pair_options(pair, &pair->server, true);
    client.heartbeat_ns = 10000;
    server.heartbeat_ns = 10000;
    assert_int_equal(side_begin(&pair->client, &client), 0);
    assert_int_equal(side_begin(&pair->server, &server), 0);
    begin(t);
    assert_acks(t, &pair->server);
    pair->client.is_muted = true;
    /* PINGs are welcome there. */
    bytes_frame(&t->in, 4, 0, 0, "\xf0\xb1\0\0\0\1", 6);
    assert_int_equal(feed(t, &pair->client), 0);
    uint64_t key = 0;
    assert_int_equal(side_call(&pair->client, "/a.B/C", "x", BOW_NEVER, &key), 0);
    side_drain(&pair->client, t->out.data, sizeof(t->out.data));
    assert_acks(t, &pair->client);
}

/* Frames that come late. */

static void put_end(struct fed_server *t, uint32_t id)
{
    bytes_frame(&t->in, 0, 1, id, NULL, 0);
}

static void finish(struct fed_server *t, uint64_t id)
{
    struct bow__session *server = t->pair.server.session;
    struct bow_status status = BOW_STATUS_OK_INIT;

    assert_int_equal(server->ops->finish(server, id, &status), 0);
    side_drain(&t->pair.server, t->out.data, sizeof(t->out.data));
}

/* Streams that end as gRPC's clients end them, before and after the answer, and their credit. */
static void test_f41_http2_ends_of_many_streams_are_not_counted(void **state)
{
    struct fed_server *t = *state;

    begin(t);
    for (uint32_t id = 3; id < 60000; id += 2) {
        bytes_request(&t->in, 4, id, NULL);
        if (id % 4 == 1) {
            put_end(t, id);
        }
        assert_int_equal(feed(t, &t->pair.server), 0);
        finish(t, id);
        if (id % 4 == 3) {
            put_end(t, id);
        }
        bytes_frame(&t->in, 8, 0, id, "\0\0\0\1", 4);
        assert_int_equal(feed(t, &t->pair.server), 0);
    }
}

static void test_f41_http2_late_ends_of_one_stream_are_bounded(void **state)
{
    struct fed_server *t = *state;

    begin(t);
    finish(t, 1);
    for (uint32_t i = 0; i < 2 + BOW_LIMIT_LATE_FRAMES_PER_SECOND; i++) {
        put_end(t, 1);
    }
    assert_int_equal(feed(t, &t->pair.server), 0);
    put_end(t, 1);
    assert_int_equal(feed(t, &t->pair.server), -EPROTO);
    expect_failure(t, "more frames for calls that have ended in a second than "
                      "BOW_LIMIT_LATE_FRAMES_PER_SECOND (10000)");
}

static void test_f41_http2_late_answers_to_a_client_are_not_counted(void **state)
{
    static const char *const header[] = {":status: 200", "content-type: application/grpc", NULL};
    static const char *const trailers[] = {"grpc-status: 0", NULL};
    struct fed_server *t = *state;
    struct side *client = &t->pair.client;

    client->is_muted = true;
    bytes_frame(&t->in, 4, 0, 0, NULL, 0);
    assert_int_equal(feed(t, client), 0);
    for (uint32_t i = 0; i < 15000; i++) {
        uint64_t key = 0;
        assert_int_equal(side_call(client, "/a.B/C", "x", MS, &key), 0);
        side_drain(client, t->out.data, sizeof(t->out.data));
        client->session->ops->cancel(client->session, key, BOW_DEADLINE_EXCEEDED);
        side_drain(client, t->out.data, sizeof(t->out.data));
        bytes_headers(&t->in, 4, 2 * i + 1, header);
        bytes_headers(&t->in, 5, 2 * i + 1, trailers);
        assert_int_equal(feed(t, client), 0);
    }
}

/* Cancels. */

/* Calls are given up after `lived_ns`, and answered meanwhile. Returns after how many the server
 * had enough. */
static int give_up(struct fed_server *t, const char *timeout, uint64_t lived_ns, bool answered)
{
    begin(t);
    for (uint32_t n = 1; n <= 5000; n++) {
        bytes_request(&t->in, 5, 2 * n + 1, (const char *[]){timeout, NULL});
        assert_int_equal(feed(t, &t->pair.server), 0);
        if (answered) {
            finish(t, 2 * n + 1);
        }
        t->pair.now_ns += lived_ns;
        bytes_frame(&t->in, 3, 0, 2 * n + 1, "\0\0\0\x08", 4);
        if (feed(t, &t->pair.server) < 0) {
            return (int)n;
        }
        t->pair.now_ns -= lived_ns; /* all in one second */
    }
    return 0;
}

static void test_f41_http2_resets_for_deadlines_are_not_counted(void **state)
{
    assert_int_equal(give_up(*state, "grpc-timeout: 1m", MS, false), 0);
}

static void test_f41_http2_resets_shortly_before_deadlines_are_not_counted(void **state)
{
    assert_int_equal(give_up(*state, "grpc-timeout: 500m", 490 * MS, false), 0);
}

static void test_f41_http2_resets_that_meet_answers_are_not_counted(void **state)
{
    assert_int_equal(give_up(*state, "grpc-timeout: 500m", 0, true), 0);
}

static void test_f41_http2_resets_before_deadlines_are_counted(void **state)
{
    assert_int_equal(give_up(*state, "grpc-timeout: 500m", 480 * MS, false), 1001);
}

static void test_f41_http2_resets_of_short_calls_at_once_are_counted(void **state)
{
    assert_int_equal(give_up(*state, "grpc-timeout: 4m", MS, false), 1001);
}

static void test_f41_http2_late_resets_without_deadlines_are_counted(void **state)
{
    assert_int_equal(give_up(*state, "x: y", 0, true), 1001);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, fed_server_setup, fed_server_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_f41_http2_pings_between_data_that_come_are_excused),
        TEST(test_f41_http2_pings_between_data_that_go_are_excused),
        TEST(test_f41_http2_pings_between_calls_are_excused),
        TEST(test_f41_http2_pings_to_a_client_are_excused),
        TEST(test_f41_http2_pings_alone_are_a_flood),
        TEST(test_f41_http2_pings_are_not_excused_far_ahead),
        TEST(test_f41_http2_empty_data_excuses_no_ping),
        TEST(test_f41_http2_answers_to_our_pings_are_not_counted),
        TEST(test_f41_http2_ends_of_many_streams_are_not_counted),
        TEST(test_f41_http2_late_ends_of_one_stream_are_bounded),
        TEST(test_f41_http2_late_answers_to_a_client_are_not_counted),
        TEST(test_f41_http2_resets_for_deadlines_are_not_counted),
        TEST(test_f41_http2_resets_shortly_before_deadlines_are_not_counted),
        TEST(test_f41_http2_resets_that_meet_answers_are_not_counted),
        TEST(test_f41_http2_resets_before_deadlines_are_counted),
        TEST(test_f41_http2_resets_of_short_calls_at_once_are_counted),
        TEST(test_f41_http2_late_resets_without_deadlines_are_counted),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
