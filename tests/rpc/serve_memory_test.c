/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A streaming call's life at a server, with each of its allocations failing in turn: the call ends
 * with a status that says so, or the connection is lost; its handler is told once, and
 * nothing is left.
 */

#include "serve_fixture.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool is_tolerable(int rc)
{
    return rc == 0 || rc == -ENOMEM || rc == -ECANCELED;
}

static void echo(struct serving *s, struct bow_call *call)
{
    assert_true(is_tolerable(serve_send_sized(call, ++s->n_sent, 20000)));
}

static void enter(struct serving *s, struct bow_call *call)
{
    const struct bow_slice value = {(const uint8_t *)"v", 1};
    int rc = bow_call_add_initial(call, "initial", value);

    assert_true(is_tolerable(rc));
    rc = bow_call_add_trailing(call, "trailing", value);
    assert_true(is_tolerable(rc));
    serve_listen(s, call);
    bow_call_ref(call);
}

static void enter_paused(struct serving *s, struct bow_call *call)
{
    enter(s, call);
    bow_call_pause(call);
}

static void send_payload(struct serving *s)
{
    Calls__Reply reply = CALLS__REPLY__INIT;
    struct bow_payload *payload = NULL;

    int rc = bow_payload_new(s->t->context, &reply.base, &payload);
    assert_true(is_tolerable(rc));
    if (rc == 0) {
        assert_true(is_tolerable(bow_call_send_payload(s->call, payload)));
        bow_payload_unref(payload);
    }
}

static int resume(void *user)
{
    bow_call_resume(user);
    bow_call_unref(user);
    return 0;
}

static void go_on(struct serving *s, bool fails)
{
    static struct bow_task task;

    assert_true(is_tolerable(serve_send(s->call, 1)));
    send_payload(s);
    bow_task_init(&task, "resume", resume, bow_call_ref(s->call));
    assert_int_equal(bow_loop_post(bow_call_loop(s->call), &task), 0);
    int rc = fails ? bow_call_fail(s->call, BOW_ABORTED, "as asked") : bow_call_finish(s->call);
    assert_true(is_tolerable(rc));
    bow_call_unref(s->call);
}

static bool has_ended(struct serving *s)
{
    return s->peer.lost || s->peer.n_ends > 0;
}

static void begin(struct serving *s)
{
    const struct bow_metadata_entry entry = {"key", {(const uint8_t *)"value", 5}};
    const struct bow_metadata metadata = {&entry, 1};

    session_peer_begin_stream(&s->peer, SERVE_BOTH, BOW_NEVER, &metadata);
    serve_peer_send(s, 0, 1);
    serve_peer_send_sized(s, 0, 2, 100000);
    serve_peer_send(s, 0, 3);
}

/* Returns whether an allocation has failed. */
static bool run(struct serving *s, size_t n_before, bool fails)
{
    size_t n_failed = s->t->alloc.n_failed;

    s->n_entered = 0;
    s->n_closed = 0;
    s->n_messages = 0;
    serve_connect(s);
    s->peer.may_be_lost = true;
    s->t->alloc.fail_at = s->t->alloc.n_calls + n_before;
    begin(s);
    while (!has_ended(s) && serve_count(s, &s->n_entered) == 0) {
        (void)session_peer_serve(&s->peer, 1);
    }
    if (serve_count(s, &s->n_entered) > 0) {
        go_on(s, fails);
    }
    while (!has_ended(s)) {
        (void)session_peer_serve(&s->peer, 1);
    }
    enum bow_code wanted = fails ? BOW_ABORTED : BOW_OK;
    /* Over HTTP/2 a connection without memory says so by GOAWAY. */
    bool is_gone = s->peer.lost || (calls_is_grpc() && s->peer.code == BOW_UNAVAILABLE);
    assert_true(is_gone || s->peer.code == wanted || s->peer.code == BOW_RESOURCE_EXHAUSTED);
    session_peer_end(&s->peer);
    s->has_peer = false;
    serve_wait(s, &s->n_closed, s->n_entered);
    s->t->alloc.fail_at = 0;
    CALLS_WAIT_METRIC(s->t, calls_unanswered, 0);
    return s->t->alloc.n_failed > n_failed;
}

static void expect_each_failure_to_be_survived(struct serving *s, bool fails,
                                               void (*entered)(struct serving *s,
                                                               struct bow_call *call))
{
    struct bow_server_options options;
    size_t n = 1;

    calls_server_options(s->t, &options);
    serve_start(s, &options);
    s->enter = entered;
    s->in_message = echo;
    while (run(s, n, fails)) {
        n++;
    }
    assert_true(n > 7);
}

static void test_serve_without_memory_a_stream_ends(void **state)
{
    expect_each_failure_to_be_survived(*state, false, enter);
}

static void test_serve_without_memory_a_paused_stream_ends(void **state)
{
    expect_each_failure_to_be_survived(*state, false, enter_paused);
}

static void test_serve_without_memory_a_failing_stream_ends(void **state)
{
    expect_each_failure_to_be_survived(*state, true, enter);
}

#define BARE(name) cmocka_unit_test_setup_teardown(name, serve_setup_bare, serve_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        BARE(test_serve_without_memory_a_stream_ends),
        BARE(test_serve_without_memory_a_paused_stream_ends),
        BARE(test_serve_without_memory_a_failing_stream_ends),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
