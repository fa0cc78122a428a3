/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Three server processes behind one target, told to stop with SIGTERM and started again, one after
 * the other, while clients call: no call fails, and none runs twice.
 *
 *     rolling_test SERVER_PROGRAM SECONDS        for each protocol
 */

#include "lab.h"
#include "rolling_load.h"
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SERVERS 3
#define LAME_DUCK_MS "100"
#define LINE_BYTES 64

static const char *server_program;
static uint64_t duration_ns;

/* Server processes */

struct server {
    pid_t pid;
    unsigned port;
    FILE *lines;
    int n_found;          /* clients that have called it since it was started */
    unsigned long n_hits; /* of those that have ended */
    unsigned long n_games;
};

static bool is_of_client(const char *line)
{
    return strncmp(line, "client ", strlen("client ")) == 0;
}

static void read_line(struct server *server, char line[LINE_BYTES])
{
    assert_non_null(fgets(line, LINE_BYTES, server->lines));
    server->n_found += is_of_client(line);
}

#define SIGTERM_BIT (1ull << (SIGTERM - 1))

/* One of the masks in its status. */
static unsigned long long signals_of(pid_t pid, const char *name)
{
    char path[64];
    char line[256];
    unsigned long long mask = 0;

    snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
    FILE *status = fopen(path, "r");
    assert_non_null(status);
    while (fgets(line, sizeof(line), status) != NULL) {
        if (strncmp(line, name, strlen(name)) == 0) {
            mask = strtoull(line + strlen(name) + 1, NULL, 16);
        }
    }
    fclose(status);
    return mask;
}

/* It serves before bow_server_run() has taken its signals. */
static void wait_until_it_takes_signals(pid_t pid)
{
    while ((signals_of(pid, "SigCgt") & SIGTERM_BIT) == 0) {
    }
}

/* The first time on any port, then on the same. */
static void start_server(struct server *server, const char *lame_duck_ms)
{
    int out[2];
    char address[32];
    char line[LINE_BYTES];

    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    snprintf(address, sizeof(address), "127.0.0.1:%u", server->port);
    server->pid = fork();
    assert_true(server->pid >= 0);
    if (server->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* none is left when a test has failed */
        dup2(out[1], STDOUT_FILENO);
        execl(server_program, server_program, address, lame_duck_ms, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    server->lines = fdopen(out[0], "r");
    assert_non_null(server->lines);
    server->n_found = 0;
    do {
        read_line(server, line);
    } while (is_of_client(line)); /* who may be quicker than its word that it is there */
    server->port = (unsigned)strtoul(line, NULL, 10);
    wait_until_it_takes_signals(server->pid);
}

/* After it was told to stop. */
static void wait_for_end(struct server *server)
{
    char line[LINE_BYTES];
    unsigned long n_hits = 0;
    unsigned long n_games = 0;
    int status = 0;

    assert_non_null(fgets(line, sizeof(line), server->lines));
    assert_int_equal(sscanf(line, "%lu %lu", &n_hits, &n_games), 2);
    fclose(server->lines);
    assert_int_equal(waitpid(server->pid, &status, 0), server->pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    server->n_hits += n_hits;
    server->n_games += n_games;
}

static void stop_server(struct server *server)
{
    assert_int_equal(kill(server->pid, SIGTERM), 0);
    wait_for_end(server);
}

/* Every client has called it: the next server may leave. */
static void wait_until_found(struct server *server)
{
    char line[LINE_BYTES];

    while (server->n_found < ROLLING_CLIENTS) {
        read_line(server, line);
    }
}

static void restart(struct server *server)
{
    stop_server(server);
    start_server(server, LAME_DUCK_MS);
    wait_until_found(server);
}

/* The load */

static void expect_no_failure(struct rolling_load *load)
{
    if (atomic_load(&load->n_failed) > 0) {
        fail_msg("%lu failed, the first: %s", atomic_load(&load->n_failed), load->failure);
    }
}

static void name_target(const struct server *servers, const char *prefix, char *target, size_t size)
{
    int n = snprintf(target, size, "%slist:", prefix);

    for (int i = 0; i < SERVERS; i++) {
        n += snprintf(target + n, size - (size_t)n, "%s127.0.0.1:%u", i > 0 ? "," : "",
                      servers[i].port);
    }
}

/* Each is stopped and started in turn, and that again. Returns how many restarts there were. */
static unsigned roll(struct server *servers, struct rolling_load *load)
{
    uint64_t end = lab_now_ns() + duration_ns;
    unsigned n = 0;

    while (lab_now_ns() < end || n < SERVERS) {
        restart(&servers[n % SERVERS]);
        expect_no_failure(load);
        n++;
    }
    return n;
}

static void restarts_fail_no_call(const char *prefix)
{
    struct rolling_load *load = calloc(1, sizeof(*load));
    struct server servers[SERVERS] = {0};
    unsigned long n_hits = 0;
    unsigned long n_games = 0;
    char target[128];

    assert_non_null(load);
    for (int i = 0; i < SERVERS; i++) {
        start_server(&servers[i], LAME_DUCK_MS);
    }
    name_target(servers, prefix, target, sizeof(target));
    rolling_load_start(load, target);
    for (int i = 0; i < SERVERS; i++) {
        wait_until_found(&servers[i]);
    }
    unsigned n_restarts = roll(servers, load);
    rolling_load_stop(load);
    expect_no_failure(load);
    for (int i = 0; i < SERVERS; i++) {
        stop_server(&servers[i]);
        n_hits += servers[i].n_hits;
        n_games += servers[i].n_games;
    }
    /* Each exactly once, also those that were sent a second time. */
    assert_int_equal(n_hits, atomic_load(&load->n_hits));
    assert_int_equal(n_games, atomic_load(&load->n_games));
    assert_true(n_hits > 0 && n_games > 0);
    print_message("%s: %u restarts, %lu unary calls, %lu streams, 0 failed\n",
                  *prefix != '\0' ? "gRPC" : "native", n_restarts, n_hits, n_games);
    free(load);
}

static void test_rolling_native_restarts_fail_no_call(void **state)
{
    (void)state;
    restarts_fail_no_call("");
}

static void test_rolling_grpc_restarts_fail_no_call(void **state)
{
    (void)state;
    restarts_fail_no_call("grpc:");
}

/* Lame duck */

/* The signal has been taken by the process, so that another of its kind is one more. */
static void wait_until_taken(pid_t pid)
{
    while ((signals_of(pid, "ShdPnd") & SIGTERM_BIT) != 0) {
    }
}

static void expect_served(const struct server *server, const char *prefix)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_result result = BOW_RESULT_INIT;
    struct bow_client *client = NULL;
    Rolling__Ball ball = ROLLING__BALL__INIT;
    char target[64];

    snprintf(target, sizeof(target), "%s127.0.0.1:%u", prefix, server->port);
    options.target = target;
    assert_int_equal(bow_client_new(&options, &client), 0);
    if (rolling__court__hit__call(client, &ball, NULL, &result) == NULL) {
        fail_msg("%s", result.status.message);
    }
    bow_result_fini(&result);
    bow_client_free(client);
}

/* An hour of lame duck, in which new connections are served, ends with the second SIGTERM. */
static void second_sigterm_skips_the_lame_duck(const char *prefix)
{
    struct server server = {0};

    start_server(&server, "3600000");
    expect_served(&server, prefix);
    assert_int_equal(kill(server.pid, SIGTERM), 0);
    wait_until_taken(server.pid);
    expect_served(&server, prefix);
    expect_served(&server, prefix);
    assert_int_equal(kill(server.pid, SIGTERM), 0);
    wait_for_end(&server);
    assert_int_equal(server.n_hits, 3);
}

static void test_rolling_native_second_sigterm_skips_the_lame_duck(void **state)
{
    (void)state;
    second_sigterm_skips_the_lame_duck("");
}

static void test_rolling_grpc_second_sigterm_skips_the_lame_duck(void **state)
{
    (void)state;
    second_sigterm_skips_the_lame_duck("grpc:");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rolling_native_restarts_fail_no_call),
        cmocka_unit_test(test_rolling_grpc_restarts_fail_no_call),
        cmocka_unit_test(test_rolling_native_second_sigterm_skips_the_lame_duck),
        cmocka_unit_test(test_rolling_grpc_second_sigterm_skips_the_lame_duck),
    };

    if (argc != 3) {
        fprintf(stderr, "usage: %s SERVER_PROGRAM SECONDS\n", argv[0]);
        return 2;
    }
    server_program = argv[1];
    duration_ns = strtoull(argv[2], NULL, 10) * 1000 * LAB_MS;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
