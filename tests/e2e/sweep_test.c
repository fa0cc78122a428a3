/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Each allocation failing in turn, alone and with all that follow, over whole scenarios:
 * every call ends, with OK or with a status that says want of memory; it does not take a
 * time-out to end; nothing is left; and when memory is back, what survived serves again.
 */

#include "sweep.h"

#include <bowline/call_set.h>
#include <bowline/metadata.h>
#include <bowline/stream.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)
/* A call that ended by its deadline, or by the heartbeat, hung. */
#define PATIENCE_NS (15 * SECOND)
#define BIG_BYTES 100000u

static bool is_grpc;
static size_t step = 1; /* which allocations fail: the first, and each so many further */

struct scenario {
    const char *name;
    void (*run)(struct sweep *sweep);
    int (*prepare)(struct sweep *sweep, struct bow_server *server);
    bool packs;
};

/* What may become of a call. */

static void note(struct sweep *sweep, const struct bow_status *status)
{
    switch (status->code) {
    case BOW_OK:
        sweep->n_ok++;
        return;
    case BOW_RESOURCE_EXHAUSTED:
    case BOW_UNAVAILABLE:
        sweep->n_short++;
        return;
    default:
        sweep->n_strange++;
        snprintf(sweep->strange, sizeof(sweep->strange), "%s: %s", bow_code_name(status->code),
                 status->message);
    }
}

static void note_result(struct sweep *sweep, struct bow_result *result)
{
    note(sweep, &result->status);
    bow_result_fini(result);
}

/* What could not even be started. */
static void note_error(struct sweep *sweep, int rc)
{
    if (rc == -ENOMEM || rc == -EAGAIN) {
        sweep->n_short++;
        return;
    }
    sweep->n_strange++;
    snprintf(sweep->strange, sizeof(sweep->strange), "start: %d", rc);
}

static void on_done(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    struct sweep *sweep = user;

    sweep->n_done++;
    note(sweep, &result->status);
    if ((reply != NULL) != (result->status.code == BOW_OK)) {
        sweep->n_strange++;
    }
}

static void start_say(struct sweep *sweep, const Calls__Request *request,
                      const struct bow_call_options *options)
{
    int rc = calls__echo__say__start(sweep->pair->client, request, options, on_done, sweep, NULL);
    if (rc < 0) {
        note_error(sweep, rc);
    } else {
        sweep->n_started++;
    }
}

static void say(struct sweep *sweep, const Calls__Request *request)
{
    struct bow_result result = BOW_RESULT_INIT;

    (void)calls__echo__say__call(sweep->pair->blocking, request, NULL, &result);
    note_result(sweep, &result);
}

static void run_loop(struct sweep *sweep)
{
    if (bow_test_run(sweep->test) < 0) {
        sweep->n_strange++;
    }
}

/* Scenarios */

static uint8_t big[BIG_BYTES];

static void run_unary(struct sweep *sweep)
{
    static const struct bow_metadata_entry entries[] = {
        {"trace", {(const uint8_t *)"abc", 3}},
        {"blob-bin", {(const uint8_t *)"\0\1\2", 3}},
    };
    const struct bow_metadata metadata = {entries, 2};
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    options.metadata = &metadata;
    request.text = (char *)(uintptr_t) "metadata, please";
    start_say(sweep, &request, &options);
    start_say(sweep, &request, NULL);
    run_loop(sweep);
    say(sweep, &request);
}

static void run_big(struct sweep *sweep)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    request.payload.data = big;
    request.payload.len = sizeof(big);
    request.reply_bytes = BIG_BYTES;
    start_say(sweep, &request, NULL);
    run_loop(sweep);
    say(sweep, &request);
}

static void run_sum(struct sweep *sweep)
{
    struct bow_result result = BOW_RESULT_INIT;
    struct kinds__all__sum__stream stream;
    Kinds__Number number = KINDS__NUMBER__INIT;

    int rc = kinds__all__sum__open(sweep->pair->blocking, NULL, NULL, NULL, &stream);
    if (rc < 0) {
        note_error(sweep, rc);
        return;
    }
    for (number.value = 1; rc == 0 && number.value <= 20; number.value++) {
        rc = kinds__all__sum__stream_write(stream, &number, PATIENCE_NS);
    }
    if (rc < 0 && rc != -ECANCELED) {
        bow_stream_cancel(stream.stream); /* the rest would be another sum */
    }
    const Kinds__Number *total = kinds__all__sum__stream_finish(stream, &result);
    if (rc == -ENOMEM && result.status.code == BOW_CANCELLED) {
        sweep->n_short++;
        bow_result_fini(&result);
        return;
    }
    sweep->n_strange += total != NULL && total->value != 210;
    note_result(sweep, &result);
}

static void run_count(struct sweep *sweep)
{
    struct bow_result result = BOW_RESULT_INIT;
    struct kinds__all__count__stream stream;
    Kinds__Number request = KINDS__NUMBER__INIT;
    const Kinds__Number *number = NULL;
    uint64_t n = 0;

    request.value = 50;
    int rc = kinds__all__count__open(sweep->pair->blocking, &request, NULL, NULL, NULL, &stream);
    if (rc < 0) {
        note_error(sweep, rc);
        return;
    }
    while (kinds__all__count__stream_receive(stream, PATIENCE_NS, &number) == 1) {
        sweep->n_strange += number->value != ++n;
    }
    (void)kinds__all__count__stream_finish(stream, &result);
    sweep->n_strange += result.status.code == BOW_OK && n != 50;
    note_result(sweep, &result);
}

static void run_double(struct sweep *sweep)
{
    struct bow_result result = BOW_RESULT_INIT;
    struct kinds__all__double__stream stream;
    Kinds__Number one = KINDS__NUMBER__INIT;
    const Kinds__Number *two = NULL;

    int rc = kinds__all__double__open(sweep->pair->blocking, NULL, NULL, NULL, &stream);
    if (rc < 0) {
        note_error(sweep, rc);
        return;
    }
    for (one.value = 1; rc >= 0 && one.value <= 10; one.value++) {
        rc = kinds__all__double__stream_write(stream, &one, PATIENCE_NS);
        if (rc == 0) {
            rc = kinds__all__double__stream_receive(stream, PATIENCE_NS, &two) == 1 ? 0 : -EPIPE;
            sweep->n_strange += rc == 0 && two->value != 2 * one.value;
        }
    }
    (void)kinds__all__double__stream_finish(stream, &result);
    note_result(sweep, &result);
}

static void run_ask(struct sweep *sweep)
{
    struct bow_result result = BOW_RESULT_INIT;
    Kinds__Number request = KINDS__NUMBER__INIT;

    request.value = 7;
    const Kinds__Number *reply =
        kinds__all__ask__call(sweep->pair->blocking, &request, NULL, &result);
    sweep->n_strange += reply != NULL && reply->value != 7;
    note_result(sweep, &result);
}

static void on_set_done(struct bow_call_set *set, void *user)
{
    struct sweep *sweep = user;

    for (uint32_t i = 0; i < bow_call_set_n_calls(set); i++) {
        note(sweep, &bow_call_set_result(set, i)->status);
        sweep->n_done++;
    }
}

static void run_set(struct sweep *sweep)
{
    struct bow_call_set_options options = BOW_CALL_SET_OPTIONS_INIT;
    struct bow_call_set *set = NULL;
    Calls__Request request = CALLS__REQUEST__INIT;

    options.max_calls = 3;
    int rc = bow_call_set_new(bow_test_loop(sweep->test), &options, on_set_done, sweep, &set);
    if (rc < 0) {
        note_error(sweep, rc);
        return;
    }
    for (int i = 0; i < 3; i++) {
        rc = bow_call_set_start(set, sweep->pair->client, calls__echo__say__method(), &request.base,
                                NULL);
        sweep->n_started += rc >= 0;
        if (rc < 0) {
            note_error(sweep, rc);
        }
    }
    bow_call_set_commit(set);
    run_loop(sweep);
    bow_call_set_free(set);
}

static void run_reconnect(struct sweep *sweep)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    for (int i = 0; i < 3; i++) {
        start_say(sweep, &request, NULL);
        run_loop(sweep);
        say(sweep, &request);
        bow_test_break(sweep->test, BOW_TEST_RESET);
        if (bow_test_advance(sweep->test, SECOND) < 0) {
            sweep->n_strange++;
        }
    }
}

static int listen_more(struct sweep *sweep, struct bow_server *server)
{
    struct bow_listen_options options = BOW_LISTEN_OPTIONS_INIT;
    (void)sweep;

    options.address = "inproc:more";
    int rc = bow_server_listen(server, &options);
    options.address = "inproc:yet-more";
    return rc < 0 ? rc : bow_server_listen(server, &options);
}

static void run_listeners(struct sweep *sweep)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_client *client = NULL;
    struct bow_result result = BOW_RESULT_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    options.context = bow_test_context(sweep->test);
    options.target = is_grpc ? "grpc:inproc:yet-more" : "inproc:yet-more";
    int rc = bow_client_new(&options, &client);
    if (rc < 0) {
        note_error(sweep, rc);
        return;
    }
    (void)calls__echo__say__call(client, &request, NULL, &result);
    note_result(sweep, &result);
    bow_client_free(client);
}

/* One that the test drives, for a thread would not know of the clock. */
static int bind_to_executor(struct sweep *sweep, struct bow_server *server)
{
    struct bow_executor_options options = BOW_EXECUTOR_OPTIONS_INIT;

    options.n_threads = 0;
    int rc = bow_executor_new(bow_test_context(sweep->test), &options, &sweep->executor);
    return rc < 0 ? rc : bow_server_bind(server, "calls.Echo", sweep->executor);
}

static void run_executor(struct sweep *sweep)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    start_say(sweep, &request, NULL);
    start_say(sweep, &request, NULL);
    for (int i = 0; i < 5; i++) {
        run_loop(sweep);
        (void)!bow_executor_run_once(sweep->executor, 0);
    }
    run_loop(sweep);
}

/* What holds after each */

static int make_pair(struct sweep *sweep, const struct scenario *scenario)
{
    struct bow_test_pair_options options = BOW_TEST_PAIR_OPTIONS_INIT;
    struct bow_server_options server = BOW_SERVER_OPTIONS_INIT;
    struct bow_client_options client = BOW_CLIENT_OPTIONS_INIT;

    if (scenario->packs) {
        server.compression = BOW_COMPRESSION_AUTO;
        client.compression = server.compression;
    }
    sweep->prepare = scenario->prepare;
    options.serve = sweep_serve;
    options.user = sweep;
    options.grpc = is_grpc;
    options.server = &server;
    options.client = &client;
    return bow_test_pair_new(sweep->test, &options, &sweep->pair);
}

static int complain(const struct scenario *scenario, const struct sweep *sweep, const char *what)
{
    print_error("%s: %s: %d ok, %d short, %d strange (%s), %d of %d done\n", scenario->name, what,
                sweep->n_ok, sweep->n_short, sweep->n_strange, sweep->strange, sweep->n_done,
                sweep->n_started);
    return -EIO;
}

/* Memory is back, and so is every back-off. */
static bool serves_again(struct sweep *sweep, const struct scenario *scenario)
{
    int n_ok = 0;

    bow_test_fail_allocation(sweep->test, 0);
    if (bow_test_advance(sweep->test, 120 * SECOND) < 0) {
        return false;
    }
    n_ok = sweep->n_ok;
    scenario->run(sweep);
    return sweep->n_ok > n_ok && sweep->n_strange == 0;
}

static int check(struct sweep *sweep, const struct scenario *scenario)
{
    uint64_t began = bow_test_now(sweep->test);

    scenario->run(sweep);
    if (sweep->n_strange > 0) {
        return complain(scenario, sweep, "no status of memory");
    }
    if (sweep->n_done != sweep->n_started) {
        return complain(scenario, sweep, "a call does not end");
    }
    if (bow_test_now(sweep->test) - began >= PATIENCE_NS) {
        return complain(scenario, sweep, "it took a time-out");
    }
    if (sweep->n_short > 0 && bow_test_failed_allocations(sweep->test) == 0) {
        return complain(scenario, sweep, "want of what?");
    }
    int n_short = sweep->n_short;
    if (!serves_again(sweep, scenario) || sweep->n_short != n_short) {
        return complain(scenario, sweep, "does not serve again");
    }
    return 0;
}

static int run_scenario(struct bow_test *test, const struct scenario *scenario)
{
    struct sweep sweep = {.test = test};
    int rc = make_pair(&sweep, scenario);

    if (rc == 0) {
        rc = check(&sweep, scenario);
        bow_test_pair_free(test, sweep.pair);
    } else if (rc == -ENOMEM && bow_test_failed_allocations(test) > 0) {
        rc = 0;
    }
    if (sweep.executor != NULL) {
        bow_test_fail_allocation(test, 0);
        bow_executor_unref(sweep.executor);
    }
    return rc;
}

/* Returns false when the run met no failure. */
static bool run_failing(const struct scenario *scenario, size_t at, bool and_after)
{
    struct bow_test *test = NULL;

    assert_int_equal(bow_test_new(NULL, &test), 0);
    (and_after ? bow_test_fail_allocations : bow_test_fail_allocation)(test, at);
    int rc = run_scenario(test, scenario);
    bool met_one = bow_test_failed_allocations(test) > 0;
    bow_test_fail_allocation(test, 0);
    if (bow_test_end(test) > 0 || rc < 0) {
        fail_msg("%s: with allocation %zu failing%s: %d", scenario->name, at,
                 and_after ? " and all after it" : "", rc);
    }
    return met_one;
}

static void sweep_over(void **state)
{
    const struct scenario *scenario = *state;
    size_t at = 1;

    while (run_failing(scenario, at, false)) {
        (void)run_failing(scenario, at, true);
        at += step;
    }
    assert_true(at > 20);
}

static struct scenario scenarios[] = {
    {.name = "unary", .run = run_unary},
    {.name = "big", .run = run_big},
    {.name = "packed", .run = run_big, .packs = true},
    {.name = "client_stream", .run = run_sum},
    {.name = "server_stream", .run = run_count},
    {.name = "both_stream", .run = run_double},
    {.name = "call_on", .run = run_ask},
    {.name = "call_set", .run = run_set},
    {.name = "reconnect", .run = run_reconnect},
    {.name = "listeners", .run = run_listeners, .prepare = listen_more},
    {.name = "executor", .run = run_executor, .prepare = bind_to_executor},
};

#define N_SCENARIOS (sizeof(scenarios) / sizeof(scenarios[0]))

int main(int argc, char **argv)
{
    struct CMUnitTest tests[N_SCENARIOS];
    char names[N_SCENARIOS][96];

    is_grpc = argc > 1 && strcmp(argv[1], "grpc") == 0;
    step = argc > 2 ? (size_t)atoi(argv[2]) : step;
    memset(big, 'y', sizeof(big));
    for (size_t i = 0; i < N_SCENARIOS; i++) {
        snprintf(names[i], sizeof(names[i]),
                 "test_sweep_%s_with_each_allocation_failing_is_survived", scenarios[i].name);
        tests[i] = (struct CMUnitTest){
            .name = names[i], .test_func = sweep_over, .initial_state = &scenarios[i]};
    }
    return cmocka_run_group_tests_name("sweep", tests, NULL, NULL);
}
