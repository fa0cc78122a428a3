/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls whose messages are compressed: every kind, both ways, mixed with those that are not, and
 * what is refused.
 */

#include "packed_fixture.h"
#include "rpc/core/compression/encodings.h"

#include <bowline/stream.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define IN_ALL 12u /* messages of a stream */

static void expect_packed(struct packed *p, bool request, bool reply)
{
    uint64_t in = 0;
    uint64_t out = 0;

    packed_look(p, &in, &out);
    assert_int_equal(in < LARGE / 10, request);
    assert_int_equal(out < LARGE / 10, reply);
    assert_true(in > 0 && out > 0);
}

static void call_one(struct packed *p, Packed__Blob *request,
                     const struct bow_call_options *options)
{
    struct bow_result result = BOW_RESULT_INIT;

    const Packed__Blob *reply = packed__packed__one__call(p->client, request, options, &result);
    assert_string_equal(result.status.message, "");
    packed_expect(p, reply, request->number);
    bow_result_fini(&result);
}

/* Unary calls */

static void test_packed_unary_is_compressed_both_ways(void **state)
{
    struct packed *p = *state;
    Packed__Blob request;

    packed_fill(p, &request, 0);
    call_one(p, &request, NULL);
    expect_packed(p, true, true);
}

static void test_packed_reply_of_another_thread_is_compressed(void **state)
{
    struct packed *p = *state;
    Packed__Blob request;

    packed_fill(p, &request, 0);
    request.elsewhere = true;
    call_one(p, &request, NULL);
    expect_packed(p, true, true);
}

static void test_packed_is_off_by_default(void **state)
{
    struct packed *p = *state;
    Packed__Blob request;

    packed_start(p);
    packed_fill(p, &request, 0);
    call_one(p, &request, NULL);
    expect_packed(p, false, false);
}

static void test_packed_call_compresses_for_itself(void **state)
{
    struct packed *p = *state;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Packed__Blob request;

    packed_start(p);
    packed_fill(p, &request, 0);
    request.wish = PACKED__WISH__COMPRESS;
    options.compression = BOW_COMPRESSION_AUTO;
    call_one(p, &request, &options);
    expect_packed(p, true, true);
}

static void test_packed_call_refrains_for_itself(void **state)
{
    struct packed *p = *state;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Packed__Blob request;

    packed_fill(p, &request, 0);
    request.wish = PACKED__WISH__PLAIN;
    options.compression = BOW_COMPRESSION_OFF;
    call_one(p, &request, &options);
    expect_packed(p, false, false);
}

static void test_packed_noise_goes_as_it_is(void **state)
{
    struct packed *p = *state;
    Packed__Blob request;

    packed_fill(p, &request, 3);
    call_one(p, &request, NULL);
    request.elsewhere = true;
    call_one(p, &request, NULL);
}

static void test_packed_threshold_is_kept(void **state)
{
    struct packed *p = *state;
    Packed__Blob request;
    uint64_t in = 0;
    uint64_t out = 0;

    p->server.compression = BOW_COMPRESSION_AUTO;
    p->options.compression = BOW_COMPRESSION_AUTO;
    p->server.compression_threshold_bytes = SMALL;
    packed_start(p);
    packed_fill(p, &request, 2);
    call_one(p, &request, NULL);
    packed_look(p, &in, &out);
    assert_true(in > SMALL); /* the client's is higher */
    assert_true(out < SMALL / 2);
}

static void test_packed_threshold_of_the_server_is_its_own(void **state)
{
    struct packed *p = *state;
    Packed__Blob request;
    uint64_t in = 0;
    uint64_t out = 0;

    p->server.compression = BOW_COMPRESSION_AUTO;
    p->options.compression = BOW_COMPRESSION_AUTO;
    p->options.compression_threshold_bytes = SMALL;
    packed_start(p);
    packed_fill(p, &request, 2);
    call_one(p, &request, NULL);
    packed_look(p, &in, &out);
    assert_true(in < SMALL / 2);
    assert_true(out > SMALL);
}

static void test_packed_f27_empty_messages_stay_messages(void **state)
{
    struct packed *p = *state;
    Packed__Blob request = PACKED__BLOB__INIT;
    struct packed__packed__both__stream stream;
    struct bow_result result = BOW_RESULT_INIT;
    const Packed__Blob *message = NULL;

    p->server.compression = BOW_COMPRESSION_AUTO;
    p->options.compression = BOW_COMPRESSION_AUTO;
    p->server.compression_threshold_bytes = 1;
    p->options.compression_threshold_bytes = 1;
    packed_start(p);
    assert_non_null(packed__packed__one__call(p->client, &request, NULL, &result));
    bow_result_fini(&result);
    assert_int_equal(packed__packed__both__open(p->client, NULL, NULL, NULL, &stream), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(packed__packed__both__stream_write(stream, &request, PATIENCE), 0);
        assert_int_equal(packed__packed__both__stream_receive(stream, PATIENCE, &message), 1);
        assert_int_equal(message->body.len, 0);
    }
    packed__packed__both__stream_finish(stream, &result);
    assert_int_equal(result.status.code, BOW_OK);
    bow_result_fini(&result);
}

/* Streams: all sizes in one */

static void expect_streamed(struct packed *p, bool many_in, bool many_out)
{
    uint64_t in = 0;
    uint64_t out = 0;
    uint64_t noise = IN_ALL / 4 * LARGE;
    uint64_t plain = IN_ALL / 4 * (2 * LARGE + SMALL);

    packed_look(p, &in, &out);
    if (many_in) {
        assert_in_range(in, noise, plain - 2 * LARGE);
    }
    if (many_out) {
        assert_in_range(out, noise, plain - 2 * LARGE);
    }
}

static void test_packed_client_stream_arrives(void **state)
{
    struct packed *p = *state;
    struct packed__packed__up__stream stream;
    struct bow_result result = BOW_RESULT_INIT;
    Packed__Blob blob;

    assert_int_equal(packed__packed__up__open(p->client, NULL, NULL, NULL, &stream), 0);
    for (uint64_t i = 0; i < IN_ALL; i++) {
        packed_fill(p, &blob, i);
        assert_int_equal(packed__packed__up__stream_write(stream, &blob, PATIENCE), 0);
    }
    const Packed__Blob *reply = packed__packed__up__stream_finish(stream, &result);
    packed_expect(p, reply, IN_ALL);
    bow_result_fini(&result);
    expect_streamed(p, true, false);
}

static void receive_all(struct packed *p, bool elsewhere)
{
    struct packed__packed__down__stream stream;
    struct bow_result result = BOW_RESULT_INIT;
    Packed__Blob request = PACKED__BLOB__INIT;
    const Packed__Blob *message = NULL;

    request.count = elsewhere ? IN_ALL : 8; /* more would have to wait for on_writable */
    request.elsewhere = elsewhere;
    assert_int_equal(packed__packed__down__open(p->client, &request, NULL, NULL, NULL, &stream), 0);
    for (uint64_t i = 0; i < request.count; i++) {
        assert_int_equal(packed__packed__down__stream_receive(stream, PATIENCE, &message), 1);
        packed_expect(p, message, i);
    }
    assert_int_equal(packed__packed__down__stream_receive(stream, PATIENCE, &message), 0);
    packed__packed__down__stream_finish(stream, &result);
    assert_int_equal(result.status.code, BOW_OK);
    bow_result_fini(&result);
}

static void test_packed_server_stream_of_another_thread_arrives(void **state)
{
    receive_all(*state, true);
    expect_streamed(*state, false, true);
}

static void test_packed_both_streams_arrive(void **state)
{
    struct packed *p = *state;
    struct packed__packed__both__stream stream;
    struct bow_result result = BOW_RESULT_INIT;
    const Packed__Blob *message = NULL;
    Packed__Blob blob;

    assert_int_equal(packed__packed__both__open(p->client, NULL, NULL, NULL, &stream), 0);
    for (uint64_t i = 0; i < IN_ALL; i++) {
        packed_fill(p, &blob, i);
        assert_int_equal(packed__packed__both__stream_write(stream, &blob, PATIENCE), 0);
        assert_int_equal(packed__packed__both__stream_receive(stream, PATIENCE, &message), 1);
        packed_expect(p, message, i);
    }
    packed__packed__both__stream_finish(stream, &result);
    assert_int_equal(result.status.code, BOW_OK);
    bow_result_fini(&result);
    expect_streamed(p, true, true);
}

/* Streams with events, on a loop */

static int setup_on_loop(void **state)
{
    packed_setup(state);
    struct packed *p = *state;
    p->server.compression = BOW_COMPRESSION_AUTO;
    p->options.compression = BOW_COMPRESSION_AUTO;
    p->options.loop = p->t->loop;
    packed_start(p);
    return 0;
}

static void count(struct packed *p, int *counter)
{
    pthread_mutex_lock(&p->t->lock);
    (*counter)++;
    pthread_cond_broadcast(&p->t->changed);
    pthread_mutex_unlock(&p->t->lock);
}

/* The next one is sent from here. */
static void on_both_message(struct packed__packed__both__stream stream, const Packed__Blob *message,
                            void *user)
{
    struct packed *p = user;
    Packed__Blob blob;

    packed_expect(p, message, (uint64_t)p->n_messages);
    packed_fill(p, &blob, message->number + 1);
    if (message->number + 1 < IN_ALL) {
        assert_int_equal(packed__packed__both__stream_send(stream, &blob), 0);
    } else {
        assert_int_equal(bow_stream_half_close(stream.stream), 0);
    }
    count(p, &p->n_messages);
}

static void on_both_closed(struct packed__packed__both__stream stream, struct bow_result *result,
                           void *user)
{
    struct packed *p = user;

    (void)stream;
    assert_int_equal(result->status.code, BOW_OK);
    count(p, &p->n_closed);
}

static void test_packed_streams_with_events_arrive(void **state)
{
    static const struct packed__packed__both__stream_events events = {.on_message = on_both_message,
                                                                      .on_closed = on_both_closed};
    struct packed *p = *state;
    struct packed__packed__both__stream stream;
    Packed__Blob blob;

    assert_int_equal(packed__packed__both__open(p->client, NULL, &events, p, &stream), 0);
    packed_fill(p, &blob, 0);
    assert_int_equal(packed__packed__both__stream_send(stream, &blob), 0);
    calls_wait(p->t, &p->n_closed, 1);
    bow_stream_unref(stream.stream);
    assert_int_equal(p->n_messages, IN_ALL);
    expect_streamed(p, true, true);
}

static void on_down_message(struct packed__packed__down__stream stream, const Packed__Blob *message,
                            void *user)
{
    struct packed *p = user;

    packed_expect(p, message, (uint64_t)p->n_messages);
    if (p->n_messages == 0) {
        bow_stream_pause(stream.stream);
    }
    count(p, &p->n_messages);
}

static void on_down_closed(struct packed__packed__down__stream stream, struct bow_result *result,
                           void *user)
{
    struct packed *p = user;

    (void)stream;
    assert_int_equal(result->status.code, BOW_OK);
    count(p, &p->n_closed);
}

static int resume(void *stream)
{
    bow_stream_resume(stream);
    return 0;
}

/* Compressed while they wait. */
static void test_packed_messages_that_waited_arrive(void **state)
{
    static const struct packed__packed__down__stream_events events = {.on_message = on_down_message,
                                                                      .on_closed = on_down_closed};
    struct packed *p = *state;
    struct packed__packed__down__stream stream;
    Packed__Blob request = PACKED__BLOB__INIT;

    request.count = 3;
    assert_int_equal(packed__packed__down__open(p->client, &request, NULL, &events, p, &stream), 0);
    calls_wait(p->t, &p->n_messages, 1);
    CALLS_WAIT_METRIC(p->t, calls_ended, 2);
    assert_int_equal(bow_loop_execute(p->t->loop, "resume", resume, stream.stream), 0);
    calls_wait(p->t, &p->n_closed, 1);
    bow_stream_unref(stream.stream);
    assert_int_equal(p->n_messages, 3);
}

/* Limits */

static void expect_refused(struct packed *p, const Packed__Blob *request)
{
    struct bow_result result = BOW_RESULT_INIT;

    assert_null(packed__packed__one__call(p->client, request, NULL, &result));
    assert_int_equal(result.status.code, BOW_RESOURCE_EXHAUSTED);
    assert_non_null(
        strstr(result.status.message, "inflates to more than max_message_bytes (9000)"));
    bow_result_fini(&result);
    /* Others are served. */
    Packed__Blob next;
    packed_fill(p, &next, 2);
    call_one(p, &next, NULL);
    struct bow_metrics metrics = BOW_METRICS_INIT;
    assert_int_equal(bow_client_metrics(p->client, &metrics), 0);
    assert_int_equal(metrics.connects_failed + metrics.reconnects, 0);
}

static void test_packed_bomb_at_the_server_is_refused(void **state)
{
    struct packed *p = *state;
    Packed__Blob request;

    p->server.max_message_bytes = 9000;
    p->options.compression = BOW_COMPRESSION_AUTO;
    packed_start(p);
    packed_fill(p, &request, 0);
    expect_refused(p, &request);
    CALLS_WAIT_METRIC(p->t, undecodable_messages, 1);
}

static void test_packed_bomb_at_the_client_is_refused(void **state)
{
    struct packed *p = *state;
    Packed__Blob request = PACKED__BLOB__INIT;
    struct bow_metrics metrics = BOW_METRICS_INIT;

    p->options.max_message_bytes = 9000;
    p->server.compression = BOW_COMPRESSION_AUTO;
    packed_start(p);
    request.reply_bytes = LARGE;
    expect_refused(p, &request);
    assert_int_equal(bow_client_metrics(p->client, &metrics), 0);
    assert_int_equal(metrics.undecodable_messages, 1);
}

static void test_packed_bomb_in_a_stream_ends_it(void **state)
{
    struct packed *p = *state;
    struct packed__packed__both__stream stream;
    struct bow_result result = BOW_RESULT_INIT;
    const Packed__Blob *message = NULL;
    Packed__Blob blob;

    p->options.max_message_bytes = 9000;
    p->options.compression = BOW_COMPRESSION_AUTO;
    p->server.compression = BOW_COMPRESSION_AUTO;
    packed_start(p);
    assert_int_equal(packed__packed__both__open(p->client, NULL, NULL, NULL, &stream), 0);
    packed_fill(p, &blob, 0);
    assert_int_equal(packed__packed__both__stream_write(stream, &blob, PATIENCE), 0);
    assert_int_equal(packed__packed__both__stream_receive(stream, PATIENCE, &message), 0);
    packed__packed__both__stream_finish(stream, &result);
    assert_int_equal(result.status.code, BOW_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(result.status.message, "max_message_bytes (9000)"));
    bow_result_fini(&result);
}

#define PACKED(name) cmocka_unit_test_setup_teardown(name, packed_setup_on, packed_teardown)
#define PLAIN(name) cmocka_unit_test_setup_teardown(name, packed_setup, packed_teardown)

#define LOOP(name) cmocka_unit_test_setup_teardown(name, setup_on_loop, packed_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        PACKED(test_packed_unary_is_compressed_both_ways),
        PACKED(test_packed_reply_of_another_thread_is_compressed),
        PLAIN(test_packed_is_off_by_default),
        PLAIN(test_packed_call_compresses_for_itself),
        PACKED(test_packed_call_refrains_for_itself),
        PACKED(test_packed_noise_goes_as_it_is),
        PLAIN(test_packed_threshold_is_kept),
        PLAIN(test_packed_threshold_of_the_server_is_its_own),
        PLAIN(test_packed_f27_empty_messages_stay_messages),
        PACKED(test_packed_client_stream_arrives),
        PACKED(test_packed_server_stream_of_another_thread_arrives),
        PACKED(test_packed_both_streams_arrive),
        LOOP(test_packed_streams_with_events_arrive),
        LOOP(test_packed_messages_that_waited_arrive),
        PLAIN(test_packed_bomb_at_the_server_is_refused),
        PLAIN(test_packed_bomb_at_the_client_is_refused),
        PLAIN(test_packed_bomb_in_a_stream_ends_it),
    };

    calls_choose(argc, argv);
    if (bow__encodings_built() == 1u << BOW__ENCODING_IDENTITY) {
        puts("skipped: this build has no encoding");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
