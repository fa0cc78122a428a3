/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Servers: what start refuses and says, the loops it may have, and its end: drain,
 * grace, signals, being freed from a handler.
 */

#include "call_fixture.h"
#include "tests/support/scratch.h"

#include <bowline/group.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void new_client(struct calls *t)
{
    struct bow_client_options options;

    calls_client_options(t, &options);
    t->client = calls_new_client(t, &options);
}

static void expect_say(struct calls *t)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    if (calls__echo__say__call(t->client, &request, NULL, &result) == NULL) {
        fail_msg("%s: %s", bow_code_name(result.status.code), result.status.message);
    }
    bow_result_fini(&result);
}

static void start_hold(struct calls *t)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    assert_int_equal(calls__echo__hold__start(t->client, &request, NULL, calls_on_done, t, NULL),
                     0);
    calls_wait(t, &t->n_held, 1);
}

/* Start */

static void expect_start_fails(struct calls *t, const char *listen, int rc, const char *words)
{
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct bow_server *server = NULL;

    options.context = t->context;
    options.listen = listen;
    assert_int_equal(bow_server_new(&options, &server), 0);
    assert_int_equal(bow_server_start(server), rc);
    if (strstr(bow_server_error(server), words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", bow_server_error(server), words);
    }
    assert_int_equal(bow_server_port(server), 0);
    bow_server_free(server);
}

static void test_server_start_says_what_is_wrong_and_where(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;
    char taken[300];

    expect_start_fails(t, NULL, -EINVAL, "names no address");
    expect_start_fails(t, "", -EINVAL, "names no address");
    expect_start_fails(t, "nonsense", -EINVAL, "\"nonsense\": no port: write HOST:PORT");
    expect_start_fails(t, "grpc:127.0.0.1:0", -EINVAL, "for a client's target");
    expect_start_fails(t, "*:0", -EPERM, "options.plaintext");
    expect_start_fails(t, "127.0.0.1:0, *:0", -EPERM, "options.plaintext");
    expect_start_fails(t, "unix:/nowhere/at/all", -ENOENT, "/nowhere/at/all");
    calls_server_options(t, &options);
    t->server = calls_start_server(t, &options);
    snprintf(taken, sizeof(taken), "127.0.0.1:0, %s", t->address);
    expect_start_fails(t, taken, -EADDRINUSE, t->address);
}

static void test_server_bad_options_are_refused(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;
    struct bow_server *server = NULL;

    calls_server_options(t, &options);
    options.workers = 2;
    options.loop = t->loop;
    assert_int_equal(bow_server_new(&options, &server), -EINVAL);
    calls_server_options(t, &options);
    options.size++;
    assert_int_equal(bow_server_new(&options, &server), -EINVAL);
    assert_null(server);
    bow_server_free(NULL);
}

static mode_t mode_of(const char *path)
{
    struct stat found;

    assert_int_equal(lstat(path, &found), 0);
    return found.st_mode & 0777;
}

static void test_server_f53_modes_are_of_the_files_it_listens_on(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;
    struct bow_listen_options more = BOW_LISTEN_OPTIONS_INIT;
    struct bow_server *server = NULL;
    char folder[64];
    char paths[2][96];
    char listen[2][128];

    assert_non_null(mkdtemp(scratch_path(folder, sizeof(folder), "server-XXXXXX")));
    for (int i = 0; i < 2; i++) {
        snprintf(paths[i], sizeof(paths[i]), "%s/%d", folder, i);
        snprintf(listen[i], sizeof(listen[i]), "unix:%s", paths[i]);
    }
    calls_server_options(t, &options);
    options.listen = listen[0];
    options.unix_mode = 0662;
    assert_int_equal(bow_server_new(&options, &server), 0);
    assert_string_equal(bow_server_addresses(server), "");
    more.address = listen[1];
    more.unix_mode = 0606;
    assert_int_equal(bow_server_listen(server, &more), 0);
    assert_int_equal(bow_server_start(server), 0);
    assert_int_equal(mode_of(paths[0]), 0662);
    assert_int_equal(mode_of(paths[1]), 0606);
    snprintf(listen[0] + strlen(listen[0]), sizeof(listen[0]) - strlen(listen[0]), ", ");
    assert_memory_equal(bow_server_addresses(server), listen[0], strlen(listen[0]));
    assert_string_equal(bow_server_addresses(server) + strlen(listen[0]), listen[1]);
    bow_server_free(server);
    assert_int_equal(rmdir(folder), 0);
}

static void test_server_f52_tells_where_it_listens(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;

    calls_server_options(t, &options);
    t->server = calls_start_server(t, &options);
    assert_string_equal(bow_server_addresses(t->server), t->address);
}

static void test_server_f54_second_one_with_listeners_per_worker_is_refused(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;
    struct bow_listen_options listen = BOW_LISTEN_OPTIONS_INIT;
    struct bow_group_options group_options = BOW_GROUP_OPTIONS_INIT;
    struct bow_group *group = NULL;
    struct bow_server *servers[2] = {NULL};
    char address[32];

    group_options.n_loops = 2;
    assert_int_equal(bow_group_new(t->context, &group_options, &group), 0);
    for (int i = 0; i < 2; i++) {
        calls_server_options(t, &options);
        options.listen = NULL;
        options.group = group;
        assert_int_equal(bow_server_new(&options, &servers[i]), 0);
        snprintf(address, sizeof(address), "127.0.0.1:%u", bow_server_port(servers[0]));
        listen.address = address;
        listen.per_worker = true;
        assert_int_equal(bow_server_listen(servers[i], &listen), 0);
        assert_int_equal(bow_server_start(servers[i]), i == 0 ? 0 : -EADDRINUSE);
    }
    assert_non_null(strstr(bow_server_error(servers[1]), "set shares_port"));
    bow_server_free(servers[1]);
    bow_server_free(servers[0]);
    bow_group_unref(group);
}

static void test_server_checks_services(void **state)
{
    struct calls *t = *state;
    const struct bow_service *service = &calls__echo__service;
    struct calls__echo__handlers handlers = {0};
    struct bow_server_options options;
    struct bow_server *server = NULL;

    calls_server_options(t, &options);
    assert_int_equal(bow_server_new(&options, &server), 0);
    assert_int_equal(bow_server_add_service(server, service, &handlers, sizeof(handlers),
                                            service->hash + 1, NULL),
                     -EINVAL);
    assert_non_null(strstr(bow_server_error(server), "calls.Echo"));
    assert_int_equal(bow_server_add_service(server, service, &handlers, sizeof(handlers) - 8,
                                            service->hash, NULL),
                     -EINVAL);
    assert_int_equal(calls__echo__serve(server, &handlers, NULL), 0);
    assert_int_equal(calls__echo__serve(server, &handlers, NULL), -EEXIST);
    assert_int_equal(bow_server_start(server), 0);
    assert_int_equal(calls__echo__serve(server, &handlers, NULL), -EBUSY);
    assert_int_equal(bow_server_start(server), -EBUSY);
    bow_server_free(server);
}

static void test_server_listens_on_several_addresses(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;
    char both[300];

    snprintf(both, sizeof(both), "%s, unix-abstract:bowline-both-%d", t->address, (int)getpid());
    calls_server_options(t, &options);
    options.listen = both;
    t->server = calls_start_server(t, &options);
    new_client(t);
    expect_say(t);
    bow_client_free(t->client);
    snprintf(t->target, sizeof(t->target), "%sunix-abstract:bowline-both-%d",
             calls_is_grpc() ? "grpc:" : "", (int)getpid());
    new_client(t);
    expect_say(t);
}

/* Loops */

static void test_server_with_workers_serves(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;

    calls_server_options(t, &options);
    options.workers = 2;
    t->server = calls_start_server(t, &options);
    for (int i = 0; i < 4; i++) {
        new_client(t);
        expect_say(t);
        bow_client_free(t->client);
    }
    t->client = NULL;
    CALLS_WAIT_METRIC(t, connections_opened, 4);
    CALLS_WAIT_METRIC(t, connections_closed, 4);
}

static void test_server_on_a_users_group_serves(void **state)
{
    struct calls *t = *state;
    struct bow_group_options group_options = BOW_GROUP_OPTIONS_INIT;
    struct bow_server_options options;
    struct bow_group *group = NULL;

    group_options.n_loops = 2;
    assert_int_equal(bow_group_new(t->context, &group_options, &group), 0);
    calls_server_options(t, &options);
    options.group = group;
    t->server = calls_start_server(t, &options);
    new_client(t);
    expect_say(t);
    expect_say(t);
    calls_kill_server(t);
    bow_group_unref(group);
}

static void test_server_on_the_clients_loop_serves(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;

    calls_server_options(t, &options);
    options.loop = t->loop;
    t->server = calls_start_server(t, &options);
    new_client(t);
    expect_say(t);
}

static void test_server_ends_with_its_users_loop(void **state)
{
    struct calls *t = *state;
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct bow_server_options options;
    struct bow_loop *loop = NULL;

    assert_int_equal(bow_loop_new(t->context, &loop_options, &loop), 0);
    calls_server_options(t, &options);
    options.loop = loop;
    t->server = calls_start_server(t, &options);
    new_client(t);
    start_hold(t);
    assert_int_equal(bow_loop_shutdown(loop, 0, 0), 0);
    assert_int_equal(bow_loop_join(loop, BOW_NEVER), 0);
    assert_int_equal(bow_server_join(t->server), 0);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_UNAVAILABLE);
    bow_server_stop(t->server);
    calls_kill_server(t);
    assert_int_equal(calls_reply(calls_take_held(t), 1), -ECANCELED);
    bow_loop_unref(loop);
}

static void test_server_over_max_connections_refuses(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;
    char byte = 0;

    calls_server_options(t, &options);
    options.max_connections = 1;
    t->server = calls_start_server(t, &options);
    new_client(t);
    expect_say(t);
    int fd = calls_raw_connect(t);
    assert_true(read(fd, &byte, 1) <= 0);
    close(fd);
    CALLS_WAIT_METRIC(t, connections_refused, 1);
    expect_say(t);
}

/* The end */

static void test_server_drain_lets_calls_in_flight_end(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;

    calls_server_options(t, &options);
    options.grace_ns = BOW_NEVER;
    t->server = calls_start_server(t, &options);
    new_client(t);
    start_hold(t);
    bow_server_stop(t->server);
    bow_server_stop(t->server);
    assert_int_equal(calls_reply(calls_take_held(t), 9), 0);
    assert_int_equal(bow_server_join(t->server), 0);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_OK);
    assert_int_equal(bow_server_join(t->server), 0);
}

static void test_server_f63_descriptor_that_will_not_do_says_so(void **state)
{
    struct calls *t = *state;
    char address[32];

    expect_start_fails(t, "fd:77777", -EBADF, "no descriptor of this number is open");
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    snprintf(address, sizeof(address), "fd:%d", fd);
    expect_start_fails(t, address, -ENOTSOCK, "no socket was handed down");
    close(fd);
}

struct told {
    pthread_mutex_t lock;
    char lines[2000];
};

static void on_warning(enum bow_log_level level, const char *line, void *user)
{
    struct told *told = user;

    (void)level;
    pthread_mutex_lock(&told->lock);
    size_t len = strlen(told->lines);
    snprintf(told->lines + len, sizeof(told->lines) - len, "%s\n", line);
    pthread_mutex_unlock(&told->lock);
}

static void test_server_f63_calls_that_are_cut_off_are_named(void **state)
{
    struct calls *t = *state;
    struct told told = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct bow_context_options with_log = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_server_options options;
    struct bow_context *context = NULL;

    with_log.log = on_warning;
    with_log.log_user = &told;
    assert_int_equal(bow_context_new(&with_log, &context), 0);
    calls_server_options(t, &options);
    options.context = context;
    options.grace_ns = 20 * MS;
    t->server = calls_start_server(t, &options);
    new_client(t);
    start_hold(t);
    start_hold(t);
    calls_wait(t, &t->n_held, 2);
    bow_server_stop(t->server);
    assert_int_equal(bow_server_join(t->server), 0);
    calls_wait(t, &t->n_done, 2);
    assert_non_null(strstr(told.lines, "before their handlers answered: 2 of /calls.Echo/Hold\n"));
    for (int i = 0; i < 2; i++) {
        assert_int_equal(calls_reply(calls_take_held(t), 9), -ECANCELED);
    }
    bow_server_free(t->server);
    t->server = NULL;
    bow_context_unref(context);
    pthread_mutex_destroy(&told.lock);
}

static void test_server_closes_after_grace(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;

    calls_server_options(t, &options);
    options.grace_ns = 20 * MS;
    t->server = calls_start_server(t, &options);
    new_client(t);
    start_hold(t);
    bow_server_stop(t->server);
    assert_int_equal(bow_server_join(t->server), 0);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_UNAVAILABLE);
    assert_int_equal(calls_reply(calls_take_held(t), 9), -ECANCELED);
}

static void test_server_lame_duck_still_serves(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;

    calls_server_options(t, &options);
    options.lame_duck_ns = 200 * MS;
    t->server = calls_start_server(t, &options);
    bow_server_stop(t->server);
    new_client(t);
    expect_say(t);
    assert_int_equal(bow_server_join(t->server), 0);
}

/* As a rolling restart does: the new server takes the address while the old one drains. */
static void test_server_f21_restart_loses_no_call(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;

    calls_server_options(t, &options);
    options.grace_ns = BOW_NEVER;
    struct bow_server *old = calls_start_server(t, &options);
    new_client(t);
    start_hold(t);
    bow_server_stop(old);
    int rc = -EADDRINUSE; /* until the old one has closed its listener */
    while (rc == -EADDRINUSE) {
        bow_server_free(t->server);
        rc = calls_try_server(t, &options, &t->server);
    }
    assert_int_equal(rc, 0);
    for (int i = 0; i < 10; i++) {
        expect_say(t);
    }
    assert_int_equal(calls_reply(calls_take_held(t), 9), 0);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_OK);
    bow_server_free(old);
}

/* A free from a handler */

struct suicide {
    struct calls *t;
    struct bow_server *server;
};

static void free_server(struct bow_call *call, const Calls__Request *request, void *user)
{
    struct suicide *suicide = user;

    (void)request;
    assert_int_equal(bow_server_join(suicide->server), -EDEADLK);
    bow_server_free(suicide->server);
    assert_int_equal(calls_reply(call, 3), 0);
}

static void test_server_f20_freed_in_a_handler(void **state)
{
    static const struct calls__echo__handlers handlers = {.say = free_server};
    struct calls *t = *state;
    struct suicide suicide = {.t = t};
    struct bow_server_options options;
    Calls__Request request = CALLS__REQUEST__INIT;

    calls_server_options(t, &options);
    options.loop = t->loop;
    assert_int_equal(bow_server_new(&options, &suicide.server), 0);
    assert_int_equal(calls__echo__serve(suicide.server, &handlers, &suicide), 0);
    assert_int_equal(bow_server_start(suicide.server), 0);
    snprintf(t->target, sizeof(t->target), "%s%s", calls_is_grpc() ? "grpc:" : "", t->address);
    if (calls_has_port()) {
        snprintf(t->target, sizeof(t->target), "%s127.0.0.1:%u", calls_is_grpc() ? "grpc:" : "",
                 bow_server_port(suicide.server));
    }
    new_client(t);
    assert_int_equal(calls__echo__say__start(t->client, &request, NULL, calls_on_done, t, NULL), 0);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_OK);
}

/* bow_server_run() */

struct runner {
    struct calls *t;
    int rc;
};

static void *run_server(void *user)
{
    struct runner *runner = user;

    runner->rc = bow_server_run(runner->t->server);
    return NULL;
}

static void make_server(struct calls *t, uint64_t lame_duck_ns)
{
    static const struct calls__echo__handlers handlers = {0};
    struct bow_server_options options;

    calls_server_options(t, &options);
    options.lame_duck_ns = lame_duck_ns;
    assert_int_equal(bow_server_new(&options, &t->server), 0);
    assert_int_equal(calls__echo__serve(t->server, &handlers, t), 0);
}

static int handler_of(int number, struct sigaction *ret_action)
{
    return sigaction(number, NULL, ret_action);
}

/* SIGINT's is the last one to be set. */
static void wait_for_handler(int number)
{
    struct sigaction action = {0};

    do {
        assert_int_equal(handler_of(number, &action), 0);
    } while ((action.sa_flags & SA_SIGINFO) == 0);
}

/* The signal is unblocked on this thread and blocked on the one that runs the server. */
static void test_server_l62_run_ends_by_a_signal_to_any_thread(void **state)
{
    static const int numbers[] = {SIGTERM, SIGINT};
    struct calls *t = *state;

    for (int i = 0; i < 2; i++) {
        struct runner runner = {t, -1};
        struct sigaction after = {0};
        pthread_t thread;
        make_server(t, 0);
        assert_int_equal(pthread_create(&thread, NULL, run_server, &runner), 0);
        wait_for_handler(numbers[i]);
        kill(getpid(), numbers[i]);
        pthread_join(thread, NULL);
        assert_int_equal(runner.rc, 0);
        assert_int_equal(handler_of(numbers[i], &after), 0);
        assert_ptr_equal(after.sa_handler, SIG_DFL);
        calls_kill_server(t);
    }
}

static void test_server_run_second_signal_skips_the_lame_duck(void **state)
{
    struct calls *t = *state;
    struct runner runner = {t, -1};
    pthread_t thread;

    make_server(t, 3600 * 1000 * MS);
    assert_int_equal(pthread_create(&thread, NULL, run_server, &runner), 0);
    wait_for_handler(SIGINT);
    kill(getpid(), SIGTERM);
    kill(getpid(), SIGINT);
    pthread_join(thread, NULL);
    assert_int_equal(runner.rc, 0);
}

static void test_server_run_second_signal_ends_the_grace(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;
    struct runner runner = {t, -1};
    pthread_t thread;

    calls_server_options(t, &options);
    options.grace_ns = BOW_NEVER;
    t->server = calls_start_server(t, &options);
    assert_int_equal(pthread_create(&thread, NULL, run_server, &runner), 0);
    wait_for_handler(SIGINT);
    new_client(t);
    start_hold(t);
    kill(getpid(), SIGINT);
    kill(getpid(), SIGTERM);
    pthread_join(thread, NULL);
    assert_int_equal(runner.rc, 0);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_UNAVAILABLE);
    assert_int_equal(calls_reply(calls_take_held(t), 9), -ECANCELED);
}

/* By a client of its own, so over a new connection. */
static bool is_served(struct calls *t)
{
    struct bow_client_options options;
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_result result = BOW_RESULT_INIT;

    calls_client_options(t, &options);
    struct bow_client *client = calls_new_client(t, &options);
    bool served = calls__echo__say__call(client, &request, NULL, &result) != NULL;
    bow_result_fini(&result);
    bow_client_free(client);
    return served;
}

static void test_server_run_third_signal_ends_lame_duck_and_grace(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;
    struct runner runner = {t, -1};
    pthread_t thread;

    calls_server_options(t, &options);
    options.grace_ns = BOW_NEVER;
    options.lame_duck_ns = 3600 * 1000 * MS;
    t->server = calls_start_server(t, &options);
    assert_int_equal(pthread_create(&thread, NULL, run_server, &runner), 0);
    wait_for_handler(SIGINT);
    new_client(t);
    start_hold(t);
    kill(getpid(), SIGTERM);
    kill(getpid(), SIGINT);
    while (is_served(t)) {
    }
    kill(getpid(),
         SIGINT); /* only now, for one that finds another of its kind pending is that one */
    pthread_join(thread, NULL);
    assert_int_equal(runner.rc, 0);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(calls_reply(calls_take_held(t), 9), -ECANCELED);
}

static void on_user_signal(int number)
{
    (void)number;
}

static void test_server_run_leaves_a_users_handler_alone(void **state)
{
    struct calls *t = *state;
    struct runner runner = {t, -1};
    struct sigaction theirs = {0};
    struct sigaction before = {0};
    struct sigaction now = {0};
    pthread_t thread;

    theirs.sa_handler = on_user_signal;
    assert_int_equal(sigaction(SIGTERM, &theirs, &before), 0);
    make_server(t, 0);
    assert_int_equal(pthread_create(&thread, NULL, run_server, &runner), 0);
    wait_for_handler(SIGINT);
    assert_int_equal(handler_of(SIGTERM, &now), 0);
    assert_ptr_equal(now.sa_handler, on_user_signal);
    bow_server_stop(t->server);
    pthread_join(thread, NULL);
    assert_int_equal(runner.rc, 0);
    assert_int_equal(sigaction(SIGTERM, &before, NULL), 0);
}

static void test_server_run_after_start_waits_for_the_end(void **state)
{
    struct calls *t = *state;
    struct runner runner = {t, -1};
    struct bow_server_options options;
    pthread_t thread;

    calls_server_options(t, &options);
    t->server = calls_start_server(t, &options);
    assert_int_equal(pthread_create(&thread, NULL, run_server, &runner), 0);
    wait_for_handler(SIGINT);
    new_client(t);
    expect_say(t);
    bow_server_stop(t->server);
    pthread_join(thread, NULL);
    assert_int_equal(runner.rc, 0);
    assert_int_equal(bow_server_run(t->server), 0); /* it has stopped */
}

static void test_server_run_says_why_it_cannot_start(void **state)
{
    struct calls *t = *state;
    struct bow_server_options options;
    struct bow_server *server = NULL;

    calls_server_options(t, &options);
    options.listen = "*:0";
    assert_int_equal(bow_server_new(&options, &server), 0);
    assert_int_equal(bow_server_run(server), -EPERM);
    assert_non_null(strstr(bow_server_error(server), "plaintext"));
    bow_server_free(server);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup_bare, calls_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_server_start_says_what_is_wrong_and_where),
        TEST(test_server_bad_options_are_refused),
        TEST(test_server_f53_modes_are_of_the_files_it_listens_on),
        TEST(test_server_f52_tells_where_it_listens),
        TEST(test_server_f54_second_one_with_listeners_per_worker_is_refused),
        TEST(test_server_checks_services),
        TEST(test_server_listens_on_several_addresses),
        TEST(test_server_with_workers_serves),
        TEST(test_server_on_a_users_group_serves),
        TEST(test_server_on_the_clients_loop_serves),
        TEST(test_server_ends_with_its_users_loop),
        TEST(test_server_over_max_connections_refuses),
        TEST(test_server_drain_lets_calls_in_flight_end),
        TEST(test_server_f63_descriptor_that_will_not_do_says_so),
        TEST(test_server_f63_calls_that_are_cut_off_are_named),
        TEST(test_server_closes_after_grace),
        TEST(test_server_lame_duck_still_serves),
        TEST(test_server_f21_restart_loses_no_call),
        TEST(test_server_f20_freed_in_a_handler),
        TEST(test_server_l62_run_ends_by_a_signal_to_any_thread),
        TEST(test_server_run_second_signal_skips_the_lame_duck),
        TEST(test_server_run_second_signal_ends_the_grace),
        TEST(test_server_run_third_signal_ends_lame_duck_and_grace),
        TEST(test_server_run_leaves_a_users_handler_alone),
        TEST(test_server_run_after_start_waits_for_the_end),
        TEST(test_server_run_says_why_it_cannot_start),
    };

    calls_choose(argc, argv);
    /* Whoever starts this may ignore them (nohup, a background job), and a server leaves them so.
     */
    signal(SIGHUP, SIG_DFL);
    signal(SIGINT, SIG_DFL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
