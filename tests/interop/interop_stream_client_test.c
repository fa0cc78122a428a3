/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A Bowline client makes streaming calls to the server of grpc_python_stream_server.py. Usage:
 * interop_stream_client_test TARGET */

#include "interop_streams.bow.h"
#include <bowline/client.h>
#include <bowline/context.h>
#include <bowline/stream.h>
#include <bowline/system.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)
#define MIB ((size_t)1 << 20)
#define PATIENCE_NS (UINT64_C(20000) * MS)

typedef InteropStreams__Request Request;
typedef InteropStreams__Reply Reply;

static const char *target;

struct fixture {
    struct bow_context *context;
    struct bow_client *client;
    struct bow_result result;
    Request request;
    struct bow_call_options call;
    struct interop_streams__streams__both__stream both;
    struct interop_streams__streams__pour__stream pour;
    struct interop_streams__streams__gather__stream gather;
};

static int set_up(void **state)
{
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct fixture *t = calloc(1, sizeof(*t));

    assert_int_equal(bow_context_new(&context_options, &t->context), 0);
    options.context = t->context;
    options.target = target;
    assert_int_equal(bow_client_new(&options, &t->client), 0);
    t->result = (struct bow_result)BOW_RESULT_INIT;
    t->request = (Request)INTEROP_STREAMS__REQUEST__INIT;
    t->call = (struct bow_call_options)BOW_CALL_OPTIONS_INIT;
    *state = t;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *t = *state;

    bow_result_fini(&t->result);
    bow_client_free(t->client);
    assert_int_equal(bow_context_bytes(t->context), 0);
    bow_context_unref(t->context);
    free(t);
    return 0;
}

/* Steps, each of which must succeed. */

static void begin_both(struct fixture *t)
{
    assert_int_equal(
        interop_streams__streams__both__open(t->client, &t->call, NULL, NULL, &t->both), 0);
}

static void begin_pour(struct fixture *t)
{
    assert_int_equal(interop_streams__streams__pour__open(t->client, &t->request, &t->call, NULL,
                                                          NULL, &t->pour),
                     0);
}

static void begin_gather(struct fixture *t)
{
    assert_int_equal(
        interop_streams__streams__gather__open(t->client, &t->call, NULL, NULL, &t->gather), 0);
}

static int add(struct fixture *t, size_t n_bytes)
{
    static uint8_t bytes[1000];

    t->request.body = (ProtobufCBinaryData){n_bytes, bytes};
    return interop_streams__streams__gather__stream_write(t->gather, &t->request, PATIENCE_NS);
}

static void say(struct fixture *t, const void *bytes, size_t len)
{
    t->request.body = (ProtobufCBinaryData){len, (uint8_t *)(uintptr_t)bytes};
    assert_int_equal(
        interop_streams__streams__both__stream_write(t->both, &t->request, PATIENCE_NS), 0);
}

static const Reply *hear(struct fixture *t)
{
    const Reply *reply = NULL;

    assert_int_equal(interop_streams__streams__both__stream_receive(t->both, PATIENCE_NS, &reply),
                     1);
    return reply;
}

static const Reply *hear_pour(struct fixture *t)
{
    const Reply *reply = NULL;

    assert_int_equal(interop_streams__streams__pour__stream_receive(t->pour, PATIENCE_NS, &reply),
                     1);
    return reply;
}

static void expect_status(const struct fixture *t, enum bow_code code, const char *part)
{
    if (t->result.status.code != code || strstr(t->result.status.message, part) == NULL) {
        fail_msg("%s: '%s', not %s that says '%s'", bow_code_name(t->result.status.code),
                 t->result.status.message, bow_code_name(code), part);
    }
}

static void end_both(struct fixture *t, enum bow_code code, const char *part)
{
    assert_int_equal(interop_streams__streams__both__stream_finish(t->both, &t->result), 0);
    expect_status(t, code, part);
}

static void end_pour(struct fixture *t, enum bow_code code, const char *part)
{
    assert_int_equal(interop_streams__streams__pour__stream_finish(t->pour, &t->result), 0);
    expect_status(t, code, part);
}

static void end_gather(struct fixture *t, enum bow_code code)
{
    assert_null(interop_streams__streams__gather__stream_finish(t->gather, &t->result));
    expect_status(t, code, "");
    bow_result_fini(&t->result);
}

static Reply ask_state(struct fixture *t)
{
    struct bow_result result = BOW_RESULT_INIT;
    const Reply *reply =
        interop_streams__streams__state__call(t->client, &t->request, NULL, &result);

    assert_non_null(reply);
    Reply copy = *reply;
    bow_result_fini(&result);
    return copy;
}

static void wait_cancelled(struct fixture *t, uint32_t count)
{
    /* Its threads have to come round to it; only a broken test takes so long. */
    time_t end = time(NULL) + 20;

    while (time(NULL) < end) {
        if (ask_state(t).n_cancelled >= count) {
            return;
        }
    }
    fail_msg("the server was not told");
}

static void wait_gathering(struct fixture *t, uint32_t count)
{
    time_t end = time(NULL) + 20;

    while (ask_state(t).n_gathering < count) {
        assert_true(time(NULL) < end);
    }
}

/* Metadata that the server sends back. */

static const struct bow_metadata_entry sent[] = {
    {"echo-text", {(const uint8_t *)"a, b", 4}},
    {"echo-bytes-bin", {(const uint8_t *)"\x00\xFF", 2}},
    {"echo-empty", {(const uint8_t *)"", 0}},
    {"other", {(const uint8_t *)"stays", 5}},
};
static const struct bow_metadata metadata = {sent, 4};

static void expect_echoed(const struct bow_metadata *got)
{
    for (size_t i = 0; i < 3; i++) {
        const struct bow_slice *value = bow_metadata_find(got, sent[i].key);
        assert_non_null(value);
        assert_int_equal(value->len, sent[i].value.len);
        assert_memory_equal(value->data, sent[i].value.data, value->len);
    }
    assert_null(bow_metadata_find(got, "other"));
}

/* The tests. */

static void test_gather_sums_what_was_sent(void **state)
{
    struct fixture *t = *state;

    for (size_t count = 0; count <= 1000; count = 10 * count + 1) {
        begin_gather(t);
        for (size_t i = 0; i < count; i++) {
            assert_int_equal(add(t, i), 0);
        }
        const Reply *reply = interop_streams__streams__gather__stream_finish(t->gather, &t->result);
        assert_non_null(reply);
        assert_int_equal(reply->number, count);
        assert_int_equal(reply->n_bytes, count > 0 ? count * (count - 1) / 2 : 0);
        bow_result_fini(&t->result);
    }
}

static void test_pour_sends_so_many(void **state)
{
    struct fixture *t = *state;

    t->request.reply_bytes = 10;
    for (t->request.count = 0; t->request.count <= 1000;
         t->request.count = 10 * t->request.count + 1) {
        const Reply *reply = NULL;
        begin_pour(t);
        for (uint32_t i = 1; i <= t->request.count; i++) {
            reply = hear_pour(t);
            assert_int_equal(reply->number, i);
            assert_int_equal(reply->body.len, 10);
        }
        assert_int_equal(
            interop_streams__streams__pour__stream_receive(t->pour, PATIENCE_NS, &reply), 0);
        end_pour(t, BOW_OK, "");
        bow_result_fini(&t->result);
    }
}

static void test_both_answer_each_other(void **state)
{
    struct fixture *t = *state;
    const Reply *reply = NULL;

    begin_both(t);
    for (uint32_t i = 1; i <= 200; i++) {
        char text[16];
        int n = snprintf(text, sizeof(text), "%u", i);
        say(t, text, (size_t)n);
        reply = hear(t);
        assert_int_equal(reply->number, i);
        assert_int_equal(reply->body.len, n);
        assert_memory_equal(reply->body.data, text, (size_t)n);
    }
    assert_int_equal(bow_stream_half_close(t->both.stream), 0);
    assert_int_equal(interop_streams__streams__both__stream_receive(t->both, PATIENCE_NS, &reply),
                     0);
    end_both(t, BOW_OK, "");
}

static void test_large_messages_both_ways(void **state)
{
    struct fixture *t = *state;
    uint8_t *bytes = malloc(3 * MIB);

    for (size_t i = 0; i < 3 * MIB; i++) {
        bytes[i] = (uint8_t)(i * 7);
    }
    begin_both(t);
    for (size_t i = 0; i < 4; i++) {
        size_t len = (i % 3 + 1) * MIB;
        say(t, bytes, len);
        const Reply *reply = hear(t);
        assert_int_equal(reply->body.len, len);
        assert_memory_equal(reply->body.data, bytes, len);
    }
    end_both(t, BOW_OK, "");
    free(bytes);
}

static void test_message_over_the_limit_ends_the_stream(void **state)
{
    struct fixture *t = *state;
    const Reply *reply = NULL;

    t->request.count = 2;
    t->request.reply_bytes = 5 * MIB;
    begin_pour(t);
    assert_int_equal(interop_streams__streams__pour__stream_receive(t->pour, PATIENCE_NS, &reply),
                     0);
    end_pour(t, BOW_RESOURCE_EXHAUSTED, "max_message_bytes (4194304)");
}

static void test_cancel_ends_the_stream_on_both_sides(void **state)
{
    struct fixture *t = *state;
    uint32_t n_before = ask_state(t).n_cancelled;

    begin_both(t);
    say(t, "x", 1);
    hear(t);
    bow_stream_cancel(t->both.stream);
    end_both(t, BOW_CANCELLED, "");
    bow_result_fini(&t->result);
    t->request.count = 1;
    t->request.hang = true;
    begin_pour(t);
    hear_pour(t);
    bow_stream_cancel(t->pour.stream);
    end_pour(t, BOW_CANCELLED, "");
    bow_result_fini(&t->result);
    uint32_t n_gathering = ask_state(t).n_gathering;
    begin_gather(t);
    assert_int_equal(add(t, 1), 0);
    assert_int_equal(bow_stream_half_close(t->gather.stream), 0);
    wait_gathering(t, n_gathering + 1);
    bow_stream_cancel(t->gather.stream);
    end_gather(t, BOW_CANCELLED);
    wait_cancelled(t, n_before + 3);
}

static void test_deadline_ends_the_stream_on_both_sides(void **state)
{
    struct fixture *t = *state;
    uint32_t n_before = ask_state(t).n_cancelled;
    const Reply *reply = NULL;

    t->call.timeout_ns = 1000 * MS;
    t->request.count = 1;
    t->request.hang = true;
    begin_pour(t);
    hear_pour(t);
    assert_int_equal(interop_streams__streams__pour__stream_receive(t->pour, PATIENCE_NS, &reply),
                     0);
    end_pour(t, BOW_DEADLINE_EXCEEDED, "");
    bow_result_fini(&t->result);
    begin_gather(t);
    assert_int_equal(add(t, 1), 0);
    end_gather(t, BOW_DEADLINE_EXCEEDED);
    begin_both(t);
    say(t, "x", 1);
    assert_int_equal(interop_streams__streams__both__stream_receive(t->both, PATIENCE_NS, &reply),
                     0);
    end_both(t, BOW_DEADLINE_EXCEEDED, "");
    wait_cancelled(t, n_before + 3);
}

static void test_metadata_goes_both_ways(void **state)
{
    struct fixture *t = *state;

    t->call.metadata = &metadata;
    begin_both(t);
    say(t, "x", 1);
    hear(t);
    end_both(t, BOW_OK, "");
    expect_echoed(&t->result.initial);
    expect_echoed(&t->result.status.metadata);
}

/* What the server sent back of them, in order. */
static void expect_in_order(const struct bow_metadata *got, const struct bow_metadata *expected)
{
    size_t n = 0;

    for (size_t i = 0; i < got->n; i++) {
        const struct bow_metadata_entry *entry = &got->entries[i];
        if (strncmp(entry->key, "echo-", 5) != 0) {
            continue;
        }
        assert_true(n < expected->n);
        assert_string_equal(entry->key, expected->entries[n].key);
        assert_int_equal(entry->value.len, expected->entries[n].value.len);
        if (entry->value.len > 0) {
            assert_memory_equal(entry->value.data, expected->entries[n].value.data,
                                entry->value.len);
        }
        n++;
    }
    assert_int_equal(n, expected->n);
}

static void expect_comes_back(struct fixture *t, const struct bow_metadata *entries)
{
    t->call.metadata = entries;
    begin_both(t);
    say(t, "x", 1);
    hear(t);
    end_both(t, BOW_OK, "");
    expect_in_order(&t->result.initial, entries);
    expect_in_order(&t->result.status.metadata, entries);
    bow_result_fini(&t->result);
}

static struct bow_slice text(const char *value)
{
    return (struct bow_slice){(const uint8_t *)value, strlen(value)};
}

static void test_metadata_of_each_form_comes_back_in_order(void **state)
{
    static const uint8_t bytes[] = {0xFF, 0x00, 0xFE, ',', 0x80, 0x01, '=', 0x7F};
    const struct bow_metadata_entry entries[] = {
        {"echo-a", text("2")},
        {"echo-b", text("x")},
        {"echo-a", text("1")},
        {"echo-a", text("2")},
        {"echo-empty", text("")},
        {"echo-empty-bin", {bytes, 0}},
        {"echo-bin", {bytes, 1}},
        {"echo-bin", {bytes, 2}},
        {"echo-bin", {bytes, 3}},
        {"echo-bin", {bytes, 8}},
        {"echo-list-bin", text(",a,")},
        {"echo-spaces", text("a  b , c")},
        {"echo-padded", text("a  b")},
        {"echo-padded", text("")},
        {"echo-z_9.-", text("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")},
    };
    const struct bow_metadata forms = {entries, sizeof(entries) / sizeof(entries[0])};

    expect_comes_back(*state, &forms);
}

static void test_metadata_of_a_hundred_keys_comes_back_in_order(void **state)
{
    struct bow_metadata_entry entries[100];
    char keys[100][16];
    const struct bow_metadata many = {entries, 100};

    for (int i = 0; i < 100; i++) {
        snprintf(keys[i], sizeof(keys[i]), "echo-%02d", 97 * i % 100);
        entries[i] = (struct bow_metadata_entry){keys[i], text(keys[i] + 5)};
    }
    expect_comes_back(*state, &many);
}

static void test_error_with_details_and_metadata(void **state)
{
    static const uint8_t details[] = "\x08\x05\x12\x04text\xFF";
    struct fixture *t = *state;
    const Reply *reply = NULL;

    t->call.metadata = &metadata;
    begin_both(t);
    say(t, "x", 1);
    t->request.code = BOW_NOT_FOUND;
    t->request.message = (char *)(uintptr_t) "gone, 100% \xC3\xBC";
    t->request.details = (ProtobufCBinaryData){sizeof(details), (uint8_t *)(uintptr_t)details};
    say(t, "", 0);
    hear(t);
    assert_int_equal(interop_streams__streams__both__stream_receive(t->both, PATIENCE_NS, &reply),
                     0);
    end_both(t, BOW_NOT_FOUND, "gone, 100% \xC3\xBC");
    assert_int_equal(t->result.status.details.len, sizeof(details));
    assert_memory_equal(t->result.status.details.data, details, sizeof(details));
    expect_echoed(&t->result.status.metadata);
}

static void test_error_comes_after_messages(void **state)
{
    struct fixture *t = *state;

    t->request.count = 500;
    t->request.reply_bytes = 2000;
    t->request.code = BOW_FAILED_PRECONDITION;
    t->request.message = (char *)(uintptr_t) "enough";
    begin_pour(t);
    for (uint32_t i = 1; i <= 500; i++) {
        assert_int_equal(hear_pour(t)->number, i);
    }
    end_pour(t, BOW_FAILED_PRECONDITION, "enough");
}

static void test_server_ends_while_the_client_sends(void **state)
{
    static uint8_t bytes[1000];
    struct fixture *t = *state;
    int rc = 0;

    begin_both(t);
    t->request.code = BOW_ABORTED;
    t->request.message = (char *)(uintptr_t) "stop";
    say(t, "", 0);
    t->request.code = 0;
    t->request.body = (ProtobufCBinaryData){sizeof(bytes), bytes};
    while (rc == 0) {
        rc = interop_streams__streams__both__stream_write(t->both, &t->request, PATIENCE_NS);
    }
    assert_int_equal(rc, -ECANCELED);
    end_both(t, BOW_ABORTED, "stop");
}

static void test_server_has_enough_while_the_client_sends(void **state)
{
    struct fixture *t = *state;
    const Reply *reply = NULL;
    int rc = 0;

    begin_gather(t);
    assert_int_equal(add(t, 1), 0);
    t->request.enough = true;
    assert_int_equal(add(t, 2), 0);
    t->request.enough = false;
    while (rc == 0) {
        rc = add(t, 1000);
    }
    assert_int_equal(rc, -ECANCELED);
    reply = interop_streams__streams__gather__stream_finish(t->gather, &t->result);
    assert_non_null(reply);
    assert_int_equal(reply->number, 2);
    assert_int_equal(reply->n_bytes, 3);
    bow_result_fini(&t->result);
    begin_both(t);
    t->request.enough = true;
    say(t, "x", 1);
    assert_int_equal(hear(t)->number, 1);
    assert_int_equal(interop_streams__streams__both__stream_receive(t->both, PATIENCE_NS, &reply),
                     0);
    end_both(t, BOW_OK, "");
}

static void test_slow_reader_holds_the_producer_back_and_nobody_else(void **state)
{
    const struct timespec pause = {.tv_nsec = 200 * (long)MS};
    struct fixture *t = *state;
    uint32_t poured = 0;
    uint32_t before = UINT32_MAX;

    t->request.count = 4000;
    t->request.reply_bytes = 64 << 10;
    begin_pour(t);
    hear_pour(t);
    while (poured != before) {
        nanosleep(&pause, NULL);
        before = poured;
        poured = ask_state(t).n_poured;
    }
    assert_true(poured < 512);
    for (uint32_t i = 2; i <= 4000; i++) {
        assert_int_equal(hear_pour(t)->number, i);
    }
    end_pour(t, BOW_OK, "");
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_gather_sums_what_was_sent),
        TEST(test_pour_sends_so_many),
        TEST(test_both_answer_each_other),
        TEST(test_large_messages_both_ways),
        TEST(test_message_over_the_limit_ends_the_stream),
        TEST(test_cancel_ends_the_stream_on_both_sides),
        TEST(test_deadline_ends_the_stream_on_both_sides),
        TEST(test_metadata_goes_both_ways),
        TEST(test_metadata_of_each_form_comes_back_in_order),
        TEST(test_metadata_of_a_hundred_keys_comes_back_in_order),
        TEST(test_error_with_details_and_metadata),
        TEST(test_error_comes_after_messages),
        TEST(test_server_ends_while_the_client_sends),
        TEST(test_server_has_enough_while_the_client_sends),
        TEST(test_slow_reader_holds_the_producer_back_and_nobody_else),
    };

    if (argc != 2) {
        fprintf(stderr, "usage: %s TARGET\n", argv[0]);
        return 2;
    }
    target = argv[1];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
