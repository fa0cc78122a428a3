/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Servers and clients on loops that cannot begin, have ended, or end under them; and a server
 * that is told to stop while it starts.
 */

#include "call_fixture.h"
#include "rpc/server/server_state.h"
#include "tests/support/gate.h"

#include <bowline/executor.h>
#include <bowline/group.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static struct bow_loop *new_loop(struct calls *t, bow_loop_rejected_fn rejected, void *user)
{
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;
    struct bow_loop *loop = NULL;

    options.rejected = rejected;
    options.rejected_user = user;
    assert_int_equal(bow_loop_new(t->context, &options, &loop), 0);
    return loop;
}

static void end_loop(struct bow_loop *loop)
{
    assert_int_equal(bow_loop_shutdown(loop, 0, 0), 0);
    assert_int_equal(bow_loop_join(loop, BOW_NEVER), 0);
}

/* Loops that cannot begin */

static int n_threads_left;

static int start_few(void *user, const struct bow_thread_options *options,
                     void (*run)(void *argument), void *argument, struct bow_thread **ret_thread)
{
    if (n_threads_left == 0) {
        return -EAGAIN;
    }
    n_threads_left--;
    return bow_system_default()->thread_start(user, options, run, argument, ret_thread);
}

static void expect_refused(struct calls *t, const struct bow_server_options *options, int error)
{
    assert_int_equal(calls_try_server(t, options, &t->server), error);
    assert_non_null(strstr(bow_server_error(t->server), "starting the server's loops"));
    bow_server_stop(t->server);
    assert_int_equal(bow_server_join(t->server), 0);
    calls_kill_server(t);
}

static void test_loops_server_that_gets_no_thread_is_freed(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;

    t->system.thread_start = start_few;
    calls_server_options(t, &options);
    options.workers = 2;
    for (int n = 0; n < 3; n++) {
        n_threads_left = n;
        expect_refused(t, &options, -EAGAIN);
    }
    n_threads_left = 3;
    t->server = calls_start_server(t, &options);
}

static void test_loops_server_on_a_loop_that_has_ended_is_freed(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;
    struct bow_loop *loop = new_loop(t, NULL, NULL);

    end_loop(loop);
    calls_server_options(t, &options);
    options.loop = loop;
    expect_refused(t, &options, -ESHUTDOWN);
    bow_loop_unref(loop);
}

static void test_loops_server_on_a_group_that_has_ended_is_freed(void **state)
{
    struct calls *t = *state;
    struct bow_group_options group_options = BOW_GROUP_OPTIONS_INIT;
    struct bow_server_options options;
    struct bow_group *group = NULL;

    group_options.n_loops = 2;
    assert_int_equal(bow_group_new(t->context, &group_options, &group), 0);
    end_loop(bow_group_get(group, 1));
    calls_server_options(t, &options);
    options.group = group;
    expect_refused(t, &options, -ESHUTDOWN);
    bow_group_unref(group);
}

/* Loops that end while the server starts: where it asks the system for something, one of them is
 * shut down */

#define N_LOOPS 3 /* the main one, or the first of the group, and the workers */
#define MAX_POINTS 64

static struct {
    pthread_t thread;        /* the one that starts: the others look at nothing below */
    struct bow_loop *victim; /* NULL: this start is left alone, or it has happened */
    bool waits;              /* until the loop has ended */
    int n_points;            /* calls of the system on that thread */
    int at;                  /* which of them */
} interrupted;

static void pass_point(void)
{
    if (!pthread_equal(pthread_self(), interrupted.thread) || interrupted.victim == NULL ||
        interrupted.n_points++ != interrupted.at) {
        return;
    }
    struct bow_loop *victim = interrupted.victim;
    interrupted.victim = NULL;
    assert_int_equal(bow_loop_shutdown(victim, 0, 0), 0);
    if (interrupted.waits) {
        assert_int_equal(bow_loop_join(victim, BOW_NEVER), 0);
    }
}

static int start_and_pass(void *user, const struct bow_thread_options *options,
                          void (*run)(void *argument), void *argument,
                          struct bow_thread **ret_thread)
{
    /* Not the one whose thread is made here, which holds its lock meanwhile. */
    if (pthread_equal(pthread_self(), interrupted.thread) && argument != interrupted.victim) {
        pass_point();
    }
    return bow_system_default()->thread_start(user, options, run, argument, ret_thread);
}

static int signal_and_pass(void *user, int fd)
{
    int rc = bow_system_default()->wake_signal(user, fd);

    pass_point();
    return rc;
}

/* A socket that listens, and is ours until the server has begun. */
static int hand_down(struct bow_server *server)
{
    struct bow_listen_options listen_at = BOW_LISTEN_OPTIONS_INIT;
    char address[32];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(listen(fd, 1), 0);
    snprintf(address, sizeof(address), "fd:%d", fd);
    listen_at.address = address;
    listen_at.plaintext = true;
    assert_int_equal(bow_server_listen(server, &listen_at), 0);
    return fd;
}

static void expect_handed_back(int fd)
{
    int on = 0;
    socklen_t len = sizeof(on);

    assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &on, &len), 0);
    assert_int_equal(on, 1);
    assert_int_equal(close(fd), 0);
}

static void count_told(struct bow_server *server, void *user)
{
    (void)server;
    ++*(int *)user;
}

/* Returns whether the start came as far as that point. */
static bool start_interrupted(struct calls *t, int victim, int at, bool per_worker)
{
    struct bow_group_options group_options = BOW_GROUP_OPTIONS_INIT;
    struct bow_listen_options listen = BOW_LISTEN_OPTIONS_INIT;
    struct bow_server_options options;
    struct bow_group *group = NULL;
    int n_told = 0;

    group_options.n_loops = N_LOOPS;
    assert_int_equal(bow_group_new(t->context, &group_options, &group), 0);
    interrupted.at = at;
    interrupted.n_points = 0;
    calls_server_options(t, &options);
    options.group = group;
    options.listen = NULL;
    options.on_stopping = count_told;
    options.stopping_user = &n_told;
    struct bow_server *server = calls_make_server(t, &options);
    int fd = hand_down(server);
    listen.address = t->address;
    listen.per_worker = per_worker;
    assert_int_equal(bow_server_listen(server, &listen), 0);
    interrupted.victim = bow_group_get(group, (uint32_t)victim);
    int rc = bow_server_start(server);
    bool came_there = interrupted.victim == NULL;
    interrupted.victim = NULL;
    if (rc < 0) {
        assert_int_equal(rc, -ESHUTDOWN);
        assert_non_null(strstr(bow_server_error(server), "starting the server's loops"));
        assert_string_equal(bow_server_addresses(server), "");
        expect_handed_back(fd);
    }
    bow_server_free(server);
    assert_int_equal(n_told, rc == 0);
    bow_group_unref(group);
    return came_there;
}

static void interrupt_everywhere(struct calls *t)
{
    for (int victim = 0; victim < N_LOOPS; victim++) {
        int at = 0;
        while (start_interrupted(t, victim, at, calls_has_port() && at % 2 == 1) &&
               at < MAX_POINTS) {
            at++;
        }
        assert_true(at > 0);
        assert_true(at < MAX_POINTS);
    }
}

static void test_loops_f59_loop_that_ends_in_the_midst_of_start_ends_the_server(void **state)
{
    struct calls *t = *state;

    interrupted.thread = pthread_self();
    interrupted.waits = false;
    t->system.thread_start = start_and_pass;
    t->system.wake_signal = signal_and_pass;
    interrupt_everywhere(t);
}

/* Before any part has been told to begin: the loops have been found well. */
static void test_loops_f59_loop_that_has_ended_before_the_parts_begin_is_refused(void **state)
{
    struct calls *t = *state;

    interrupted.thread = pthread_self();
    interrupted.waits = true;
    t->system.thread_start = start_and_pass;
    interrupt_everywhere(t);
}

static void test_loops_f59_server_on_a_loop_that_nobody_runs_is_freed(void **state)
{
    struct calls *t = *state;
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct bow_server_options options;

    loop_options.thread = BOW_LOOP_OWNER;
    calls_server_options(t, &options);
    assert_int_equal(bow_loop_new(t->context, &loop_options, &options.loop), 0);
    t->server = calls_start_server(t, &options);
    calls_kill_server(t);
    bow_loop_unref(options.loop);
}

/* Told to stop while it starts */

/* From the other thread's side: the state says STARTED, and not all has been told to begin. */
static void test_loops_stop_in_the_midst_of_start_comes_after_it(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;

    calls_server_options(t, &options);
    t->server = calls_make_server(t, &options);
    t->server->state = BOW__SERVER_STARTED;
    bow_server_stop(t->server);
    t->server->state = BOW__SERVER_NEW;
    assert_int_equal(bow_server_start(t->server), 0);
    assert_int_equal(bow_server_join(t->server), 0);
}

/* Loops that end under them */

struct witness {
    struct calls *t;
    struct bow_loop *loop;
    struct bow_loop_hook hook;
    struct gate told;
    bool is_armed;
};

static int look(void *user)
{
    struct witness *witness = user;

    witness->is_armed = bow_timer_is_armed(&witness->t->server->grace_timer);
    gate_add(&witness->told);
    return 0;
}

/* Hooks run in the reverse order, so this one's is behind the server's. */
static void on_shutdown(struct bow_loop_hook *hook)
{
    (void)look(BOW__CONTAINER(hook, struct witness, hook));
}

static int add_hook(void *user)
{
    struct witness *witness = user;

    witness->hook.fn = on_shutdown;
    int rc = bow_loop_add_hook(witness->loop, &witness->hook);
    gate_add(&witness->told);
    return rc;
}

static void start_wait(struct calls *t)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_client_options options;

    calls_client_options(t, &options);
    t->client = calls_new_client(t, &options);
    request.text = (char *)(uintptr_t) "wait";
    assert_int_equal(calls__echo__say__start(t->client, &request, NULL, calls_on_done, t, NULL), 0);
    calls_wait(t, &t->n_said, 1);
}

static void wait_for_grace(struct witness *witness)
{
    int n = 1;

    do {
        assert_int_equal(bow_loop_execute(witness->loop, "look", look, witness), 0);
        gate_wait(&witness->told, ++n);
    } while (!witness->is_armed);
}

static struct bow_executor *new_executor(struct calls *t)
{
    struct bow_executor_options options = BOW_EXECUTOR_OPTIONS_INIT;
    struct bow_executor *executor = NULL;

    options.n_threads = 1;
    assert_int_equal(bow_executor_new(t->context, &options, &executor), 0);
    return executor;
}

/* Whoever ends the server then does not come back to the loop to take it out. */
static void test_loops_server_leaves_no_timer_with_a_loop_that_ends(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;
    struct bow_executor *executor = new_executor(t);
    struct witness witness = {.t = t, .loop = new_loop(t, NULL, NULL)};

    gate_init(&witness.told);
    assert_int_equal(bow_loop_execute(witness.loop, "add hook", add_hook, &witness), 0);
    gate_wait(&witness.told, 1);
    calls_server_options(t, &options);
    options.loop = witness.loop;
    options.handlers_on = executor;
    options.grace_ns = 100000 * MS;
    t->server = calls_start_server(t, &options);
    start_wait(t);
    bow_server_stop(t->server);
    wait_for_grace(&witness);
    end_loop(witness.loop);
    assert_false(witness.is_armed);
    calls_let_go(t);
    calls_kill_server(t);
    bow_executor_unref(executor);
    bow_loop_unref(witness.loop);
    gate_fini(&witness.told);
}

/* It is for the program's own: who posts ours deals with what becomes of them. */
static void count_rejected(struct bow_loop *loop, const char *name, bow_task_fn fn, void *task_user,
                           void *user)
{
    (void)loop;
    (void)fn;
    (void)task_user;
    print_error("%s was rejected\n", name);
    ++*(int *)user;
}

static int do_nothing(void *user)
{
    (void)user;
    return 0;
}

static void test_loops_rejection_handler_hears_nothing_of_ours(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;
    struct bow_client_options client_options;
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;
    int n_rejected = 0;
    struct bow_loop *loop = new_loop(t, count_rejected, &n_rejected);

    calls_server_options(t, &options);
    options.loop = loop;
    t->server = calls_start_server(t, &options);
    calls_client_options(t, &client_options);
    client_options.loop = loop;
    t->client = calls_new_client(t, &client_options);
    assert_non_null(calls__echo__say__call(t->client, &request, NULL, &result));
    bow_result_fini(&result);
    end_loop(loop);
    assert_int_equal(calls__echo__say__start(t->client, &request, NULL, calls_on_done, t, NULL),
                     -ESHUTDOWN);
    bow_client_free(t->client);
    t->client = NULL;
    calls_kill_server(t);
    assert_int_equal(n_rejected, 0);
    assert_int_equal(bow_loop_execute(loop, "the program's", do_nothing, NULL), -ESHUTDOWN);
    assert_int_equal(n_rejected, 1);
    bow_loop_unref(loop);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup_bare, calls_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_loops_server_that_gets_no_thread_is_freed),
        TEST(test_loops_server_on_a_loop_that_has_ended_is_freed),
        TEST(test_loops_server_on_a_group_that_has_ended_is_freed),
        TEST(test_loops_f59_loop_that_ends_in_the_midst_of_start_ends_the_server),
        TEST(test_loops_f59_loop_that_has_ended_before_the_parts_begin_is_refused),
        TEST(test_loops_f59_server_on_a_loop_that_nobody_runs_is_freed),
        TEST(test_loops_stop_in_the_midst_of_start_comes_after_it),
        TEST(test_loops_server_leaves_no_timer_with_a_loop_that_ends),
        TEST(test_loops_rejection_handler_hears_nothing_of_ours),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
