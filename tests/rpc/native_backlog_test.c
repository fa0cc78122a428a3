/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Replies that their peer does not take: what waits is bounded, a server stops
 * reading from who does not read, and nobody waits for ever because of that.
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
    size_t n_refused; /* certainly not processed */
    size_t n_dropped;
};

static void count(struct side *side, uint64_t key)
{
    struct results *results = side->user;

    (void)key;
    if (side->code == BOW_OK) {
        results->n_ok++;
        return;
    }
    assert_int_equal(side->code, BOW_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(side->text, "BOW_LIMIT_QUEUED_REPLY_BYTES"));
    if (side->not_processed) {
        assert_true(side->retry_after_ns > 0);
        results->n_refused++;
    } else {
        results->n_dropped++;
    }
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

/* The client reads its socket and gives no credit: to go on reading is all right, to take calls is
 * not. */
static void test_native_backlog_without_credit_refuses_calls(void **state)
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
    assert_true(n_queued(&pair) >= BOW_LIMIT_QUEUED_REPLY_BYTES / 2);
    assert_true(n_queued(&pair) < BOW_LIMIT_QUEUED_REPLY_BYTES / 2 + REPLY_BYTES);
    assert_true(pair.server.n_opens < 40);
    close_pair(&pair);
}

/* As before, but the answers are looked at: refused calls say why, and later ones are taken. */
static void test_native_backlog_refusal_says_why_and_ends(void **state)
{
    struct results results;
    struct pair pair;

    (void)state;
    open_pair(&pair, &results);
    pair.server.on_message = answer_at_once;
    /* Nobody reads while they come. */
    for (int i = 0; i < 60; i++) {
        call(&pair);
        pair_move(&pair, &pair.client, SIZE_MAX);
    }
    pair.client.on_message = read_at_once;
    pair_run(&pair);
    assert_int_equal(results.n_ok, 32);
    assert_int_equal(results.n_refused, 28);
    assert_int_equal(results.n_dropped, 0);
    call(&pair);
    pair_run(&pair);
    assert_int_equal(results.n_ok, 33);
    close_pair(&pair);
}

/* Calls that were taken before, answered all at once. */
static void test_native_backlog_beyond_the_limit_drops_replies(void **state)
{
    struct results results;
    struct pair pair;

    (void)state;
    open_pair(&pair, &results);
    for (int i = 0; i < 100; i++) {
        call(&pair);
    }
    pair_run(&pair);
    assert_int_equal(pair.server.n_opens, 100);
    for (uint64_t key = 1; key < 200; key += 2) {
        assert_int_equal(answer(&pair.server, key, REPLY_BYTES), 0);
    }
    assert_int_equal(n_queued(&pair), BOW_LIMIT_QUEUED_REPLY_BYTES);
    pair.client.on_message = read_at_once;
    pair_run(&pair);
    assert_int_equal(results.n_ok, 64);
    assert_int_equal(results.n_dropped, 36);
    assert_int_equal(n_queued(&pair), 0);
    close_pair(&pair);
}

/* The same of streams, which go on: their hosts hear of the end, later. */
static void test_native_backlog_beyond_the_limit_ends_streams(void **state)
{
    struct results results;
    struct pair pair;

    (void)state;
    open_pair(&pair, &results);
    for (int i = 0; i < 100; i++) {
        call(&pair);
    }
    pair_run(&pair);
    struct bow__session *server = pair.server.session;
    for (uint64_t key = 1; key < 200; key += 2) {
        assert_int_equal(server->ops->send(server, key, 0, bow__block_ref(reply), 0, REPLY_BYTES),
                         0);
    }
    assert_int_equal(n_queued(&pair), BOW_LIMIT_QUEUED_REPLY_BYTES);
    assert_int_equal(pair.server.n_resets, 0);
    assert_true(server->ops->next_time(server) == 0);
    /* One says more, one is given up, one ends by itself, one with a last message that would fit:
     * no event follows on these, and none of them ends well. */
    struct bow_status ok = BOW_STATUS_OK_INIT;
    assert_int_equal(server->ops->send(server, 199, 0, bow__block_ref(reply), 0, REPLY_BYTES), 0);
    pair.client.session->ops->cancel(pair.client.session, 195, BOW_CANCELLED);
    assert_int_equal(server->ops->finish(server, 197, &ok), 0);
    pair.client.session->ops->cancel(pair.client.session, 1, BOW_CANCELLED);
    pair.client.session->ops->cancel(pair.client.session, 3, BOW_CANCELLED);
    assert_int_equal(side_say(&pair.server, 193, BOW__SEND_END, "last", 4), 0);
    pair_move(&pair, &pair.client, SIZE_MAX);
    assert_int_equal(pair.server.n_resets, 2 + 1 + 33);
    assert_int_equal(server->n_streams, 62);
    assert_true(server->ops->next_time(server) == BOW_NEVER);
    pair.client.on_message = read_at_once;
    pair_run(&pair);
    assert_int_equal(results.n_ok, 0);
    assert_int_equal(results.n_dropped, 35);
    close_pair(&pair);
}

/* A single one waits alone, however large it is. */
static void test_native_backlog_takes_one_reply_of_any_size(void **state)
{
    struct results results;
    struct pair pair;

    (void)state;
    open_pair(&pair, &results);
    bow__block_unref(reply);
    reply = pattern_block(pair.context, BOW_LIMIT_QUEUED_REPLY_BYTES + MIB, 1);
    call(&pair);
    call(&pair);
    pair_run(&pair);
    assert_int_equal(answer(&pair.server, 1, reply->cap), 0);
    assert_true(n_queued(&pair) > BOW_LIMIT_QUEUED_REPLY_BYTES);
    /* The next one is told that it is too much. */
    assert_int_equal(answer(&pair.server, 3, 1), 0);
    assert_int_equal(pair.server.session->n_streams, 1);
    close_pair(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_native_backlog_of_who_does_not_read_stops_the_server_reading),
        cmocka_unit_test(test_native_backlog_never_stops_both_sides),
        cmocka_unit_test(test_native_backlog_without_credit_refuses_calls),
        cmocka_unit_test(test_native_backlog_refusal_says_why_and_ends),
        cmocka_unit_test(test_native_backlog_beyond_the_limit_drops_replies),
        cmocka_unit_test(test_native_backlog_beyond_the_limit_ends_streams),
        cmocka_unit_test(test_native_backlog_takes_one_reply_of_any_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
