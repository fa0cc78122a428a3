/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls over two sessions joined back to back. */
#include "tests/rpc/http2_pair.h"

#include <bowline/limits.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct fixture {
    struct test_alloc alloc;
    struct bow_context *context;
    struct pair pair;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));

    test_alloc_init(&fixture->alloc);
    fixture->context = test_context_new(&fixture->alloc);
    assert_int_equal(pair_begin(&fixture->pair, fixture->context), 0);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;

    pair_end(&fixture->pair);
    test_context_end(fixture->context, &fixture->alloc);
    free(fixture);
    return 0;
}

static void finish(struct side *side, uint64_t key, enum bow_code code, const char *message)
{
    struct bow_status status = {.code = code, .message = message};

    assert_int_equal(side->session->ops->finish(side->session, key, &status), 0);
    side->n_open--;
}

/* Answers each message with itself, then OK. */
static void echo(struct side *side, enum side_event event, uint64_t key)
{
    if (event != SIDE_MESSAGE) {
        return;
    }
    assert_int_equal(side_send(side, key, BOW__SEND_END, "reply"), 0);
    side->n_open--;
}

static void test_unary_call_is_answered(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    uint64_t key = 0;

    pair->server.hook = echo;
    assert_int_equal(side_call(&pair->client, "/a.B/C", "hello", BOW_NEVER, &key), 0);
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->server, "open 1 /a.B/C\nmessage 1 5 hello end\n");
    side_expect(&pair->client, "ready\nmessage 1 5 reply\nstatus 1 OK\n");
    assert_int_equal(pair->client.session->n_streams, 0);
    assert_int_equal(pair->server.session->n_streams, 0);
}

static void test_calls_byte_by_byte_are_answered(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    uint64_t key = 0;

    pair->server.hook = echo;
    for (uint64_t i = 1; i <= 3; i++) {
        assert_int_equal(side_call(&pair->client, "/a.B/C", "hello", 1000000, &key), 0);
        pair_run(pair, 1);
    }
    side_expect(&pair->server, "open 1 /a.B/C 1000000\nmessage 1 5 hello end\n"
                               "open 3 /a.B/C 1000000\nmessage 3 5 hello end\n"
                               "open 5 /a.B/C 1000000\nmessage 5 5 hello end\n");
    side_expect(&pair->client, "ready\nmessage 1 5 reply\nstatus 1 OK\n"
                               "message 2 5 reply\nstatus 2 OK\nmessage 3 5 reply\nstatus 3 OK\n");
}

static void test_error_status_travels_whole(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    static const char details[] = "\x08\x05 bytes";
    uint64_t key = 0;
    struct bow_status status = {
        .code = BOW_NOT_FOUND,
        .message = "no 100% \xC3\xBC\n here",
        .details = {(const uint8_t *)details, sizeof(details) - 1},
        .retry_after_ns = 1500001,
    };

    assert_int_equal(side_call(&pair->client, "/a.B/C", "", BOW_NEVER, &key), 0);
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->server, "open 1 /a.B/C\nmessage 1 0 end\n");
    struct bow__session *server = pair->server.session;
    assert_int_equal(server->ops->finish(server, 1, &status), 0);
    assert_int_equal(server->ops->finish(server, 1, &status), -ENOENT);
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->client, "ready\nstatus 1 NOT_FOUND no 100% \xC3\xBC\n here "
                               "[\x08\x05 bytes] retry 2000000\n");
}

static void test_long_message_is_cut_to_the_limit(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    static char message[6001];
    uint64_t key = 0;

    memset(message, 'm', sizeof(message) - 1);
    /* A character of two bytes across the limit. */
    memcpy(message + BOW_LIMIT_STATUS_MESSAGE_BYTES - 1, "\xC3\xBC", 2);
    assert_int_equal(side_call(&pair->client, "/a.B/C", "x", BOW_NEVER, &key), 0);
    pair_run(pair, SIZE_MAX);
    finish(&pair->server, 1, BOW_ABORTED, message);
    pair_run(pair, SIZE_MAX);
    message[BOW_LIMIT_STATUS_MESSAGE_BYTES - 1] = '\0';
    char *expected = NULL;
    assert_true(asprintf(&expected, "ready\nstatus 1 ABORTED %s\n", message) > 0);
    side_expect(&pair->client, expected);
    free(expected);
}

static void test_several_messages_both_ways_keep_their_order(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    struct bow__session *client = pair->client.session;
    struct bow__request_head head = {.path = {(const uint8_t *)"/a.B/C", 6},
                                     .time_left_ns = BOW_NEVER};
    uint64_t key = 0;

    assert_int_equal(client->ops->open(client, &head, NULL, &key), 0);
    pair->client.n_open++;
    assert_int_equal(side_send(&pair->client, key, 0, "one"), 0);
    assert_int_equal(side_send(&pair->client, key, 0, ""), 0);
    pair_run(pair, 3);
    assert_int_equal(side_send(&pair->server, 1, 0, "first"), 0);
    assert_int_equal(side_send_block(&pair->client, key, 0, 7, 100000), 0);
    pair_run(pair, 4096);
    assert_int_equal(side_send(&pair->client, key, BOW__SEND_END, "last"), 0);
    assert_int_equal(side_send_block(&pair->server, 1, 0, 1, 70000), 0);
    pair_run(pair, SIZE_MAX);
    finish(&pair->server, 1, BOW_OUT_OF_RANGE, "done");
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->server, "open 1 /a.B/C\nmessage 1 3 one\nmessage 1 0\nmessage 1 100000\n"
                               "message 1 4 last end\n");
    side_expect(&pair->client, "ready\nmessage 1 5 first\nmessage 1 70000\n"
                               "status 1 OUT_OF_RANGE done\n");
}

static void test_end_without_message_is_a_half_close(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    static struct bytes bytes;

    bytes.len = 0;
    bytes_preface(&bytes);
    bytes_request(&bytes, 4 | 1, 1, NULL);
    bytes_request(&bytes, 4, 3, NULL);
    bytes_frame(&bytes, 0, 0, 3, "\0\0\0\0\2hi", 7);
    bytes_frame(&bytes, 0, 1, 3, NULL, 0);
    assert_int_equal(side_feed(&pair->server, bytes.data, bytes.len, SIZE_MAX), 0);
    side_expect(&pair->server, "open 1 /a.B/C\nhalf_close 1\nopen 3 /a.B/C\nmessage 3 2 hi\n"
                               "half_close 3\n");
}

static void test_large_messages_pass_both_ways(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    struct bow__session *client = pair->client.session;
    struct bow__request_head head = {.path = {(const uint8_t *)"/a.B/C", 6},
                                     .time_left_ns = BOW_NEVER};
    size_t size = BOW_LIMIT_MESSAGE_BYTES;
    uint64_t key = 0;

    assert_int_equal(client->ops->open(client, &head, NULL, &key), 0);
    pair->client.n_open++;
    assert_int_equal(side_send_block(&pair->client, key, BOW__SEND_END, 0, size), 0);
    pair_run(pair, SIZE_MAX);
    assert_int_equal(pair->server.n_bytes, size);
    assert_int_equal(side_send_block(&pair->server, 1, BOW__SEND_END, 0, size), 0);
    pair->server.n_open--;
    pair_run(pair, 16384);
    assert_int_equal(pair->client.n_bytes, size);
    assert_true(side_has(&pair->client, "status 1 OK\n"));
}

static void test_calls_beyond_the_peers_slots_wait_for_ready(void **state)
{
    struct fixture *fixture = *state;
    struct pair *pair = &fixture->pair;
    uint64_t keys[4];

    pair_end(pair);
    pair_init(pair, fixture->context);
    struct bow__session_options options = pair_options(pair, &pair->server, true);
    options.max_calls = 2;
    assert_int_equal(side_begin(&pair->server, &options), 0);
    options = pair_options(pair, &pair->client, false);
    assert_int_equal(side_begin(&pair->client, &options), 0);
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->client, "ready\n");
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(side_call(&pair->client, "/a.B/C", "x", BOW_NEVER, &keys[i]), 0);
    }
    assert_false(pair->client.session->ops->can_open(pair->client.session));
    assert_int_equal(side_call(&pair->client, "/a.B/C", "x", BOW_NEVER, &keys[2]), -EAGAIN);
    pair_run(pair, SIZE_MAX);
    finish(&pair->server, 1, BOW_OK, "");
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->client, "status 1 OK\nready\n");
    assert_int_equal(side_call(&pair->client, "/a.B/C", "x", BOW_NEVER, &keys[2]), 0);
    /* A cancelled call's slot is free when the reset has left, which no feed sees. */
    pair->client.session->ops->cancel(pair->client.session, keys[1], BOW_CANCELLED);
    pair->client.n_open--;
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->client, "ready\n");
}

static void test_abandoned_call_leaves_no_trace(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    struct bow__session *client = pair->client.session;
    struct bow__request_head head = {.path = {(const uint8_t *)"/a.B/C", 6},
                                     .time_left_ns = BOW_NEVER};
    uint64_t key = 0;
    size_t cap = 0;

    assert_int_equal(client->ops->open(client, &head, NULL, &key), 0);
    assert_non_null(client->ops->reserve(client, key, BOW__SEND_END, &cap));
    client->ops->abandon(client, key);
    assert_int_equal(client->n_streams, 0);
    assert_int_equal(side_send(&pair->client, key, 0, "x"), -ENOENT);
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->server, "");
}

static void test_cancel_resets_the_servers_call(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    struct bow__session *client = pair->client.session;
    uint64_t key = 0;

    assert_int_equal(side_call(&pair->client, "/a.B/C", "x", BOW_NEVER, &key), 0);
    pair_run(pair, SIZE_MAX);
    side_clear(&pair->server);
    client->ops->cancel(client, key, BOW_DEADLINE_EXCEEDED);
    client->ops->cancel(client, key, BOW_DEADLINE_EXCEEDED);
    assert_int_equal(client->n_streams, 0);
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->server, "reset 1 CANCELLED stream reset by the client, which gave the call "
                               "up, with CANCEL (8)\n");
    side_expect(&pair->client, "ready\n");
}

static void test_cancel_before_anything_left_sends_nothing(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    uint64_t key = 0;

    pair_run(pair, SIZE_MAX);
    assert_int_equal(side_call(&pair->client, "/a.B/C", "x", BOW_NEVER, &key), 0);
    pair->client.session->ops->cancel(pair->client.session, key, BOW_CANCELLED);
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->server, "");
}

static void test_early_status_stops_the_client(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    struct bow__session *client = pair->client.session;
    struct bow__request_head head = {.path = {(const uint8_t *)"/a.B/C", 6},
                                     .time_left_ns = BOW_NEVER};
    uint64_t key = 0;

    assert_int_equal(client->ops->open(client, &head, NULL, &key), 0);
    pair->client.n_open++;
    assert_int_equal(side_send(&pair->client, key, 0, "one"), 0);
    pair_run(pair, SIZE_MAX);
    finish(&pair->server, 1, BOW_INVALID_ARGUMENT, "enough");
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->client, "ready\nstatus 1 INVALID_ARGUMENT enough\n");
    assert_int_equal(side_send(&pair->client, key, 0, "two"), -ENOENT);
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->server, "open 1 /a.B/C\nmessage 1 3 one\n");
}

static void refuse(struct side *side, enum side_event event, uint64_t key)
{
    const struct bow_status *status = side->user;

    if (event == SIDE_OPEN) {
        assert_int_equal(side->session->ops->finish(side->session, key, status), 0);
        side->n_open--;
    }
}

static void test_refusal_as_not_processed_reaches_the_client(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    struct bow_status status = {
        .code = BOW_UNAVAILABLE, .message = "leaving", .not_processed = true};
    uint64_t key = 0;

    pair->server.hook = refuse;
    pair->server.user = &status;
    assert_int_equal(side_call(&pair->client, "/a.B/C", "x", BOW_NEVER, &key), 0);
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->server, "open 1 /a.B/C\n");
    side_expect(&pair->client, "ready\nstatus 1 UNAVAILABLE stream reset by the peer with "
                               "REFUSED_STREAM (7) not_processed\n");
}

static void test_refusal_with_a_status_reaches_the_client(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    struct bow_status status = {.code = BOW_UNIMPLEMENTED, .message = "unknown method /a.B/C"};
    uint64_t key = 0;

    pair->server.hook = refuse;
    pair->server.user = &status;
    assert_int_equal(side_call(&pair->client, "/a.B/C", "x", BOW_NEVER, &key), 0);
    pair_run(pair, SIZE_MAX);
    side_expect(&pair->server, "open 1 /a.B/C\n");
    side_expect(&pair->client, "ready\nstatus 1 UNIMPLEMENTED unknown method /a.B/C\n");
}

static void test_header_beyond_the_limit_is_not_sent(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    static char path[BOW_LIMIT_HEADER_BYTES + 1];
    uint64_t key = 0;

    memset(path, '/', sizeof(path) - 1);
    pair_run(pair, SIZE_MAX);
    assert_int_equal(side_call(&pair->client, path, "x", BOW_NEVER, &key), -EMSGSIZE);
    assert_int_equal(pair->client.session->n_streams, 0);
}

static void test_lost_connection_ends_every_call_once(void **state)
{
    struct pair *pair = &((struct fixture *)*state)->pair;
    struct bow_status lost = {.code = BOW_UNAVAILABLE, .message = "connection lost"};
    uint64_t key = 0;

    assert_int_equal(side_call(&pair->client, "/a.B/C", "x", BOW_NEVER, &key), 0);
    pair_run(pair, SIZE_MAX);
    assert_int_equal(side_call(&pair->client, "/a.B/C", "x", BOW_NEVER, &key), 0);
    side_clear(&pair->client);
    side_clear(&pair->server);
    side_fail(&pair->client, &lost);
    side_fail(&pair->server, &lost);
    side_expect(&pair->client, "status 1 UNAVAILABLE connection lost\n"
                               "status 2 UNAVAILABLE connection lost not_processed\n");
    side_expect(&pair->server, "reset 1 UNAVAILABLE connection lost\n");
    assert_int_equal(side_call(&pair->client, "/a.B/C", "x", BOW_NEVER, &key), -EPIPE);
    assert_int_equal(pair->client.session->ops->next_time(pair->client.session), BOW_NEVER);
}

/* Between messages the session stops for what they cost its loop, and the rest comes again:
 * also a message's end, and what was there is not looked at twice. */

static void find_it_dear(struct side *side, enum side_event event, uint64_t key)
{
    (void)key;
    if (event == SIDE_MESSAGE) {
        side->session->work.n_turn += BOW__WORK_TURN_BYTES / 2;
    }
}

static void test_f34_a_turn_ends_between_messages(void **state)
{
    struct fixture *fixture = *state;
    struct side *server = &fixture->pair.server;
    static struct bytes bytes;

    bytes.len = 0;
    bytes_preface(&bytes);
    for (uint32_t id = 1; id <= 5; id += 2) {
        bytes_request(&bytes, 4, id, NULL);
        bytes_frame(&bytes, 0, 1, id, "\0\0\0\0\2hi", 7);
    }
    server->hook = find_it_dear;
    size_t at = 0;
    for (int turn = 0; turn < 2; turn++) {
        server->session->work.n_turn = 0;
        ssize_t used = server->session->ops->feed(server->session, bytes.data + at, bytes.len - at,
                                                  fixture->pair.now_ns);
        assert_true(used > 0);
        at += (size_t)used;
        assert_int_equal(server->n_messages, turn == 0 ? 2 : 3);
        assert_int_equal(at == bytes.len, turn == 1);
    }
    side_expect(server, "open 1 /a.B/C\nmessage 1 2 hi end\n"
                        "open 3 /a.B/C\nmessage 3 2 hi end\n"
                        "open 5 /a.B/C\nmessage 5 2 hi end\n");
}

/* One whose last byte ends the turn has ended: its answer tells nobody to stop. */
static void test_f34_a_turn_that_ends_with_the_last_byte_is_whole(void **state)
{
    struct fixture *fixture = *state;
    struct side *server = &fixture->pair.server;
    const struct bow_status ok = BOW_STATUS_OK_INIT;
    static struct bytes bytes;
    static char text[4096];

    bytes.len = 0;
    bytes_preface(&bytes);
    bytes_request(&bytes, 4, 1, NULL);
    assert_int_equal(side_feed(server, bytes.data, bytes.len, SIZE_MAX), 0);
    bytes.len = 0;
    bytes_frame(&bytes, 0, 1, 1, "\0\0\0\0\2hi", 7);
    server->session->work.n_turn = BOW__WORK_TURN_BYTES;
    assert_int_equal(side_feed(server, bytes.data, bytes.len, SIZE_MAX), 0);
    assert_int_equal(server->session->ops->finish(server->session, 1, &ok), 0);
    bytes.len = side_drain(server, bytes.data, sizeof(bytes.data));
    bytes_print(&bytes, text, sizeof(text));
    assert_null(strstr(text, "RST_STREAM"));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_unary_call_is_answered),
        TEST(test_calls_byte_by_byte_are_answered),
        TEST(test_error_status_travels_whole),
        TEST(test_long_message_is_cut_to_the_limit),
        TEST(test_several_messages_both_ways_keep_their_order),
        TEST(test_end_without_message_is_a_half_close),
        TEST(test_large_messages_pass_both_ways),
        TEST(test_calls_beyond_the_peers_slots_wait_for_ready),
        TEST(test_abandoned_call_leaves_no_trace),
        TEST(test_cancel_resets_the_servers_call),
        TEST(test_cancel_before_anything_left_sends_nothing),
        TEST(test_early_status_stops_the_client),
        TEST(test_refusal_as_not_processed_reaches_the_client),
        TEST(test_refusal_with_a_status_reaches_the_client),
        TEST(test_header_beyond_the_limit_is_not_sent),
        TEST(test_lost_connection_ends_every_call_once),
        TEST(test_f34_a_turn_ends_between_messages),
        TEST(test_f34_a_turn_that_ends_with_the_last_byte_is_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
