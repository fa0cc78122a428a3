/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A Bowline client calls the servers of grpc_python_server.py, of which the second takes no
 * compression but deflate. Usage: interop_client_test TARGET TARGET_OF_DEFLATE */

#include "interop.bow.h"
#include <bowline/client.h>
#include <bowline/context.h>
#include <bowline/metrics.h>
#include <bowline/system.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)
#define MIB ((size_t)1 << 20)
#define N_AT_ONCE 1000u
#define N_TRIES 10000 // asks of what a thread of the server does sooner or later

static const char *target;
static const char *deflate_target;

struct fixture {
    struct bow_context *context;
    struct bow_client *client;
    struct bow_result result;
    Interop__Request request;
    struct bow_call_options call;
};

static int set_up_with(void **state, const char *own_target, const char *service_config)
{
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct fixture *t = calloc(1, sizeof(*t));

    assert_int_equal(bow_context_new(&context_options, &t->context), 0);
    options.context = t->context;
    options.target = own_target;
    options.max_header_bytes = (size_t)32 << 10;
    options.service_config = service_config;
    assert_int_equal(bow_client_new(&options, &t->client), 0);
    t->result = (struct bow_result)BOW_RESULT_INIT;
    t->request = (Interop__Request)INTEROP__REQUEST__INIT;
    t->call = (struct bow_call_options)BOW_CALL_OPTIONS_INIT;
    *state = t;
    return 0;
}

static int set_up_for(void **state, const char *own_target)
{
    return set_up_with(state, own_target, NULL);
}

static int set_up(void **state)
{
    return set_up_for(state, target);
}

#define CONFIG(pause)                                                                              \
    "{\"methodConfig\":[{\"name\":[{\"service\":\"interop.Interop\"}],\"retryPolicy\":{"           \
    "\"maxAttempts\":4,\"initialBackoff\":\"" pause "\",\"maxBackoff\":\"" pause                   \
    "\",\"backoffMultiplier\":1,\"retryableStatusCodes\":[\"UNAVAILABLE\"]}}]}"

static int set_up_retrying(void **state)
{
    return set_up_with(state, target, CONFIG("0.01s"));
}

/* Only what the server asks for is within a call's time. */
static int set_up_obeying(void **state)
{
    return set_up_with(state, target, CONFIG("3600s"));
}

static int set_up_deflate(void **state)
{
    return set_up_for(state, deflate_target);
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

static ProtobufCBinaryData bytes_of(const char *text)
{
    return (ProtobufCBinaryData){strlen(text), (uint8_t *)(uintptr_t)text};
}

static const Interop__Reply *echo(struct fixture *t)
{
    bow_result_fini(&t->result);
    return interop__interop__echo__call(t->client, &t->request, &t->call, &t->result);
}

static void expect_fails(struct fixture *t, const Interop__Reply *reply, enum bow_code code,
                         const char *part)
{
    assert_null(reply);
    if (t->result.status.code != code || strstr(t->result.status.message, part) == NULL) {
        fail_msg("%s: '%s', not %s that says '%s'", bow_code_name(t->result.status.code),
                 t->result.status.message, bow_code_name(code), part);
    }
}

static void test_unary_call_is_answered(void **state)
{
    struct fixture *t = *state;

    for (int i = 0; i < 100; i++) {
        char text[16];
        snprintf(text, sizeof(text), "call %d", i);
        t->request.body = bytes_of(text);
        const Interop__Reply *reply = echo(t);
        assert_non_null(reply);
        assert_int_equal(reply->body.len, strlen(text));
        assert_memory_equal(reply->body.data, text, reply->body.len);
    }
}

static void test_empty_message_is_a_message(void **state)
{
    struct fixture *t = *state;

    assert_non_null(echo(t));
    assert_int_equal(t->result.status.code, BOW_OK);
}

static uint64_t bytes_of_client(struct fixture *t, bool sent)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;

    assert_int_equal(bow_client_metrics(t->client, &metrics), 0);
    return sent ? metrics.bytes_sent : metrics.bytes_received;
}

/* What the server takes it says with its first answer. */
static void test_messages_are_compressed_both_ways(void **state)
{
    static uint8_t body[100000];
    struct fixture *t = *state;

    assert_non_null(echo(t));
    t->request.body = (ProtobufCBinaryData){sizeof(body), body};
    t->request.message = (char *)(uintptr_t) "compress";
    t->call.compression = BOW_COMPRESSION_AUTO;
    for (int i = 0; i < 20; i++) {
        const Interop__Reply *reply = echo(t);
        assert_non_null(reply);
        assert_int_equal(reply->body.len, sizeof(body));
        assert_memory_equal(reply->body.data, body, sizeof(body));
    }
    assert_in_range(bytes_of_client(t, true), 1, 20000);
    assert_in_range(bytes_of_client(t, false), 1, 20000);
}

static void expect_compressed_both_ways(struct fixture *t, const char *wish)
{
    static uint8_t body[100000];

    t->request.body = (ProtobufCBinaryData){sizeof(body), body};
    t->request.message = (char *)(uintptr_t)wish;
    t->call.compression = BOW_COMPRESSION_ON;
    for (int i = 0; i < 20; i++) {
        const Interop__Reply *reply = echo(t);
        assert_string_equal(t->result.status.message, "");
        assert_int_equal(reply->body.len, sizeof(body));
        assert_memory_equal(reply->body.data, body, sizeof(body));
        assert_true(bow_result_reply_was_compressed(&t->result));
    }
    assert_in_range(bytes_of_client(t, true), 1, 20000);
    assert_in_range(bytes_of_client(t, false), 1, 20000);
}

static void test_deflate_goes_both_ways_where_nothing_better_is_taken(void **state)
{
    assert_non_null(echo(*state));
    expect_compressed_both_ways(*state, "deflate");
}

static void set_up_assuming(struct fixture *t, const char *own_target, const char *encodings)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;

    bow_client_free(t->client);
    options.context = t->context;
    options.target = own_target;
    options.assumed_encodings = encodings;
    assert_int_equal(bow_client_new(&options, &t->client), 0);
}

static void test_first_request_is_compressed_as_assumed(void **state)
{
    struct fixture *t = *state;

    set_up_assuming(t, target, "gzip");
    expect_compressed_both_ways(t, "compress");
    set_up_assuming(t, target, "deflate");
    expect_compressed_both_ways(t, "compress");
}

/* The server refuses what it has not; nothing is assumed of it any more. */
static void test_wrong_assumption_costs_one_request(void **state)
{
    static uint8_t body[100000];
    struct fixture *t = *state;

    set_up_assuming(t, deflate_target, "gzip");
    t->request.body = (ProtobufCBinaryData){sizeof(body), body};
    t->call.compression = BOW_COMPRESSION_ON;
    expect_fails(t, echo(t), BOW_UNIMPLEMENTED, "gzip");
    t->request.body.len = 0;
    assert_non_null(echo(t));
    expect_compressed_both_ways(t, "deflate");
}

static void test_reply_that_inflates_beyond_the_limit_is_refused(void **state)
{
    struct fixture *t = *state;

    t->request.reply_bytes = 8 * MIB;
    t->request.message = (char *)(uintptr_t) "compress";
    expect_fails(t, echo(t), BOW_RESOURCE_EXHAUSTED, "max_message_bytes (4194304)");
    t->request.reply_bytes = 0;
    assert_non_null(echo(t));
}

static void test_every_code_and_its_message(void **state)
{
    static const char text[] = "100% sure, gr\xC3\xBCn, \xF0\x9F\x92\xA7,\ttab\nnewline %41";
    struct fixture *t = *state;

    for (uint32_t code = BOW_CANCELLED; code <= BOW_UNAUTHENTICATED; code++) {
        t->request.code = code;
        t->request.message = (char *)(uintptr_t)text;
        assert_null(interop__interop__fail__call(t->client, &t->request, NULL, &t->result));
        assert_int_equal(t->result.status.code, code);
        assert_string_equal(t->result.status.message, text);
        assert_int_equal(t->result.status.details.len, 0);
        bow_result_fini(&t->result);
    }
}

static void test_details_are_bytes(void **state)
{
    struct fixture *t = *state;
    static const char details[] = "\x08\x05\x12\x04text\xFF";

    t->request.code = BOW_NOT_FOUND;
    t->request.message = (char *)(uintptr_t) "see details";
    t->request.body = bytes_of(details);
    expect_fails(t, interop__interop__fail__call(t->client, &t->request, NULL, &t->result),
                 BOW_NOT_FOUND, "see details");
    assert_int_equal(t->result.status.details.len, sizeof(details) - 1);
    assert_memory_equal(t->result.status.details.data, details, sizeof(details) - 1);
}

static void wait_cancelled(struct fixture *t, uint64_t count)
{
    const Interop__Reply *reply = NULL;

    for (int i = 0; i < N_TRIES; i++) {
        reply = echo(t);
        assert_non_null(reply);
        if (reply->n_cancelled >= count) {
            return;
        }
    }
    fail_msg("the server was not told");
}

/* Its threads may come to a call after the one that was sent later, or not at all once it ended. */
static bool waits_hanging(struct fixture *t, uint64_t count)
{
    for (int i = 0; i < N_TRIES; i++) {
        const Interop__Reply *reply = echo(t);

        assert_non_null(reply);
        if (reply->n_hanging >= count) {
            return true;
        }
    }
    return false;
}

static void expect_back(const struct bow_metadata *metadata, const char *key, const char *text)
{
    const struct bow_slice *value = bow_metadata_find(metadata, key);

    assert_non_null(value);
    assert_string_equal((const char *)value->data, text);
}

/* Each way a header of more than the default of 16 KiB; and one of more than the server takes. */
static void test_large_metadata_both_ways(void **state)
{
    static char text[40 << 10];
    struct fixture *t = *state;
    struct bow_metadata_entry entry = {"x-back", {(const uint8_t *)text, 20 << 10}};
    const struct bow_metadata metadata = {&entry, 1};

    for (size_t i = 0; i < (20 << 10); i++) {
        text[i] = (char)('a' + i % 23);
    }
    t->call.metadata = &metadata;
    for (int i = 0; i < 3; i++) {
        assert_non_null(echo(t));
        expect_back(&t->result.initial, "x-first", text);
        expect_back(&t->result.status.metadata, "x-last", text);
    }
    memset(text, 'v', sizeof(text));
    entry.value.len = sizeof(text);
    expect_fails(t, echo(t), BOW_RESOURCE_EXHAUSTED, "above the 32768 that the server takes");
}

static void test_deadline_ends_the_call_on_both_sides(void **state)
{
    struct fixture *t = *state;
    const Interop__Reply *reply = echo(t);
    uint64_t n_before = reply->n_cancelled;
    uint64_t n_hanging = reply->n_hanging;

    bow_result_fini(&t->result);
    do {
        t->call.timeout_ns = 200 * MS;
        /* Which side's clock is first to say so is open. */
        expect_fails(t, interop__interop__hang__call(t->client, &t->request, &t->call, &t->result),
                     BOW_DEADLINE_EXCEEDED, "");
        t->call.timeout_ns = 0;
    } while (!waits_hanging(t, n_hanging + 1));
    wait_cancelled(t, n_before + 1);
}

static void test_server_sees_the_deadline(void **state)
{
    struct fixture *t = *state;

    t->call.timeout_ns = 7000 * MS;
    assert_in_range(echo(t)->time_left_ns, 5000 * MS, 7000 * MS);
    t->call.timeout_ns = BOW_NEVER;
    const Interop__Reply *reply = echo(t);
    assert_non_null(reply);
    assert_int_equal(reply->time_left_ns, 0);
}

static void test_unknown_method_is_unimplemented(void **state)
{
    struct fixture *t = *state;

    expect_fails(t, interop__interop__absent__call(t->client, &t->request, NULL, &t->result),
                 BOW_UNIMPLEMENTED, "Method not found");
}

static void test_large_messages_both_ways(void **state)
{
    struct fixture *t = *state;
    uint8_t *body = malloc(3 * MIB);

    for (size_t i = 0; i < 3 * MIB; i++) {
        body[i] = (uint8_t)(i * 7);
    }
    t->request.body = (ProtobufCBinaryData){3 * MIB, body};
    const Interop__Reply *reply = echo(t);
    assert_non_null(reply);
    assert_int_equal(reply->body.len, 3 * MIB);
    assert_memory_equal(reply->body.data, body, 3 * MIB);
    free(body);
}

static void test_reply_over_the_limit_is_refused_and_named(void **state)
{
    struct fixture *t = *state;

    t->request.reply_bytes = 5 * MIB;
    expect_fails(t, echo(t), BOW_RESOURCE_EXHAUSTED, "max_message_bytes (4194304)");
    t->request.reply_bytes = 0;
    assert_non_null(echo(t));
}

static void test_request_over_the_servers_limit_is_refused(void **state)
{
    struct fixture *t = *state;

    t->request.body = (ProtobufCBinaryData){5 * MIB, calloc(1, 5 * MIB)};
    expect_fails(t, echo(t), BOW_RESOURCE_EXHAUSTED, "Received message larger than max");
    free(t->request.body.data);
    t->request.body = (ProtobufCBinaryData){0};
    assert_non_null(echo(t));
}

struct run {
    unsigned n_done;
    unsigned n_wrong;
    enum bow_code code;
};

struct one {
    struct run *run;
    char text[16];
};

static void on_reply(struct bow_result *result, const Interop__Reply *reply, void *user)
{
    struct one *one = user;
    size_t len = strlen(one->text);

    (void)result;
    one->run->n_done++;
    if (reply == NULL || reply->body.len != len || memcmp(reply->body.data, one->text, len) != 0) {
        one->run->n_wrong++;
    }
}

static void test_a_thousand_calls_at_once(void **state)
{
    struct fixture *t = *state;
    struct one *ones = calloc(N_AT_ONCE, sizeof(*ones));
    struct run run = {0};

    for (unsigned i = 0; i < N_AT_ONCE; i++) {
        ones[i].run = &run;
        snprintf(ones[i].text, sizeof(ones[i].text), "call %u", i);
        t->request.body = bytes_of(ones[i].text);
        assert_int_equal(
            interop__interop__echo__start(t->client, &t->request, NULL, on_reply, &ones[i], NULL),
            0);
    }
    for (int i = 0; i < 30000 && run.n_done < N_AT_ONCE; i++) {
        assert_int_equal(bow_client_poll(t->client, 10 * MS), 0);
    }
    assert_int_equal(run.n_done, N_AT_ONCE);
    assert_int_equal(run.n_wrong, 0);
    free(ones);
}

static void on_end(struct bow_result *result, const Interop__Reply *reply, void *user)
{
    struct run *run = user;

    (void)reply;
    run->n_done++;
    run->code = result->status.code;
}

static void test_cancel_reaches_the_server(void **state)
{
    struct fixture *t = *state;
    struct run run = {0};
    uint64_t id = 0;
    const Interop__Reply *reply = echo(t);
    uint64_t n_before = reply->n_cancelled;
    uint64_t n_hanging = reply->n_hanging;

    assert_int_equal(interop__interop__hang__start(t->client, &t->request, NULL, on_end, &run, &id),
                     0);
    assert_true(waits_hanging(t, n_hanging + 1));
    bow_client_cancel(t->client, id);
    while (run.n_done == 0) {
        assert_int_equal(bow_client_poll(t->client, 10 * MS), 0);
    }
    assert_int_equal(run.code, BOW_CANCELLED);
    wait_cancelled(t, n_before + 1);
}

/* Policies of a service config */

static void expect_flaky(struct fixture *t, const char *message, const char *said)
{
    t->request.message = (char *)(uintptr_t)message;
    const Interop__Reply *reply = echo(t);
    if (reply == NULL) {
        fail_msg("%s", t->result.status.message);
    }
    assert_int_equal(reply->body.len, strlen(said));
    assert_memory_equal(reply->body.data, said, strlen(said));
}

static void test_server_that_fails_is_called_again(void **state)
{
    expect_flaky(*state, "flaky 3", "3");
}

static void test_server_that_says_when_is_called_then(void **state)
{
    expect_flaky(*state, "flaky 2 5", "2");
}

static void test_server_that_wants_no_other_call_gets_none(void **state)
{
    struct fixture *t = *state;

    t->request.message = "flaky 1 -1";
    expect_fails(t, echo(t), BOW_UNAVAILABLE, "flaky (attempt 1: the server asks for no other)");
    t->request.message = "flaky 0"; /* it forgets */
    assert_non_null(echo(t));
}

int main(int argc, char **argv)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define DEFLATE_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_deflate, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(test_unary_call_is_answered),
        TEST(test_empty_message_is_a_message),
        TEST(test_messages_are_compressed_both_ways),
        DEFLATE_TEST(test_deflate_goes_both_ways_where_nothing_better_is_taken),
        TEST(test_first_request_is_compressed_as_assumed),
        TEST(test_wrong_assumption_costs_one_request),
        TEST(test_reply_that_inflates_beyond_the_limit_is_refused),
        TEST(test_every_code_and_its_message),
        TEST(test_details_are_bytes),
        TEST(test_large_metadata_both_ways),
        TEST(test_deadline_ends_the_call_on_both_sides),
        TEST(test_server_sees_the_deadline),
        TEST(test_unknown_method_is_unimplemented),
        TEST(test_large_messages_both_ways),
        TEST(test_reply_over_the_limit_is_refused_and_named),
        TEST(test_request_over_the_servers_limit_is_refused),
        TEST(test_a_thousand_calls_at_once),
        TEST(test_cancel_reaches_the_server),
        cmocka_unit_test_setup_teardown(test_server_that_fails_is_called_again, set_up_retrying,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_server_that_says_when_is_called_then, set_up_obeying,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_server_that_wants_no_other_call_gets_none,
                                        set_up_retrying, tear_down),
    };

    if (argc != 3) {
        fprintf(stderr, "usage: %s TARGET TARGET_OF_DEFLATE\n", argv[0]);
        return 2;
    }
    target = argv[1];
    deflate_target = argv[2];
    return cmocka_run_group_tests(tests, NULL, NULL);
}
