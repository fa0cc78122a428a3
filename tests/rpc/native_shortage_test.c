/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Streams with everything on them, metadata, encodings, messages that wait, while
 * each allocation fails in turn: a call ends once or goes on, nothing is left.
 */
#include "tests/rpc/native_pair.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define KIB ((size_t)1 << 10)

static const struct bow_metadata_entry entry = {"k", {(const uint8_t *)"v", 1}};
static const struct bow_metadata metadata = {&entry, 1};

static void consume(struct side *side, uint64_t key, struct bow__message *message)
{
    side->session->ops->consumed(side->session, key, message->bytes.len);
}

/* What a failed operation leads to: the host gives the call up. */
static int say_or_end(struct side *side, uint64_t key, size_t len)
{
    static uint8_t bytes[100 * 1024];
    struct bow_status why = {.code = BOW_RESOURCE_EXHAUSTED, .message = "no memory"};
    struct bow__session *session = side->session;

    int rc = side_say(side, key, BOW__SEND_COMPRESSED, bytes, len);
    if (rc < 0 && session->server) {
        (void)session->ops->finish(session, key, &why);
    } else if (rc < 0) {
        session->ops->cancel(session, key, BOW_CANCELLED);
    }
    return rc;
}

/* A small message, one that waits, and a small one behind it. */
static int say_some(struct side *side, uint64_t key)
{
    int rc = say_or_end(side, key, 10);

    rc = rc < 0 ? rc : say_or_end(side, key, 100 * KIB);
    return rc < 0 ? rc : say_or_end(side, key, 10);
}

static int begin(struct pair *pair, uint64_t *ret_key)
{
    struct bow__session *client = pair->client.session;
    struct bow__request_head head = {
        .path = {(const uint8_t *)"/s/m", 4},
        .time_left_ns = BOW_NEVER,
        .path_key = 1,
        .metadata = metadata,
        .encoding = BOW__ENCODING_GZIP,
    };

    int rc = client->ops->open(client, &head, &pair->client, ret_key);
    if (rc < 0) {
        return rc;
    }
    rc = client->ops->begin(client, *ret_key);
    return rc < 0 ? rc : say_some(&pair->client, *ret_key);
}

/* The call with `key`, if it is there yet, has an answer that ends behind what waits. */
static void answer(struct pair *pair, uint64_t key, bool plain)
{
    struct bow__session *server = pair->server.session;
    struct bow_status status = {.code = BOW_ABORTED, .message = "so", .metadata = metadata};
    static const struct bow_metadata none = BOW_METADATA_INIT;

    int rc = server->ops->respond(server, key, plain ? &none : &metadata, BOW__ENCODING_ZSTD);
    if (rc == 0 && say_some(&pair->server, key) == 0) {
        (void)server->ops->finish(server, key, &status);
    } else if (rc == -ENOMEM) {
        (void)server->ops->finish(server, key, &status);
    }
}

static bool is_whole(const struct pair *pair)
{
    return pair->client.n_statuses == 2 && pair->client.code == BOW_ABORTED &&
           pair->client.n_messages == 6 && pair->server.n_messages == 6 &&
           pair->client.n_headers == 1 && strcmp(pair->client.metadata, "k=v ") == 0;
}

static int run(struct pair *pair)
{
    uint64_t keys[2] = {0, 0};
    int rc = pair_open(pair);

    for (size_t i = 0; i < 2 && rc == 0; i++) {
        rc = begin(pair, &keys[i]);
    }
    if (rc < 0) {
        return rc;
    }
    pair_run(pair);
    answer(pair, keys[0], false);
    answer(pair, keys[1], true);
    (void)pair->client.session->ops->half_close(pair->client.session, keys[0]);
    pair_run(pair);
    if (is_whole(pair)) {
        return 0;
    }
    struct bow_status lost = {.code = BOW_UNAVAILABLE, .message = "lost"};
    (pair->client.session->ops->fail)(pair->client.session, &lost);
    (pair->server.session->ops->fail)(pair->server.session, &lost);
    assert_int_equal(pair->client.n_statuses, 2);
    return -ENOMEM;
}

static int scenario(struct bow_context *context, void *user)
{
    struct pair pair;

    (void)user;
    pair_init_in(&pair, context);
    pair.client.on_message = consume;
    pair.server.on_message = consume;
    int rc = run(&pair);
    assert_true(pair.client.rc == 0 || pair.client.rc == -ENOMEM);
    assert_true(pair.server.rc == 0 || pair.server.rc == -ENOMEM);
    pair_fini(&pair);
    return rc;
}

static void test_native_shortage_on_streams_leaks_nothing(void **state)
{
    (void)state;
    assert_true(test_alloc_fail_each(NULL, scenario, NULL) > 15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_native_shortage_on_streams_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
