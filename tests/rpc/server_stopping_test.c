/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * on_stopping: told once for each server that had begun, on its main loop, whatever ends it; what
 * the server still does then; and that who ends his streams in it loses none of their messages.
 */

#include "bound.h"
#include "call_fixture.h"
#include "grpc/health/v1/health.bow.h"
#include "protos/kinds.bow.h"
#include "tests/support/gate.h"

#include <bowline/stream.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define HOUR_NS (UINT64_C(3600) * 1000 * MS)

struct stopping {
    struct calls *t;
    struct gate told;
    struct bow_server *server; /* that it was told of */
    struct bow_loop *main;     /* NULL: not the test's to know */
    bool on_main;
    pthread_t thread;
    atomic_bool is_stopping; /* a function that stops it runs */
    bool inside;             /* told meanwhile */
    bool frees;
    enum bow_code said; /* what calls came to that were made in it */
    int health;
};

static void note(struct bow_server *server, struct stopping *stopping)
{
    stopping->server = server;
    stopping->thread = pthread_self();
    stopping->on_main = stopping->main != NULL && bow_loop_in_loop(stopping->main);
    stopping->inside = atomic_load(&stopping->is_stopping);
}

static void on_stopping(struct bow_server *server, void *user)
{
    struct stopping *stopping = user;

    note(server, stopping);
    if (stopping->frees) {
        bow_server_free(server);
    }
    gate_add(&stopping->told);
}

static void begin(struct stopping *stopping, struct calls *t)
{
    *stopping = (struct stopping){.t = t};
    gate_init(&stopping->told);
}

static void options_of(struct stopping *stopping, struct bow_server_options *ret_options)
{
    calls_server_options(stopping->t, ret_options);
    ret_options->on_stopping = on_stopping;
    ret_options->stopping_user = stopping;
}

static void expect_told_once(struct stopping *stopping, const struct bow_server *server)
{
    assert_int_equal(gate_count(&stopping->told), 1);
    assert_ptr_equal(stopping->server, server);
    assert_true(stopping->on_main == (stopping->main != NULL));
    assert_false(stopping->inside);
    gate_fini(&stopping->told);
}

/* Each binding, and each way to an end */

enum way { STOP, STOP_ON_MAIN, SHUTDOWN, FREE, N_WAYS };

static int stop_task(void *user)
{
    struct stopping *stopping = user;

    atomic_store(&stopping->is_stopping, true);
    bow_server_stop(stopping->t->server);
    bow_server_stop(stopping->t->server);
    atomic_store(&stopping->is_stopping, false);
    return 0;
}

static struct bow_loop *main_of(const struct bound *bound)
{
    return bound->binding == GROUP ? bow_group_get(bound->group, 0) : bound->loop;
}

static void join(struct bound *bound, struct bow_server *server)
{
    while (bow_server_join(server) != 0) {
        assert_non_null(bound_driven(bound));
        assert_int_equal(bow_loop_run_once(bound_driven(bound), BOUND_TURN_NS), 0);
    }
}

/* The server on a thread of another's loop has stopped when this returns. */
static void end(struct bound *bound, struct stopping *stopping, enum way way)
{
    struct calls *t = stopping->t;

    switch (way) {
    case STOP:
        bow_server_stop(t->server);
        bow_server_stop(t->server);
        break;
    case STOP_ON_MAIN:
        assert_int_equal(bow_loop_execute(stopping->main, "stop", stop_task, stopping), 0);
        gate_wait(&stopping->told, bound_driven(bound) == NULL ? 1 : 0);
        break;
    case SHUTDOWN:
        assert_int_equal(bow_loop_shutdown(stopping->main, 0, 0), 0);
        break;
    default:
        return; /* by who frees it */
    }
    while (bound_driven(bound) != NULL && gate_count(&stopping->told) == 0) {
        assert_int_equal(bow_loop_run_once(bound_driven(bound), BOUND_TURN_NS), 0);
    }
    join(bound, t->server);
}

static void end_each_way(struct bound *bound, enum way way, uint64_t lame_duck_ns)
{
    struct calls *t = bound->t;
    struct stopping stopping;
    struct bow_server_options options;
    struct bow_client_options client_options;

    begin(&stopping, t);
    stopping.main = main_of(bound);
    options_of(&stopping, &options);
    options.loop = bound->loop;
    options.group = bound->group;
    options.workers = bound->binding == WORKERS ? BOUND_N_WORKERS : 0;
    options.lame_duck_ns = lame_duck_ns;
    t->server = calls_start_server(t, &options);
    calls_client_options(t, &client_options);
    struct bow_client *client = calls_new_client(t, &client_options);
    bound_expect_say(t, client, bound_driven(bound));
    bow_client_free(client);
    assert_int_equal(gate_count(&stopping.told), 0);
    end(bound, &stopping, way);
    struct bow_server *server = t->server;
    calls_kill_server(t);
    while (gate_count(&stopping.told) == 0) { /* freed on the loop that the test drives */
        assert_non_null(bound_driven(bound));
        assert_int_equal(bow_loop_run_once(bound_driven(bound), BOUND_TURN_NS), 0);
    }
    expect_told_once(&stopping, server);
}

static void test_stopping_is_told_once_with_each_binding_whatever_ends_it(void **state)
{
    struct bound bound = {.t = *state};

    for (int binding = OWN; binding < N_BINDINGS; binding++) {
        for (int way = STOP; way < N_WAYS; way++) {
            bound_begin(&bound, (enum binding)binding);
            if (main_of(&bound) != NULL || way == STOP || way == FREE) {
                end_each_way(&bound, (enum way)way, 0);
            }
            bound_end(&bound);
            calls_name_address(bound.t->address, sizeof(bound.t->address));
        }
    }
}

/* The lame duck is over after a moment. */
static void test_stopping_is_told_before_the_lame_duck_is_over(void **state)
{
    struct bound bound = {.t = *state};

    for (int binding = OWN; binding < N_BINDINGS; binding++) {
        bound_begin(&bound, (enum binding)binding);
        end_each_way(&bound, STOP, MS);
        bound_end(&bound);
        calls_name_address(bound.t->address, sizeof(bound.t->address));
    }
}

/* The loop ends while the server is a lame duck, of which it was told. */
static void test_stopping_is_not_told_again_when_the_loop_ends(void **state)
{
    struct calls *t = *state;
    struct stopping stopping;
    struct bow_server_options options;

    begin(&stopping, t);
    options_of(&stopping, &options);
    options.loop = bound_new_loop(t, BOW_LOOP_OWN_THREAD);
    options.lame_duck_ns = HOUR_NS;
    stopping.main = options.loop;
    t->server = calls_start_server(t, &options);
    bow_server_stop(t->server);
    gate_wait(&stopping.told, 1);
    assert_int_equal(bow_loop_shutdown(options.loop, 0, 0), 0);
    assert_int_equal(bow_server_join(t->server), 0);
    struct bow_server *server = t->server;
    calls_kill_server(t);
    bow_loop_unref(options.loop);
    expect_told_once(&stopping, server);
}

static void test_stopping_of_one_that_was_stopped_before_its_start_is_told(void **state)
{
    struct calls *t = *state;
    struct stopping stopping;
    struct bow_server_options options;

    begin(&stopping, t);
    options_of(&stopping, &options);
    t->server = calls_make_server(t, &options);
    bow_server_stop(t->server);
    assert_int_equal(gate_count(&stopping.told), 0);
    assert_int_equal(bow_server_start(t->server), 0);
    assert_int_equal(bow_server_join(t->server), 0);
    expect_told_once(&stopping, t->server);
}

static void test_stopping_is_not_told_of_one_that_never_began(void **state)
{
    struct calls *t = *state;
    struct stopping stopping;
    struct bow_server_options options;

    begin(&stopping, t);
    options_of(&stopping, &options);
    options.listen = "nonsense";
    struct bow_server *server = calls_make_server(t, &options);
    assert_int_equal(bow_server_start(server), -EINVAL);
    bow_server_stop(server);
    bow_server_free(server);
    assert_int_equal(gate_count(&stopping.told), 0);
    gate_fini(&stopping.told);
}

static void end_loop(struct bow_loop *loop)
{
    assert_int_equal(bow_loop_shutdown(loop, 0, 0), 0);
    assert_int_equal(bow_loop_join(loop, BOW_NEVER), 0);
}

/* What is left of the server goes with the last of its loops, at the latest. */
static void end_loops(const struct bound *bound)
{
    if (bound->loop != NULL) {
        end_loop(bound->loop);
        return;
    }
    for (uint32_t i = 0; i < BOUND_N_WORKERS; i++) {
        end_loop(bow_group_get(bound->group, i));
    }
}

static void test_stopping_f20_server_freed_in_it_ends(void **state)
{
    struct bound bound = {.t = *state};

    for (int i = 0; i < 2; i++) {
        struct stopping stopping;
        struct bow_server_options options;
        bound_begin(&bound, i == 0 ? LOOP : GROUP);
        begin(&stopping, bound.t);
        options_of(&stopping, &options);
        options.loop = bound.loop;
        options.group = bound.group;
        stopping.main = main_of(&bound);
        stopping.frees = true;
        struct bow_server *server = calls_start_server(bound.t, &options);
        bow_server_stop(server);
        gate_wait(&stopping.told, 1);
        end_loops(&bound);
        bound_end(&bound);
        expect_told_once(&stopping, server);
        calls_name_address(bound.t->address, sizeof(bound.t->address));
    }
}

/* bow_server_run() */

static void stop_when_started(struct bow_server *server, void *user)
{
    struct stopping *stopping = user;

    (void)server;
    (void)stop_task(stopping);
}

static void signal_when_started(struct bow_server *server, void *user)
{
    (void)server;
    (void)user;
    assert_int_equal(kill(getpid(), SIGTERM), 0);
    assert_int_equal(kill(getpid(), SIGINT), 0);
}

/* An hour of lame duck ends by the second signal. */
static void test_stopping_is_told_on_the_thread_that_runs_the_server(void **state)
{
    struct calls *t = *state;

    for (int i = 0; i < 4; i++) {
        struct stopping stopping;
        struct bow_server_options options;
        bool is_signalled = i % 2 == 1;
        begin(&stopping, t);
        options_of(&stopping, &options);
        options.workers = i < 2 ? 0 : 2;
        options.lame_duck_ns = is_signalled ? HOUR_NS : 0;
        options.on_started = is_signalled ? signal_when_started : stop_when_started;
        options.started_user = &stopping;
        t->server = calls_make_server(t, &options);
        assert_int_equal(bow_server_run(t->server), 0);
        assert_true(pthread_equal(stopping.thread, pthread_self()));
        expect_told_once(&stopping, t->server);
        calls_kill_server(t);
        calls_name_address(t->address, sizeof(t->address));
    }
}

/* What the server does meanwhile */

static void ask(struct calls *t, struct stopping *stopping)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    Grpc__Health__V1__HealthCheckRequest about = GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    about.service = (char *)(uintptr_t) "calls.Echo";
    const Grpc__Health__V1__HealthCheckResponse *response =
        grpc__health__v1__health__check__call(t->client, &about, NULL, &result);
    stopping->health = response != NULL ? (int)response->status : -1;
    bow_result_fini(&result);
    (void)calls__echo__say__call(t->client, &request, NULL, &result);
    stopping->said = result.status.code;
    bow_result_fini(&result);
}

/* The workers serve while the main loop is here. */
static void ask_while_stopping(struct bow_server *server, void *user)
{
    struct stopping *stopping = user;

    note(server, stopping);
    ask(stopping->t, stopping);
    gate_add(&stopping->told);
}

static void test_stopping_server_is_unhealthy_and_serves(void **state)
{
    struct calls *t = *state;
    struct stopping stopping;
    struct bow_server_options options;
    struct bow_client_options client_options;

    begin(&stopping, t);
    options_of(&stopping, &options);
    options.on_stopping = ask_while_stopping;
    options.workers = 2;
    t->server = calls_start_server(t, &options);
    calls_client_options(t, &client_options);
    t->client = calls_new_client(t, &client_options);
    ask(t, &stopping);
    assert_int_equal(stopping.health,
                     GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING);
    assert_int_equal(stopping.said, BOW_OK);
    stopping.said = BOW_UNKNOWN;
    bow_server_stop(t->server);
    assert_int_equal(bow_server_join(t->server), 0);
    assert_int_equal(stopping.health,
                     GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING);
    assert_int_equal(stopping.said, BOW_OK);
    expect_told_once(&stopping, t->server);
}

/* Streams that it ends */

/* One that goes on until somebody ends it: as much as its client takes, and more when that reads.
 */
struct endless {
    struct gate full; /* it waits for its client */
    struct kinds__all__count__call call;
    uint64_t n_sent;
    bool is_over;
};

static void send_more(struct kinds__all__count__call call, void *user)
{
    struct endless *endless = user;
    Kinds__Number number = KINDS__NUMBER__INIT;
    int rc = 0;

    while (rc == 0 && !endless->is_over) {
        number.value = endless->n_sent + 1;
        rc = kinds__all__count__send(call, &number);
        endless->n_sent += rc == 0;
    }
    gate_add(&endless->full);
}

static void count(struct kinds__all__count__call call, const Kinds__Number *request, void *user)
{
    static const struct kinds__all__count__call_events events = {.on_writable = send_more};
    struct endless *endless = user;

    (void)request;
    endless->call = call;
    assert_int_equal(kinds__all__count__listen(call, &events, endless), 0);
    send_more(call, endless);
}

/* On the call's loop. */
static int end_stream(void *user)
{
    struct endless *endless = user;

    endless->is_over = true;
    assert_int_equal(kinds__all__count__finish(endless->call), 0);
    return 0;
}

static void end_streams(struct bow_server *server, void *user)
{
    struct endless *endless = user;

    (void)server;
    assert_int_equal(
        bow_loop_execute(bow_call_loop(endless->call.call), "end stream", end_stream, endless), 0);
}

/* Its server waits for it, with no end to its grace. */
static void read_to_the_end(struct kinds__all__count__stream stream, uint64_t *ret_last)
{
    const Kinds__Number *number = NULL;
    struct bow_result result = BOW_RESULT_INIT;

    while (kinds__all__count__stream_receive(stream, BOW_NEVER, &number) == 1) {
        assert_int_equal(number->value, *ret_last + 1);
        *ret_last = number->value;
    }
    assert_int_equal(kinds__all__count__stream_finish(stream, &result), 0);
    if (result.status.code != BOW_OK) {
        fail_msg("%s: %s", bow_code_name(result.status.code), result.status.message);
    }
    bow_result_fini(&result);
}

static void end_a_stream(struct calls *t, uint32_t workers)
{
    static const struct kinds__all__handlers handlers = {.count = count};
    struct endless endless = {.n_sent = 0};
    struct bow_server_options options;
    struct bow_client_options client_options;
    Kinds__Number request = KINDS__NUMBER__INIT;
    struct kinds__all__count__stream stream;
    uint64_t last = 0;

    gate_init(&endless.full);
    calls_server_options(t, &options);
    options.workers = workers;
    options.grace_ns = BOW_NEVER;
    options.on_stopping = end_streams;
    options.stopping_user = &endless;
    t->server = calls_make_server(t, &options);
    assert_int_equal(kinds__all__serve(t->server, &handlers, &endless), 0);
    assert_int_equal(calls_open_server(t, t->server), 0);
    calls_client_options(t, &client_options);
    t->client = calls_new_client(t, &client_options);
    assert_int_equal(kinds__all__count__open(t->client, &request, NULL, NULL, NULL, &stream), 0);
    gate_wait(&endless.full, 1); /* so that what it has sent waits on both sides, and between */
    bow_server_stop(t->server);
    read_to_the_end(stream, &last);
    assert_int_equal(bow_server_join(t->server), 0);
    assert_true(last > 0);
    assert_int_equal(last, endless.n_sent);
    calls_free_client(t);
    calls_kill_server(t);
    gate_fini(&endless.full);
}

static void test_stopping_ends_a_stream_and_no_message_is_lost(void **state)
{
    struct calls *t = *state;

    end_a_stream(t, 0);
    calls_name_address(t->address, sizeof(t->address));
    end_a_stream(t, 2);
}

int main(int argc, char **argv)
{
    calls_choose(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup_bare, calls_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_stopping_is_told_once_with_each_binding_whatever_ends_it),
        TEST(test_stopping_is_told_before_the_lame_duck_is_over),
        TEST(test_stopping_is_not_told_again_when_the_loop_ends),
        TEST(test_stopping_of_one_that_was_stopped_before_its_start_is_told),
        TEST(test_stopping_is_not_told_of_one_that_never_began),
        TEST(test_stopping_f20_server_freed_in_it_ends),
        TEST(test_stopping_is_told_on_the_thread_that_runs_the_server),
        TEST(test_stopping_server_is_unhealthy_and_serves),
        TEST(test_stopping_ends_a_stream_and_no_message_is_lost),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
