/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which message travels compressed: said by who sends, one by one, and seen by who receives, also
 * of messages that waited; and the first requests of a connection.
 */

#include "packed_fixture.h"
#include "rpc/core/compression/encodings.h"

#include <bowline/executor.h>
#include <bowline/stream.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void both_compress(struct packed *p)
{
    p->server.compression = BOW_COMPRESSION_AUTO;
    p->options.compression = BOW_COMPRESSION_AUTO;
}

/* Unary calls */

static void expect_seen(struct bow_client *client, const Packed__Blob *request,
                        enum bow_compression compression, bool request_was, bool reply_was)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct bow_result result = BOW_RESULT_INIT;

    options.compression = compression;
    assert_false(bow_result_reply_was_compressed(&result));
    const Packed__Blob *reply = packed__packed__one__call(client, request, &options, &result);
    assert_string_equal(result.status.message, "");
    assert_int_equal(reply->came_compressed, request_was);
    assert_int_equal(bow_result_reply_was_compressed(&result), reply_was);
    bow_result_fini(&result);
    assert_false(bow_result_reply_was_compressed(&result));
}

static void test_packed_each_unary_sees_how_its_messages_came(void **state)
{
    struct packed *p = *state;
    Packed__Blob request;

    both_compress(p);
    packed_start(p);
    for (int elsewhere = 0; elsewhere < 2; elsewhere++) {
        packed_fill(p, &request, 0);
        request.elsewhere = elsewhere != 0;
        expect_seen(p->client, &request, BOW_COMPRESSION_DEFAULT, true, true);
        expect_seen(p->client, &request, BOW_COMPRESSION_OFF, false, true);
        request.wish = PACKED__WISH__PLAIN;
        expect_seen(p->client, &request, BOW_COMPRESSION_DEFAULT, true, false);
        packed_fill(p, &request, 3); /* what does not shrink */
        request.elsewhere = elsewhere != 0;
        request.wish = PACKED__WISH__COMPRESS;
        expect_seen(p->client, &request, BOW_COMPRESSION_ON, false, false);
    }
}

/* The threshold is for what nobody has asked for. */
static void test_packed_each_small_one_is_compressed_when_asked_for(void **state)
{
    struct packed *p = *state;
    Packed__Blob request;

    packed_start(p);
    packed_fill(p, &request, 2);
    expect_seen(p->client, &request, BOW_COMPRESSION_AUTO, false, false);
    request.wish = PACKED__WISH__COMPRESS;
    expect_seen(p->client, &request, BOW_COMPRESSION_ON, true, true);
    request.elsewhere = true;
    expect_seen(p->client, &request, BOW_COMPRESSION_ON, true, true);
}

static void test_packed_each_sides_may_always_compress(void **state)
{
    struct packed *p = *state;
    Packed__Blob request;

    p->server.compression = BOW_COMPRESSION_ON;
    p->options.compression = BOW_COMPRESSION_ON;
    packed_start(p);
    packed_fill(p, &request, 2);
    expect_seen(p->client, &request, BOW_COMPRESSION_DEFAULT, true, true);
}

static void test_packed_each_unknown_compression_is_refused(void **state)
{
    struct packed *p = *state;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct bow_result result = BOW_RESULT_INIT;
    Packed__Blob request;

    packed_start(p);
    packed_fill(p, &request, 0);
    options.compression = (enum bow_compression)(BOW_COMPRESSION_ON + 1);
    assert_null(packed__packed__one__call(p->client, &request, &options, &result));
    assert_non_null(strstr(result.status.message, "options.compression"));
    bow_result_fini(&result);
}

/* The first request of a connection */

static void new_client(struct packed *p, const char *assumed)
{
    bow_client_free(p->client);
    p->client = NULL;
    p->options.assumed_encodings = assumed;
    assert_int_equal(bow_client_new(&p->options, &p->client), 0);
}

static void test_packed_each_first_request_goes_as_it_is(void **state)
{
    struct packed *p = *state;
    Packed__Blob request;

    both_compress(p);
    packed_start(p);
    new_client(p, NULL);
    packed_fill(p, &request, 0);
    expect_seen(p->client, &request, BOW_COMPRESSION_DEFAULT, false, true);
    expect_seen(p->client, &request, BOW_COMPRESSION_DEFAULT, true, true);
}

static void test_packed_each_first_request_is_compressed_as_assumed(void **state)
{
    struct packed *p = *state;
    struct packed__packed__up__stream stream;
    struct bow_result result = BOW_RESULT_INIT;
    struct bow__text all;
    Packed__Blob request;
    Packed__Blob blob;

    both_compress(p);
    packed_start(p);
    bow__text_clear(&all);
    bow__encodings_describe(&all);
    char list[BOW__TEXT_BYTES];
    snprintf(list, sizeof(list), "%s", all.bytes);
    new_client(p, list);
    memset(list, 'x', sizeof(list)); /* it is copied */
    packed_fill(p, &request, 0);
    expect_seen(p->client, &request, BOW_COMPRESSION_DEFAULT, true, true);
    new_client(p, all.bytes);
    assert_int_equal(packed__packed__up__open(p->client, NULL, NULL, NULL, &stream), 0);
    packed_fill(p, &blob, 0);
    assert_int_equal(packed__packed__up__stream_write(stream, &blob, PATIENCE), 0);
    const Packed__Blob *reply = packed__packed__up__stream_finish(stream, &result);
    packed_expect(p, reply, 1);
    assert_false(reply->came_compressed); /* as it should be */
    bow_result_fini(&result);
}

static void test_packed_each_assumed_encodings_are_checked(void **state)
{
    struct packed *p = *state;
    struct bow_transport_error error;
    struct bow_client *client = NULL;

    packed_start(p);
    p->options.error = &error;
    p->options.assumed_encodings = "identity, brotli";
    assert_int_equal(bow_client_new(&p->options, &client), -EINVAL);
    assert_non_null(strstr(error.text, "assumed_encodings names \"brotli\""));
    assert_non_null(strstr(error.text, "identity"));
    p->options.assumed_encodings = "";
    assert_int_equal(bow_client_new(&p->options, &client), 0);
    bow_client_free(client);
}

/* Streams */

static void write_mixed(struct packed *p, struct packed__packed__up__stream stream, uint64_t number)
{
    struct bow_payload *payload = NULL;
    Packed__Blob blob;
    int rc = -EAGAIN;

    packed_fill(p, &blob, number);
    assert_int_equal(bow_stream_compress(stream.stream, packed_asks(number)), 0);
    if (number / 4 % 2 == 0) {
        assert_int_equal(packed__packed__up__stream_write(stream, &blob, PATIENCE), 0);
        return;
    }
    assert_int_equal(bow_payload_new(p->t->context, &blob.base, &payload), 0);
    while (rc == -EAGAIN) {
        rc = bow_stream_send_payload(stream.stream, payload);
        if (rc == -EAGAIN && p->options.loop == NULL) {
            (void)bow_client_poll(p->client, MS);
        }
    }
    assert_int_equal(rc, 0);
    bow_payload_unref(payload);
}

static void stream_up(struct packed *p)
{
    struct packed__packed__up__stream stream;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct bow_result result = BOW_RESULT_INIT;

    options.compression = BOW_COMPRESSION_ON;
    assert_int_equal(packed__packed__up__open(p->client, &options, NULL, NULL, &stream), 0);
    for (uint64_t i = 0; i < PACKED_MIXED; i++) {
        write_mixed(p, stream, i);
    }
    const Packed__Blob *reply = packed__packed__up__stream_finish(stream, &result);
    assert_string_equal(result.status.message, "");
    packed_expect(p, reply, PACKED_MIXED);
    assert_false(reply->came_compressed); /* none came otherwise than it was sent */
    assert_true(bow_result_reply_was_compressed(&result));
    bow_result_fini(&result);
}

static void test_packed_each_message_up_is_as_its_sender_says(void **state)
{
    struct packed *p = *state;

    p->server.compression = BOW_COMPRESSION_AUTO;
    packed_start(p);
    stream_up(p);
}

static void test_packed_each_message_up_of_another_thread_is(void **state)
{
    struct packed *p = *state;

    p->server.compression = BOW_COMPRESSION_AUTO;
    p->options.loop = p->t->loop;
    packed_start(p);
    stream_up(p);
}

/* Where messages wait for the handler's thread, and for the one before. */
static void test_packed_each_message_is_seen_on_an_executor(void **state)
{
    struct packed *p = *state;
    struct bow_executor_options options = BOW_EXECUTOR_OPTIONS_INIT;
    struct bow_executor *executor = NULL;
    Packed__Blob request;

    options.n_threads = 2;
    assert_int_equal(bow_executor_new(p->t->context, &options, &executor), 0);
    p->server.compression = BOW_COMPRESSION_AUTO;
    p->server.handlers_on = executor;
    packed_start(p);
    bow_executor_unref(executor);
    stream_up(p);
    packed_fill(p, &request, 0);
    expect_seen(p->client, &request, BOW_COMPRESSION_AUTO, true, true);
    expect_seen(p->client, &request, BOW_COMPRESSION_OFF, false, true);
}

static void receive_mixed(struct packed *p, bool elsewhere, uint32_t n)
{
    struct packed__packed__down__stream stream;
    struct bow_result result = BOW_RESULT_INIT;
    Packed__Blob request = PACKED__BLOB__INIT;
    const Packed__Blob *message = NULL;

    request.count = n;
    request.mixed = true;
    request.elsewhere = elsewhere;
    assert_int_equal(packed__packed__down__open(p->client, &request, NULL, NULL, NULL, &stream), 0);
    assert_false(bow_stream_message_was_compressed(stream.stream));
    for (uint64_t i = 0; i < n; i++) {
        assert_int_equal(packed__packed__down__stream_receive(stream, PATIENCE, &message), 1);
        packed_expect(p, message, i);
        assert_int_equal(bow_stream_message_was_compressed(stream.stream), packed_is_mixed_in(i));
    }
    packed__packed__down__stream_finish(stream, &result);
    assert_int_equal(result.status.code, BOW_OK);
    bow_result_fini(&result);
}

/* The server compresses nothing by itself. */
static void test_packed_each_message_down_is_as_its_handler_says(void **state)
{
    struct packed *p = *state;

    packed_start(p);
    receive_mixed(p, false, 4); /* more would have to wait for on_writable */
    receive_mixed(p, true, PACKED_MIXED);
}

static void test_packed_each_message_down_to_a_thread_is(void **state)
{
    struct packed *p = *state;

    p->options.loop = p->t->loop;
    p->server.compression = BOW_COMPRESSION_AUTO;
    packed_start(p);
    receive_mixed(p, true, PACKED_MIXED);
}

static void note(struct packed *p, int *counter)
{
    pthread_mutex_lock(&p->t->lock);
    (*counter)++;
    pthread_cond_broadcast(&p->t->changed);
    pthread_mutex_unlock(&p->t->lock);
}

static void on_down_message(struct packed__packed__down__stream stream, const Packed__Blob *message,
                            void *user)
{
    struct packed *p = user;

    packed_expect(p, message, (uint64_t)p->n_messages);
    assert_int_equal(bow_stream_message_was_compressed(stream.stream),
                     packed_is_mixed_in(message->number));
    if (p->n_messages == 0) {
        bow_stream_pause(stream.stream);
    }
    note(p, &p->n_messages);
}

static void on_down_closed(struct packed__packed__down__stream stream, struct bow_result *result,
                           void *user)
{
    struct packed *p = user;

    (void)stream;
    assert_int_equal(result->status.code, BOW_OK);
    note(p, &p->n_closed);
}

static int resume(void *stream)
{
    bow_stream_resume(stream);
    return 0;
}

static void test_packed_each_message_that_waited_is_seen(void **state)
{
    static const struct packed__packed__down__stream_events events = {.on_message = on_down_message,
                                                                      .on_closed = on_down_closed};
    struct packed *p = *state;
    struct packed__packed__down__stream stream;
    Packed__Blob request = PACKED__BLOB__INIT;

    p->options.loop = p->t->loop;
    packed_start(p);
    request.count = 4;
    request.mixed = true;
    assert_int_equal(packed__packed__down__open(p->client, &request, NULL, &events, p, &stream), 0);
    calls_wait(p->t, &p->n_messages, 1);
    CALLS_WAIT_METRIC(p->t, calls_ended, 2);
    assert_int_equal(bow_loop_execute(p->t->loop, "resume", resume, stream.stream), 0);
    calls_wait(p->t, &p->n_closed, 1);
    bow_stream_unref(stream.stream);
    assert_int_equal(p->n_messages, 4);
}

/* There and back: what the handler, on its loop, is told to say of each reply. */
static void exchange(struct packed *p, struct packed__packed__both__stream stream, uint64_t number,
                     Packed__Wish wish, bool up, bool down)
{
    const Packed__Blob *message = NULL;
    Packed__Blob blob;

    packed_fill(p, &blob, number);
    blob.wish = wish;
    assert_int_equal(packed__packed__both__stream_write(stream, &blob, PATIENCE), 0);
    assert_int_equal(packed__packed__both__stream_receive(stream, PATIENCE, &message), 1);
    assert_int_equal(message->came_compressed, up);
    assert_int_equal(bow_stream_message_was_compressed(stream.stream), down);
}

static int said(struct packed *p)
{
    pthread_mutex_lock(&p->t->lock);
    int rc = p->compress_rc;
    pthread_mutex_unlock(&p->t->lock);
    return rc;
}

static void test_packed_each_stream_that_begins_plain_may_compress_later(void **state)
{
    struct packed *p = *state;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct packed__packed__both__stream stream;
    struct bow_result result = BOW_RESULT_INIT;

    packed_start(p);
    options.compression = BOW_COMPRESSION_AUTO;
    assert_int_equal(packed__packed__both__open(p->client, &options, NULL, NULL, &stream), 0);
    assert_int_equal(bow_stream_compress(stream.stream, false), 0);
    exchange(p, stream, 0, PACKED__WISH__PLAIN, false, false);
    assert_int_equal(bow_stream_compress(stream.stream, true), 0);
    exchange(p, stream, 2, PACKED__WISH__COMPRESS, true, true);
    exchange(p, stream, 0, PACKED__WISH__NOTHING, true, true);
    assert_int_equal(bow_stream_compress(stream.stream, false), 0);
    exchange(p, stream, 0, PACKED__WISH__PLAIN, false, false);
    assert_int_equal(said(p), 0);
    packed__packed__both__stream_finish(stream, &result);
    bow_result_fini(&result);
}

static void test_packed_each_stream_without_an_encoding_is_told_so(void **state)
{
    struct packed *p = *state;
    struct packed__packed__both__stream stream;
    struct packed__packed__down__stream down;
    struct bow_result result = BOW_RESULT_INIT;
    Packed__Blob request = PACKED__BLOB__INIT;

    packed_start(p);
    assert_int_equal(packed__packed__both__open(p->client, NULL, NULL, NULL, &stream), 0);
    assert_int_equal(bow_stream_compress(stream.stream, false), 0);
    assert_int_equal(bow_stream_compress(stream.stream, true), -EALREADY);
    exchange(p, stream, 0, PACKED__WISH__NOTHING, false, false);
    exchange(p, stream, 0, PACKED__WISH__COMPRESS, false, false);
    assert_int_equal(said(p), -EALREADY);
    exchange(p, stream, 0, PACKED__WISH__PLAIN, false, false);
    assert_int_equal(said(p), 0);
    packed__packed__both__stream_finish(stream, &result);
    bow_result_fini(&result);
    assert_int_equal(packed__packed__down__open(p->client, &request, NULL, NULL, NULL, &down), 0);
    assert_int_equal(bow_stream_compress(down.stream, true), -EINVAL);
    packed__packed__down__stream_finish(down, &result);
    bow_result_fini(&result);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, packed_setup, packed_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_packed_each_unary_sees_how_its_messages_came),
        TEST(test_packed_each_small_one_is_compressed_when_asked_for),
        TEST(test_packed_each_sides_may_always_compress),
        TEST(test_packed_each_unknown_compression_is_refused),
        TEST(test_packed_each_first_request_goes_as_it_is),
        TEST(test_packed_each_first_request_is_compressed_as_assumed),
        TEST(test_packed_each_assumed_encodings_are_checked),
        TEST(test_packed_each_message_up_is_as_its_sender_says),
        TEST(test_packed_each_message_up_of_another_thread_is),
        TEST(test_packed_each_message_is_seen_on_an_executor),
        TEST(test_packed_each_message_down_is_as_its_handler_says),
        TEST(test_packed_each_message_down_to_a_thread_is),
        TEST(test_packed_each_message_that_waited_is_seen),
        TEST(test_packed_each_stream_that_begins_plain_may_compress_later),
        TEST(test_packed_each_stream_without_an_encoding_is_told_so),
    };

    calls_choose(argc, argv);
    if (bow__encodings_built() == 1u << BOW__ENCODING_IDENTITY) {
        puts("skipped: this build has no encoding");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
