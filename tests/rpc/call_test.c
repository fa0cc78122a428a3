/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls that end by themselves: replies, errors, sizes, and what bad input gets.
 */

#include "call_fixture.h"

#include <bowline/message.h>
#include <bowline/message_field.h>
#include <bowline/system.h>
#include <errno.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_call_say_replies(void **state)
{
    struct calls *t = *state;
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;
    char text[] = "hello";

    request.number = 42;
    request.text = text;
    const Calls__Reply *reply = calls__echo__say__call(t->client, &request, NULL, &result);
    assert_string_equal(result.status.message, "");
    assert_int_equal(result.status.code, BOW_OK);
    assert_non_null(reply);
    assert_int_equal(reply->number, 42);
    assert_string_equal(reply->text, "hello");
    bow_result_fini(&result);
    assert_null(result.reply);
}

static void test_call_f27_empty_message_replies(void **state)
{
    struct calls *t = *state;
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    assert_non_null(calls__echo__say__call(t->client, &request, NULL, &result));
    bow_result_fini(&result);
}

static void test_call_started_completes_on_the_loop(void **state)
{
    struct calls *t = *state;
    Calls__Request request = CALLS__REQUEST__INIT;
    uint64_t id = 0;

    request.number = 7;
    assert_int_equal(calls__echo__say__start(t->client, &request, NULL, calls_on_done, t, &id), 0);
    assert_int_not_equal(id, 0);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_OK);
    assert_int_equal(((const Calls__Reply *)t->result.reply)->number, 7);
}

static void test_call_fail_status_arrives(void **state)
{
    struct calls *t = *state;
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;
    char text[] = "caf\xC3\xA9 100%";

    request.code = BOW_NOT_FOUND;
    request.text = text;
    assert_null(calls__echo__say__call(t->client, &request, NULL, &result));
    assert_int_equal(result.status.code, BOW_NOT_FOUND);
    assert_string_equal(result.status.message, "asked to fail: caf\xC3\xA9 100%");
    bow_result_fini(&result);
}

static void test_call_fail_with_ok_is_internal(void **state)
{
    struct calls *t = *state;
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    assert_int_equal(calls__echo__hold__start(t->client, &request, NULL, calls_on_done, t, NULL),
                     0);
    assert_int_equal(bow_call_fail(calls_take_held(t), BOW_OK, "fine"), 0);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_INTERNAL);
    bow_result_fini(&result);
}

static void expect_unimplemented(struct calls *t, const struct bow_method *method,
                                 const char *words)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    assert_null(bow_client_call(t->client, method, &request.base, NULL, &result));
    assert_int_equal(result.status.code, BOW_UNIMPLEMENTED);
    assert_non_null(strstr(result.status.message, words));
    bow_result_fini(&result);
}

static void test_call_unknown_method_is_named(void **state)
{
    struct calls *t = *state;
    struct bow_method unknown = *calls__echo__say__method();

    unknown.path = "/calls.Echo/Nothing";
    expect_unimplemented(t, &unknown, "/calls.Echo/Nothing");
    expect_unimplemented(t, &unknown, "/calls.Echo/Nothing"); /* by its number, if it has one */
    expect_unimplemented(t, &unknown, "its service is here without it");
    CALLS_WAIT_METRIC(t, unknown_methods, 3);
}

static void test_call_unknown_service_is_named(void **state)
{
    static const char *const paths[] = {"/calls.Ech/Say", "/calls.Echo2/Say", "/calls.Echo"};
    struct calls *t = *state;

    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        struct bow_method unknown = *calls__echo__say__method();
        unknown.path = paths[i];
        expect_unimplemented(t, &unknown, "its service is not here");
    }
}

static void test_call_absent_handler_is_unimplemented(void **state)
{
    struct calls *t = *state;

    expect_unimplemented(t, calls__echo__absent__method(), "/calls.Echo/Absent");
}

static void test_call_absent_streaming_handler_is_unimplemented(void **state)
{
    struct calls *t = *state;
    struct bow_method disguised = *calls__echo__stream__method();

    disguised.flags = 0;
    expect_unimplemented(t, &disguised, "/calls.Echo/Stream is not implemented");
}

static void test_call_streaming_method_is_refused_by_the_client(void **state)
{
    struct calls *t = *state;
    Calls__Request request = CALLS__REQUEST__INIT;

    assert_int_equal(bow_client_start(t->client, calls__echo__stream__method(), &request.base, NULL,
                                      NULL, NULL, NULL, NULL),
                     -EINVAL);
}

static void test_call_from_another_thread_is_answered(void **state)
{
    struct calls *t = *state;
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    const Calls__Reply *reply = calls__echo__later__call(t->client, &request, NULL, &result);
    assert_non_null(reply);
    assert_int_equal(reply->number, 77);
    bow_result_fini(&result);
}

/* A message whose bytes do not decode as the method's input: a string that is not UTF-8. */
static void test_call_undecodable_request_is_internal(void **state)
{
    struct calls *t = *state;
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;
    char text[] = "\xFF\xFE";

    request.text = text;
    assert_null(calls__echo__say__call(t->client, &request, NULL, &result));
    assert_int_equal(result.status.code, BOW_INTERNAL);
    assert_non_null(strstr(result.status.message, "calls.Request.text"));
    assert_non_null(strstr(result.status.message, "UTF-8"));
    bow_result_fini(&result);
    CALLS_WAIT_METRIC(t, undecodable_messages, 1);
}

static void test_call_undecodable_reply_is_internal(void **state)
{
    struct calls *t = *state;
    Calls__Request request = CALLS__REQUEST__INIT;
    Calls__Reply reply = CALLS__REPLY__INIT;
    char text[] = "\xC0";

    assert_int_equal(calls__echo__hold__start(t->client, &request, NULL, calls_on_done, t, NULL),
                     0);
    reply.text = text;
    assert_int_equal(calls__echo__hold__reply(calls_take_held(t), &reply), 0);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_INTERNAL);
    assert_non_null(strstr(t->result.status.message, "calls.Reply.text"));
}

static void test_call_reply_of_another_type_is_internal(void **state)
{
    struct calls *t = *state;
    Calls__Request request = CALLS__REQUEST__INIT;
    Calls__Request wrong = CALLS__REQUEST__INIT;

    assert_int_equal(calls__echo__hold__start(t->client, &request, NULL, calls_on_done, t, NULL),
                     0);
    assert_int_equal(bow_call_reply(calls_take_held(t), &wrong.base), -EINVAL);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_INTERNAL);
    assert_non_null(strstr(t->result.status.message, "calls.Reply"));
}

static void test_call_memory_over_the_cap_is_resource_exhausted(void **state)
{
    struct calls *t = *state;
    Calls__Request request = CALLS__REQUEST__INIT;

    assert_int_equal(calls__echo__hold__start(t->client, &request, NULL, calls_on_done, t, NULL),
                     0);
    struct bow_call *call = calls_take_held(t);
    assert_null(bow_call_alloc(call, (size_t)65 << 20));
    assert_int_equal(calls_reply(call, 1), -ENOMEM);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(t->result.status.message, "67108864"));
}

static const ProtobufCFieldDescriptor *text_of_reply(void)
{
    return protobuf_c_message_descriptor_get_field_by_name(&calls__reply__descriptor, "text");
}

/* Built without one look at what might have failed. */
static int reply_from_arena(struct bow_call *call, const char *text)
{
    struct bow_arena *arena = bow_call_arena(call);
    ProtobufCMessage *reply = bow_message_new(&calls__reply__descriptor, arena);

    (void)bow_message_set_string(reply, text_of_reply(), text, arena);
    return bow_call_reply(call, reply);
}

static void test_call_arena_is_where_a_reply_is_built(void **state)
{
    struct calls *t = *state;
    Calls__Request request = CALLS__REQUEST__INIT;

    assert_int_equal(calls__echo__hold__start(t->client, &request, NULL, calls_on_done, t, NULL),
                     0);
    assert_int_equal(reply_from_arena(calls_take_held(t), "built"), 0);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_OK);
    const Calls__Reply *reply = (const void *)t->result.reply;
    assert_string_equal(reply->text, "built");
    struct bow_arena *arena = bow_result_arena(&t->result);
    ProtobufCMessage *copy = bow_message_clone(t->result.reply, arena);
    assert_true(bow_message_equal(copy, t->result.reply)); /* it goes with the result */
}

/* Of a message that is there, and of one that could not be made. */
static void test_call_arena_that_failed_is_resource_exhausted(void **state)
{
    struct calls *t = *state;
    Calls__Request request = CALLS__REQUEST__INIT;

    for (int i = 1; i <= 2; i++) {
        assert_int_equal(
            calls__echo__hold__start(t->client, &request, NULL, calls_on_done, t, NULL), 0);
        struct bow_call *call = calls_take_held(t);
        assert_null(bow_arena_alloc(bow_call_arena(call), (size_t)65 << 20));
        assert_true(bow_arena_failed(bow_call_arena(call)));
        assert_int_equal(i == 1 ? bow_call_reply(call, NULL) : reply_from_arena(call, "lost"),
                         -ENOMEM);
        calls_wait(t, &t->n_done, i);
        assert_int_equal(t->result.status.code, BOW_RESOURCE_EXHAUSTED);
        assert_non_null(strstr(t->result.status.message, "67108864"));
        bow_result_fini(&t->result);
    }
}

static void test_call_reply_that_is_null_without_cause_is_internal(void **state)
{
    struct calls *t = *state;
    Calls__Request request = CALLS__REQUEST__INIT;

    assert_int_equal(calls__echo__hold__start(t->client, &request, NULL, calls_on_done, t, NULL),
                     0);
    assert_int_equal(bow_call_reply(calls_take_held(t), NULL), -EINVAL);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_INTERNAL);
}

/* Sizes */

static void send_payload(struct calls *t, size_t n_request, uint32_t n_reply)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    request.number = 'r';
    request.payload.len = n_request;
    request.payload.data = malloc(n_request + 1);
    memset(request.payload.data, 'q', n_request);
    request.reply_bytes = n_reply;
    const Calls__Reply *reply = calls__echo__say__call(t->client, &request, NULL, &result);
    assert_string_equal(result.status.message, "");
    assert_non_null(reply);
    size_t expected = n_reply > 0 ? n_reply : n_request;
    assert_int_equal(reply->payload.len, expected);
    for (size_t i = 0; i < expected; i++) {
        assert_int_equal(reply->payload.data[i], n_reply > 0 ? 'r' : 'q');
    }
    bow_result_fini(&result);
    free(request.payload.data);
}

static void test_call_of_each_size_replies(void **state)
{
    static const size_t sizes[] = {1, 200, 250, 256, 300, 4000, 16000, 16384, 16500, 65536, 70000};
    struct calls *t = *state;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        send_payload(t, sizes[i], 0);
    }
}

static void test_call_of_3_mib_replies_3_mib(void **state)
{
    send_payload(*state, (size_t)3 << 20, 0);
    send_payload(*state, 10, 3u << 20);
}

static void test_call_request_over_the_limit_is_resource_exhausted(void **state)
{
    struct calls *t = *state;
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    request.payload.len = (size_t)5 << 20;
    request.payload.data = calloc(1, request.payload.len);
    assert_null(calls__echo__say__call(t->client, &request, NULL, &result));
    assert_int_equal(result.status.code, BOW_RESOURCE_EXHAUSTED);
    bow_result_fini(&result);
    free(request.payload.data);
    send_payload(t, 10, 0); /* the connection is as good as before, or another one is made */
}

static void test_call_reply_over_the_limit_is_resource_exhausted(void **state)
{
    struct calls *t = *state;
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    request.reply_bytes = 5u << 20;
    assert_null(calls__echo__say__call(t->client, &request, NULL, &result));
    assert_int_equal(result.status.code, BOW_RESOURCE_EXHAUSTED);
    bow_result_fini(&result);
    send_payload(t, 10, 0);
}

/* Metrics */

static void find_say(const struct bow_method_metrics *metrics, void *user)
{
    struct bow_method_metrics *found = user;

    if (strcmp(metrics->path, "/calls.Echo/Say") == 0) {
        *found = *metrics;
    }
}

static void test_call_is_counted_by_method_and_code(void **state)
{
    struct calls *t = *state;
    struct bow_method_metrics say = {0};
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    send_payload(t, 100, 0);
    request.code = BOW_ABORTED;
    assert_null(calls__echo__say__call(t->client, &request, NULL, &result));
    bow_result_fini(&result);
    do { /* they are published behind those of the server, by the same task */
        CALLS_WAIT_METRIC(t, calls_ended, 2);
        bow_server_each_method(t->server, find_say, &say);
    } while (say.started < 2);
    assert_int_equal(say.started, 2);
    assert_int_equal(say.ended[BOW_OK], 1);
    assert_int_equal(say.ended[BOW_ABORTED], 1);
    assert_true(say.bytes_in > 100);
    assert_true(say.bytes_out > 100);
    assert_true(say.total_ns > 0);
}

/* Times at the edges of what a number holds: none of them is over at once. */
static void test_call_f06_times_at_the_edges_expire_nothing(void **state)
{
    static const uint64_t timeouts_ns[] = {
        INT64_MAX - 1, INT64_MAX, (uint64_t)INT64_MAX + 1, BOW_NEVER - 1, BOW_NEVER,
        (uint64_t)-1,  0};
    struct calls *t = *state;
    Calls__Request request = CALLS__REQUEST__INIT;

    for (size_t i = 0; i < sizeof(timeouts_ns) / sizeof(timeouts_ns[0]); i++) {
        struct bow_result result = BOW_RESULT_INIT;
        struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
        options.timeout_ns = timeouts_ns[i];
        assert_non_null(calls__echo__say__call(t->client, &request, &options, &result));
        bow_result_fini(&result);
    }
    assert_int_equal(t->n_said, sizeof(timeouts_ns) / sizeof(timeouts_ns[0]));
}

/* Stalls */

#define N_TIMED 300
#define PATIENCE_NS (10000 * MS)

static int compare_times(const void *left, const void *right)
{
    const uint64_t *a = left;
    const uint64_t *b = right;
    return (*a > *b) - (*a < *b);
}

static uint64_t time_99_of_100(struct calls *t)
{
    const struct bow_system *system = bow_system_default();
    Calls__Request request = CALLS__REQUEST__INIT;
    uint64_t times[N_TIMED];

    for (int i = 0; i < N_TIMED; i++) {
        struct bow_result result = BOW_RESULT_INIT;
        uint64_t started = system->now_ns(system->user);
        assert_non_null(calls__echo__say__call(t->client, &request, NULL, &result));
        times[i] = system->now_ns(system->user) - started;
        bow_result_fini(&result);
    }
    qsort(times, N_TIMED, sizeof(times[0]), compare_times);
    return times[N_TIMED * 99 / 100];
}

static void test_call_f32_small_ones_never_stall(void **state)
{
    const struct bow_system *system = bow_system_default();
    uint64_t best = BOW_NEVER;
    uint64_t end = system->now_ns(system->user) + PATIENCE_NS;

    /* Whoever else uses the machine does so at one time, a stall of the protocol's at all. */
    while (best >= 5 * MS && system->now_ns(system->user) < end) {
        uint64_t took = time_99_of_100(*state);
        best = took < best ? took : best;
    }
    assert_true(best < 5 * MS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup, calls_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_call_say_replies),
        TEST(test_call_f27_empty_message_replies),
        TEST(test_call_started_completes_on_the_loop),
        TEST(test_call_fail_status_arrives),
        TEST(test_call_fail_with_ok_is_internal),
        TEST(test_call_unknown_method_is_named),
        TEST(test_call_unknown_service_is_named),
        TEST(test_call_absent_handler_is_unimplemented),
        TEST(test_call_absent_streaming_handler_is_unimplemented),
        TEST(test_call_streaming_method_is_refused_by_the_client),
        TEST(test_call_from_another_thread_is_answered),
        TEST(test_call_undecodable_request_is_internal),
        TEST(test_call_undecodable_reply_is_internal),
        TEST(test_call_reply_of_another_type_is_internal),
        TEST(test_call_memory_over_the_cap_is_resource_exhausted),
        TEST(test_call_arena_is_where_a_reply_is_built),
        TEST(test_call_arena_that_failed_is_resource_exhausted),
        TEST(test_call_reply_that_is_null_without_cause_is_internal),
        TEST(test_call_of_each_size_replies),
        TEST(test_call_of_3_mib_replies_3_mib),
        TEST(test_call_request_over_the_limit_is_resource_exhausted),
        TEST(test_call_reply_over_the_limit_is_resource_exhausted),
        TEST(test_call_is_counted_by_method_and_code),
        TEST(test_call_f06_times_at_the_edges_expire_nothing),
        TEST(test_call_f32_small_ones_never_stall),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
