/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Generated stubs on both sides, a method of each kind: typed handles, events and handlers, the
 * client's blocking style, and a handler on an executor that makes blocking calls.
 */

#include "call_fixture.h"
#include "protos/kinds.bow.h"

#include <bowline/call_stream.h>
#include <bowline/executor.h>
#include <bowline/stream.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)
#define MANY 2000u

struct kinds {
    struct calls *calls;
    struct bow_executor *executor;
    struct bow_client *client; /* of the test's thread, and of Ask's */
};

/* The service. What a call remembers is in its memory. */

static void on_summand(struct kinds__all__sum__call call, const Kinds__Number *message, void *user)
{
    uint64_t *sum = user;

    (void)call;
    *sum += message->value;
}

static void on_last_summand(struct kinds__all__sum__call call, void *user)
{
    const uint64_t *sum = user;
    Kinds__Number reply = KINDS__NUMBER__INIT;

    reply.value = *sum;
    (void)kinds__all__sum__reply(call, &reply);
}

static void sum(struct kinds__all__sum__call call, void *user)
{
    static const struct kinds__all__sum__call_events events = {
        .on_message = on_summand,
        .on_half_close = on_last_summand,
    };
    uint64_t *total = bow_call_alloc(call.call, sizeof(*total));

    (void)user;
    *total = 0;
    (void)kinds__all__sum__listen(call, &events, total);
}

struct counting {
    uint64_t sent;
    uint64_t last;
};

static void count_on(struct kinds__all__count__call call, void *user)
{
    struct counting *counting = user;
    Kinds__Number number = KINDS__NUMBER__INIT;
    int rc = 0;

    while (rc == 0 && counting->sent < counting->last) {
        number.value = counting->sent + 1;
        rc = kinds__all__count__send(call, &number);
        counting->sent += rc == 0;
    }
    if (rc == 0) {
        (void)kinds__all__count__finish(call);
    }
}

static void count(struct kinds__all__count__call call, const Kinds__Number *request, void *user)
{
    static const struct kinds__all__count__call_events events = {.on_writable = count_on};
    struct counting *counting = bow_call_alloc(call.call, sizeof(*counting));

    (void)user;
    *counting = (struct counting){.last = request->value};
    (void)kinds__all__count__listen(call, &events, counting);
    count_on(call, counting);
}

/* Reads no further while nothing more can be sent. */
static void on_single(struct kinds__all__double__call call, const Kinds__Number *message,
                      void *user)
{
    Kinds__Number twice = KINDS__NUMBER__INIT;

    (void)user;
    twice.value = 2 * message->value;
    assert_int_equal(kinds__all__double__send(call, &twice), 0);
    if (!bow_call_is_writable(call.call)) {
        bow_call_pause(call.call);
    }
}

static void on_room(struct kinds__all__double__call call, void *user)
{
    (void)user;
    bow_call_resume(call.call);
}

static void on_last_single(struct kinds__all__double__call call, void *user)
{
    (void)user;
    (void)kinds__all__double__finish(call);
}

static void twice(struct kinds__all__double__call call, void *user)
{
    static const struct kinds__all__double__call_events events = {
        .on_message = on_single,
        .on_half_close = on_last_single,
        .on_writable = on_room,
    };

    (void)kinds__all__double__listen(call, &events, user);
}

/* As a program of one thread would write it: count, and hand each number on. */
static int sum_of_count(struct kinds *k, struct bow_call *parent, const Kinds__Number *request,
                        uint64_t *ret_sum)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct kinds__all__count__stream numbers;
    struct kinds__all__sum__stream summands;
    struct bow_result result = BOW_RESULT_INIT;
    const Kinds__Number *number = NULL;
    int rc = 0;

    options.parent = parent;
    if (kinds__all__count__open(k->client, request, &options, NULL, NULL, &numbers) < 0) {
        return -1;
    }
    if (kinds__all__sum__open(k->client, &options, NULL, NULL, &summands) < 0) {
        bow_stream_cancel(numbers.stream);
        (void)kinds__all__count__stream_finish(numbers, &result);
        bow_result_fini(&result);
        return -1;
    }
    while (rc == 0 && kinds__all__count__stream_receive(numbers, BOW_NEVER, &number) == 1) {
        rc = kinds__all__sum__stream_write(summands, number, BOW_NEVER);
    }
    (void)kinds__all__count__stream_finish(numbers, &result);
    rc = result.status.code != BOW_OK ? -1 : rc;
    bow_result_fini(&result);
    const Kinds__Number *total = kinds__all__sum__stream_finish(summands, &result);
    *ret_sum = total != NULL ? total->value : 0;
    rc = total == NULL ? -1 : rc;
    bow_result_fini(&result);
    return rc;
}

static void ask(struct bow_call *call, const Kinds__Number *request, void *user)
{
    Kinds__Number reply = KINDS__NUMBER__INIT;

    if (sum_of_count(user, call, request, &reply.value) < 0) {
        (void)bow_call_fail(call, BOW_INTERNAL, "no sum of a count");
        return;
    }
    (void)kinds__all__ask__reply(call, &reply);
}

static const struct kinds__all__handlers handlers = {
    .sum = sum,
    .count = count,
    .double_ = twice,
    .ask = ask,
};

/* Life */

static int setup(void **state)
{
    struct bow_executor_options executor_options = BOW_EXECUTOR_OPTIONS_INIT;
    struct bow_server_options server_options;
    struct bow_client_options client_options;
    struct kinds *k = calloc(1, sizeof(*k));
    void *calls = NULL;

    assert_int_equal(calls_setup_bare(&calls), 0);
    struct calls *t = calls;
    k->calls = t;
    executor_options.n_threads = 2;
    assert_int_equal(bow_executor_new(t->context, &executor_options, &k->executor), 0);
    calls_server_options(t, &server_options);
    assert_int_equal(bow_server_new(&server_options, &t->server), 0);
    assert_int_equal(kinds__all__serve(t->server, &handlers, k), 0);
    assert_int_equal(bow_server_bind(t->server, "kinds.All/Ask", k->executor), 0);
    assert_int_equal(bow_server_start(t->server), 0);
    if (calls_has_port()) {
        snprintf(t->address, sizeof(t->address), "127.0.0.1:%u", bow_server_port(t->server));
    }
    snprintf(t->target, sizeof(t->target), "%s%s", calls_is_grpc() ? "grpc:" : "", t->address);
    calls_client_options(t, &client_options);
    k->client = calls_new_client(t, &client_options);
    *state = k;
    return 0;
}

static int teardown(void **state)
{
    struct kinds *k = *state;
    void *calls = k->calls;

    bow_client_free(k->client);
    bow_server_free(k->calls->server);
    k->calls->server = NULL;
    bow_executor_unref(k->executor);
    assert_int_equal(calls_teardown(&calls), 0);
    free(k);
    return 0;
}

/* Tests */

static Kinds__Number number_of(uint64_t value)
{
    Kinds__Number number = KINDS__NUMBER__INIT;

    number.value = value;
    return number;
}

static void expect_ok(struct bow_result *result)
{
    assert_string_equal(result->status.message, "");
    assert_int_equal(result->status.code, BOW_OK);
    bow_result_fini(result);
}

static void test_kinds_client_streams(void **state)
{
    struct kinds *k = *state;
    struct kinds__all__sum__stream stream;
    struct bow_result result = BOW_RESULT_INIT;

    assert_int_equal(kinds__all__sum__open(k->client, NULL, NULL, NULL, &stream), 0);
    for (uint64_t i = 1; i <= MANY; i++) {
        Kinds__Number number = number_of(i);
        assert_int_equal(kinds__all__sum__stream_write(stream, &number, 20 * SECOND), 0);
    }
    const Kinds__Number *sum_of_all = kinds__all__sum__stream_finish(stream, &result);
    assert_non_null(sum_of_all);
    assert_int_equal(sum_of_all->value, (uint64_t)MANY * (MANY + 1) / 2);
    expect_ok(&result);
}

static void test_kinds_server_streams(void **state)
{
    struct kinds *k = *state;
    struct kinds__all__count__stream stream;
    struct bow_result result = BOW_RESULT_INIT;
    Kinds__Number request = number_of(10u * MANY);
    const Kinds__Number *number = NULL;
    uint64_t n = 0;

    assert_int_equal(kinds__all__count__open(k->client, &request, NULL, NULL, NULL, &stream), 0);
    while (kinds__all__count__stream_receive(stream, 20 * SECOND, &number) == 1) {
        assert_int_equal(number->value, ++n);
    }
    assert_int_equal(n, 10u * MANY);
    assert_int_equal(kinds__all__count__stream_finish(stream, &result), 0);
    expect_ok(&result);
}

static void test_kinds_both_stream(void **state)
{
    struct kinds *k = *state;
    struct kinds__all__double__stream stream;
    struct bow_result result = BOW_RESULT_INIT;
    const Kinds__Number *number = NULL;

    assert_int_equal(kinds__all__double__open(k->client, NULL, NULL, NULL, &stream), 0);
    for (uint64_t i = 1; i <= MANY; i++) {
        Kinds__Number one = number_of(i);
        assert_int_equal(kinds__all__double__stream_write(stream, &one, 20 * SECOND), 0);
        assert_int_equal(kinds__all__double__stream_receive(stream, 20 * SECOND, &number), 1);
        assert_int_equal(number->value, 2 * i);
    }
    assert_int_equal(bow_stream_half_close(stream.stream), 0);
    assert_int_equal(kinds__all__double__stream_receive(stream, 20 * SECOND, &number), 0);
    assert_int_equal(kinds__all__double__stream_finish(stream, &result), 0);
    expect_ok(&result);
}

static void test_kinds_handler_on_an_executor_calls_on(void **state)
{
    struct kinds *k = *state;
    struct bow_result result = BOW_RESULT_INIT;
    Kinds__Number request = number_of(MANY);

    const Kinds__Number *reply = kinds__all__ask__call(k->client, &request, NULL, &result);
    assert_string_equal(result.status.message, "");
    assert_non_null(reply);
    assert_int_equal(reply->value, (uint64_t)MANY * (MANY + 1) / 2);
    bow_result_fini(&result);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_kinds_client_streams),
        TEST(test_kinds_server_streams),
        TEST(test_kinds_both_stream),
        TEST(test_kinds_handler_on_an_executor_calls_on),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
