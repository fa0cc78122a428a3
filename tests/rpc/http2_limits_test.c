/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a peer can make a session hold, and how far windows grow: over a path whose round
 * trip the test makes.
 */
#include "rpc/http2/internal.h"
#include "tests/rpc/http2_pair.h"

#include <bowline/limits.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define MS UINT64_C(1000000)

struct fixture {
    struct test_alloc alloc;
    struct bow_context *context;
    struct pair pair;
    struct bytes bytes;
};

static int set_up(void **state)
{
    struct fixture *t = calloc(1, sizeof(*t));

    test_alloc_init(&t->alloc);
    t->context = test_context_new(&t->alloc);
    assert_int_equal(pair_begin(&t->pair, t->context), 0);
    pair_run(&t->pair, SIZE_MAX);
    t->pair.client.is_muted = true;
    t->pair.server.is_muted = true;
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *t = *state;

    pair_end(&t->pair);
    test_context_end(t->context, &t->alloc);
    free(t);
    return 0;
}

static uint64_t begin(struct pair *pair)
{
    struct bow__session *client = pair->client.session;
    struct bow__request_head head = {.path = {(const uint8_t *)"/a.B/C", 6},
                                     .time_left_ns = BOW_NEVER};
    uint64_t key = 0;

    assert_int_equal(client->ops->open(client, &head, &pair->client, &key), 0);
    assert_int_equal(client->ops->begin(client, key), 0);
    return key;
}

/* All that `from` would send reaches `to` so much later. Returns how much that was. */
static size_t travel(struct side *from, struct side *to, uint64_t ns)
{
    static uint8_t bytes[64 << 20];
    size_t n = side_drain(from, bytes, sizeof(bytes));

    from->pair->now_ns += ns;
    assert_int_equal(side_feed(to, bytes, n, 64 * KIB), 0);
    return n;
}

/* Streams of messages from the client, over a path of `rtt_ns`. Returns the most that was on the
 * way at once. */
static size_t pour(struct pair *pair, uint64_t rtt_ns, size_t n_rounds, const uint64_t *keys,
                   size_t n_keys)
{
    struct bow__session *client = pair->client.session;
    size_t max = 0;

    for (size_t i = 0; i < n_rounds; i++) {
        for (size_t k = 0; k < n_keys; k++) {
            while (client->ops->queued(client, keys[k]) < 20 * MIB) {
                assert_int_equal(side_send_block(&pair->client, keys[k], 0, 0, 50 * KIB), 0);
            }
        }
        size_t n = travel(&pair->client, &pair->server, rtt_ns / 2);
        travel(&pair->server, &pair->client, rtt_ns / 2);
        max = n > max ? n : max;
    }
    return max;
}

static void drop(struct pair *pair, uint64_t key)
{
    pair->client.session->ops->cancel(pair->client.session, key, BOW_CANCELLED);
}

/* Windows. */

static void test_window_grows_for_a_fast_reader_far_away(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    uint64_t key = begin(pair);

    size_t most = pour(pair, 100 * MS, 20, &key, 1);
    /* A stream's window, and as much again of the message at its end. */
    assert_in_range(most, BOW_LIMIT_STREAM_WINDOW_BYTES - MIB, 2 * BOW_LIMIT_STREAM_WINDOW_BYTES);
    assert_int_equal(pair->server.session->rtt_ns, 100 * MS);
    drop(pair, key);
}

static void test_window_stays_on_a_short_path(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    uint64_t key = begin(pair);

    /* At a gigabyte a second it holds 200 kB. */
    size_t most = pour(pair, MS / 5, 50, &key, 1);
    assert_in_range(most, 200 * KIB, 320 * KIB);
    assert_int_equal(pair->server.session->rtt_ns, MS / 5);
    drop(pair, key);
}

static void test_window_stays_for_a_slow_reader(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    struct bow__session *server = pair->server.session;
    uint64_t key = begin(pair);
    size_t most = 0;

    pair->server.keeps = true;
    for (int i = 0; i < 60; i++) {
        size_t n = pour(pair, 100 * MS, 1, &key, 1);
        most = n > most ? n : most;
        /* Every fifth round trip. */
        server->ops->consumed(server, 1, i % 5 == 4 ? pair->server.n_bytes : 0);
    }
    assert_true(pair->server.n_bytes > 12 * 200 * KIB);
    assert_true(most < 400 * KIB);
    drop(pair, key);
}

static void test_window_stays_while_nobody_reads(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    uint64_t key = begin(pair);

    /* The path gets known. */
    pour(pair, 100 * MS, 3, &key, 1);
    drop(pair, key);
    travel(&pair->client, &pair->server, MS);
    pair->server.keeps = true;
    size_t n_before = pair->server.n_bytes;
    key = begin(pair);
    pour(pair, 100 * MS, 20, &key, 1);
    assert_in_range(pair->server.n_bytes - n_before, 200 * KIB, 320 * KIB);
    drop(pair, key);
}

/* A peer that makes the windows of many streams grow, and then fills them while nobody reads. */
static void test_windows_of_all_streams_are_bounded(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    uint64_t keys[8];

    for (size_t i = 0; i < 8; i++) {
        keys[i] = begin(pair);
    }
    for (size_t i = 0; i < 8; i++) {
        pour(pair, 100 * MS, 12, &keys[i], 1);
    }
    pair->server.keeps = true;
    size_t n_before = pair->server.n_bytes;
    pour(pair, 100 * MS, 20, keys, 8);
    size_t n_held = pair->server.n_bytes - n_before;
    assert_in_range(n_held, 16 * MIB, BOW_LIMIT_GROWN_WINDOWS_BYTES + 8 * 400 * KIB);
    /* What a stream had grown by goes with it. */
    for (size_t i = 0; i < 8; i++) {
        drop(pair, keys[i]);
    }
    pair->server.keeps = false;
    travel(&pair->client, &pair->server, MS);
    keys[0] = begin(pair);
    assert_true(pour(pair, 100 * MS, 12, keys, 1) > 8 * MIB);
    drop(pair, keys[0]);
}

/* Room of the whole server. */

static void on_turn(struct bow__in_flight *in_flight)
{
    (void)in_flight;
}

static void send_small(struct pair *pair, uint64_t key, int n)
{
    for (int i = 0; i < n; i++) {
        assert_int_equal(side_send_block(&pair->client, key, 0, 0, 16000), 0);
        pair_run(pair, SIZE_MAX);
    }
}

/* More of it than its even part is this connection's. */
static void test_window_of_the_connection_is_withheld_while_the_server_is_short(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    struct bow__session *server = pair->server.session;
    const struct bow__http2_session *own = (const struct bow__http2_session *)server;
    uint64_t n_refused = 0;
    struct bow__in_flight in_flight = {
        .max_bytes = 16 * MIB, .n_refused = &n_refused, .on_turn = on_turn};
    struct bow__in_flight_share part;

    bow__in_flight_share_init(&part, &in_flight);
    server->in_flight = &part;
    uint64_t key = begin(pair);
    assert_true(bow__in_flight_take_message(&part, 13 * MIB));
    send_small(pair, key, 60);
    assert_int_equal(own->n_unreturned, 60 * 16005);
    assert_false(server->ops->refill(server));
    bow__in_flight_give_message(&part, 13 * MIB);
    assert_true(server->ops->refill(server));
    assert_int_equal(own->n_unreturned, 0);
    pair_run(pair, SIZE_MAX);
    /* A message that has begun gets to its end. */
    assert_true(bow__in_flight_take_message(&part, 13 * MIB));
    send_small(pair, key, 60);
    assert_int_equal(own->n_unreturned, 60 * 16005);
    uint32_t n_messages = pair->server.n_messages;
    assert_int_equal(side_send_block(&pair->client, key, 0, 0, 800000), 0);
    pair_run(pair, SIZE_MAX);
    assert_int_equal(pair->server.n_messages, n_messages + 1);
    assert_int_equal(part.n_messages, 13 * MIB);
    /* One for which there is no room does not begin. */
    uint32_t n_ended = pair->client.n_ended;
    assert_int_equal(side_send_block(&pair->client, key, 0, 0, MIB + 1), 0);
    pair_run(pair, SIZE_MAX);
    assert_int_equal(n_refused, 1);
    assert_int_equal(pair->client.n_ended, n_ended + 1);
    server->in_flight = NULL;
    bow__in_flight_share_fini(&part);
}

static size_t count_pings(struct fixture *t, size_t n_rounds, uint64_t key)
{
    static char text[64 << 10];
    struct pair *pair = &t->pair;
    size_t n = 0;

    for (size_t i = 0; i < n_rounds; i++) {
        assert_int_equal(side_send_block(&pair->client, key, 0, 0, 100 * KIB), 0);
        travel(&pair->client, &pair->server, 5 * MS);
        t->bytes.len = side_drain(&pair->server, t->bytes.data, sizeof(t->bytes.data));
        bytes_print(&t->bytes, text, sizeof(text));
        n += strstr(text, "PING 0") != NULL;
        pair->now_ns += 5 * MS;
        side_feed(&pair->client, t->bytes.data, t->bytes.len, SIZE_MAX);
    }
    return n;
}

static void test_path_is_asked_for_once_a_second(void **state)
{
    struct fixture *t = *state;
    uint64_t key = begin(&t->pair);

    /* Ten milliseconds each. */
    assert_int_equal(count_pings(t, 50, key), 1);
    assert_int_equal(count_pings(t, 250, key), 2);
    drop(&t->pair, key);
}

/* Floods of what nghttp2 does not show. */

static void expect_flood(struct fixture *t, const char *what)
{
    assert_int_equal(side_feed(&t->pair.server, t->bytes.data, t->bytes.len, SIZE_MAX), -EPROTO);
    assert_non_null(strstr(t->pair.server.session->failure.bytes, what));
    assert_int_equal(t->pair.server.session->failure_code, BOW_RESOURCE_EXHAUSTED);
}

static void test_flood_of_late_data_is_bounded(void **state)
{
    struct fixture *t = *state;
    struct pair *pair = &t->pair;
    struct bow_status status = {.code = BOW_ABORTED, .message = ""};

    begin(pair);
    pair_run(pair, SIZE_MAX);
    assert_int_equal(pair->server.session->ops->finish(pair->server.session, 1, &status), 0);
    pair_run(pair, SIZE_MAX);
    /* What may have been on its way, be it in small pieces. */
    for (uint32_t i = 0; i < 256 * KIB / 16; i++) {
        bytes_frame(&t->bytes, 0, 0, 1, "sixteen bytes...", 16);
        assert_int_equal(side_feed(&pair->server, t->bytes.data, t->bytes.len, SIZE_MAX), 0);
        t->bytes.len = 0;
    }
    for (uint32_t i = 0; i < BOW_LIMIT_LATE_FRAMES_PER_SECOND; i++) {
        bytes_frame(&t->bytes, 0, 0, 1, "x", 1);
    }
    assert_int_equal(side_feed(&pair->server, t->bytes.data, t->bytes.len, SIZE_MAX), 0);
    /* Another second. */
    pair->now_ns += 1000 * MS;
    assert_int_equal(side_feed(&pair->server, t->bytes.data, t->bytes.len, 1000), 0);
    t->bytes.len = 0;
    bytes_frame(&t->bytes, 0, 0, 1, "x", 1);
    expect_flood(t, "more frames for calls that have ended in a second than "
                    "BOW_LIMIT_LATE_FRAMES_PER_SECOND (10000)");
}

/* Many calls that end early forgive no more than one connection can have on its way. */
static void test_what_is_forgiven_is_bounded(void **state)
{
    struct fixture *t = *state;
    struct pair *pair = &t->pair;
    struct bow_status status = {.code = BOW_ABORTED, .message = ""};

    for (uint64_t i = 0; i < 100; i++) {
        begin(pair);
        pair_run(pair, SIZE_MAX);
        assert_int_equal(
            pair->server.session->ops->finish(pair->server.session, 2 * i + 1, &status), 0);
        pair_run(pair, SIZE_MAX);
    }
    for (uint32_t i = 0; i < MIB / 50; i++) {
        t->bytes.len = 0;
        bytes_frame(&t->bytes, 0, 0, 1, "fifty bytes are fifty bytes are fifty bytes are 50", 50);
        assert_int_equal(side_feed(&pair->server, t->bytes.data, t->bytes.len, SIZE_MAX), 0);
    }
    t->bytes.len = 0;
    for (uint32_t i = 0; i <= BOW_LIMIT_LATE_FRAMES_PER_SECOND + 1; i++) {
        bytes_frame(&t->bytes, 0, 0, 1, "sixteen bytes...", 16);
    }
    expect_flood(t, "more frames for calls that have ended in a second than ");
}

static void test_late_empty_frames_are_empty_frames(void **state)
{
    struct fixture *t = *state;

    begin(&t->pair);
    pair_run(&t->pair, SIZE_MAX);
    for (uint32_t i = 0; i <= BOW_LIMIT_EMPTY_FRAMES_PER_SECOND; i++) {
        /* Of a type that nobody knows. */
        bytes_frame(&t->bytes, 0x77, 0, 0, "xy", 2);
    }
    expect_flood(t, "more empty frames in a second than");
}

/* Streams within the same bytes are not late, in whatever pieces they come. */
static void test_frames_of_new_calls_are_not_late(void **state)
{
    struct fixture *t = *state;
    struct pair *pair = &t->pair;
    uint32_t id = 1;

    for (int round = 0; round < 200; round++) {
        t->bytes.len = 0;
        for (int i = 0; i < 60; i++, id += 2) {
            bytes_request(&t->bytes, 4, id, NULL);
            bytes_frame(&t->bytes, 0, 1, id, "\0\0\0\0\1x", 6);
        }
        assert_int_equal(side_feed(&pair->server, t->bytes.data, t->bytes.len, 100 + (size_t)round),
                         0);
        for (uint32_t done = id - 120; done < id; done += 2) {
            assert_int_equal(side_send(&pair->server, done, BOW__SEND_END, "y"), 0);
        }
        side_drain(&pair->server, t->bytes.data, sizeof(t->bytes.data));
    }
    assert_int_equal(pair->server.n_messages, 200 * 60);
}

/* Replies that wait. */

#define REPLY_BYTES MIB

static void answer(struct side *side, enum side_event event, uint64_t key)
{
    if (event == SIDE_MESSAGE) {
        (void)side_send_block(side, key, BOW__SEND_END, 0, REPLY_BYTES);
    }
}

static size_t n_waiting(const struct pair *pair)
{
    return bow_context_bytes(pair->context);
}

static bool is_clogged(struct pair *pair)
{
    struct iovec piece;

    /* A try to send, of which nothing is taken. */
    pair->server.session->ops->drain(pair->server.session, &piece, 1);
    return pair->server.session->ops->is_clogged(pair->server.session);
}

static void test_backlog_of_who_does_not_read_stops_the_server_reading(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    uint64_t key = 0;
    uint32_t n = 0;

    pair->server.hook = answer;
    while (!is_clogged(pair) && n < 100) {
        assert_int_equal(side_call(&pair->client, "/a.B/C", "x", BOW_NEVER, &key), 0);
        travel(&pair->client, &pair->server, 0);
        n++;
    }
    assert_in_range(n, 8, 10);
    pair_run(pair, SIZE_MAX);
    assert_false(is_clogged(pair));
    assert_int_equal(pair->client.n_messages, n);
}

/* The client reads its socket and gives no credit, which comes with what is read. Whether calls are
 * begun is not the session's to say. */
static void test_backlog_without_credit_goes_on_reading(void **state)
{
    struct fixture *t = *state;
    struct pair *pair = &t->pair;
    uint64_t key = 0;

    pair->server.hook = answer;
    for (int i = 0; i < 60; i++) {
        assert_int_equal(side_call(&pair->client, "/a.B/C", "x", BOW_NEVER, &key), 0);
        travel(&pair->client, &pair->server, 0);
        while (side_drain(&pair->server, t->bytes.data, sizeof(t->bytes.data)) > 0) {
        }
        assert_false(is_clogged(pair));
    }
    assert_int_equal(pair->server.n_messages, 60);
    assert_in_range(n_waiting(pair), 59 * REPLY_BYTES, 64 * REPLY_BYTES);
    side_fail(&pair->client, &(struct bow_status){.code = BOW_UNAVAILABLE, .message = ""});
}

/* Far more than BOW_LIMIT_QUEUED_REPLY_BYTES: what was answered is sent. */
static void test_backlog_f38_of_any_size_is_sent(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    uint64_t key = 0;

    for (int i = 0; i < 100; i++) {
        assert_int_equal(side_call(&pair->client, "/a.B/C", "x", BOW_NEVER, &key), 0);
    }
    travel(&pair->client, &pair->server, 0);
    for (uint64_t i = 0; i < 100; i++) {
        assert_int_equal(side_send_block(&pair->server, 2 * i + 1, BOW__SEND_END, 0, REPLY_BYTES),
                         0);
    }
    assert_in_range(n_waiting(pair), 99 * REPLY_BYTES, 102 * REPLY_BYTES);
    pair_run(pair, SIZE_MAX);
    assert_int_equal(pair->client.n_messages, 100);
    assert_int_equal(pair->client.n_ended, 100);
}

/* The same of streams: each message, and the end behind it. */
static void test_backlog_f38_of_streams_is_sent(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    struct bow__session *server = pair->server.session;
    struct bow_status ok = BOW_STATUS_OK_INIT;
    uint64_t key = 0;

    for (int i = 0; i < 100; i++) {
        assert_int_equal(side_call(&pair->client, "/a.B/C", "x", BOW_NEVER, &key), 0);
    }
    travel(&pair->client, &pair->server, 0);
    for (uint64_t i = 0; i < 100; i++) {
        assert_int_equal(side_send_block(&pair->server, 2 * i + 1, 0, 0, REPLY_BYTES), 0);
        assert_int_equal(server->ops->finish(server, 2 * i + 1, &ok), 0);
    }
    pair_run(pair, SIZE_MAX);
    assert_int_equal(pair->server.n_ended, 0);
    assert_int_equal(pair->client.n_messages, 100);
    assert_int_equal(pair->client.n_ended, 100);
}

/* What is said to wait is what memory is taken: of messages of `len` bytes, that have no credit. */
static void expect_counted(struct pair *pair, uint64_t key, size_t len, size_t n_messages)
{
    struct bow__session *server = pair->server.session;

    assert_int_equal(side_send_block(&pair->server, key, 0, 0, MIB), 0);
    (void)is_clogged(pair); /* what goes before is in the output */
    size_t n_before = bow_context_bytes(pair->context);
    size_t n_counted = server->ops->unsent(server);
    size_t n_queued = server->ops->queued(server, key);
    for (size_t i = 0; i < n_messages; i++) {
        assert_int_equal(side_send_block(&pair->server, key, 0, 0, len), 0);
    }
    size_t n_taken = bow_context_bytes(pair->context) - n_before;
    n_counted = server->ops->unsent(server) - n_counted;
    assert_in_range(n_counted, n_taken - n_taken / 10, n_taken + n_taken / 10);
    /* Its producer is told by the same measure. */
    n_queued = server->ops->queued(server, key) - n_queued;
    assert_in_range(n_queued, n_taken - n_taken / 10, n_taken + n_taken / 10);
}

static void test_backlog_f44_is_counted_as_it_weighs(void **state)
{
    static const size_t lens[] = {0, 7, 100, 64 << 10};
    struct pair *pair = &((struct fixture *)*state)->pair;
    uint64_t key = 0;

    for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        assert_int_equal(side_call(&pair->client, "/a.B/C", "x", BOW_NEVER, &key), 0);
        travel(&pair->client, &pair->server, 0);
        expect_counted(pair, 2 * i + 1, lens[i], lens[i] < 1000 ? 1000 : 20);
    }
    pair_run(pair, SIZE_MAX);
    assert_int_equal(pair->client.n_messages, 4 + 3 * 1000 + 20);
    assert_int_equal(pair->server.session->n_waiting, 0);
}

/* Calls that their server answers before their client has said all. */

static void end_early(struct pair *pair, uint64_t n)
{
    struct bow__session *server = pair->server.session;
    struct bow_status ok = BOW_STATUS_OK_INIT;

    for (uint64_t i = 0; i < n; i++) {
        begin(pair);
        travel(&pair->client, &pair->server, 0);
        assert_int_equal(server->ops->finish(server, 2 * i + 1, &ok), 0);
        travel(&pair->server, &pair->client, 0);
    }
}

static void test_resets_of_early_ends_are_no_cancellations(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;

    end_early(pair, 3 * BOW_LIMIT_CANCELS_PER_SECOND);
    pair_run(pair, SIZE_MAX);
    assert_int_equal(pair->client.n_ended, 3 * BOW_LIMIT_CANCELS_PER_SECOND);
    assert_int_equal(pair->server.rc + pair->client.rc, 0);
}

/* The server ends each call while the frame that ends its request is on its way. */
static void test_resets_of_ends_that_cross_are_no_cancellations(void **state)
{
    static uint8_t bytes[1024];
    const size_t n_data = 9 + 5 + 1;
    struct pair *pair = &((struct fixture *)*state)->pair;
    struct bow__session *server = pair->server.session;
    struct bow_status ok = BOW_STATUS_OK_INIT;
    uint64_t key = 0;

    for (uint64_t i = 0; i < 3 * BOW_LIMIT_CANCELS_PER_SECOND; i++) {
        assert_int_equal(side_call(&pair->client, "/a.B/C", "x", BOW_NEVER, &key), 0);
        size_t n = side_drain(&pair->client, bytes, sizeof(bytes));
        assert_in_range(n, n_data + 1, sizeof(bytes) - 1);
        assert_int_equal(side_feed(&pair->server, bytes, n - n_data, SIZE_MAX), 0);
        assert_int_equal(server->ops->finish(server, 2 * i + 1, &ok), 0);
        travel(&pair->server, &pair->client, 0);
        assert_int_equal(side_feed(&pair->server, bytes + n - n_data, n_data, SIZE_MAX), 0);
    }
    assert_int_equal(pair->client.n_ended, 3 * BOW_LIMIT_CANCELS_PER_SECOND);
    assert_int_equal(pair->client.rc, 0);
}

static int reset_first(struct pair *pair, struct bytes *bytes, uint32_t n)
{
    bytes->len = 0;
    for (uint32_t i = 0; i < n; i++) {
        bytes_frame(bytes, 3, 0, 1, "\0\0\0\0", 4);
    }
    return side_feed(&pair->server, bytes->data, bytes->len, SIZE_MAX);
}

static void test_resets_of_early_ends_are_due_once(void **state)
{
    struct fixture *t = *state;

    end_early(&t->pair, 10); /* the last one's is on its way */
    assert_int_equal(reset_first(&t->pair, &t->bytes, 1 + BOW_LIMIT_CANCELS_PER_SECOND), 0);
    assert_int_equal(reset_first(&t->pair, &t->bytes, 1), -EPROTO);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_window_grows_for_a_fast_reader_far_away),
        TEST(test_window_stays_on_a_short_path),
        TEST(test_window_stays_for_a_slow_reader),
        TEST(test_window_stays_while_nobody_reads),
        TEST(test_windows_of_all_streams_are_bounded),
        TEST(test_window_of_the_connection_is_withheld_while_the_server_is_short),
        TEST(test_path_is_asked_for_once_a_second),
        TEST(test_flood_of_late_data_is_bounded),
        TEST(test_what_is_forgiven_is_bounded),
        TEST(test_late_empty_frames_are_empty_frames),
        TEST(test_frames_of_new_calls_are_not_late),
        TEST(test_backlog_of_who_does_not_read_stops_the_server_reading),
        TEST(test_backlog_without_credit_goes_on_reading),
        TEST(test_backlog_f38_of_any_size_is_sent),
        TEST(test_backlog_f38_of_streams_is_sent),
        TEST(test_backlog_f44_is_counted_as_it_weighs),
        TEST(test_resets_of_early_ends_are_no_cancellations),
        TEST(test_resets_of_ends_that_cross_are_no_cancellations),
        TEST(test_resets_of_early_ends_are_due_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
