/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* libbowline-testing: the pair, the clock, faults, memory, and what it finds at the end. */

#include "greeter.bow.h"

#include <bowline/buf.h>
#include <bowline/call.h>
#include <bowline/testing.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

static bool is_grpc;

struct greeter {
    struct bow_test *test;
    struct bow_test_pair *pair;
    struct bow_call *held; /* of "hold" */
    int n_calls;
    enum bow_code code; /* of a call with a callback */
    int n_done;
};

static void reply_to(struct bow_call *call, const char *name)
{
    Demo__HelloReply reply = DEMO__HELLO_REPLY__INIT;

    reply.message = bow_call_printf(call, "Hello, %s", name);
    (void)demo__greeter__say_hello__reply(call, &reply);
}

static void say_hello(struct bow_call *call, const Demo__HelloRequest *request, void *user)
{
    struct greeter *greeter = user;

    greeter->n_calls++;
    if (strcmp(request->name, "hold") == 0) {
        greeter->held = call;
        return;
    }
    if (strcmp(request->name, "break") == 0) {
        bow_test_break(greeter->test, BOW_TEST_RESET);
    }
    reply_to(call, request->name);
}

static int serve(struct bow_server *server, void *user)
{
    const struct demo__greeter__handlers handlers = {.say_hello = say_hello};

    return demo__greeter__serve(server, &handlers, user);
}

static int make_pair(struct greeter *g)
{
    struct bow_test_pair_options options = BOW_TEST_PAIR_OPTIONS_INIT;

    options.serve = serve;
    options.user = g;
    options.grpc = is_grpc;
    return bow_test_pair_new(g->test, &options, &g->pair);
}

static int setup(void **state)
{
    static struct greeter greeter;

    greeter = (struct greeter){.n_done = 0};
    assert_int_equal(bow_test_new(NULL, &greeter.test), 0);
    assert_int_equal(make_pair(&greeter), 0);
    *state = &greeter;
    return 0;
}

static int teardown(void **state)
{
    struct greeter *g = *state;

    assert_int_equal(bow_test_end(g->test), 0);
    return 0;
}

static enum bow_code call(struct greeter *g, const char *name, uint64_t timeout_ns)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct bow_result result = BOW_RESULT_INIT;
    Demo__HelloRequest request = DEMO__HELLO_REQUEST__INIT;
    char expected[64];

    options.timeout_ns = timeout_ns;
    request.name = (char *)(uintptr_t)name;
    const Demo__HelloReply *reply =
        demo__greeter__say_hello__call(g->pair->blocking, &request, &options, &result);
    enum bow_code code = result.status.code;
    assert_int_equal(reply != NULL, code == BOW_OK);
    if (reply != NULL) {
        snprintf(expected, sizeof(expected), "Hello, %s", name);
        assert_string_equal(reply->message, expected);
    }
    bow_result_fini(&result);
    return code;
}

static void on_done(struct bow_result *result, const Demo__HelloReply *reply, void *user)
{
    struct greeter *g = user;
    (void)reply;

    g->code = result->status.code;
    g->n_done++;
}

static void start(struct greeter *g, const char *name)
{
    Demo__HelloRequest request = DEMO__HELLO_REQUEST__INIT;

    request.name = (char *)(uintptr_t)name;
    assert_int_equal(
        demo__greeter__say_hello__start(g->pair->client, &request, NULL, on_done, g, NULL), 0);
    assert_int_equal(bow_test_run(g->test), 0);
}

/* Time */

static void test_testing_blocking_call_is_served_meanwhile_in_no_time(void **state)
{
    struct greeter *g = *state;
    uint64_t before = bow_test_now(g->test);

    assert_int_equal(call(g, "you", 0), BOW_OK);
    assert_int_equal(bow_test_now(g->test), before);
}

static void test_testing_callback_comes_while_the_test_runs(void **state)
{
    struct greeter *g = *state;

    start(g, "you");
    assert_int_equal(g->n_done, 1);
    assert_int_equal(g->code, BOW_OK);
}

static void test_testing_deadline_comes_at_its_time_on_the_clock(void **state)
{
    struct greeter *g = *state;
    uint64_t before = bow_test_now(g->test);

    assert_int_equal(call(g, "hold", 3600 * SECOND), BOW_DEADLINE_EXCEEDED);
    assert_true(bow_test_now(g->test) - before <= 3600 * SECOND);
    reply_to(g->held, "nobody");
}

static void test_testing_clock_moves_only_when_it_is_moved(void **state)
{
    struct greeter *g = *state;

    start(g, "hold");
    assert_int_equal(bow_test_advance(g->test, 29 * SECOND), 0);
    assert_int_equal(g->n_done, 0);
    usleep(1000);
    assert_int_equal(bow_test_run(g->test), 0);
    assert_int_equal(g->n_done, 0);
    assert_int_equal(bow_test_advance(g->test, SECOND), 0);
    assert_int_equal(g->n_done, 1); /* the default time-out */
    assert_int_equal(g->code, BOW_DEADLINE_EXCEEDED);
    reply_to(g->held, "nobody");
}

/* Faults */

static void test_testing_reset_fails_the_call_and_the_next_one_is_served(void **state)
{
    struct greeter *g = *state;

    assert_int_equal(call(g, "you", 0), BOW_OK);
    assert_int_equal(call(g, "break", 0), BOW_UNAVAILABLE);
    assert_int_equal(call(g, "you", 0), BOW_OK);
}

static void test_testing_reset_at_each_byte_ends_the_call(void **state)
{
    struct greeter *g = *state;
    int n_ok = 0;

    for (uint64_t n = 1; n < 2000 && n_ok < 3; n++) {
        bow_test_break_after_bytes(g->test, BOW_TEST_RESET, n);
        enum bow_code code = call(g, "you", 0);
        assert_true(code == BOW_OK || code == BOW_UNAVAILABLE);
        n_ok += code == BOW_OK;
        bow_test_break(g->test, BOW_TEST_RESET);
        assert_int_equal(bow_test_advance(g->test, 60 * SECOND), 0);
    }
    assert_int_equal(n_ok, 3); /* they are all there in the end */
}

static void test_testing_reset_after_a_send_comes_before_the_answer(void **state)
{
    struct greeter *g = *state;

    assert_int_equal(call(g, "you", 0), BOW_OK);
    bow_test_break_after_sends(g->test, BOW_TEST_RESET, 1);
    assert_int_equal(call(g, "you", 0), BOW_UNAVAILABLE);
}

static void test_testing_stall_holds_the_call_until_it_is_over(void **state)
{
    struct greeter *g = *state;

    start(g, "warm");
    bow_test_break(g->test, BOW_TEST_STALL);
    start(g, "you");
    assert_int_equal(bow_test_advance(g->test, 5 * SECOND), 0);
    assert_int_equal(g->n_done, 1);
    bow_test_resume(g->test);
    assert_int_equal(bow_test_run(g->test), 0);
    assert_int_equal(g->n_done, 2);
    assert_int_equal(g->code, BOW_OK);
}

static void test_testing_stall_for_good_is_noticed_by_the_heartbeat(void **state)
{
    struct greeter *g = *state;

    start(g, "hold");
    bow_test_break(g->test, BOW_TEST_STALL);
    assert_int_equal(bow_test_advance(g->test, 31 * SECOND), 0);
    assert_int_equal(g->n_done, 1);
    assert_int_equal(call(g, "you", 0), BOW_OK); /* over another connection */
    reply_to(g->held, "nobody");
}

static void test_testing_refused_connects_fail_until_they_are_not(void **state)
{
    struct greeter *g = *state;

    bow_test_refuse(g->test, true);
    assert_int_equal(call(g, "you", 0), BOW_UNAVAILABLE);
    assert_int_equal(g->n_calls, 0);
    bow_test_refuse(g->test, false);
    assert_int_equal(bow_test_advance(g->test, 60 * SECOND), 0);
    assert_int_equal(call(g, "you", 0), BOW_OK);
}

/* Memory */

static void test_testing_failed_allocation_is_an_error_and_no_more(void **state)
{
    struct greeter *g = *state;
    size_t n_failed = 0;

    assert_int_equal(call(g, "you", 0), BOW_OK);
    bow_test_fail_allocations(g->test, 1);
    Demo__HelloRequest request = DEMO__HELLO_REQUEST__INIT;
    static char name[100000];
    memset(name, 'x', sizeof(name) - 1);
    request.name = name;
    struct bow_result result = BOW_RESULT_INIT;
    assert_null(demo__greeter__say_hello__call(g->pair->blocking, &request, NULL, &result));
    assert_int_not_equal(result.status.code, BOW_OK);
    bow_result_fini(&result);
    n_failed = bow_test_failed_allocations(g->test);
    assert_true(n_failed > 0);
    bow_test_fail_allocation(g->test, 0);
    assert_int_equal(bow_test_advance(g->test, 60 * SECOND), 0);
    assert_int_equal(call(g, "you", 0), BOW_OK);
    assert_int_equal(bow_test_failed_allocations(g->test), n_failed);
}

static int scenario(struct bow_test *test, void *user)
{
    struct greeter g = {.test = test};
    bool *leaks = user;

    if (make_pair(&g) < 0) {
        return 0;
    }
    (void)call(&g, "you", 0);
    if (leaks != NULL && *leaks && bow_test_failed_allocations(test) == 3) {
        return -EIO;
    }
    return 0;
}

static void test_testing_each_allocation_fails_once(void **state)
{
    (void)state;
    assert_true(bow_test_fail_each(scenario, NULL) > 20);
}

/* What it says of those who are wrong; not for the eyes of who reads the test's output. */

static int silence(void)
{
    int kept = dup(STDERR_FILENO);

    assert_true(kept >= 0);
    assert_non_null(freopen("/dev/null", "w", stderr));
    return kept;
}

static void speak(int kept)
{
    fflush(stderr);
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    close(kept);
}

static void test_testing_scenario_that_is_wrong_is_told(void **state)
{
    bool leaks = true;
    (void)state;

    int kept = silence();
    int rc = bow_test_fail_each(scenario, &leaks);
    speak(kept);
    assert_int_equal(rc, -EUCLEAN);
}

static void test_testing_call_without_answer_is_found(void **state)
{
    struct greeter g = {.n_calls = 0};
    (void)state;

    assert_int_equal(bow_test_new(NULL, &g.test), 0);
    assert_int_equal(make_pair(&g), 0);
    assert_int_equal(call(&g, "hold", SECOND), BOW_DEADLINE_EXCEEDED);
    int kept = silence();
    bow_test_pair_free(g.test, g.pair);
    reply_to(g.held, "nobody"); /* so that nothing is left after all */
    int n = bow_test_end(g.test);
    speak(kept);
    assert_int_equal(n, 1);
}

static void count_cut_calls(enum bow_log_level level, const char *line, void *user)
{
    if (level == BOW_LOG_WARNING && strstr(line, ": 1 of them are cut off") != NULL) {
        ++*(int *)user;
    }
}

static void test_testing_log_tells_of_a_call_that_outlasts_the_grace(void **state)
{
    struct bow_test_options options = BOW_TEST_OPTIONS_INIT;
    struct greeter g = {.n_calls = 0};
    int n_told = 0;
    (void)state;

    options.log = count_cut_calls;
    options.log_user = &n_told;
    assert_int_equal(bow_test_new(&options, &g.test), 0);
    assert_int_equal(make_pair(&g), 0);
    start(&g, "hold");
    bow_server_stop(g.pair->server);
    assert_int_equal(bow_test_advance(g.test, 9 * SECOND), 0);
    assert_int_equal(n_told, 0);
    assert_int_equal(bow_test_advance(g.test, 2 * SECOND), 0);
    assert_int_equal(n_told, 1);
    assert_int_equal(g.code, BOW_UNAVAILABLE);
    reply_to(g.held, "nobody");
    assert_int_equal(bow_test_end(g.test), 0);
}

static void test_testing_what_is_left_is_found(void **state)
{
    struct bow_test *test = NULL;
    struct bow_buf shared = bow_buf_borrow("x", 1);
    const struct bow_buf borrowed = bow_buf_borrow("x", 1);
    struct bow_context *context;
    (void)state;

    assert_int_equal(bow_test_new(NULL, &test), 0);
    context = bow_test_context(test);
    assert_int_equal(bow_buf_share(context, &borrowed, &shared), 0);
    int kept = silence();
    int n = bow_test_end(test);
    speak(kept);
    assert_int_equal(n, 1);
    bow_buf_unref(&shared);
    assert_int_equal(bow_context_bytes(context), 0);
    assert_int_equal(bow_test_end(test), 0);
}

/* The options of the real server, with its threads, are good for a test as they are. */
static void test_testing_servers_threads_are_left_out(void **state)
{
    struct greeter *g = *state;
    struct bow_server_options server = BOW_SERVER_OPTIONS_INIT;
    struct bow_test_pair_options options = BOW_TEST_PAIR_OPTIONS_INIT;

    server.workers = 4;
    options.server = &server;
    options.serve = serve;
    options.user = g;
    options.grpc = is_grpc;
    assert_int_equal(bow_test_pair_new(g->test, &options, &g->pair), 0);
    assert_int_equal(call(g, "thread", BOW_NEVER), BOW_OK);
}

static void test_testing_clock_without_a_timer_comes_to_its_end(void **state)
{
    struct bow_test *test = NULL;

    (void)state;
    assert_int_equal(bow_test_new(NULL, &test), 0);
    assert_int_equal(bow_test_advance(test, BOW_NEVER), 0);
    assert_int_equal(bow_test_end(test), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_testing_blocking_call_is_served_meanwhile_in_no_time),
        TEST(test_testing_callback_comes_while_the_test_runs),
        TEST(test_testing_deadline_comes_at_its_time_on_the_clock),
        TEST(test_testing_clock_moves_only_when_it_is_moved),
        TEST(test_testing_servers_threads_are_left_out),
        cmocka_unit_test(test_testing_clock_without_a_timer_comes_to_its_end),
        TEST(test_testing_reset_fails_the_call_and_the_next_one_is_served),
        TEST(test_testing_reset_at_each_byte_ends_the_call),
        TEST(test_testing_reset_after_a_send_comes_before_the_answer),
        TEST(test_testing_stall_holds_the_call_until_it_is_over),
        TEST(test_testing_stall_for_good_is_noticed_by_the_heartbeat),
        TEST(test_testing_refused_connects_fail_until_they_are_not),
        TEST(test_testing_failed_allocation_is_an_error_and_no_more),
        cmocka_unit_test(test_testing_each_allocation_fails_once),
        cmocka_unit_test(test_testing_scenario_that_is_wrong_is_told),
        cmocka_unit_test(test_testing_call_without_answer_is_found),
        cmocka_unit_test(test_testing_log_tells_of_a_call_that_outlasts_the_grace),
        cmocka_unit_test(test_testing_what_is_left_is_found),
    };

    is_grpc = argc > 1 && strcmp(argv[1], "grpc") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
