/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Interceptors on both sides of calls that are compressed, handled on an executor, received in the
 * blocking style, or sent twice.
 */

#include "intercept_spy.h"
#include "packed_fixture.h"
#include "rpc/core/compression/encodings.h"

#include <bowline/executor.h>
#include <bowline/stream.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct spies *ours;   /* the client's */
static struct spies *theirs; /* the server's */
static struct bow_executor *executor;
static int n_compressed; /* messages that the client's first spy saw so */

static void intercept(struct packed *p)
{
    spies_watch_server(theirs, p->t->server, 2);
}

static int setup(void **state)
{
    packed_setup(state);
    struct packed *p = *state;
    ours = spies_new(p->t);
    theirs = spies_new(p->t);
    n_compressed = 0;
    p->options.interceptors = ours->pointers;
    p->options.n_interceptors = 2;
    p->before_start = intercept;
    return 0;
}

static int teardown(void **state)
{
    struct packed *p = *state;

    bow_client_free(p->client);
    p->client = NULL;
    calls_kill_server(p->t);
    spies_free(ours, 1);
    spies_free(theirs, 1);
    executor = bow_executor_unref(executor);
    return packed_teardown(state);
}

/* Started; the fixture's first call has been seen, and is forgotten. */
static void start(struct packed *p, bool compressed)
{
    p->server.compression = compressed ? BOW_COMPRESSION_AUTO : BOW_COMPRESSION_OFF;
    p->options.compression = p->server.compression;
    packed_start(p);
    spies_wait_ends(theirs, 0, 1);
    pthread_mutex_lock(&p->t->lock);
    ours->log[0] = '\0';
    theirs->log[0] = '\0';
    pthread_mutex_unlock(&p->t->lock);
}

static void call_one(struct packed *p, const Packed__Blob *request)
{
    struct bow_result result = BOW_RESULT_INIT;

    assert_non_null(packed__packed__one__call(p->client, request, NULL, &result));
    bow_result_fini(&result);
}

/* What the two sides saw of the last call is the same, and is of plain messages. */
static void expect_same(int n_ends, uint64_t at_least_sent, uint64_t at_least_received)
{
    spies_wait_ends(theirs, 0, n_ends);
    const struct bow_intercepted_end *mine = &ours->spies[0].end;
    const struct bow_intercepted_end *other = &theirs->spies[0].end;
    assert_int_equal(mine->messages_sent, other->messages_received);
    assert_int_equal(mine->messages_received, other->messages_sent);
    assert_int_equal(mine->bytes_sent, other->bytes_received);
    assert_true(mine->bytes_sent >= at_least_sent);
    assert_true(other->bytes_sent >= at_least_received);
}

static void test_mix_messages_are_plain_where_calls_are_compressed(void **state)
{
    struct packed *p = *state;
    Packed__Blob request = PACKED__BLOB__INIT;
    uint64_t in = 0;
    uint64_t out = 0;

    start(p, true);
    packed_fill(p, &request, 0);
    call_one(p, &request);
    packed_look(p, &in, &out);
    assert_true(in < LARGE / 2 && out < LARGE / 2);
    expect_same(2, LARGE, LARGE);
    assert_int_equal(ours->spies[0].end.bytes_received, theirs->spies[0].end.bytes_sent);
    assert_memory_equal(ours->log, "a+ b+ a>", 8);
    assert_memory_equal(theirs->log, "a+ b+ a<", 8);
}

static void count_compressed(struct spy *spy, struct bow_interception *at,
                             const struct bow_intercepted_message *message)
{
    (void)spy;
    (void)at;
    n_compressed += message->compressed;
    assert_false(message->compressed && message->sent);
}

/* It inflates on the thread that receives, where no interceptor is called. */
static void test_mix_blocking_stream_shows_messages_as_they_came(void **state)
{
    struct packed *p = *state;
    struct packed__packed__down__stream stream;
    struct bow_result result = BOW_RESULT_INIT;
    Packed__Blob request = PACKED__BLOB__INIT;
    const Packed__Blob *message = NULL;

    ours->spies[0].in_message = count_compressed;
    start(p, true);
    request.count = 4;
    assert_int_equal(packed__packed__down__open(p->client, &request, NULL, NULL, NULL, &stream), 0);
    for (uint64_t i = 0; i < 4; i++) {
        assert_int_equal(packed__packed__down__stream_receive(stream, PATIENCE, &message), 1);
        packed_expect(p, message, i);
    }
    assert_int_equal(packed__packed__down__stream_receive(stream, PATIENCE, &message), 0);
    assert_int_equal(packed__packed__down__stream_finish(stream, &result), 0);
    assert_int_equal(result.status.code, BOW_OK);
    bow_result_fini(&result);
    assert_true(n_compressed > 0);
    expect_same(2, 1, 2 * LARGE);
    assert_true(ours->spies[0].end.bytes_received < theirs->spies[0].end.bytes_sent);
}

/* The spies assert for themselves that they are on the call's loop. */
static void test_mix_hooks_stay_on_the_loop_when_handlers_are_on_an_executor(void **state)
{
    struct packed *p = *state;
    struct bow_executor_options options = BOW_EXECUTOR_OPTIONS_INIT;
    Packed__Blob request = PACKED__BLOB__INIT;

    options.n_threads = 2;
    assert_int_equal(bow_executor_new(p->t->context, &options, &executor), 0);
    p->server.handlers_on = executor;
    start(p, false);
    request.number = 5;
    call_one(p, &request);
    expect_same(2, 2, 2);
    spies_expect_log(theirs, "a+ b+ a<2 b<2 b>2 a>2 b-OK a-OK ");
    spies_expect_log(ours, "a+ b+ a>2 b>2 b<2 a<2 b-OK a-OK ");
}

static void test_mix_hooks_stay_on_the_loop_when_another_thread_answers(void **state)
{
    struct packed *p = *state;
    Packed__Blob request = PACKED__BLOB__INIT;

    start(p, false);
    request.number = 5;
    request.elsewhere = true;
    call_one(p, &request);
    expect_same(2, 2, 2);
    spies_expect_log(theirs, "a+ b+ a<4 b<4 b>2 a>2 b-OK a-OK ");
}

/* The first time it is refused as not processed, which the client tries again by itself. */
static void refuse_once(struct spy *spy, struct bow_interception *at)
{
    struct bow_status status = BOW_STATUS_OK_INIT;

    if (spy->rc++ == 1) { /* the fixture's own call is the one before */
        status.code = BOW_UNAVAILABLE;
        status.message = "another time";
        status.not_processed = true;
        assert_int_equal(bow_interception_refuse_status(at, &status), 0);
    }
}

static void test_mix_second_try_passes_the_clients_interceptors_once(void **state)
{
    struct packed *p = *state;
    Packed__Blob request = PACKED__BLOB__INIT;

    theirs->spies[0].in_start = refuse_once;
    start(p, false);
    request.number = 5;
    call_one(p, &request);
    spies_wait_ends(theirs, 0, 3);
    spies_expect_log(ours, "a+ b+ a>2 b>2 b<2 a<2 b-OK a-OK ");
    spies_expect_log(theirs, "a+ a-UNAVAILABLE a+ b+ a<2 b<2 b>2 a>2 b-OK a-OK ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_mix_messages_are_plain_where_calls_are_compressed),
        TEST(test_mix_blocking_stream_shows_messages_as_they_came),
        TEST(test_mix_hooks_stay_on_the_loop_when_handlers_are_on_an_executor),
        TEST(test_mix_hooks_stay_on_the_loop_when_another_thread_answers),
        TEST(test_mix_second_try_passes_the_clients_interceptors_once),
    };

    calls_choose(argc, argv);
    if (bow__encodings_built() == 1u << BOW__ENCODING_IDENTITY) {
        puts("skipped: this build has no encoding");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
