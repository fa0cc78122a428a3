/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Streaming calls whose deadline passes before their turn. */
#include "serve_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MS UINT64_C(1000000)

/* Without a flush, so that several come to the server at a time. */
static void begin_stream(struct serving *s, uint64_t time_left_ns)
{
    struct session_peer *peer = &s->peer;
    struct bow__request_head head = {
        .path = {(const uint8_t *)SERVE_BOTH, strlen(SERVE_BOTH)},
        .time_left_ns = time_left_ns,
    };

    assert_int_equal(peer->session->ops->open(peer->session, &head, peer, &peer->key), 0);
    assert_int_equal(peer->session->ops->begin(peer->session, peer->key), 0);
}

static void take_long(struct serving *s, struct bow_call *call)
{
    calls_hold_loop(20 * MS);
    serve_listen(s, call);
}

static void test_serve_stream_that_expired_behind_another_is_not_run(void **state)
{
    struct serving *s = *state;

    s->enter = take_long;
    begin_stream(s, BOW_NEVER);
    begin_stream(s, 10 * MS);
    session_peer_flush(&s->peer);
    serve_expect_status(s, BOW_DEADLINE_EXCEEDED, "before the handler of");
    assert_int_equal(serve_count(s, &s->n_entered), 1);
    CALLS_WAIT_METRIC(s->t, calls_expired_unrun, 1);
}

static void test_serve_stream_with_no_time_left_is_not_run(void **state)
{
    struct serving *s = *state;

    begin_stream(s, 0);
    session_peer_flush(&s->peer);
    serve_expect_status(s, BOW_DEADLINE_EXCEEDED, "had passed when");
    assert_int_equal(serve_count(s, &s->n_entered), 0);
    CALLS_WAIT_METRIC(s->t, calls_expired_unrun, 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_serve_stream_that_expired_behind_another_is_not_run,
                                        serve_setup, serve_teardown),
        cmocka_unit_test_setup_teardown(test_serve_stream_with_no_time_left_is_not_run, serve_setup,
                                        serve_teardown),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
