/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A whole stream, server and client on one loop that the test drives, under each failing
 * allocation: it ends once, with a status, and nothing is left.
 */

#include "both_ends.h"

#include <bowline/payload.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

struct pair {
    struct both_ends ends;
    struct calls__echo__stream__stream stream;
    int n_messages;
    int n_closed;
    int n_after_closed;
    enum bow_code code;
};

/* The server says everything again. */

static void say_again(struct calls__echo__stream__call call, const Calls__Request *request,
                      void *user)
{
    Calls__Reply reply = CALLS__REPLY__INIT;

    (void)user;
    reply.number = request->number;
    reply.payload = request->payload;
    if (calls__echo__stream__send(call, &reply) < 0) {
        (void)bow_call_fail(call.call, BOW_RESOURCE_EXHAUSTED, "no memory");
    }
}

static void end(struct calls__echo__stream__call call, void *user)
{
    (void)user;
    (void)!bow_call_add_trailing(call.call, "said", (struct bow_slice){(const uint8_t *)"all", 3});
    (void)calls__echo__stream__finish(call);
}

static void stream(struct calls__echo__stream__call call, void *user)
{
    static const struct calls__echo__stream__call_events events = {
        .on_message = say_again,
        .on_half_close = end,
    };

    (void)calls__echo__stream__listen(call, &events, user);
}

static const struct calls__echo__handlers handlers = {.stream = stream};

static int open_pair(struct pair *pair, struct bow_context *context)
{
    memset(pair, 0, sizeof(*pair));
    return both_ends_open(&pair->ends, context, &handlers, NULL);
}

/* The client stops at its first message until the next turn, so that the others wait. */

static void on_message(struct calls__echo__stream__stream s, const Calls__Reply *message,
                       void *user)
{
    struct pair *pair = user;

    (void)message;
    pair->n_after_closed += pair->n_closed;
    if (pair->n_messages++ == 0) {
        bow_stream_pause(s.stream);
    }
}

static void on_closed(struct calls__echo__stream__stream s, struct bow_result *result, void *user)
{
    struct pair *pair = user;

    (void)s;
    pair->n_closed++;
    pair->code = result->status.code;
}

static const struct calls__echo__stream__stream_events events = {
    .on_message = on_message,
    .on_closed = on_closed,
};

static int send_sized(struct pair *pair, size_t n_payload)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    request.payload.len = n_payload;
    request.payload.data = calloc(1, n_payload + 1);
    int rc = calls__echo__stream__stream_send(pair->stream, &request);
    free(request.payload.data);
    return rc;
}

static int send_payload(struct pair *pair, struct bow_context *context)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_payload *payload = NULL;

    request.number = 9;
    int rc = bow_payload_new(context, &request.base, &payload);
    if (rc == 0) {
        rc = bow_stream_send_payload(pair->stream.stream, payload);
    }
    bow_payload_unref(payload);
    return rc;
}

static int open_stream(struct pair *pair, struct bow_context *context)
{
    struct bow_metadata_entry entry = {"who", {(const uint8_t *)"test", 4}};
    struct bow_metadata metadata = {&entry, 1};
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;

    options.metadata = &metadata;
    int rc = calls__echo__stream__open(pair->ends.client, &options, &events, pair, &pair->stream);
    if (rc < 0) {
        return rc;
    }
    rc = send_sized(pair, 0); /* before the connection */
    rc = rc == 0 ? send_payload(pair, context) : rc;
    return rc == 0 ? send_sized(pair, 30000) : rc;
}

static void drive(struct pair *pair)
{
    assert_int_equal(bow_loop_run_once(pair->ends.loop, BOW_NEVER), 0);
    bow_stream_resume(pair->stream.stream);
}

static int run_stream(struct bow_context *context, void *user)
{
    struct pair pair;

    (void)user;
    int rc = open_pair(&pair, context);
    rc = rc == 0 ? open_stream(&pair, context) : rc;
    while (rc == 0 && pair.n_messages < 3 && pair.n_closed == 0) {
        drive(&pair);
    }
    if (rc == 0 && pair.n_closed == 0) { /* in place, then as a block */
        rc = send_sized(&pair, 10);
        rc = rc == 0 ? send_sized(&pair, 100000) : rc;
    }
    if (pair.stream.stream != NULL) {
        (void)bow_stream_half_close(pair.stream.stream);
        while (pair.n_closed == 0) {
            drive(&pair);
        }
        bow_stream_unref(pair.stream.stream);
        rc = pair.code == BOW_OK && rc == 0 && pair.n_messages == 5 ? 0 : -ENOMEM;
    }
    both_ends_close(&pair.ends);
    assert_int_equal(pair.n_after_closed, 0);
    assert_true(pair.n_closed <= 1);
    return rc;
}

static void test_memory_of_a_stream_may_fail_anywhere(void **state)
{
    (void)state;
    assert_true(test_alloc_fail_each(NULL, run_stream, NULL) > 30);
}

static void open_and_end(struct pair *pair)
{
    int n = pair->n_closed;

    assert_int_equal(
        calls__echo__stream__open(pair->ends.client, NULL, &events, pair, &pair->stream), 0);
    assert_int_equal(bow_stream_half_close(pair->stream.stream), 0);
    bow_stream_unref(pair->stream.stream);
    while (pair->n_closed == n) {
        assert_int_equal(bow_loop_run_once(pair->ends.loop, BOW_NEVER), 0);
    }
}

/* Small messages on the loop are encoded in place. */
static void test_memory_small_messages_take_none(void **state)
{
    enum { N = 1000 };
    struct test_alloc alloc;
    struct pair pair;

    (void)state;
    if (calls_is_grpc()) {
        skip(); /* nghttp2 allocates for each */
    }
    test_alloc_init(&alloc);
    struct bow_context *context = test_context_new(&alloc);
    assert_int_equal(open_pair(&pair, context), 0);
    open_and_end(&pair);
    pair.n_messages = 1;
    assert_int_equal(
        calls__echo__stream__open(pair.ends.client, NULL, &events, &pair, &pair.stream), 0);
    size_t before = 0;
    for (int i = 0; i < 2 * N; i++) {
        before = i == N ? atomic_load(&alloc.n_calls) : before;
        assert_int_equal(send_sized(&pair, 16), 0);
        while (pair.n_messages < i + 2) {
            assert_int_equal(bow_loop_run_once(pair.ends.loop, BOW_NEVER), 0);
        }
    }
    assert_true(atomic_load(&alloc.n_calls) - before <= 4);
    bow_stream_unref(pair.stream.stream);
    both_ends_close(&pair.ends);
    test_context_end(context, &alloc);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_of_a_stream_may_fail_anywhere),
        cmocka_unit_test(test_memory_small_messages_take_none),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
