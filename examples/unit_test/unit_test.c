/* SPDX-License-Identifier: 0BSD */
/* A handler under test, with cmocka: no port, no sleep, and at the end nothing is left. */

#include "patient.h"
#include <bowline/testing.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define SECOND 1000000000ull

struct fixture {
    struct bow_test *test;
    struct bow_test_pair *pair;
    struct patient patient;
};

static int serve(struct bow_server *server, void *user)
{
    return patient_serve(server, user);
}

static int new_pair(struct fixture *f)
{
    struct bow_test_pair_options options = BOW_TEST_PAIR_OPTIONS_INIT;
    options.serve = serve;
    options.user = &f->patient;
    return bow_test_pair_new(f->test, &options, &f->pair);
}

static int setup(void **state)
{
    static struct fixture fixture;
    fixture = (struct fixture){.patient = {0}};
    assert_int_equal(bow_test_new(NULL, &fixture.test), 0);
    assert_int_equal(new_pair(&fixture), 0);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(bow_test_end(f->test), 0); /* prints what is left, and who asked for it */
    return 0;
}

static enum bow_code greet(struct fixture *f, uint64_t timeout_ns)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct bow_result result = BOW_RESULT_INIT;
    Demo__HelloRequest request = DEMO__HELLO_REQUEST__INIT;
    request.name = "you";
    options.timeout_ns = timeout_ns;
    const Demo__HelloReply *reply =
        demo__greeter__say_hello__call(f->pair->blocking, &request, &options, &result);
    enum bow_code code = result.status.code;
    assert_true(reply == NULL || strcmp(reply->message, "Hello, you") == 0);
    bow_result_fini(&result);
    return code;
}

static void test_patient_thinks_for_five_seconds(void **state)
{
    struct fixture *f = *state;
    uint64_t began = bow_test_now(f->test);
    assert_int_equal(greet(f, 0), BOW_OK); /* takes no time but on the clock of the test */
    assert_int_equal(bow_test_now(f->test) - began, 5 * SECOND);
}

static void test_patient_with_a_client_in_a_hurry_stops_thinking(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(greet(f, 2 * SECOND), BOW_DEADLINE_EXCEEDED);
    assert_int_equal(bow_test_run(f->test), 0); /* the server hears of it */
    assert_int_equal(f->patient.n_waiting, 0);
}

static void test_patient_whose_connection_breaks_stops_thinking(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(greet(f, 0), BOW_OK);
    bow_test_break_after_sends(f->test, BOW_TEST_RESET, 1); /* the request arrives, no more */
    assert_int_equal(greet(f, 0), BOW_UNAVAILABLE);
    assert_int_equal(bow_test_run(f->test), 0);
    assert_int_equal(f->patient.n_waiting, 0);
}

static int greet_once(struct bow_test *test, void *user)
{
    struct fixture f = {.test = test};
    (void)user;
    if (new_pair(&f) == 0) {
        (void)greet(&f, 0);               /* whatever it ends with: it ends, and nothing is left */
        bow_test_pair_free(test, f.pair); /* before `f` goes, which the handler knows */
    }
    return f.patient.n_waiting == 0 ? 0 : -1;
}

static void test_patient_without_memory_is_an_error_and_no_leak(void **state)
{
    (void)state;
    assert_true(bow_test_fail_each(greet_once, NULL) > 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_patient_thinks_for_five_seconds),
        TEST(test_patient_with_a_client_in_a_hurry_stops_thinking),
        TEST(test_patient_whose_connection_breaks_stops_thinking),
        cmocka_unit_test(test_patient_without_memory_is_an_error_and_no_leak),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
