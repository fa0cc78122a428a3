/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A server that is stopped as a thread answers: the answer arrives, whichever comes first.
 *
 *     last_reply_test PROTOCOL SOCKET [ROUNDS]
 */

#include "call_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int n_rounds = 200;

static void call_and_stop(struct calls *t, int round)
{
    struct bow_server_options server_options;
    struct bow_client_options client_options;
    Calls__Request request = CALLS__REQUEST__INIT;

    calls_server_options(t, &server_options);
    server_options.grace_ns = BOW_NEVER;
    t->server = calls_start_server(t, &server_options);
    calls_client_options(t, &client_options);
    t->client = calls_new_client(t, &client_options);
    assert_int_equal(calls__echo__hold__start(t->client, &request, NULL, calls_on_done, t, NULL),
                     0);
    struct bow_call *call = calls_take_held(t);
    if (round % 2 == 0) {
        bow_server_stop(t->server);
    }
    assert_int_equal(calls_reply(call, 1), 0);
    if (round % 2 != 0) {
        bow_server_stop(t->server);
    }
    calls_wait(t, &t->n_done, round + 1);
    if (t->result.status.code != BOW_OK) {
        fail_msg("round %d: %s: %s", round, bow_code_name(t->result.status.code),
                 t->result.status.message);
    }
    bow_client_free(t->client);
    t->client = NULL;
    calls_kill_server(t);
}

static void test_last_f29_reply_of_a_server_that_ends_arrives(void **state)
{
    for (int round = 0; round < n_rounds; round++) {
        call_and_stop(*state, round);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup_bare, calls_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_last_f29_reply_of_a_server_that_ends_arrives),
    };

    calls_choose(argc, argv);
    if (argc > 3) {
        n_rounds = atoi(argv[3]);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
