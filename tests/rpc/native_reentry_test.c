/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Operations from inside events, in every combination: nothing is used after it
 * ended, no event comes after a stream's last. Each allocation failing in turn.
 */
#include "tests/rpc/native_pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define N_CALLS 40

/* A host that does, in each event, what a seed says; it remembers which streams must be silent. */
struct rogue {
    uint64_t random;
    uint8_t ended[4096]; /* by key: no event may come any more */
    uint64_t keys[512];
    size_t n_keys;
};

static uint64_t roll(struct rogue *rogue, uint64_t n)
{
    rogue->random ^= rogue->random << 13;
    rogue->random ^= rogue->random >> 7;
    rogue->random ^= rogue->random << 17;
    return rogue->random % n;
}

static uint64_t any_key(struct rogue *rogue)
{
    return rogue->n_keys > 0 ? rogue->keys[roll(rogue, rogue->n_keys)] : 1;
}

static void assert_alive(struct rogue *rogue, uint64_t key)
{
    assert_true(key < sizeof(rogue->ended));
    assert_int_equal(rogue->ended[key], 0);
}

static size_t any_size(struct rogue *rogue)
{
    static const size_t sizes[] = {0, 1, 100, 20000, 100000};

    return sizes[roll(rogue, 5)];
}

static void begin_call(struct side *side)
{
    static uint8_t message[100000];
    struct rogue *rogue = side->user;
    struct bow__session *session = side->session;
    struct bow__request_head head = {.path = {(const uint8_t *)"/s/m", 4},
                                     .time_left_ns = BOW_NEVER,
                                     .path_key = roll(rogue, 3)};
    uint64_t key = 0;

    if (rogue->n_keys == N_CALLS || session->ops->open(session, &head, side, &key) < 0) {
        return;
    }
    if (roll(rogue, 5) == 0) {
        session->ops->abandon(session, key);
        return;
    }
    rogue->keys[rogue->n_keys++] = key;
    assert_int_equal(side_say(side, key, BOW__SEND_END, message, any_size(rogue)), 0);
}

static void act_as_client(struct side *side)
{
    struct rogue *rogue = side->user;
    uint64_t key = any_key(rogue);

    switch (roll(rogue, 6)) {
    case 0:
        side->session->ops->cancel(side->session, key, BOW_CANCELLED);
        rogue->ended[key] = 1;
        return;
    case 1:
        side->session->ops->consumed(side->session, key, 100);
        return;
    case 2:
        side->session->ops->set_reading(side->session, roll(rogue, 2) == 0, side->pair->now_ns);
        return;
    default:
        begin_call(side);
        return;
    }
}

static void end_call(struct side *side, uint64_t key)
{
    static uint8_t message[100000];
    struct rogue *rogue = side->user;
    struct bow_status status = {.code = BOW_ABORTED, .message = "rogue"};

    if (rogue->ended[key] != 0) {
        return;
    }
    int rc = roll(rogue, 3) == 0 ? side->session->ops->finish(side->session, key, &status)
                                 : side_say(side, key, BOW__SEND_END, message, any_size(rogue));
    assert_int_equal(rc, 0);
    rogue->ended[key] = 1;
}

static void act_as_server(struct side *side)
{
    struct rogue *rogue = side->user;

    switch (roll(rogue, 5)) {
    case 0:
        side->session->ops->consumed(side->session, any_key(rogue), 100);
        return;
    case 1:
        side->session->ops->set_reading(side->session, roll(rogue, 2) == 0, side->pair->now_ns);
        return;
    case 2:
        return;
    default:
        if (rogue->n_keys > 0) {
            end_call(side, any_key(rogue));
        }
        return;
    }
}

static void client_message(struct side *side, uint64_t key, struct bow__message *message)
{
    struct rogue *rogue = side->user;

    assert_alive(rogue, key);
    if (message->block != NULL && roll(rogue, 2) == 0) {
        message->block = bow__block_unref(message->block);
    }
    act_as_client(side);
}

static void any_end(struct side *side, uint64_t key)
{
    struct rogue *rogue = side->user;

    assert_alive(rogue, key);
    rogue->ended[key] = 1;
    if (side == &side->pair->client) {
        act_as_client(side);
    } else {
        act_as_server(side);
    }
}

static void server_open(struct side *side, uint64_t key)
{
    struct rogue *rogue = side->user;

    assert_alive(rogue, key);
    rogue->keys[rogue->n_keys++] = key;
    act_as_server(side);
}

static void server_message(struct side *side, uint64_t key, struct bow__message *message)
{
    struct rogue *rogue = side->user;

    assert_alive(rogue, key);
    if (message->block != NULL && roll(rogue, 2) == 0) {
        message->block = bow__block_unref(message->block);
    }
    if (roll(rogue, 2) == 0) {
        end_call(side, key);
    }
    act_as_server(side);
}

static void client_notice(struct side *side)
{
    act_as_client(side);
}

static void run_rogues(uint64_t seed)
{
    struct pair pair;
    struct rogue rogues[2] = {{.random = seed}, {.random = seed * 77 + 1}};
    struct bow_status reason = {.code = BOW_UNAVAILABLE, .message = "enough"};

    pair_init(&pair);
    pair.step = seed % 3 == 0 ? 0 : 30000;
    pair.random = seed % 3 == 0 ? 0 : seed;
    pair.client.user = &rogues[0];
    pair.client.on_message = client_message;
    pair.client.on_end = any_end;
    pair.client.on_ready = client_notice;
    pair.client.on_goaway = client_notice;
    pair.server.user = &rogues[1];
    pair.server.on_open = server_open;
    pair.server.on_message = server_message;
    pair.server.on_end = any_end;
    assert_int_equal(pair_open(&pair), 0);
    for (int i = 0; i < 5; i++) {
        begin_call(&pair.client);
    }
    pair_run(&pair);
    if (seed % 2 == 0) {
        pair.server.session->ops->goaway(pair.server.session, &reason);
        pair_run(&pair);
    }
    /* What is left ends with the connection. */
    (pair.client.session->ops->fail)(pair.client.session, &reason);
    (pair.server.session->ops->fail)(pair.server.session, &reason);
    assert_int_equal(pair.client.rc, 0);
    assert_int_equal(pair.server.rc, 0);
    assert_int_equal(pair.client.session->n_streams, 0);
    assert_int_equal(pair.server.session->n_streams, 0);
    pair_fini(&pair);
}

static void test_native_reentry_f23_from_any_event_is_safe(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 400; seed++) {
        run_rogues(seed);
    }
}

static void cancel_and_begin(struct side *side, uint64_t key, struct bow__message *message)
{
    (void)message;
    side->session->ops->cancel(side->session, key, BOW_CANCELLED);
    assert_int_equal(side_call(side, "/s/m", 0, "x", 1), key + 2);
}

/* A call begun where another ended must not be taken for it. */
static void test_native_reentry_stream_is_not_reused_at_once(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    pair.client.on_message = cancel_and_begin;
    side_call(&pair.client, "/s/m", 0, "x", 1);
    side_feed_hex(&pair.client, "b04f5701 00000000 00 00 000000000000 "
                                "00000002 04 09 000000000001 00 61");
    assert_int_equal(pair.client.n_messages, 1);
    assert_int_equal(pair.client.n_statuses, 0);
    assert_int_equal(pair.client.session->n_streams, 1);
    pair_fini(&pair);
}

/* Out of memory. */

static void refuse_chunks(struct pair *pair, struct side *side)
{
    static uint8_t out[4096];

    side_take(side, out, sizeof(out));
    while (pair->pool.n_idle > 0) {
        bow__pool_trim(&pair->pool);
        if (pair->pool.n_idle == 1) {
            bow__block_unref(bow__pool_get(&pair->pool));
        }
    }
    pair->alloc.fail_at = pair->alloc.n_calls + 1;
    pair->alloc.fail_after = true;
}

static void test_native_reentry_frame_without_memory_breaks(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    side_feed_hex(&pair.server, "b04f5701 00000000 00 00 000000000000");
    refuse_chunks(&pair, &pair.server);
    side_feed_hex(&pair.server, "00000008 07 00 000000000000 0000000000000001");
    assert_int_equal(pair.server.rc, -ENOMEM);
    assert_int_equal(pair.server.session->failure_code, BOW_RESOURCE_EXHAUSTED);
    assert_string_equal(pair.server.session->failure.bytes,
                        "out of memory for a frame to the peer");
    pair_fini(&pair);
}

static void test_native_reentry_cancel_without_memory_breaks_later(void **state)
{
    struct pair pair;

    (void)state;
    pair_init(&pair);
    assert_int_equal(pair_open(&pair), 0);
    struct bow__session *client = pair.client.session;
    uint64_t key = side_call(&pair.client, "/s/m", 0, "x", 1);
    refuse_chunks(&pair, &pair.client);
    client->ops->cancel(client, key, BOW_CANCELLED);
    assert_true(client->ops->next_time(client) == 0);
    assert_int_equal(client->ops->on_time(client, pair.now_ns), -ENOMEM);
    assert_string_equal(client->failure.bytes, "out of memory for a frame to the peer");
    assert_true(client->ops->next_time(client) == BOW_NEVER);
    pair_fini(&pair);
}

static void reply_or_not(struct side *side, uint64_t key, struct bow__message *message)
{
    (void)side_say(side, key, BOW__SEND_END, message->bytes.data, message->bytes.len);
}

static int begin_or_fail(struct pair *pair, size_t len)
{
    static uint8_t message[100000];
    struct side *client = &pair->client;
    struct bow__request_head head = {
        .path = {(const uint8_t *)"/s/m", 4}, .time_left_ns = BOW_NEVER, .path_key = 1};
    uint64_t key = 0;

    int rc = client->session->ops->open(client->session, &head, client, &key);
    if (rc < 0) {
        return rc;
    }
    rc = side_say(client, key, BOW__SEND_END, message, len);
    if (rc == -ENOMEM) {
        client->session->ops->abandon(client->session, key);
    }
    return rc;
}

static int run_calls(struct pair *pair)
{
    static const size_t sizes[] = {5, 100000, 5, 30000, 5};
    int rc = pair_open(pair);

    for (size_t i = 0; i < 5 && rc == 0; i++) {
        rc = begin_or_fail(pair, sizes[i]);
    }
    if (rc < 0) {
        return rc;
    }
    pair_run(pair);
    bool whole = pair->client.n_messages == 5 && pair->client.code == BOW_OK;
    if (!whole) {
        struct bow_status lost = {.code = BOW_UNAVAILABLE, .message = "lost"};
        (pair->client.session->ops->fail)(pair->client.session, &lost);
        (pair->server.session->ops->fail)(pair->server.session, &lost);
        /* Whatever went wrong, each call has ended once. */
        assert_int_equal(pair->client.n_statuses, 5);
    }
    return whole ? 0 : -ENOMEM;
}

static int scenario(struct bow_context *context, void *user)
{
    struct pair pair;

    (void)user;
    pair_init_in(&pair, context);
    pair.server.on_message = reply_or_not;
    int rc = run_calls(&pair);
    assert_true(pair.client.rc == 0 || pair.client.rc == -ENOMEM);
    assert_true(pair.server.rc == 0 || pair.server.rc == -ENOMEM);
    pair_fini(&pair);
    return rc;
}

static void test_native_reentry_with_each_allocation_failing_leaks_nothing(void **state)
{
    (void)state;
    assert_true(test_alloc_fail_each(NULL, scenario, NULL) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_native_reentry_f23_from_any_event_is_safe),
        cmocka_unit_test(test_native_reentry_stream_is_not_reused_at_once),
        cmocka_unit_test(test_native_reentry_frame_without_memory_breaks),
        cmocka_unit_test(test_native_reentry_cancel_without_memory_breaks_later),
        cmocka_unit_test(test_native_reentry_with_each_allocation_failing_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
