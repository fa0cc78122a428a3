/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Handlers that run on an executor: which, how many may wait, what is not run any more, the order
 * of a streaming call's events, and the server's end.
 */

#include "rpc/core/call/call_stream.h"
#include "serve_fixture.h"

#include <bowline/executor.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* The executor of the test at hand; with 0 threads it runs when the test says so. */
static struct bow_executor *executor;

static int setup_on(void **state, uint32_t n_threads)
{
    struct bow_executor_options options = BOW_EXECUTOR_OPTIONS_INIT;

    assert_int_equal(serve_setup_bare(state), 0);
    struct serving *s = *state;
    options.n_threads = n_threads;
    assert_int_equal(bow_executor_new(s->t->context, &options, &executor), 0);
    return 0;
}

static int setup(void **state)
{
    return setup_on(state, 4);
}

static int setup_owned(void **state)
{
    return setup_on(state, 0);
}

static int teardown(void **state)
{
    struct serving *s = *state;

    bow_server_free(s->t->server);
    s->t->server = NULL;
    executor = bow_executor_unref(executor);
    return serve_teardown(state);
}

static void start(struct serving *s)
{
    struct bow_server_options options;

    calls_server_options(s->t, &options);
    options.handlers_on = executor;
    options.max_waiting_calls = 2;
    serve_start(s, &options);
    serve_connect(s);
}

/* Posted there and not run: the fixture's peer is quicker than the server. */
static void wait_for_posted(uint64_t n)
{
    struct bow_executor_stats stats = {.size = sizeof(stats)};
    time_t begin = time(NULL);

    do {
        assert_int_equal(bow_executor_get_stats(executor, &stats), 0);
    } while (stats.pending_tasks != n && time(NULL) - begin < 20);
    assert_int_equal(stats.pending_tasks, n);
}

static void run_executor(void)
{
    assert_int_equal(bow_executor_run_once(executor, 0), 0);
}

/* Which */

static void see_where(struct serving *s, struct bow_call *call)
{
    s->rc = bow_executor_in_executor(executor);
    assert_int_equal(bow_loop_in_loop(bow_call_loop(call)), !s->rc);
    assert_int_equal(serve_reply(call, 5), 0);
}

static void call_plain(struct serving *s)
{
    session_peer_begin_stream(&s->peer, SERVE_PLAIN, BOW_NEVER, NULL);
    serve_peer_send(s, BOW__SEND_END, 1);
}

static void test_elsewhere_unary_handler_runs_on_the_executor(void **state)
{
    struct serving *s = *state;

    s->enter = see_where;
    start(s);
    call_plain(s);
    serve_expect_status(s, BOW_OK, "");
    assert_int_equal(s->peer.last_number, 5);
    assert_true(s->rc);
}

/* Binds before start, which the fixture's serve_start() has no room for: by its hook. */
static void bind_methods(struct serving *s)
{
    struct bow_server *server = s->t->server;

    assert_int_equal(bow_server_bind(server, "calls.Kinds", executor), 0);
    assert_int_equal(bow_server_bind(server, "calls.Kinds/Plain", NULL), 0);
    assert_int_equal(bow_server_bind(server, "calls.Kind", executor), -ENOENT);
    assert_non_null(strstr(bow_server_error(server), "calls.Kind"));
}

static void test_elsewhere_bound_methods_are_told_apart(void **state)
{
    struct serving *s = *state;
    struct bow_server_options options;

    s->enter = see_where;
    s->before_start = bind_methods;
    calls_server_options(s->t, &options);
    options.handlers_on = executor;
    serve_start(s, &options);
    serve_connect(s);
    call_plain(s);
    session_peer_wait(&s->peer, &s->peer.n_ends, 1);
    assert_false(s->rc);
    session_peer_begin_stream(&s->peer, SERVE_GATHER, BOW_NEVER, NULL);
    session_peer_wait(&s->peer, &s->peer.n_ends, 2);
    assert_true(s->rc);
    assert_int_equal(bow_server_bind(s->t->server, "calls.Kinds", NULL), -EBUSY);
}

/* How many */

static void reply(struct serving *s, struct bow_call *call)
{
    s->rc = serve_reply(call, 1);
}

static void test_elsewhere_waiting_calls_are_bounded(void **state)
{
    struct serving *s = *state;

    s->enter = reply;
    start(s);
    call_plain(s);
    call_plain(s);
    call_plain(s);
    serve_expect_status(s, BOW_RESOURCE_EXHAUSTED, "max_waiting_calls");
    assert_int_equal(calls_n_refused(s->t->server, BOW_REFUSED_WAITING), 1);
    assert_non_null(strstr(s->peer.text, SERVE_PLAIN));
    assert_int_equal(s->n_entered, 0);
    run_executor();
    session_peer_wait(&s->peer, &s->peer.n_ends, 3);
    assert_int_equal(s->peer.code, BOW_OK);
    assert_int_equal(s->n_entered, 2);
    call_plain(s);
    wait_for_posted(1);
    run_executor();
    session_peer_wait(&s->peer, &s->peer.n_ends, 4);
    assert_int_equal(s->peer.code, BOW_OK);
}

static void find_waits(const struct bow_method_metrics *method, void *user)
{
    if (strcmp(method->path, SERVE_PLAIN) == 0) {
        bow_method_metrics_times(method, BOW_TIME_QUEUE, BOW_N_CODES, user);
    }
}

/* One that is entered, and one whose deadline comes first. */
static void test_elsewhere_waiting_is_timed(void **state)
{
    struct serving *s = *state;
    struct bow_histogram times;

    s->enter = reply;
    start(s);
    call_plain(s);
    wait_for_posted(1);
    run_executor();
    session_peer_wait(&s->peer, &s->peer.n_ends, 1);
    bow_server_each_method(s->t->server, find_waits, &times);
    assert_int_equal(times.count, 1);
    uint64_t sum = times.sum;
    session_peer_open(&s->peer, SERVE_PLAIN, 200 * MS);
    session_peer_send(&s->peer, BOW__SEND_END, "", 0);
    session_peer_wait(&s->peer, &s->peer.n_ends, 2);
    assert_int_equal(s->peer.code, BOW_DEADLINE_EXCEEDED);
    bow_server_each_method(s->t->server, find_waits, &times);
    assert_int_equal(times.count, 2);
    assert_true(times.sum - sum >= 100 * MS);
    run_executor();
}

static void test_elsewhere_waiting_streams_are_bounded(void **state)
{
    struct serving *s = *state;

    start(s);
    for (int i = 0; i < 3; i++) {
        session_peer_begin_stream(&s->peer, SERVE_BOTH, BOW_NEVER, NULL);
    }
    serve_expect_status(s, BOW_RESOURCE_EXHAUSTED, "max_waiting_calls");
    session_peer_end(&s->peer);
    s->has_peer = false;
    CALLS_WAIT_METRIC(s->t, calls_ended, 3);
    run_executor();
    assert_int_equal(s->n_entered, 0);
}

/* What is not run any more */

static void test_elsewhere_cancelled_while_waiting_is_not_run(void **state)
{
    struct serving *s = *state;

    start(s);
    call_plain(s);
    wait_for_posted(1);
    session_peer_cancel(&s->peer);
    CALLS_WAIT_METRIC(s->t, calls_ended, 1);
    run_executor();
    assert_int_equal(s->n_entered, 0);
    CALLS_WAIT_METRIC(s->t, calls_unanswered, 0);
}

static void expect_expired(struct serving *s, const char *path)
{
    start(s);
    session_peer_begin_stream(&s->peer, path, 200 * MS, NULL);
    serve_peer_send(s, BOW__SEND_END, 1);
    serve_expect_status(s, BOW_DEADLINE_EXCEEDED, "");
    CALLS_WAIT_METRIC(s->t, calls_expired_unrun, 1);
    wait_for_posted(1);
    run_executor();
    assert_int_equal(s->n_entered, 0);
    CALLS_WAIT_METRIC(s->t, calls_unanswered, 0);
}

static void test_elsewhere_expired_while_waiting_is_not_run(void **state)
{
    expect_expired(*state, SERVE_PLAIN);
}

static void test_elsewhere_expired_stream_is_not_run(void **state)
{
    expect_expired(*state, SERVE_BOTH);
}

/* Order */

static void echo_elsewhere(struct serving *s, struct bow_call *call)
{
    assert_true(bow_executor_in_executor(executor));
    assert_int_equal(serve_send(call, ++s->n_sent), 0);
}

static void finish_elsewhere(struct serving *s, struct bow_call *call)
{
    assert_true(bow_executor_in_executor(executor));
    s->rc = bow_call_finish(call);
}

static void close_elsewhere(struct serving *s, struct bow_call *call)
{
    (void)call;
    assert_true(bow_executor_in_executor(executor));
    serve_step(s);
}

static void test_elsewhere_stream_has_its_events_in_order(void **state)
{
    struct serving *s = *state;

    s->in_message = echo_elsewhere;
    s->in_half_close = finish_elsewhere;
    s->in_closed = close_elsewhere;
    start(s);
    serve_begin(s, SERVE_BOTH);
    for (uint64_t i = 1; i <= 500; i++) {
        serve_peer_send(s, 0, i);
    }
    session_peer_half_close(&s->peer);
    serve_expect_status(s, BOW_OK, "");
    serve_expect_closed(s, BOW_OK, "");
    assert_int_equal(s->n_messages, 500);
    assert_int_equal(s->n_disordered, 0);
    assert_int_equal(s->peer.n_messages, 500);
    assert_int_equal(s->peer.n_disordered, 0);
    assert_int_equal(s->n_steps, 1);
}

static void pause_for_a_while(struct serving *s, struct bow_call *call)
{
    assert_int_equal(s->n_steps, 0);
    bow_call_pause(call);
    serve_step(s);
    bow_call_resume(call);
    s->n_steps = 0;
}

/* More than the window: credit comes back from the executor's events. The loop takes what comes
 * meanwhile, and looks whether that is paused. */
static void test_elsewhere_f61_stream_that_pauses_returns_credit(void **state)
{
    struct serving *s = *state;

    s->in_message = pause_for_a_while;
    start(s);
    serve_begin(s, SERVE_BOTH);
    for (uint64_t i = 1; i <= 64; i++) {
        serve_peer_send_sized(s, 0, i, 16 << 10);
    }
    serve_wait_serving(s, &s->n_messages, 64);
    assert_int_equal(s->n_disordered, 0);
}

/* The end */

static void linger(struct serving *s, struct bow_call *call)
{
    serve_step(s);
    calls_wait(s->t, &s->t->n_let_go, 1);
    calls_hold_loop(20 * MS);
    s->rc = bow_call_fail(call, BOW_ABORTED, "late");
    s->n_sent = 1;
}

/* The handler is in the midst of it when its call's connection, and with it the server, ends. */
static void expect_the_server_to_wait(struct serving *s, const char *path)
{
    s->enter = linger;
    start(s);
    session_peer_begin_stream(&s->peer, path, BOW_NEVER, NULL);
    serve_peer_send(s, BOW__SEND_END, 1);
    serve_wait(s, &s->n_steps, 1);
    session_peer_end(&s->peer);
    s->has_peer = false;
    CALLS_WAIT_METRIC(s->t, calls_ended, 1);
    calls_let_go(s->t);
    bow_server_free(s->t->server);
    s->t->server = NULL;
    assert_int_equal(s->n_sent, 1);
}

static void test_elsewhere_server_waits_for_its_handlers(void **state)
{
    expect_the_server_to_wait(*state, SERVE_PLAIN);
}

static void test_elsewhere_server_waits_for_its_streams(void **state)
{
    expect_the_server_to_wait(*state, SERVE_BOTH);
}

static void end_executor(void)
{
    assert_int_equal(bow_executor_shutdown(executor, 0, 0), 0);
    assert_int_equal(bow_executor_join(executor, BOW_NEVER), 0);
}

static void test_elsewhere_without_its_executor_a_call_is_refused(void **state)
{
    struct serving *s = *state;

    start(s);
    end_executor();
    call_plain(s);
    /* gRPC says by a reset that nothing was run, which has no text. */
    serve_expect_status(s, BOW_UNAVAILABLE, calls_is_grpc() ? "" : "executor");
}

static void test_elsewhere_without_its_executor_a_stream_is_closed(void **state)
{
    struct serving *s = *state;

    start(s);
    serve_begin(s, SERVE_BOTH);
    end_executor();
    session_peer_cancel(&s->peer);
    serve_expect_closed(s, BOW_CANCELLED, "");
}

/* Its memory */

/* Until the client has been refused. */
static void add_metadata(struct serving *s, struct bow_call *call)
{
    struct bow_slice value = {(const uint8_t *)"v", 1};

    serve_step(s);
    for (int i = 0; i < 10; i++) {
        (void)!bow_call_add_trailing(call, "key", value);
    }
    calls_wait(s->t, &s->t->n_let_go, 1);
}

static void test_elsewhere_refused_stream_leaves_the_handlers_memory_alone(void **state)
{
    struct serving *s = *state;

    s->enter = add_metadata;
    start(s);
    session_peer_begin_stream(&s->peer, SERVE_BOTH, BOW_NEVER, NULL);
    serve_wait(s, &s->n_steps, 1);
    s->t->alloc.fail_at = s->t->alloc.n_calls + 1; /* the message cannot be kept */
    serve_peer_send_sized(s, 0, 1, 1000);
    serve_expect_status(s, BOW_RESOURCE_EXHAUSTED, "no memory for a message");
    assert_string_equal(s->peer.trailing, "");
    calls_let_go(s->t);
}

/* The loop ends under the server, while handlers are on the executor's four threads. */

enum { N_LINGERING = 4 };

static struct bow_loop *own_loop;

static void listen_and_linger(struct serving *s, struct bow_call *call)
{
    serve_listen(s, call);
    serve_step(s);
    calls_wait(s->t, &s->t->n_let_go, 1);
}

/* All at once, for what follows is what they must not do side by side. */
static void close_together(struct serving *s, struct bow_call *call)
{
    (void)call;
    serve_step(s);
    serve_wait(s, &s->n_steps, 2 * N_LINGERING);
}

static void start_on_own_loop(struct serving *s)
{
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct bow_server_options options;

    assert_int_equal(bow_loop_new(s->t->context, &loop_options, &own_loop), 0);
    calls_server_options(s->t, &options);
    options.handlers_on = executor;
    options.loop = own_loop;
    serve_start(s, &options);
    serve_connect(s);
}

static void end_loop_under(struct serving *s, int n_calls)
{
    serve_wait(s, &s->n_steps, n_calls);
    assert_int_equal(bow_loop_shutdown(own_loop, 0, 0), 0);
    assert_int_equal(bow_loop_join(own_loop, BOW_NEVER), 0);
}

static void begin_streams(struct serving *s, int n)
{
    for (int i = 0; i < n; i++) {
        session_peer_begin_stream(&s->peer, SERVE_BOTH, BOW_NEVER, NULL);
    }
}

static void expect_all_closed(struct serving *s, int n_streams)
{
    calls_let_go(s->t);
    bow_server_free(s->t->server);
    s->t->server = NULL;
    assert_int_equal(s->n_closed, n_streams);
    own_loop = bow_loop_unref(own_loop);
}

static void test_elsewhere_without_their_loop_streams_end_one_by_one(void **state)
{
    struct serving *s = *state;

    s->enter = listen_and_linger;
    s->in_closed = close_together;
    start_on_own_loop(s);
    begin_streams(s, N_LINGERING);
    end_loop_under(s, N_LINGERING);
    expect_all_closed(s, N_LINGERING);
    s->n_after_closed = 0; /* counted as if all were one stream's */
}

static void test_elsewhere_without_its_loop_a_stream_goes_on_by_itself(void **state)
{
    struct serving *s = *state;

    s->enter = listen_and_linger;
    start_on_own_loop(s);
    begin_streams(s, 1);
    end_loop_under(s, 1);
    /* Of a thread that is about to post, and will be refused. */
    atomic_store(&s->call->stream->task_posted, true);
    expect_all_closed(s, 1);
}

static void linger_for_all(struct serving *s, struct bow_call *call)
{
    serve_step(s);
    calls_wait(s->t, &s->t->n_let_go, 1);
    assert_int_equal(serve_reply(call, 1), -ECANCELED);
}

/* The last of them to come back ends the server, and only it. */
static void test_elsewhere_without_their_loop_calls_end_the_server_once(void **state)
{
    struct serving *s = *state;

    s->enter = linger_for_all;
    start_on_own_loop(s);
    for (int i = 0; i < N_LINGERING; i++) {
        call_plain(s);
    }
    end_loop_under(s, N_LINGERING);
    expect_all_closed(s, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define OWNED(name) cmocka_unit_test_setup_teardown(name, setup_owned, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_elsewhere_unary_handler_runs_on_the_executor),
        TEST(test_elsewhere_bound_methods_are_told_apart),
        OWNED(test_elsewhere_waiting_is_timed),
        OWNED(test_elsewhere_waiting_calls_are_bounded),
        OWNED(test_elsewhere_waiting_streams_are_bounded),
        OWNED(test_elsewhere_cancelled_while_waiting_is_not_run),
        OWNED(test_elsewhere_expired_while_waiting_is_not_run),
        OWNED(test_elsewhere_expired_stream_is_not_run),
        TEST(test_elsewhere_stream_has_its_events_in_order),
        TEST(test_elsewhere_f61_stream_that_pauses_returns_credit),
        TEST(test_elsewhere_server_waits_for_its_handlers),
        TEST(test_elsewhere_server_waits_for_its_streams),
        TEST(test_elsewhere_without_its_executor_a_call_is_refused),
        TEST(test_elsewhere_without_its_executor_a_stream_is_closed),
        TEST(test_elsewhere_refused_stream_leaves_the_handlers_memory_alone),
        TEST(test_elsewhere_without_their_loop_streams_end_one_by_one),
        TEST(test_elsewhere_without_its_loop_a_stream_goes_on_by_itself),
        TEST(test_elsewhere_without_their_loop_calls_end_the_server_once),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
