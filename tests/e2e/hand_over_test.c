/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A server process hands its sockets to the next one, and that one to the one after it, while
 * clients call and others connect without a break: no connection is refused, no call fails, and
 * none runs twice.
 *
 *     hand_over_test SERVER_PROGRAM TIMES
 */

#include "lab.h"
#include "rolling_load.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LINE_BYTES 64
/* Of each server, before the next one comes. */
#define HITS_EACH 50

static const char *server_program;
static unsigned n_times;

struct scene {
    const char *prefix; /* of targets */
    char address[96];   /* the same for all servers */
    char target[128];
    char take_over[64];
    unsigned port; /* of the first, and so of all */
    unsigned long n_hits;
    unsigned long n_games;
};

/* Server processes */

#define STOPPING "stopping\n"

struct server {
    pid_t pid;
    FILE *lines;
};

static bool is_of_client(const char *line)
{
    return strncmp(line, "client ", strlen("client ")) == 0;
}

static void read_line(struct server *server, char line[LINE_BYTES])
{
    do {
        assert_non_null(fgets(line, LINE_BYTES, server->lines));
    } while (is_of_client(line) || strcmp(line, STOPPING) == 0);
}

static void wait_for_stopping(struct server *server)
{
    char line[LINE_BYTES];

    do {
        assert_non_null(fgets(line, LINE_BYTES, server->lines));
    } while (strcmp(line, STOPPING) != 0);
}

/* When this returns it serves, and offers its sockets. */
static void start_server(struct server *server, struct scene *scene, unsigned workers)
{
    int out[2];
    char count[16];
    char line[LINE_BYTES];

    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    snprintf(count, sizeof(count), "%u", workers);
    server->pid = fork();
    assert_true(server->pid >= 0);
    if (server->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* none is left when a test has failed */
        dup2(out[1], STDOUT_FILENO);
        /* A lame duck of an hour: who is taken over from has none. */
        execl(server_program, server_program, scene->address, "3600000", scene->take_over, count,
              (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    server->lines = fdopen(out[0], "r");
    assert_non_null(server->lines);
    read_line(server, line);
    unsigned port = (unsigned)strtoul(line, NULL, 10);
    if (scene->port == 0) {
        scene->port = port;
    }
    assert_int_equal(port, scene->port);
}

static void wait_for_end(struct server *server, struct scene *scene)
{
    char line[LINE_BYTES];
    unsigned long n_hits = 0;
    unsigned long n_games = 0;
    int status = 0;

    read_line(server, line);
    assert_int_equal(sscanf(line, "%lu %lu", &n_hits, &n_games), 2);
    fclose(server->lines);
    assert_int_equal(waitpid(server->pid, &status, 0), server->pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    scene->n_hits += n_hits;
    scene->n_games += n_games;
}

/* When nobody calls any more. The second signal ends the lame duck; one that came later might find
 * a process that handles none any more. */
static void stop_server(struct server *server, struct scene *scene)
{
    assert_int_equal(kill(server->pid, SIGTERM), 0);
    wait_for_stopping(server);
    assert_int_equal(kill(server->pid, SIGTERM), 0);
    wait_for_end(server, scene);
}

/* Who connects without a break, and says nothing */

struct knocker {
    struct sockaddr_storage address;
    socklen_t len;
    int family;
    atomic_bool stopping;
    atomic_ulong n_connected;
    atomic_ulong n_refused;
    int error; /* the last one's */
    pthread_t thread;
};

static void *knock(void *data)
{
    struct knocker *knocker = data;

    while (!atomic_load(&knocker->stopping)) {
        int fd = socket(knocker->family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(fd, (struct sockaddr *)&knocker->address, knocker->len) == 0) {
            atomic_fetch_add(&knocker->n_connected, 1);
        } else {
            knocker->error = errno;
            atomic_fetch_add(&knocker->n_refused, 1);
        }
        /* Not to run out of ports. */
        struct linger reset = {.l_onoff = 1};
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        close(fd);
        sched_yield();
    }
    return NULL;
}

static void start_knocker(struct knocker *knocker, const struct scene *scene)
{
    struct sockaddr_in *in = (struct sockaddr_in *)(void *)&knocker->address;
    struct sockaddr_un *un = (struct sockaddr_un *)(void *)&knocker->address;

    memset(knocker, 0, sizeof(*knocker));
    if (scene->port != 0) {
        in->sin_family = AF_INET;
        in->sin_port = htons((uint16_t)scene->port);
        in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        knocker->len = sizeof(*in);
    } else {
        un->sun_family = AF_UNIX;
        snprintf(un->sun_path, sizeof(un->sun_path), "%s", scene->address + strlen("unix:"));
        knocker->len = sizeof(*un);
    }
    knocker->family = knocker->address.ss_family;
    assert_int_equal(pthread_create(&knocker->thread, NULL, knock, knocker), 0);
}

static void stop_knocker(struct knocker *knocker)
{
    atomic_store(&knocker->stopping, true);
    pthread_join(knocker->thread, NULL);
    if (atomic_load(&knocker->n_refused) > 0) {
        fail_msg("%lu connections of %lu failed, the last with %s",
                 atomic_load(&knocker->n_refused),
                 atomic_load(&knocker->n_refused) + atomic_load(&knocker->n_connected),
                 strerror(knocker->error));
    }
    assert_true(atomic_load(&knocker->n_connected) > 0);
}

/* The scene */

static void expect_no_failure(struct rolling_load *load)
{
    if (atomic_load(&load->n_failed) > 0) {
        fail_msg("%lu failed, the first: %s", atomic_load(&load->n_failed), load->failure);
    }
}

static void wait_for_hits(struct rolling_load *load)
{
    unsigned long enough = atomic_load(&load->n_hits) + HITS_EACH;

    while (atomic_load(&load->n_hits) < enough) {
        expect_no_failure(load);
        sched_yield();
    }
}

static void init_scene(struct scene *scene, const char *prefix, const char *address)
{
    memset(scene, 0, sizeof(*scene));
    scene->prefix = prefix;
    snprintf(scene->address, sizeof(scene->address), "%s", address);
    snprintf(scene->take_over, sizeof(scene->take_over), "unix-abstract:bowline-hand-over-%d",
             (int)getpid());
}

static void name_target(struct scene *scene)
{
    if (scene->port != 0) {
        snprintf(scene->target, sizeof(scene->target), "%s127.0.0.1:%u", scene->prefix,
                 scene->port);
    } else {
        snprintf(scene->target, sizeof(scene->target), "%s%s", scene->prefix, scene->address);
    }
}

/* With workers their number changes from one to the next. */
static void hand_overs_lose_nothing(const char *prefix, const char *address, unsigned workers)
{
    struct rolling_load *load = calloc(1, sizeof(*load));
    struct scene scene;
    struct knocker knocker;
    struct server servers[2];

    assert_non_null(load);
    init_scene(&scene, prefix, address);
    start_server(&servers[0], &scene, workers);
    name_target(&scene);
    rolling_load_start(load, scene.target);
    start_knocker(&knocker, &scene);
    for (unsigned i = 1; i <= n_times; i++) {
        wait_for_hits(load);
        start_server(&servers[i % 2], &scene, workers > 0 ? 1 + (workers + i) % 3 : 0);
        wait_for_end(&servers[(i + 1) % 2], &scene);
    }
    wait_for_hits(load);
    stop_knocker(&knocker);
    rolling_load_stop(load);
    expect_no_failure(load);
    stop_server(&servers[n_times % 2], &scene);
    assert_int_equal(scene.n_hits, atomic_load(&load->n_hits));
    assert_int_equal(scene.n_games, atomic_load(&load->n_games));
    assert_true(scene.n_games > 0);
    print_message("%s %s, %u workers: %u hand-overs, %lu unary calls, %lu streams, %lu further "
                  "connections, 0 failed\n",
                  *prefix != '\0' ? "gRPC" : "native", address, workers, n_times, scene.n_hits,
                  scene.n_games, atomic_load(&knocker.n_connected));
    free(load);
}

static void at_unix_socket(const char *prefix)
{
    char folder[64] = "/tmp/bowline-hand-over-XXXXXX";
    char address[96];

    assert_non_null(mkdtemp(folder));
    snprintf(address, sizeof(address), "unix:%s/socket", folder);
    hand_overs_lose_nothing(prefix, address, 0);
    /* The last one has removed the file, and none the file of its successor. */
    assert_int_equal(rmdir(folder), 0);
}

static void test_hand_over_native_tcp_loses_nothing(void **state)
{
    (void)state;
    hand_overs_lose_nothing("", "127.0.0.1:0", 0);
}

static void test_hand_over_grpc_tcp_loses_nothing(void **state)
{
    (void)state;
    hand_overs_lose_nothing("grpc:", "127.0.0.1:0", 0);
}

static void test_hand_over_native_unix_loses_nothing(void **state)
{
    (void)state;
    at_unix_socket("");
}

static void test_hand_over_grpc_unix_loses_nothing(void **state)
{
    (void)state;
    at_unix_socket("grpc:");
}

static void test_hand_over_of_each_worker_loses_nothing(void **state)
{
    (void)state;
    hand_overs_lose_nothing("", "127.0.0.1:0", 2);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hand_over_native_tcp_loses_nothing),
        cmocka_unit_test(test_hand_over_grpc_tcp_loses_nothing),
        cmocka_unit_test(test_hand_over_native_unix_loses_nothing),
        cmocka_unit_test(test_hand_over_grpc_unix_loses_nothing),
        cmocka_unit_test(test_hand_over_of_each_worker_loses_nothing),
    };

    if (argc != 3) {
        fprintf(stderr, "usage: %s SERVER_PROGRAM TIMES\n", argv[0]);
        return 2;
    }
    server_program = argv[1];
    n_times = (unsigned)strtoul(argv[2], NULL, 10);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
