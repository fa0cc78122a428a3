/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Blocking streams of a client that drives its own loop, when a connection was lost, or could not
 * be made, while nobody drove it. */

#include "protos/kinds.bow.h"

#include <bowline/stream.h>
#include <bowline/testing.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

static bool is_grpc;

static void count(struct kinds__all__count__call call, const Kinds__Number *request, void *user)
{
    (void)user;
    if (kinds__all__count__send(call, request) == 0) {
        (void)kinds__all__count__finish(call);
    }
}

static int serve(struct bow_server *server, void *user)
{
    const struct kinds__all__handlers handlers = {.count = count};

    return kinds__all__serve(server, &handlers, user);
}

static enum bow_code stream_once(struct bow_test_pair *pair)
{
    struct bow_result result = BOW_RESULT_INIT;
    struct kinds__all__count__stream stream;
    Kinds__Number request = KINDS__NUMBER__INIT;
    const Kinds__Number *number = NULL;

    assert_int_equal(kinds__all__count__open(pair->blocking, &request, NULL, NULL, NULL, &stream),
                     0);
    while (kinds__all__count__stream_receive(stream, SECOND, &number) == 1) {
    }
    assert_int_equal(kinds__all__count__stream_finish(stream, &result), 0);
    enum bow_code code = result.status.code;
    bow_result_fini(&result);
    return code;
}

static void test_confined_stream_after_a_reset_takes_another_connection(void **state)
{
    struct bow_test_pair_options options = BOW_TEST_PAIR_OPTIONS_INIT;
    struct bow_test *test = NULL;
    struct bow_test_pair *pair = NULL;
    (void)state;

    options.serve = serve;
    options.grpc = is_grpc;
    assert_int_equal(bow_test_new(NULL, &test), 0);
    assert_int_equal(bow_test_pair_new(test, &options, &pair), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(stream_once(pair), BOW_OK);
        bow_test_break(test, BOW_TEST_RESET);
        assert_int_equal(bow_test_advance(test, 10 * SECOND), 0);
    }
    assert_int_equal(bow_test_end(test), 0);
}

/* What came before the connection's end takes a turn to be read, and the end another one. */
static void test_confined_stream_after_messages_and_a_reset_takes_another_connection(void **state)
{
    struct bow_test_pair_options options = BOW_TEST_PAIR_OPTIONS_INIT;
    struct bow_test *test = NULL;
    struct bow_test_pair *pair = NULL;
    struct bow_result result = BOW_RESULT_INIT;
    struct kinds__all__count__stream unread;
    Kinds__Number request = KINDS__NUMBER__INIT;
    (void)state;

    options.serve = serve;
    options.grpc = is_grpc;
    assert_int_equal(bow_test_new(NULL, &test), 0);
    assert_int_equal(bow_test_pair_new(test, &options, &pair), 0);
    assert_int_equal(stream_once(pair), BOW_OK);
    assert_int_equal(kinds__all__count__open(pair->blocking, &request, NULL, NULL, NULL, &unread),
                     0);
    assert_int_equal(bow_client_poll(pair->blocking, 0), 0);
    assert_int_equal(bow_test_advance(test, SECOND), 0);
    bow_test_break(test, BOW_TEST_RESET);
    assert_int_equal(stream_once(pair), BOW_OK);
    assert_int_equal(kinds__all__count__stream_finish(unread, &result), 0);
    bow_result_fini(&result);
    assert_int_equal(bow_test_end(test), 0);
}

struct early {
    struct bow_test *test;
    enum bow_code code;
};

/* From now on the server can be reached. */
static void on_early(struct bow_result *result, const Kinds__Number *reply, void *user)
{
    struct early *early = user;

    (void)reply;
    early->code = result->status.code;
    bow_test_refuse(early->test, false);
}

/* It had failed before the stream was opened, though nobody drove the loop that would have seen it:
 * no reason not to make another attempt. */
static void test_confined_stream_does_not_fail_for_an_older_attempt(void **state)
{
    struct bow_test_pair_options options = BOW_TEST_PAIR_OPTIONS_INIT;
    struct early early = {.code = BOW_OK};
    struct bow_test_pair *pair = NULL;
    Kinds__Number request = KINDS__NUMBER__INIT;
    (void)state;

    options.serve = serve;
    options.grpc = is_grpc;
    assert_int_equal(bow_test_new(NULL, &early.test), 0);
    assert_int_equal(bow_test_pair_new(early.test, &options, &pair), 0);
    bow_test_refuse(early.test, true);
    assert_int_equal(kinds__all__ask__start(pair->blocking, &request, NULL, on_early, &early, NULL),
                     0);
    assert_int_equal(bow_test_advance(early.test, SECOND), 0);
    assert_int_equal(stream_once(pair), BOW_OK);
    assert_int_equal(early.code, BOW_UNAVAILABLE);
    assert_int_equal(bow_test_end(early.test), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_confined_stream_after_a_reset_takes_another_connection),
        cmocka_unit_test(test_confined_stream_after_messages_and_a_reset_takes_another_connection),
        cmocka_unit_test(test_confined_stream_does_not_fail_for_an_older_attempt),
    };

    is_grpc = argc > 1 && strcmp(argv[1], "grpc") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
