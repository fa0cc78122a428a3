/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Connections that a server has not accepted yet when it is told to stop: their clients have sent
 * calls on them, and none of those is lost.
 */

#include "call_fixture.h"

#include <bowline/group.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#define MAX_CLIENTS 1000
#define FEW_CLIENTS 200
#define SPARE_DESCRIPTORS 64
#define PATIENT_NS (60000 * MS)

struct burst {
    struct calls *t;
    struct bow_loop *loop; /* the server's, where it is the test's to hold */
    struct bow_client *clients[MAX_CLIENTS];
    int n_clients;
};

/* Each client takes a descriptor, and its connection another one at the server. */
static int count_clients(int n_wanted)
{
    struct rlimit files;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &files), 0);
    rlim_t n = (files.rlim_cur - SPARE_DESCRIPTORS) / 2;
    return n < (rlim_t)n_wanted ? (int)n : n_wanted;
}

static void start_calls(struct burst *burst, int n)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_client_options client_options;

    calls_client_options(burst->t, &client_options);
    options.timeout_ns = PATIENT_NS;
    for (int i = 0; i < n; i++) {
        struct bow_client *client = calls_new_client(burst->t, &client_options);
        burst->clients[burst->n_clients++] = client;
        assert_int_equal(
            calls__echo__say__start(client, &request, &options, calls_on_done, burst->t, NULL), 0);
    }
}

static void free_clients(struct burst *burst)
{
    while (burst->n_clients > 0) {
        bow_client_free(burst->clients[--burst->n_clients]);
    }
}

static void expect_answers(struct burst *burst, int n, int max_failed)
{
    struct calls *t = burst->t;

    calls_wait(t, &t->n_done, n);
    if (t->n_failed > max_failed) {
        fail_msg("%d of %d failed, the last as %s: %s", t->n_failed, n,
                 bow_code_name(t->result.status.code), t->result.status.message);
    }
}

/* One that does not get round to accepting */

static int hold(void *user)
{
    struct calls *t = user;

    calls_wait(t, &t->n_let_go, 1);
    return 0;
}

static void start_held_server(struct burst *burst)
{
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct bow_server_options options;
    struct calls *t = burst->t;

    assert_int_equal(bow_loop_new(t->context, &loop_options, &burst->loop), 0);
    calls_server_options(t, &options);
    options.loop = burst->loop;
    options.grace_ns = PATIENT_NS;
    t->server = calls_start_server(t, &options);
    assert_int_equal(bow_loop_execute(burst->loop, "hold", hold, t), 0);
}

static void end_held_server(struct burst *burst)
{
    assert_int_equal(bow_server_join(burst->t->server), 0);
    bow_server_free(burst->t->server);
    burst->t->server = NULL;
    assert_int_equal(bow_loop_shutdown(burst->loop, 0, 0), 0);
    assert_int_equal(bow_loop_join(burst->loop, BOW_NEVER), 0);
    bow_loop_unref(burst->loop);
}

/* How many connections wait to be accepted at a port; what its client takes for one may not be
 * there yet on a busy machine. */
static unsigned backlog_of(unsigned port)
{
    FILE *sockets = fopen("/proc/net/tcp", "re");
    char line[256];
    unsigned waiting = 0;

    assert_non_null(sockets);
    while (fgets(line, sizeof(line), sockets) != NULL) {
        unsigned at = 0;
        unsigned n = 0;
        /* number: address:port peer:port state sent:received; 0A is listening */
        if (sscanf(line, "%*u: %*x:%x %*x:%*x 0A %*x:%x", &at, &n) == 2 && at == port) {
            waiting = n;
        }
    }
    fclose(sockets);
    return waiting;
}

static void wait_for_backlog(struct burst *burst, int n)
{
    for (int i = 0; i < n; i++) {
        while (bow_client_get_state(burst->clients[i]) != BOW_CLIENT_READY) {
            usleep(100); /* it is about to be */
        }
    }
    while (calls_has_port() && backlog_of(bow_server_port(burst->t->server)) < (unsigned)n) {
        usleep(1000);
    }
}

static void serve_backlog(struct calls *t, int n)
{
    struct burst *burst = calloc(1, sizeof(*burst));

    assert_non_null(burst);
    burst->t = t;
    start_held_server(burst);
    start_calls(burst, n);
    wait_for_backlog(burst, n);
    bow_server_stop(burst->t->server);
    calls_let_go(burst->t);
    expect_answers(burst, n, 0);
    free_clients(burst);
    end_held_server(burst);
    free(burst);
}

static void test_backlog_of_a_server_that_stops_is_served(void **state)
{
    serve_backlog(*state, count_clients(FEW_CLIENTS));
}

static void test_backlog_of_many_is_served(void **state)
{
    serve_backlog(*state, count_clients(MAX_CLIENTS));
}

/* Two that share a port, and restart in turn */

static struct bow_server *start_sharing(struct calls *t, struct bow_group *group)
{
    struct bow_listen_options listen = BOW_LISTEN_OPTIONS_INIT;
    struct bow_server_options options;

    calls_server_options(t, &options);
    options.listen = NULL;
    options.group = group;
    options.grace_ns = PATIENT_NS;
    struct bow_server *server = calls_make_server(t, &options);
    listen.address = t->address;
    listen.per_worker = true;
    listen.shares_port = true;
    assert_int_equal(bow_server_listen(server, &listen), 0);
    assert_int_equal(calls_open_server(t, server), 0);
    return server;
}

/*
 * New connections come all the time, and find one or the other. On a machine at rest no call fails;
 * on a busy one the end of a handshake may be later than that of its listener, and the kernel
 * resets what its client takes for a connection.
 */
static void test_backlog_of_servers_that_share_a_port_is_not_lost(void **state)
{
    enum { ROUNDS = 20, A_ROUND = 100 };
    struct bow_group_options group_options = BOW_GROUP_OPTIONS_INIT;
    struct burst *burst = calloc(1, sizeof(*burst));
    struct calls *t = *state;
    struct bow_group *group = NULL;
    struct bow_server *servers[2];

    assert_non_null(burst);
    burst->t = t;
    group_options.n_loops = 2;
    assert_int_equal(bow_group_new(t->context, &group_options, &group), 0);
    for (int i = 0; i < 2; i++) {
        servers[i] = start_sharing(t, group);
    }
    for (int round = 0; round < ROUNDS; round++) {
        int i = round % 2;
        start_calls(burst, A_ROUND / 2);
        bow_server_stop(servers[i]);
        start_calls(burst, A_ROUND / 2);
        int n = (round + 1) * A_ROUND;
        expect_answers(burst, n, n / 100);
        free_clients(burst);
        assert_int_equal(bow_server_join(servers[i]), 0);
        bow_server_free(servers[i]);
        servers[i] = start_sharing(t, group);
    }
    for (int i = 0; i < 2; i++) {
        bow_server_free(servers[i]);
    }
    bow_group_unref(group);
    free(burst);
}

#define BACKLOG_TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup_bare, calls_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest held[] = {
        BACKLOG_TEST(test_backlog_of_a_server_that_stops_is_served),
    };
    const struct CMUnitTest many[] = {
        BACKLOG_TEST(test_backlog_of_many_is_served),
    };
    const struct CMUnitTest racing[] = {
        BACKLOG_TEST(test_backlog_of_servers_that_share_a_port_is_not_lost),
    };

    calls_choose(argc, argv);
    if (argc > 3 && strcmp(argv[3], "racing") == 0) {
        return cmocka_run_group_tests(racing, NULL, NULL);
    }
    if (argc > 3 && strcmp(argv[3], "many") == 0) {
        return cmocka_run_group_tests(many, NULL, NULL);
    }
    return cmocka_run_group_tests(held, NULL, NULL);
}
