/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A signal that comes early: while bow_server_run() starts the server, and between
 * bow_server_start() and bow_server_run(). In a child each, which it would end. And a stop that
 * comes early.
 */

#include "call_fixture.h"
#include "tests/support/forks.h"

#include <bowline/system.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static bool is_blocked(int number)
{
    sigset_t blocked;

    sigprocmask(SIG_BLOCK, NULL, &blocked);
    return sigismember(&blocked, number) == 1;
}

static bool is_pending(int number)
{
    sigset_t pending;

    sigpending(&pending);
    return sigismember(&pending, number) == 1;
}

static bool is_default(int number)
{
    struct sigaction action;

    return sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_DFL;
}

/* As the one who starts and stops services, at the first moment at which it can tell. */
static int listen_and_be_ended(void *user, int fd, int backlog)
{
    int rc = bow_system_default()->listen(user, fd, backlog);

    FORKS_EXPECT(kill(getpid(), SIGTERM) == 0);
    return rc;
}

static void run_while_ended(struct calls *t)
{
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_system system = *bow_system_default();
    struct bow_server_options options;
    struct bow_context *context = NULL;

    system.listen = listen_and_be_ended;
    context_options.system = &system;
    FORKS_EXPECT(bow_context_new(&context_options, &context) == 0);
    calls_server_options(t, &options);
    options.context = context;
    struct bow_server *server = calls_make_server(t, &options);
    FORKS_EXPECT(bow_server_run(server) == 0);
    FORKS_EXPECT(!is_pending(SIGTERM) && !is_blocked(SIGTERM) && is_default(SIGTERM));
    bow_server_free(server);
    bow_context_unref(context);
    _exit(0);
}

static void test_server_run_drains_for_a_signal_that_comes_while_it_starts(void **state)
{
    struct calls *t = *state;
    struct forks forks;

    forks_begin(&forks, NULL, 0);
    if (forks.pid == 0) {
        run_while_ended(t);
    }
    forks_end(&forks);
}

static void start_be_ended_run(struct calls *t)
{
    struct bow_server_options options;
    sigset_t term;
    sigset_t before;

    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    FORKS_EXPECT(sigprocmask(SIG_BLOCK, &term, &before) == 0);
    calls_server_options(t, &options);
    struct bow_server *server = calls_make_server(t, &options);
    FORKS_EXPECT(bow_server_start(server) == 0);
    FORKS_EXPECT(kill(getpid(), SIGTERM) == 0);
    FORKS_EXPECT(bow_server_run(server) == 0);
    FORKS_EXPECT(!is_pending(SIGTERM) && is_blocked(SIGTERM) && is_default(SIGTERM));
    FORKS_EXPECT(sigprocmask(SIG_SETMASK, &before, NULL) == 0);
    bow_server_free(server);
    _exit(0);
}

static void test_server_run_takes_a_signal_that_was_blocked_before_start(void **state)
{
    struct calls *t = *state;
    struct forks forks;

    forks_begin(&forks, NULL, 0);
    if (forks.pid == 0) {
        start_be_ended_run(t);
    }
    forks_end(&forks);
}

/* Nothing of it stays taken. */
static void test_server_run_that_fails_gives_signals_back(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;

    calls_server_options(t, &options);
    options.listen = "nonsense";
    t->server = calls_make_server(t, &options);
    assert_true(bow_server_run(t->server) < 0);
    assert_true(!is_blocked(SIGTERM) && is_default(SIGTERM));
    assert_true(!is_blocked(SIGINT) && is_default(SIGINT));
}

static int watch_no_signals(struct bow_poller *poller, int fd, uint32_t events, void *user)
{
    char path[64];
    char name[64] = {0};

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (readlink(path, name, sizeof(name) - 1) > 0 && strstr(name, "signalfd") != NULL) {
        return -ENOSPC;
    }
    return bow_system_default()->poller->add(poller, fd, events, user);
}

/* Nobody drives its loop then, but who frees it. */
static void test_server_f58_run_that_cannot_wait_for_signals_leaves_nothing(void **state)
{
    struct calls *t = *state;
    struct bow_poller_ops poller = *bow_system_default()->poller;
    struct bow_server_options options;

    poller.add = watch_no_signals;
    t->system.poller = &poller;
    calls_server_options(t, &options);
    t->server = calls_make_server(t, &options);
    assert_int_equal(bow_server_run(t->server), -ENOSPC);
    calls_kill_server(t);
    t->system.poller = bow_system_default()->poller;
}

static void test_server_run_ends_when_it_was_stopped_before(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;

    calls_server_options(t, &options);
    t->server = calls_make_server(t, &options);
    bow_server_stop(t->server);
    assert_int_equal(bow_server_run(t->server), 0);
}

static void *stop(void *server)
{
    bow_server_stop(server);
    return NULL;
}

static void test_server_run_ends_by_a_stop_at_any_moment(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;

    for (int i = 0; i < 200; i++) {
        pthread_t thread;
        calls_server_options(t, &options);
        t->server = calls_make_server(t, &options);
        assert_int_equal(pthread_create(&thread, NULL, stop, t->server), 0);
        calls_hold_loop((uint64_t)(i % 10) * 20000);
        assert_int_equal(bow_server_run(t->server), 0);
        pthread_join(thread, NULL);
        calls_kill_server(t);
    }
}

int main(int argc, char **argv)
{
    calls_choose(argc, argv);
#define TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup_bare, calls_teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_server_run_drains_for_a_signal_that_comes_while_it_starts),
        TEST(test_server_run_takes_a_signal_that_was_blocked_before_start),
        TEST(test_server_run_that_fails_gives_signals_back),
        TEST(test_server_f58_run_that_cannot_wait_for_signals_leaves_nothing),
        TEST(test_server_run_ends_when_it_was_stopped_before),
        TEST(test_server_run_ends_by_a_stop_at_any_moment),
    };
#undef TEST

    return cmocka_run_group_tests(tests, NULL, NULL);
}
