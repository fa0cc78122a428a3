/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Blocking streams of a client that drives its own loop, when the connection was lost meanwhile. */

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

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_confined_stream_after_a_reset_takes_another_connection),
    };

    is_grpc = argc > 1 && strcmp(argv[1], "grpc") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
