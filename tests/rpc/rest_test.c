/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The pause after a failed attempt of a client, of one server or several, on virtual time: whenever
 * a call comes that waits, the servers are tried for it; and after one that failed fast.
 */

#include "protos/echo.bow.h"

#include <bowline/client.h>
#include <bowline/metrics.h>
#include <bowline/testing.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)
#define BACKOFF_NS (1000 * MS)
#define N_ROUNDS 200

static void on_done(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    enum bow_code *code = user;

    (void)reply;
    *code = result->status.code;
}

static enum bow_code say(struct bow_test *test, struct bow_client *client, bool waits)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;
    enum bow_code code = BOW_OK;

    options.wait_for_ready = waits;
    options.timeout_ns = 10 * BACKOFF_NS;
    assert_int_equal(calls__echo__say__start(client, &request, &options, on_done, &code, NULL), 0);
    assert_int_equal(bow_test_advance(test, waits ? options.timeout_ns : 0), 0);
    return code;
}

static uint64_t n_attempts(const struct bow_client *client)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;

    assert_int_equal(bow_client_metrics(client, &metrics), 0);
    return metrics.connects_failed;
}

static struct bow_client *begin(const char *target, uint64_t backoff_ns, struct bow_test **ret_test)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_client *client = NULL;

    assert_int_equal(bow_test_new(NULL, ret_test), 0);
    options.context = bow_test_context(*ret_test);
    options.loop = bow_test_loop(*ret_test);
    options.target = target;
    options.backoff_min_ns = backoff_ns;
    options.backoff_max_ns = BACKOFF_NS;
    assert_int_equal(bow_client_new(&options, &client), 0);
    return client;
}

static void end(struct bow_client *client, struct bow_test *test)
{
    bow_client_free(client);
    assert_int_equal(bow_test_end(test), 0);
}

/* The pause is up to a fifth shorter or longer, by chance. */
static void rest_ends_for_a_call_at_any_moment(const char *target, uint64_t n_servers)
{
    struct bow_test *test;

    for (uint64_t round = 0; round < N_ROUNDS; round++) {
        struct bow_client *client = begin(target, BACKOFF_NS, &test);
        assert_int_equal(say(test, client, false), BOW_UNAVAILABLE);
        assert_int_equal(bow_test_advance(test, BACKOFF_NS * round / N_ROUNDS), 0);
        uint64_t n_before = n_attempts(client);
        assert_int_equal(say(test, client, true), BOW_DEADLINE_EXCEEDED);
        assert_true(n_attempts(client) >= n_before + 5 * n_servers);
        end(client, test);
    }
}

static void test_rest_of_a_list_ends_for_a_call_at_any_moment(void **state)
{
    (void)state;
    rest_ends_for_a_call_at_any_moment("list:inproc:nobody-1,inproc:nobody-2", 2);
}

static void test_rest_of_one_server_ends_for_a_call_at_any_moment(void **state)
{
    (void)state;
    rest_ends_for_a_call_at_any_moment("inproc:nobody-1", 1);
}

/* A call that comes too early is a reason to try when it no longer is. */
static void test_rest_is_over_soon_after_a_call_that_failed_fast(void **state)
{
    struct bow_test *test;

    (void)state;
    for (uint64_t round = 0; round < N_ROUNDS; round++) {
        uint64_t at_ns = BACKOFF_NS * round / N_ROUNDS;
        struct bow_client *client = begin("inproc:nobody-1", BACKOFF_NS, &test);
        assert_int_equal(say(test, client, false), BOW_UNAVAILABLE);
        assert_int_equal(bow_test_advance(test, at_ns), 0);
        assert_int_equal(say(test, client, false), BOW_UNAVAILABLE);
        assert_int_equal(bow_test_advance(test, BACKOFF_NS / 4 * 5 - at_ns), 0);
        assert_true(n_attempts(client) >= 2);
        end(client, test);
    }
}

static void on_waited(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    int *n_done = user;

    (void)reply;
    ++*n_done;
    assert_int_equal(result->status.code, BOW_DEADLINE_EXCEEDED);
    if (strstr(result->status.message, "; the last attempt: ") == NULL) {
        fail_msg("%s", result->status.message);
    }
}

static void wait_for_a_moment(struct bow_test *test, struct bow_client *client, uint64_t for_ns)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;
    int n_done = 0;

    options.wait_for_ready = true;
    options.timeout_ns = for_ns;
    assert_int_equal(calls__echo__say__start(client, &request, &options, on_waited, &n_done, NULL),
                     0);
    assert_int_equal(bow_test_advance(test, for_ns), 0);
    assert_int_equal(n_done, 1);
}

static void rest_of_nearly_nothing(const char *target)
{
    struct bow_test *test;

    for (uint64_t ns = 1; ns < 20; ns++) {
        struct bow_client *client = begin(target, ns, &test);
        for (uint64_t i = 0; i < 20; i++) {
            assert_int_equal(say(test, client, false), BOW_UNAVAILABLE);
            assert_int_equal(say(test, client, false), BOW_UNAVAILABLE);
            wait_for_a_moment(test, client, i + 1);
        }
        end(client, test);
    }
}

static void test_rest_of_nearly_nothing_is_one(void **state)
{
    (void)state;
    rest_of_nearly_nothing("inproc:nobody-1");
    rest_of_nearly_nothing("list:inproc:nobody-1,inproc:nobody-2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rest_of_a_list_ends_for_a_call_at_any_moment),
        cmocka_unit_test(test_rest_of_one_server_ends_for_a_call_at_any_moment),
        cmocka_unit_test(test_rest_is_over_soon_after_a_call_that_failed_fast),
        cmocka_unit_test(test_rest_of_nearly_nothing_is_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
