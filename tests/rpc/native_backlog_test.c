/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Replies that their peer does not take: none is lost, what waits is known to who has to bound it,
 * a server stops reading from who does not read, and nobody waits for ever because of that.
 */
#include "tests/rpc/native_pair.h"

#include <bowline/limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define REPLY_BYTES MIB

/* All replies are one block, so that the test itself does not need their memory. */
static struct bow__block *reply;

static int answer(struct side *server, uint64_t key, size_t len)
{
    struct bow__session *session = server->session;

    int rc = session->ops->send(session, key, BOW__SEND_END, bow__block_ref(reply), 0, len);
    if (rc < 0) {
        bow__block_unref(reply);
    }
    return rc;
}

static void answer_at_once(struct side *side, uint64_t key, struct bow__message *message)
{
    (void)message;
    assert_int_equal(answer(side, key, REPLY_BYTES), 0);
}

struct results {
    size_t n_ok;
};

static void count(struct side *side, uint64_t key)
{
    struct results *results = side->user;

    (void)key;
    if (side->code != BOW_OK) {
        fail_msg("%s: %s", bow_code_name(side->code), side->text);
    }
    results->n_ok++;
}

static void read_at_once(struct side *side, uint64_t key, struct bow__message *message)
{
    side->session->ops->consumed(side->session, key, message->bytes.len);
}

static void open_pair(struct pair *pair, struct results *results)
{
    pair_init(pair);
    *results = (struct results){0};
    struct bow__session_options options = pair_options(pair, false);
    assert_int_equal(side_open(&pair->client, &options), 0);
    options = pair_options(pair, true);
    options.max_calls = 200;
    assert_int_equal(side_open(&pair->server, &options), 0);
    reply = pattern_block(pair->context, REPLY_BYTES, 1);
    pair->client.user = results;
    pair->client.on_end = count;
    pair_run(pair);
}

static void close_pair(struct pair *pair)
{
    bow__block_unref(reply);
    reply = NULL;
    pair->client.on_end = NULL;
    pair_fini(pair);
}

static size_t n_queued(const struct pair *pair)
{
    return side_native(&pair->server)->n_queued;
}

static bool is_clogged(const struct side *side)
{
    return side->session->ops->is_clogged(side->session);
}

static void call(struct pair *pair)
{
    side_call(&pair->client, "/s/m", 7, "x", 1);
}

/* A client whose socket is full: nothing of what the server says leaves. */
static void test_native_backlog_of_who_does_not_read_stops_the_server_reading(void **state)
{
    struct results results;
    struct pair pair;
    size_t n = 0;

    (void)state;
    open_pair(&pair, &results);
    pair.server.on_message = answer_at_once;
    while (!is_clogged(&pair.server) && n < 100) {
        call(&pair);
        pair_move(&pair, &pair.client, SIZE_MAX);
        /* A try to send, of which nothing is taken. */
        struct iovec piece;
        pair.server.session->ops->drain(pair.server.session, &piece, 1);
        n++;
    }
    assert_in_range(n, 8, 10);
    assert_true(n_queued(&pair) < 10 * MIB);
    /* It reads again, and so do we; all is answered. */
    pair.client.on_message = read_at_once;
    pair_run(&pair);
    assert_false(is_clogged(&pair.server));
    assert_int_equal(results.n_ok, n);
    assert_int_equal(n_queued(&pair), 0);
    close_pair(&pair);
}

/* The host does not feed a session that is clogged; whoever reads gets everything all the same. */
static void test_native_backlog_never_stops_both_sides(void **state)
{
    struct results results;
    struct pair pair;

    (void)state;
    open_pair(&pair, &results);
    pair.server.on_message = answer_at_once;
    pair.client.on_message = read_at_once;
    for (int i = 0; i < 30; i++) {
        call(&pair);
    }
    size_t moved = 1;
    for (int round = 0; moved > 0; round++) {
        moved = 0;
        if (!is_clogged(&pair.server)) {
            moved += pair_move(&pair, &pair.client, SIZE_MAX);
        }
        /* The socket takes a little at a time. */
        moved += pair_move(&pair, &pair.server, 10000);
    }
    assert_int_equal(results.n_ok, 30);
    close_pair(&pair);
}

/* The client reads its socket and gives no credit, which comes with what is read. Whether calls are
 * begun is not the session's to say. */
static void test_native_backlog_without_credit_goes_on_reading(void **state)
{
    struct results results;
    struct pair pair;

    (void)state;
    open_pair(&pair, &results);
    pair.server.on_message = answer_at_once;
    for (int i = 0; i < 60; i++) {
        call(&pair);
        pair_move(&pair, &pair.client, SIZE_MAX);
        /* What the server says is read from the socket, but nothing answers it. */
        static uint8_t bytes[MIB];
        side_take(&pair.server, bytes, sizeof(bytes));
        assert_false(is_clogged(&pair.server));
    }
    assert_int_equal(pair.server.n_opens, 60);
    assert_in_range(n_queued(&pair), 59 * REPLY_BYTES, 61 * REPLY_BYTES);
    close_pair(&pair);
}

/* Far more than BOW_LIMIT_QUEUED_REPLY_BYTES: what was answered is sent. */
static void test_native_backlog_f38_of_any_size_is_sent(void **state)
{
    const size_t n = 200;
    struct results results;
    struct pair pair;

    (void)state;
    open_pair(&pair, &results);
    for (size_t i = 0; i < n; i++) {
        call(&pair);
    }
    pair_run(&pair);
    assert_int_equal(pair.server.n_opens, n);
    for (uint64_t key = 1; key < 2 * n; key += 2) {
        assert_int_equal(answer(&pair.server, key, REPLY_BYTES), 0);
    }
    assert_in_range(n_queued(&pair), n * REPLY_BYTES, (n + 1) * REPLY_BYTES);
    pair.client.on_message = read_at_once;
    pair_run(&pair);
    assert_int_equal(results.n_ok, n);
    assert_int_equal(n_queued(&pair), 0);
    close_pair(&pair);
}

/* The same of streams: each message, and the end behind it. */
static void test_native_backlog_f38_of_streams_is_sent(void **state)
{
    const uint64_t n = 100;
    struct bow_status ok = BOW_STATUS_OK_INIT;
    struct results results;
    struct pair pair;

    (void)state;
    open_pair(&pair, &results);
    for (uint64_t i = 0; i < n; i++) {
        call(&pair);
    }
    pair_run(&pair);
    struct bow__session *server = pair.server.session;
    for (uint64_t key = 1; key < 2 * n; key += 2) {
        assert_int_equal(server->ops->send(server, key, 0, bow__block_ref(reply), 0, REPLY_BYTES),
                         0);
        assert_int_equal(server->ops->finish(server, key, &ok), 0);
    }
    pair.client.on_message = read_at_once;
    pair_run(&pair);
    assert_int_equal(results.n_ok, n);
    assert_int_equal(pair.server.n_resets, 0);
    close_pair(&pair);
}

/* What is said to wait is what memory is taken: of messages of `len` bytes, that have no credit. */
static void expect_counted(size_t len, size_t n_messages)
{
    struct results results;
    struct pair pair;

    open_pair(&pair, &results);
    call(&pair);
    pair_run(&pair);
    struct bow__session *server = pair.server.session;
    struct bow__block *first = bow__block_new(pair.context, MIB);
    assert_int_equal(server->ops->send(server, 1, 0, first, 0, MIB), 0);
    size_t n_before = bow_context_bytes(pair.context);
    size_t n_counted = server->ops->unsent(server);
    for (size_t i = 0; i < n_messages; i++) {
        struct bow__block *block = bow__block_new(pair.context, len);
        assert_int_equal(server->ops->send(server, 1, 0, block, 0, len), 0);
    }
    size_t n_taken = bow_context_bytes(pair.context) - n_before;
    n_counted = server->ops->unsent(server) - n_counted;
    assert_in_range(n_counted, n_taken - n_taken / 10, n_taken + n_taken / 10);
    pair.client.on_message = read_at_once;
    pair_run(&pair);
    assert_int_equal(server->n_waiting, 0);
    assert_int_equal(server->ops->queued(server, 1), 0);
    close_pair(&pair);
}

static void test_native_backlog_f44_is_counted_as_it_weighs(void **state)
{
    (void)state;
    expect_counted(0, 1000);
    expect_counted(7, 1000);
    expect_counted(100, 1000);
    expect_counted(64 * KIB, 20);
}

/* Streams that nobody reads hold large messages that have begun; what others say arrives. */
static void test_native_backlog_f16_unread_large_messages_hold_up_no_other_stream(void **state)
{
    static uint8_t message[MIB * 4];
    struct results results;
    struct pair pair;

    (void)state;
    open_pair(&pair, &results);
    for (uint64_t key = 1; key <= 33; key += 2) {
        call(&pair);
        pair_run(&pair);
        pair.server.session->ops->consumed(pair.server.session, key, 1);
    }
    for (uint64_t key = 1; key < 33; key += 2) {
        assert_int_equal(side_say(&pair.server, key, 0, message, 64), 0);
        pair_run(&pair);
        assert_int_equal(side_say(&pair.server, key, 0, message, sizeof(message)), 0);
        pair_run(&pair);
    }
    /* No further large one has begun, so that there is room for what its credit covers. */
    assert_true(side_native(&pair.server)->n_begun <= BOW_LIMIT_BYTES_IN_FLIGHT / 2);
    size_t n_before = pair.client.n_messages;
    pair.client.on_message = read_at_once;
    for (size_t n = 2; n <= 8; n += 2) {
        /* The second one waits for what it costs, and then begins. */
        assert_int_equal(side_say(&pair.server, 33, 0, message, 60 * KIB), 0);
        assert_int_equal(side_say(&pair.server, 33, 0, message, 60 * KIB), 0);
        pair_run(&pair);
        assert_int_equal(pair.client.n_messages, n_before + n);
    }
    close_pair(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_native_backlog_of_who_does_not_read_stops_the_server_reading),
        cmocka_unit_test(test_native_backlog_never_stops_both_sides),
        cmocka_unit_test(test_native_backlog_without_credit_goes_on_reading),
        cmocka_unit_test(test_native_backlog_f16_unread_large_messages_hold_up_no_other_stream),
        cmocka_unit_test(test_native_backlog_f38_of_any_size_is_sent),
        cmocka_unit_test(test_native_backlog_f38_of_streams_is_sent),
        cmocka_unit_test(test_native_backlog_f44_is_counted_as_it_weighs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
