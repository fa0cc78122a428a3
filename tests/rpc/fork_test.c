/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Servers and clients after fork(): what the parent has used is refused in the child and not hurt
 * by it, what it has only made works there.
 */

#include "call_fixture.h"
#include "rpc/server/server_state.h"
#include "tests/support/forks.h"

#include <bowline/call_set.h>
#include <bowline/interceptor.h>
#include <bowline/stream.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* The server of the parent on a loop that can be parked, and its client on another. */
struct pair {
    struct calls *t;
    struct bow_loop *loops[2];
};

static void begin(struct calls *t, struct pair *ret_pair)
{
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct bow_server_options options;

    ret_pair->t = t;
    ret_pair->loops[0] = t->loop;
    assert_int_equal(bow_loop_new(t->context, &loop_options, &ret_pair->loops[1]), 0);
    calls_server_options(t, &options);
    options.loop = ret_pair->loops[1];
    t->server = calls_start_server(t, &options);
}

static void end(struct pair *pair)
{
    bow_client_free(pair->t->client);
    pair->t->client = NULL;
    calls_kill_server(pair->t);
    assert_int_equal(bow_loop_shutdown(pair->loops[1], 0, 0), 0);
    assert_int_equal(bow_loop_join(pair->loops[1], BOW_NEVER), 0);
    bow_loop_unref(pair->loops[1]);
}

static struct bow_client *new_client(struct calls *t, struct bow_loop *loop)
{
    struct bow_client_options options;
    struct bow_client *client = NULL;

    calls_client_options(t, &options);
    options.loop = loop;
    return bow_client_new(&options, &client) == 0 ? client : NULL;
}

static enum bow_code say(struct bow_client *client, const char *words)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    (void)calls__echo__say__call(client, &request, NULL, &result);
    enum bow_code code = result.status.code;
    if (words != NULL && strstr(result.status.message, words) == NULL) {
        fprintf(stderr, "\"%s\" does not say \"%s\"\n", result.status.message, words);
        code = BOW_UNKNOWN;
    }
    bow_result_fini(&result);
    return code;
}

static void on_never(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    (void)result;
    (void)reply;
    (void)user;
    bool has_come = true;
    FORKS_EXPECT(!has_come);
}

static void refuse_all(struct bow_client *client, struct bow_stream *stream)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    const ProtobufCMessage *message = NULL;
    struct bow_result result = BOW_RESULT_INIT;
    struct bow_stream *another = NULL;
    uint64_t id = 7;

    FORKS_EXPECT(say(client, "before fork()") == BOW_FAILED_PRECONDITION);
    FORKS_EXPECT(calls__echo__say__start(client, &request, NULL, on_never, NULL, &id) == -ECHILD);
    FORKS_EXPECT(id == 7);
    bow_client_cancel(client, id);
    FORKS_EXPECT(bow_client_open(client, calls__echo__stream__method(), NULL, NULL, NULL, NULL,
                                 &another) == -ECHILD);
    FORKS_EXPECT(bow_stream_send(stream, &request.base) == -ECHILD);
    FORKS_EXPECT(bow_stream_write(stream, &request.base, BOW_NEVER) == -ECHILD);
    FORKS_EXPECT(bow_stream_receive(stream, BOW_NEVER, &message) == -ECHILD);
    FORKS_EXPECT(bow_stream_half_close(stream) == -ECHILD);
    FORKS_EXPECT(bow_stream_finish(stream, &result) == -ECHILD);
    bow_stream_cancel(stream);
    bow_stream_unref(stream);
    bow_client_free(client);
}

static struct bow_stream *open_stream(struct bow_client *client)
{
    struct bow_stream *stream = NULL;

    assert_int_equal(
        bow_client_open(client, calls__echo__stream__method(), NULL, NULL, NULL, NULL, &stream), 0);
    return stream;
}

static void finish_stream(struct bow_stream *stream)
{
    struct bow_result result = BOW_RESULT_INIT;

    assert_int_equal(bow_stream_finish(stream, &result), 0);
    assert_int_equal(result.status.code, BOW_UNIMPLEMENTED); /* it has no handler */
    bow_result_fini(&result);
}

static void expect_connections(struct calls *t, uint64_t opened, uint64_t closed)
{
    CALLS_WAIT_METRIC(t, connections_opened, opened);
    CALLS_WAIT_METRIC(t, connections_closed, closed);
}

/* A client that was used */

static void use_in_both(struct calls *t, struct bow_loop *loop)
{
    struct forks forks;
    struct pair pair;

    begin(t, &pair);
    t->client = new_client(t, loop);
    assert_int_equal(say(t->client, NULL), BOW_OK);
    struct bow_stream *stream = open_stream(t->client);
    forks_begin(&forks, pair.loops, 2);
    if (forks.pid == 0) {
        refuse_all(t->client, stream);
        forks_tell(&forks);
        forks_hear(&forks);
        _exit(0);
    }
    forks_hear(&forks);
    finish_stream(stream);
    assert_int_equal(say(t->client, NULL), BOW_OK);
    expect_connections(t, 1, 0);
    forks_tell(&forks);
    forks_end(&forks);
    assert_int_equal(say(t->client, NULL), BOW_OK);
    expect_connections(t, 1, 0);
    end(&pair);
}

static void test_fork_client_of_a_loop_is_refused_in_the_child(void **state)
{
    struct calls *t = *state;

    use_in_both(t, t->loop);
}

static void test_fork_confined_client_is_refused_in_the_child(void **state)
{
    use_in_both(*state, NULL);
}

static void test_fork_confined_client_is_not_polled_in_the_child(void **state)
{
    struct calls *t = *state;
    struct forks forks;
    struct pair pair;

    begin(t, &pair);
    t->client = new_client(t, NULL);
    assert_int_equal(say(t->client, NULL), BOW_OK);
    forks_begin(&forks, pair.loops, 2);
    if (forks.pid == 0) {
        FORKS_EXPECT(bow_client_poll(t->client, BOW_NEVER) == -ECHILD);
        _exit(0);
    }
    forks_end(&forks);
    end(&pair);
}

/* The child lets go of its copy of the socket, so that the server hears of the parent's end. */
static void test_fork_freed_in_the_child_ends_with_the_parents(void **state)
{
    struct calls *t = *state;
    struct forks forks;
    struct pair pair;

    begin(t, &pair);
    t->client = new_client(t, NULL);
    assert_int_equal(say(t->client, NULL), BOW_OK);
    forks_begin(&forks, pair.loops, 2);
    if (forks.pid == 0) {
        bow_client_free(t->client);
        forks_tell(&forks);
        forks_hear(&forks);
        _exit(0);
    }
    forks_hear(&forks);
    assert_int_equal(say(t->client, NULL), BOW_OK);
    bow_client_free(t->client);
    t->client = NULL;
    expect_connections(t, 1, 1);
    forks_tell(&forks);
    forks_end(&forks);
    end(&pair);
}

static void test_fork_another_client_works_in_the_child(void **state)
{
    struct calls *t = *state;
    struct forks forks;
    struct pair pair;

    begin(t, &pair);
    t->client = new_client(t, NULL);
    assert_int_equal(say(t->client, NULL), BOW_OK);
    forks_begin(&forks, pair.loops, 2);
    if (forks.pid == 0) {
        struct bow_client *mine = new_client(t, NULL);
        bow_client_free(t->client);
        FORKS_EXPECT(say(mine, NULL) == BOW_OK);
        bow_client_free(mine);
        _exit(0);
    }
    assert_int_equal(say(t->client, NULL), BOW_OK);
    forks_end(&forks);
    expect_connections(t, 2, 1);
    end(&pair);
}

/* Sets of calls: a thread that starts one has the set's lock, and is stopped there */

struct starting {
    struct calls *t;
    struct bow_call_set *set;
    struct gate there;
    struct gate go;
    struct gate done;
};

static void stop_in_start(struct bow_interception *at, void *user)
{
    struct starting *starting = user;

    (void)at;
    gate_add(&starting->there);
    gate_wait(&starting->go, 1);
}

static int start_in_set(void *user)
{
    struct starting *starting = user;
    Calls__Request request = CALLS__REQUEST__INIT;

    return bow_call_set_start(starting->set, starting->t->client, calls__echo__say__method(),
                              &request.base, NULL);
}

static void on_set_done(struct bow_call_set *set, void *user)
{
    struct starting *starting = user;

    bow_call_set_free(set);
    gate_add(&starting->done);
}

static void new_stopping_client(struct starting *starting, struct bow_interceptor *interceptor)
{
    const struct bow_interceptor *interceptors[] = {interceptor};
    struct bow_client_options options;

    interceptor->name = "stops";
    interceptor->on_start = stop_in_start;
    interceptor->user = starting;
    calls_client_options(starting->t, &options);
    options.interceptors = interceptors;
    options.n_interceptors = 1;
    starting->t->client = calls_new_client(starting->t, &options);
}

static void test_fork_set_of_calls_that_is_locked_is_refused_in_the_child(void **state)
{
    struct calls *t = *state;
    struct bow_call_set_options options = BOW_CALL_SET_OPTIONS_INIT;
    struct bow_interceptor interceptor = BOW_INTERCEPTOR_INIT;
    struct starting starting = {.t = t};
    struct forks forks;
    struct pair pair;

    begin(t, &pair);
    gate_init(&starting.there);
    gate_init(&starting.go);
    gate_init(&starting.done);
    new_stopping_client(&starting, &interceptor);
    options.max_calls = 1;
    assert_int_equal(bow_call_set_new(t->loop, &options, on_set_done, &starting, &starting.set), 0);
    assert_int_equal(bow_loop_execute(t->loop, "start", start_in_set, &starting), 0);
    gate_wait(&starting.there, 1);
    forks_begin(&forks, &pair.loops[1], 1);
    if (forks.pid == 0) {
        FORKS_EXPECT(start_in_set(&starting) == -ECHILD);
        bow_call_set_commit(starting.set);
        bow_call_set_cancel(starting.set);
        bow_call_set_free(starting.set);
        _exit(0);
    }
    gate_add(&starting.go);
    forks_end(&forks);
    bow_call_set_commit(starting.set);
    gate_wait(&starting.done, 1);
    end(&pair);
    gate_fini(&starting.there);
    gate_fini(&starting.go);
    gate_fini(&starting.done);
}

/* A client that was only made */

static void test_fork_unused_client_works_in_both(void **state)
{
    struct calls *t = *state;
    struct forks forks;
    struct pair pair;

    begin(t, &pair);
    t->client = new_client(t, NULL);
    forks_begin(&forks, &pair.loops[1], 1);
    if (forks.pid == 0) {
        FORKS_EXPECT(say(t->client, NULL) == BOW_OK);
        forks_tell(&forks);
        forks_hear(&forks);
        FORKS_EXPECT(say(t->client, NULL) == BOW_OK);
        bow_client_free(t->client);
        _exit(0);
    }
    forks_hear(&forks);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(say(t->client, NULL), BOW_OK);
    }
    forks_tell(&forks);
    forks_end(&forks);
    assert_int_equal(say(t->client, NULL), BOW_OK);
    expect_connections(t, 2, 1);
    end(&pair);
}

static void test_fork_unused_client_is_freed_in_the_child(void **state)
{
    struct calls *t = *state;
    struct forks forks;
    struct pair pair;

    begin(t, &pair);
    t->client = new_client(t, NULL);
    forks_begin(&forks, &pair.loops[1], 1);
    if (forks.pid == 0) {
        size_t before = bow_context_bytes(t->context);
        bow_client_free(t->client);
        FORKS_EXPECT(bow_context_bytes(t->context) < before);
        _exit(0);
    }
    forks_end(&forks);
    assert_int_equal(say(t->client, NULL), BOW_OK);
    end(&pair);
}

/* Servers */

static void expect_foreign_server(struct bow_server *server)
{
    FORKS_EXPECT(bow_server_run(server) == -ECHILD);
    FORKS_EXPECT(strstr(bow_server_error(server), "running: ") != NULL);
    FORKS_EXPECT(strstr(bow_server_error(server), "before fork()") != NULL);
    FORKS_EXPECT(bow_server_start(server) == -ECHILD);
    FORKS_EXPECT(strstr(bow_server_error(server), "starting: ") != NULL);
    FORKS_EXPECT(bow_server_reload(server, NULL) == -ECHILD);
    bow_server_stop(server);
    FORKS_EXPECT(bow_server_join(server) == -ECHILD);
    bow_server_free(server);
}

static void test_fork_started_server_is_refused_in_the_child(void **state)
{
    struct calls *t = *state;
    struct forks forks;
    struct pair pair;

    begin(t, &pair);
    t->client = new_client(t, t->loop);
    assert_int_equal(say(t->client, NULL), BOW_OK);
    forks_begin(&forks, pair.loops, 2);
    if (forks.pid == 0) {
        expect_foreign_server(t->server);
        _exit(0);
    }
    assert_int_equal(say(t->client, NULL), BOW_OK);
    forks_end(&forks);
    assert_int_equal(say(t->client, NULL), BOW_OK);
    expect_connections(t, 1, 0);
    end(&pair);
}

/* One of its threads has the lock in the moment of the fork, and in the child for ever. */
static void test_fork_server_that_is_locked_is_refused_in_the_child(void **state)
{
    struct calls *t = *state;
    struct forks forks;
    struct pair pair;

    begin(t, &pair);
    pthread_mutex_lock(&t->server->lock);
    forks_begin(&forks, pair.loops, 2);
    if (forks.pid == 0) {
        expect_foreign_server(t->server);
        _exit(0);
    }
    pthread_mutex_unlock(&t->server->lock);
    forks_end(&forks);
    end(&pair);
}

/* One that was made, over a loop that serves something else in the parent already. */
static void test_fork_server_of_a_used_loop_is_not_started_in_the_child(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;
    struct forks forks;
    struct pair pair;

    begin(t, &pair);
    calls_server_options(t, &options);
    options.loop = pair.loops[1];
    options.listen = "127.0.0.1:0";
    struct bow_server *second = calls_make_server(t, &options);
    forks_begin(&forks, &pair.loops[1], 1);
    if (forks.pid == 0) {
        size_t before = bow_context_bytes(t->context);
        FORKS_EXPECT(bow_server_run(second) == -ECHILD);
        FORKS_EXPECT(strstr(bow_server_error(second), "before fork()") != NULL);
        bow_server_free(second);
        FORKS_EXPECT(bow_context_bytes(t->context) < before);
        _exit(0);
    }
    forks_end(&forks);
    bow_server_free(second);
    end(&pair);
}

/* In the child of daemon(), until SIGTERM. */
static void serve_as_daemon(struct bow_server *server, int fd)
{
    uint16_t port = 0;
    pid_t pid = 0;

    FORKS_EXPECT(daemon(1, 1) == 0);
    alarm(FORKS_PATIENCE_S);
    FORKS_EXPECT(bow_server_start(server) == 0);
    port = bow_server_port(server);
    pid = getpid();
    FORKS_EXPECT(write(fd, &pid, sizeof(pid)) == (ssize_t)sizeof(pid));
    FORKS_EXPECT(write(fd, &port, sizeof(port)) == (ssize_t)sizeof(port));
    FORKS_EXPECT(bow_server_run(server) == 0);
    bow_server_free(server);
    FORKS_EXPECT(write(fd, &port, sizeof(port)) == (ssize_t)sizeof(port));
    _exit(0);
}

static void test_fork_server_serves_after_daemon(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;
    struct forks forks;
    sigset_t term;
    sigset_t before;
    uint16_t port = 0;
    pid_t pid = 0;

    calls_server_options(t, &options);
    t->server = calls_make_server(t, &options);
    /* As the greeter's server does it; blocked, so that the window before run() does not count. */
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    assert_int_equal(sigprocmask(SIG_BLOCK, &term, &before), 0);
    forks_begin(&forks, NULL, 0);
    if (forks.pid == 0) {
        serve_as_daemon(t->server, forks.fd);
    }
    assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
    assert_int_equal(read(forks.fd, &pid, sizeof(pid)), sizeof(pid));
    assert_int_equal(read(forks.fd, &port, sizeof(port)), sizeof(port));
    if (calls_has_port()) {
        snprintf(t->address, sizeof(t->address), "127.0.0.1:%u", port);
    }
    snprintf(t->target, sizeof(t->target), "%s%s", calls_is_grpc() ? "grpc:" : "", t->address);
    t->client = new_client(t, NULL);
    assert_int_equal(say(t->client, NULL), BOW_OK);
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(read(forks.fd, &port, sizeof(port)), sizeof(port)); /* orderly */
    forks_end(&forks);
}

static void test_fork_unstarted_server_is_freed_in_the_child(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;
    struct forks forks;

    calls_server_options(t, &options);
    t->server = calls_make_server(t, &options);
    forks_begin(&forks, NULL, 0);
    if (forks.pid == 0) {
        size_t before = bow_context_bytes(t->context);
        bow_server_free(t->server);
        FORKS_EXPECT(bow_context_bytes(t->context) < before);
        _exit(0);
    }
    forks_end(&forks);
}

int main(int argc, char **argv)
{
    calls_choose(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup_bare, calls_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_fork_client_of_a_loop_is_refused_in_the_child),
        TEST(test_fork_confined_client_is_refused_in_the_child),
        TEST(test_fork_confined_client_is_not_polled_in_the_child),
        TEST(test_fork_freed_in_the_child_ends_with_the_parents),
        TEST(test_fork_another_client_works_in_the_child),
        TEST(test_fork_unused_client_works_in_both),
        TEST(test_fork_unused_client_is_freed_in_the_child),
        TEST(test_fork_set_of_calls_that_is_locked_is_refused_in_the_child),
        TEST(test_fork_started_server_is_refused_in_the_child),
        TEST(test_fork_server_that_is_locked_is_refused_in_the_child),
        TEST(test_fork_server_of_a_used_loop_is_not_started_in_the_child),
        TEST(test_fork_server_serves_after_daemon),
        TEST(test_fork_unstarted_server_is_freed_in_the_child),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
