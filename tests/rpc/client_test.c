/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Clients: the three ways to bind one, who may wait where, the queue, and being freed at
 * awkward moments.
 */

#include "call_fixture.h"
#include "rpc/connection/http2_built.h"

#include <arpa/inet.h>
#include <bowline/group.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static struct bow_client *new_confined(struct calls *t)
{
    struct bow_client_options options;

    calls_client_options(t, &options);
    options.loop = NULL;
    return calls_new_client(t, &options);
}

static void expect_say(struct bow_client *client)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    if (calls__echo__say__call(client, &request, NULL, &result) == NULL) {
        fail_msg("%s: %s", bow_code_name(result.status.code), result.status.message);
    }
    bow_result_fini(&result);
}

static void expect_say_fails(struct bow_client *client, enum bow_code code, const char *words)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    assert_null(calls__echo__say__call(client, &request, NULL, &result));
    assert_int_equal(result.status.code, code);
    if (strstr(result.status.message, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", result.status.message, words);
    }
    bow_result_fini(&result);
}

/* Options */

static void expect_new_fails(struct calls *t, const char *target, bool group, int rc,
                             const char *words)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_transport_error error = {0};
    struct bow_client *client = NULL;

    options.context = t->context;
    options.target = target;
    options.loop = t->loop;
    options.group = group ? (struct bow_group *)t->loop : NULL;
    assert_int_equal(bow_client_new(&options, &client), rc);
    options.error = &error;
    assert_int_equal(bow_client_new(&options, &client), rc);
    assert_null(client);
    assert_int_equal(error.error, rc);
    if (strstr(error.text, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", error.text, words);
    }
}

/* What is wrong with a target of gRPC does not matter where there is none. */
static void expect_grpc_refused(struct calls *t, const char *target, const char *words)
{
    expect_new_fails(t, target, false, -EINVAL, bow__http2_is_built() ? words : "without HTTP/2");
}

static void test_client_bad_options_are_refused_with_a_reason(void **state)
{
    struct calls *t = *state;

    expect_new_fails(t, NULL, false, -EINVAL, "options.target");
    expect_new_fails(t, "", false, -EINVAL, "making a client for");
    expect_new_fails(t, "no-port", false, -EINVAL, "no-port");
    expect_grpc_refused(t, "grpc:", "grpc:");
    expect_new_fails(t, "127.0.0.1:1", true, -EINVAL, "not both");
    expect_new_fails(t, "192.0.2.1:80", false, -EPERM, "options.plaintext");
}

static void test_client_target_with_its_parts_in_the_wrong_place_says_where_they_go(void **state)
{
    struct calls *t = *state;

    expect_new_fails(t, "127.0.0.1:1,127.0.0.1:2", false, -EINVAL, "list:ADDRESS,ADDRESS");
    expect_new_fails(t, "list:127.0.0.1:1, 127.0.0.1:2", false, -EINVAL, "no blanks");
    expect_new_fails(t, "list:127.0.0.1:1 127.0.0.1:2", false, -EINVAL, "no blanks");
    expect_new_fails(t, "list:grpc:127.0.0.1:1", false, -EINVAL, "grpc:list:ADDRESS,ADDRESS");
    expect_new_fails(t, "list:list:127.0.0.1:1", false, -EINVAL, "stands once");
    expect_grpc_refused(t, "grpc://127.0.0.1:1", "no \"//\"");
    expect_new_fails(t, "::1:80", false, -EINVAL, "in brackets");
}

static void test_client_without_memory_says_so(void **state)
{
    struct calls *t = *state;
    struct bow_client_options options;
    struct bow_transport_error error = {0};
    struct bow_client *client = NULL;

    calls_client_options(t, &options);
    options.error = &error;
    t->alloc.fail_at = t->alloc.n_calls + 1;
    assert_int_equal(bow_client_new(&options, &client), -ENOMEM);
    assert_non_null(strstr(error.text, "making a client for"));
}

/* Confined */

static void test_client_targets_for_servers_only_are_explained(void **state)
{
    struct calls *t = *state;
    struct bow_client_options options;

    calls_client_options(t, &options);
    options.loop = NULL;
    options.target = "127.0.0.1:0";
    struct bow_client *client = calls_new_client(t, &options);
    expect_say_fails(client, BOW_UNAVAILABLE, "port 0 is for listening");
    bow_client_free(client);
    options.target = "*:80";
    options.plaintext = true;
    client = calls_new_client(t, &options);
    expect_say_fails(client, BOW_UNAVAILABLE, "\"*\" is for listening");
    bow_client_free(client);
}

static void test_client_confined_calls(void **state)
{
    struct calls *t = *state;
    struct bow_client *client = new_confined(t);

    expect_say(client);
    expect_say(client);
    bow_client_free(client);
}

static void test_client_confined_counts_a_call_when_it_returns(void **state)
{
    struct calls *t = *state;
    struct bow_client *client = new_confined(t);

    for (uint64_t n = 1; n <= 3; n++) {
        struct bow_metrics metrics = BOW_METRICS_INIT;
        expect_say(client);
        assert_int_equal(bow_client_metrics(client, &metrics), 0);
        assert_int_equal(metrics.calls_started, n);
        assert_int_equal(metrics.calls_ended, n);
        assert_int_equal(metrics.connections_opened, 1);
        assert_true(metrics.bytes_received > 0);
    }
    bow_client_free(client);
}

static void test_client_confined_notices_a_restart_between_calls(void **state)
{
    struct calls *t = *state;
    struct bow_client *client = new_confined(t);
    struct bow_server_options options;

    expect_say(client);
    calls_kill_server(t);
    calls_server_options(t, &options);
    t->server = calls_start_server(t, &options);
    expect_say(client);
    bow_client_free(client);
}

static void test_client_confined_completes_callbacks_when_polled(void **state)
{
    struct calls *t = *state;
    struct bow_client *client = new_confined(t);
    Calls__Request request = CALLS__REQUEST__INIT;

    assert_int_equal(calls__echo__say__start(client, &request, NULL, calls_on_done, t, NULL), 0);
    assert_int_equal(t->n_done, 0);
    while (t->n_done == 0) {
        assert_int_equal(bow_client_poll(client, BOW_NEVER), 0);
    }
    assert_int_equal(t->result.status.code, BOW_OK);
    bow_client_free(client);
}

static void *use_confined(void *user)
{
    struct bow_client *client = user;
    Calls__Request request = CALLS__REQUEST__INIT;

    expect_say_fails(client, BOW_INVALID_ARGUMENT, "make one for each thread");
    assert_int_equal(calls__echo__say__start(client, &request, NULL, NULL, NULL, NULL), -EINVAL);
    assert_int_equal(bow_client_poll(client, 0), -EINVAL);
    return NULL;
}

static void test_client_confined_refuses_other_threads(void **state)
{
    struct calls *t = *state;
    struct bow_client *client = new_confined(t);
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, use_confined, client), 0);
    pthread_join(thread, NULL);
    expect_say(client);
    bow_client_free(client);
}

/* Waiting on one's own loop */

struct blocked {
    struct calls *t;
    struct bow_client *client;
    bool frees;
    int n_done;
};

static void on_done_blocking(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    struct blocked *blocked = user;

    (void)reply;
    assert_int_equal(result->status.code, BOW_OK);
    expect_say_fails(blocked->client, BOW_FAILED_PRECONDITION, "callback form");
    if (blocked->frees) {
        bow_client_free(blocked->client);
    }
    pthread_mutex_lock(&blocked->t->lock);
    blocked->n_done++;
    pthread_cond_broadcast(&blocked->t->changed);
    pthread_mutex_unlock(&blocked->t->lock);
}

static void test_client_blocking_on_its_loop_is_refused(void **state)
{
    struct calls *t = *state;
    struct blocked blocked = {.t = t, .client = t->client};
    Calls__Request request = CALLS__REQUEST__INIT;

    assert_int_equal(
        calls__echo__say__start(t->client, &request, NULL, on_done_blocking, &blocked, NULL), 0);
    calls_wait(t, &blocked.n_done, 1);
}

static void test_client_confined_blocking_in_a_callback_is_refused(void **state)
{
    struct calls *t = *state;
    struct blocked blocked = {.t = t, .client = new_confined(t)};
    Calls__Request request = CALLS__REQUEST__INIT;

    assert_int_equal(
        calls__echo__say__start(blocked.client, &request, NULL, on_done_blocking, &blocked, NULL),
        0);
    while (blocked.n_done == 0) {
        assert_int_equal(bow_client_poll(blocked.client, BOW_NEVER), 0);
    }
    bow_client_free(blocked.client);
}

/* Freeing */

static void test_client_f20_freed_in_its_own_callback(void **state)
{
    struct calls *t = *state;
    struct blocked blocked = {.t = t, .client = t->client, .frees = true};
    Calls__Request request = CALLS__REQUEST__INIT;

    assert_int_equal(calls__echo__hold__start(t->client, &request, NULL, calls_on_done, t, NULL),
                     0);
    assert_int_equal(
        calls__echo__say__start(t->client, &request, NULL, on_done_blocking, &blocked, NULL), 0);
    calls_wait(t, &blocked.n_done, 1);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_CANCELLED);
    t->client = NULL;
}

static void test_client_f20_confined_freed_in_its_own_callback(void **state)
{
    struct calls *t = *state;
    struct blocked blocked = {.t = t, .client = new_confined(t), .frees = true};
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    assert_int_equal(
        calls__echo__say__start(blocked.client, &request, NULL, on_done_blocking, &blocked, NULL),
        0);
    /* The blocking call drives the loop on which the other one's callback frees the client. */
    assert_null(calls__echo__hold__call(blocked.client, &request, NULL, &result));
    assert_int_equal(result.status.code, BOW_CANCELLED);
    assert_int_equal(blocked.n_done, 1);
    bow_result_fini(&result);
}

static void test_client_unused_is_freed(void **state)
{
    struct calls *t = *state;

    bow_client_free(new_confined(t));
    bow_client_free(NULL);
}

static int start_after_free(void *user)
{
    struct calls *t = user;
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_client *client = t->client;

    assert_int_equal(calls__echo__hold__start(client, &request, NULL, calls_on_done, t, NULL), 0);
    bow_client_free(client);
    assert_int_equal(calls__echo__say__start(client, &request, NULL, NULL, NULL, NULL), -ESHUTDOWN);
    return 0;
}

static void test_client_being_freed_takes_no_calls(void **state)
{
    struct calls *t = *state;

    assert_int_equal(bow_loop_execute(t->loop, "free", start_after_free, t), 0);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_CANCELLED);
    t->client = NULL;
}

static void test_client_outlives_its_loop(void **state)
{
    struct calls *t = *state;
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct bow_client_options options;
    struct bow_loop *loop = NULL;
    Calls__Request request = CALLS__REQUEST__INIT;

    assert_int_equal(bow_loop_new(t->context, &loop_options, &loop), 0);
    calls_client_options(t, &options);
    options.loop = loop;
    struct bow_client *client = calls_new_client(t, &options);
    assert_int_equal(calls__echo__hold__start(client, &request, NULL, calls_on_done, t, NULL), 0);
    calls_wait(t, &t->n_held, 1);
    assert_int_equal(bow_loop_shutdown(loop, 0, 0), 0);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_UNAVAILABLE);
    assert_int_equal(bow_loop_join(loop, BOW_NEVER), 0);
    expect_say_fails(client, BOW_UNAVAILABLE, "ESHUTDOWN");
    bow_client_free(client);
    bow_loop_unref(loop);
}

/* A peer that accepts and never says or reads a thing */

struct mute {
    int fd;
    char target[64];
};

static void mute_open(struct mute *mute)
{
    struct sockaddr_in in = {.sin_family = AF_INET};
    socklen_t len = sizeof(in);

    mute->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(mute->fd, (struct sockaddr *)&in, sizeof(in)), 0);
    assert_int_equal(listen(mute->fd, 8), 0);
    assert_int_equal(getsockname(mute->fd, (struct sockaddr *)&in, &len), 0);
    snprintf(mute->target, sizeof(mute->target), "%s127.0.0.1:%u", calls_is_grpc() ? "grpc:" : "",
             ntohs(in.sin_port));
}

static struct bow_client *new_mute_client(struct calls *t, struct mute *mute, uint32_t max_queued)
{
    struct bow_client_options options;

    mute_open(mute);
    calls_client_options(t, &options);
    options.target = mute->target;
    options.max_queued_calls = max_queued;
    return calls_new_client(t, &options);
}

static int fill_queue(void *user)
{
    struct calls *t = user;
    Calls__Request request = CALLS__REQUEST__INIT;
    int rc = 0;

    while (rc == 0 && t->n_helpers < 1000) {
        rc = calls__echo__say__start(t->client, &request, NULL, calls_on_done, t, NULL);
        t->n_helpers += rc == 0;
    }
    pthread_mutex_lock(&t->lock);
    t->cancel_reply_rc = rc;
    t->n_said = 1;
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    return 0;
}

static void test_client_queue_is_bounded_and_freed(void **state)
{
    struct calls *t = *state;
    struct mute mute;

    bow_client_free(t->client);
    t->client = new_mute_client(t, &mute, 10);
    assert_int_equal(bow_loop_execute(t->loop, "fill", fill_queue, t), 0);
    calls_wait(t, &t->n_said, 1);
    assert_int_equal(t->cancel_reply_rc, -EAGAIN);
    int n_accepted = t->n_helpers;
    t->n_helpers = 0;
    assert_int_equal(n_accepted, 10); /* none can be sent before the connection is there */
    bow_client_free(t->client);
    t->client = NULL;
    assert_int_equal(t->n_done, n_accepted);
    close(mute.fd);
}

static void test_client_f18_deadline_holds_while_the_peer_does_not_read(void **state)
{
    struct calls *t = *state;
    struct mute mute;
    struct bow_client *client = new_mute_client(t, &mute, 0);
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    request.payload.len = (size_t)10 << 20;
    request.payload.data = calloc(1, request.payload.len);
    options.timeout_ns = 100 * MS;
    assert_null(calls__echo__say__call(client, &request, &options, &result));
    assert_int_equal(result.status.code, BOW_DEADLINE_EXCEEDED);
    bow_result_fini(&result);
    free(request.payload.data);
    bow_client_free(client);
    close(mute.fd);
}

/* Its socket is full, and who starts, cancels and frees is another thread than its loop's. */
static void test_client_f17_full_socket_holds_up_no_caller(void **state)
{
    struct calls *t = *state;
    struct mute mute;
    struct bow_client *client = new_mute_client(t, &mute, 0);
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;
    uint64_t ids[20];

    request.payload.len = (size_t)1 << 20;
    request.payload.data = calloc(1, request.payload.len);
    assert_non_null(request.payload.data);
    options.timeout_ns = BOW_NEVER;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(
            calls__echo__say__start(client, &request, &options, calls_on_done, t, &ids[i]), 0);
    }
    for (int i = 0; i < 10; i++) {
        bow_client_cancel(client, ids[i]);
    }
    calls_wait(t, &t->n_done, 10);
    assert_int_equal(t->n_done, 10);
    bow_client_free(client);
    assert_int_equal(t->n_done, 20);
    free(request.payload.data);
    close(mute.fd);
}

/*
 * A call is cancelled by another thread while its loop is busy, and its deadline passes: the
 * cancellation finds it over. By then the next call may stand in the same memory.
 */

struct cancelled {
    struct calls *t;
    uint64_t id;
    enum bow_code code;
    enum bow_code next_code;
    struct bow_task hold;
    int n_held;
};

/* At the end of a turn, so that what is posted now runs in the next one, behind the timers that
 * have come due. */
static int hold_until_cancelled(void *user)
{
    struct cancelled *c = user;

    pthread_mutex_lock(&c->t->lock);
    c->n_held++;
    pthread_cond_broadcast(&c->t->changed);
    pthread_mutex_unlock(&c->t->lock);
    calls_wait(c->t, &c->t->n_let_go, 1);
    return 0;
}

static int end_turn_held(void *user)
{
    struct cancelled *c = user;

    return bow_loop_post_tail(c->t->loop, &c->hold);
}

static void on_busy_done(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    struct cancelled *c = user;

    calls_on_done(result, reply, c->t);
    calls_hold_loop(20 * MS);
    bow_task_init(&c->hold, "hold", hold_until_cancelled, c);
    assert_int_equal(bow_loop_execute(c->t->loop, "end", end_turn_held, c), 0);
}

static void on_cancelled_done(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    struct cancelled *c = user;

    c->code = result->status.code;
    calls_on_done(result, reply, c->t);
}

static void on_next_done(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    struct cancelled *c = user;

    c->next_code = result->status.code;
    calls_on_done(result, reply, c->t);
}

static void start_next(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    struct cancelled *c = user;
    Calls__Request request = CALLS__REQUEST__INIT;

    assert_int_equal(calls__echo__say__start(c->t->client, &request, NULL, on_next_done, c, NULL),
                     0);
    calls_on_done(result, reply, c->t);
}

static int start_cancelled(void *user)
{
    struct cancelled *c = user;
    struct bow_client *client = c->t->client;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    options.timeout_ns = 20 * MS;
    assert_int_equal(
        calls__echo__hold__start(client, &request, &options, on_cancelled_done, c, &c->id), 0);
    assert_int_equal(calls__echo__hold__start(client, &request, &options, start_next, c, NULL), 0);
    assert_int_equal(calls__echo__say__start(client, &request, NULL, on_busy_done, c, NULL), 0);
    return 0;
}

static void test_client_f19_cancel_posted_before_the_deadline_hurts_no_other(void **state)
{
    struct calls *t = *state;
    struct cancelled c = {.t = t, .next_code = BOW_UNKNOWN};

    expect_say(t->client);
    assert_int_equal(bow_loop_execute(t->loop, "start", start_cancelled, &c), 0);
    calls_wait(t, &c.n_held, 1);
    bow_client_cancel(t->client, c.id);
    calls_let_go(t);
    calls_wait(t, &t->n_done, 4);
    assert_int_equal(c.code, BOW_DEADLINE_EXCEEDED);
    assert_int_equal(c.next_code, BOW_OK);
}

/* How far the context's clock is ahead of the system's. */
static _Atomic uint64_t ahead_ns;

static uint64_t read_ahead(void *user)
{
    (void)user;
    return bow_system_default()->now_ns(NULL) + ahead_ns;
}

static void test_client_f63_confined_that_nobody_drove_says_so(void **state)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct bow_server_options server;
    struct calls *t = *state;
    Calls__Request request = CALLS__REQUEST__INIT;

    ahead_ns = 0;
    t->system.now_ns = read_ahead;
    calls_server_options(t, &server);
    t->server = calls_start_server(t, &server);
    struct bow_client *client = new_confined(t);
    options.timeout_ns = 1000 * MS;
    assert_int_equal(calls__echo__hold__start(client, &request, &options, calls_on_done, t, NULL),
                     0);
    ahead_ns = 4000 * MS;
    while (t->n_done == 0) {
        assert_int_equal(bow_client_poll(client, 10 * MS), 0);
    }
    bow_client_free(client);
    assert_int_equal(t->result.status.code, BOW_DEADLINE_EXCEEDED);
    assert_non_null(strstr(t->result.status.message, "deadline of 1 s passed"));
    assert_non_null(strstr(t->result.status.message, "nobody has driven this confined client"));
    assert_non_null(strstr(t->result.status.message, "bow_client_poll()"));
}

/* Each protocol has its own words for what is too large. */
static void test_client_f63_what_it_says_of_a_server_names_it(void **state)
{
    struct bow_client_options options;
    struct calls *t = *state;
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    calls_client_options(t, &options);
    options.max_message_bytes = 1;
    struct bow_client *client = calls_new_client(t, &options);
    request.text = "long enough";
    assert_null(calls__echo__say__call(client, &request, NULL, &result));
    bow_client_free(client);
    assert_int_equal(result.status.code, BOW_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(result.status.message, "max_message_bytes (1)"));
    assert_non_null(strstr(result.status.message, t->address));
    bow_result_fini(&result);
}

#define BARE_TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup_bare, calls_teardown)
#define TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup, calls_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_client_bad_options_are_refused_with_a_reason),
        TEST(test_client_target_with_its_parts_in_the_wrong_place_says_where_they_go),
        TEST(test_client_without_memory_says_so),
        TEST(test_client_targets_for_servers_only_are_explained),
        TEST(test_client_confined_calls),
        TEST(test_client_confined_counts_a_call_when_it_returns),
        TEST(test_client_confined_notices_a_restart_between_calls),
        TEST(test_client_confined_completes_callbacks_when_polled),
        TEST(test_client_confined_refuses_other_threads),
        BARE_TEST(test_client_f63_confined_that_nobody_drove_says_so),
        TEST(test_client_f63_what_it_says_of_a_server_names_it),
        TEST(test_client_blocking_on_its_loop_is_refused),
        TEST(test_client_confined_blocking_in_a_callback_is_refused),
        TEST(test_client_f20_freed_in_its_own_callback),
        TEST(test_client_f20_confined_freed_in_its_own_callback),
        TEST(test_client_unused_is_freed),
        TEST(test_client_being_freed_takes_no_calls),
        TEST(test_client_outlives_its_loop),
        TEST(test_client_queue_is_bounded_and_freed),
        TEST(test_client_f17_full_socket_holds_up_no_caller),
        TEST(test_client_f18_deadline_holds_while_the_peer_does_not_read),
        TEST(test_client_f19_cancel_posted_before_the_deadline_hurts_no_other),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
