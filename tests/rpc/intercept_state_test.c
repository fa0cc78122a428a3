/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What an interceptor keeps of a call, as its handler finds it: by the state's key, for as long as
 * the call lasts.
 */

#include "serve_fixture.h"

#include <bowline/call.h>
#include <bowline/interceptor.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const char caller_key[] = "caller";
static const char other_key[] = "other";

struct caller {
    char name[16];
    const char *title; /* of bow_interception_alloc() */
    bool ended;
};

static struct caller *caller_of(const struct bow_call *call)
{
    return bow_call_state(call, caller_key);
}

static int n_ends; /* under the lock of the fixture */

static void on_start(struct bow_interception *at, void *user)
{
    struct caller *caller = bow_interception_state(at);
    char *title = bow_interception_alloc(at, 8);

    (void)user;
    assert_ptr_equal(caller_of(bow_interception_call(at)), caller);
    assert_non_null(title);
    memset(title, 0, 8);
    (void)snprintf(caller->name, sizeof(caller->name), "anna");
    (void)snprintf(title, 8, "captain");
    caller->title = title;
}

static void on_message(struct bow_interception *at, const struct bow_intercepted_message *message,
                       void *user)
{
    (void)message;
    (void)user;
    assert_null(bow_interception_alloc(at, 8)); /* the memory is the handler's */
}

static void on_end(struct bow_interception *at, const struct bow_intercepted_end *end, void *user)
{
    struct serving *s = user;
    struct caller *caller = bow_interception_state(at);

    (void)end;
    pthread_mutex_lock(&s->t->lock);
    caller->ended = true;
    n_ends++;
    pthread_cond_broadcast(&s->t->changed);
    pthread_mutex_unlock(&s->t->lock);
}

static struct bow_interceptor the_caller(struct serving *s)
{
    struct bow_interceptor interceptor = BOW_INTERCEPTOR_INIT;

    interceptor.name = "caller";
    interceptor.state_bytes = sizeof(struct caller);
    interceptor.state_key = caller_key;
    interceptor.on_start = on_start;
    interceptor.on_message = on_message;
    interceptor.on_end = on_end;
    interceptor.user = s;
    return interceptor;
}

/* Behind one without a key, and one whose state has no bytes. */
static void intercept(struct serving *s)
{
    struct bow_interceptor nameless = BOW_INTERCEPTOR_INIT;
    struct bow_interceptor caller = the_caller(s);

    nameless.name = "no key";
    nameless.state_bytes = 24;
    assert_int_equal(bow_server_intercept(s->t->server, &nameless), 0);
    nameless.name = "no state";
    nameless.state_bytes = 0;
    nameless.state_key = other_key;
    assert_int_equal(bow_server_intercept(s->t->server, &nameless), 0);
    assert_int_equal(bow_server_intercept(s->t->server, &caller), 0);
}

static void start(struct serving *s)
{
    struct bow_server_options options;

    calls_server_options(s->t, &options);
    serve_start(s, &options);
    serve_connect(s);
}

static int setup(void **state)
{
    serve_setup_bare(state);
    ((struct serving *)*state)->before_start = intercept;
    n_ends = 0;
    return 0;
}

/* The handlers */

static void expect_anna(const struct bow_call *call)
{
    const struct caller *caller = caller_of(call);

    assert_non_null(caller);
    assert_string_equal(caller->name, "anna");
    assert_string_equal(caller->title, "captain");
    assert_null(bow_call_state(call, other_key));
    assert_null(bow_call_state(call, "unknown"));
    assert_null(bow_call_state(call, NULL));
}

static void look_and_reply(struct serving *s, struct bow_call *call)
{
    expect_anna(call);
    s->rc = serve_reply(call, 1);
}

static void test_state_is_found_by_the_handler(void **state)
{
    struct serving *s = *state;

    s->enter = look_and_reply;
    start(s);
    serve_begin(s, SERVE_PLAIN);
    serve_expect_status(s, BOW_OK, "");
}

static void look(struct serving *s, struct bow_call *call)
{
    (void)s;
    expect_anna(call);
}

static void look_and_finish(struct serving *s, struct bow_call *call)
{
    expect_anna(call);
    s->rc = bow_call_finish(call);
}

static void test_state_is_found_in_each_event_of_a_stream(void **state)
{
    struct serving *s = *state;

    s->in_message = look;
    s->in_half_close = look_and_finish;
    s->in_closed = look;
    start(s);
    serve_begin(s, SERVE_BOTH);
    serve_peer_send(s, 0, 1);
    serve_peer_send(s, BOW__SEND_END, 2);
    serve_expect_status(s, BOW_OK, "");
    serve_wait(s, &s->n_closed, 1);
}

static void keep(struct serving *s, struct bow_call *call)
{
    (void)s;
    (void)call;
}

static void nothing(struct serving *s)
{
    (void)s;
}

/* The handler holds the call on this thread; the call has ended on its loop. */
static void test_state_lasts_until_the_handler_has_answered(void **state)
{
    struct serving *s = *state;

    s->enter = keep;
    start(s);
    serve_begin(s, SERVE_PLAIN);
    session_peer_cancel(&s->peer);
    calls_wait(s->t, &n_ends, 1);
    serve_on_loop(s, nothing); /* the rest of the cancel has been done */
    expect_anna(s->call);
    assert_true(caller_of(s->call)->ended);
    assert_int_equal(serve_reply(s->call, 1), -ECANCELED);
}

static void test_state_outlives_the_server_with_its_call(void **state)
{
    struct serving *s = *state;

    s->enter = keep;
    start(s);
    serve_begin(s, SERVE_PLAIN);
    session_peer_end(&s->peer);
    s->has_peer = false;
    calls_kill_server(s->t);
    expect_anna(s->call);
    assert_int_equal(serve_reply(s->call, 1), -ECANCELED);
}

static void find_nothing(struct serving *s, struct bow_call *call)
{
    assert_null(bow_call_state(call, caller_key));
    s->rc = serve_reply(call, 1);
}

static void test_state_is_null_where_nobody_intercepts(void **state)
{
    struct serving *s = *state;

    s->before_start = NULL;
    s->enter = find_nothing;
    start(s);
    serve_begin(s, SERVE_PLAIN);
    serve_expect_status(s, BOW_OK, "");
}

static void intercept_twice(struct serving *s)
{
    struct bow_interceptor caller = the_caller(s);

    intercept(s);
    caller.name = "again";
    assert_int_equal(bow_server_intercept(s->t->server, &caller), -EINVAL);
    assert_string_equal(bow_server_error(s->t->server),
                        "interceptor 4 (\"again\") has the state_key of \"caller\"");
}

static void test_state_key_is_one_interceptors(void **state)
{
    struct serving *s = *state;

    s->before_start = intercept_twice;
    start(s);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, serve_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_state_is_found_by_the_handler),
        TEST(test_state_is_found_in_each_event_of_a_stream),
        TEST(test_state_lasts_until_the_handler_has_answered),
        TEST(test_state_outlives_the_server_with_its_call),
        TEST(test_state_is_null_where_nobody_intercepts),
        TEST(test_state_key_is_one_interceptors),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
