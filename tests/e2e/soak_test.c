/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Two servers, of which one is restarted again and again, with clients of all kinds and a process
 * that means harm, for as long as wanted: no call is lost or wrong, and the memory that the other
 * server takes is the same in the second half as in the first.
 *
 *     soak_test SERVER_PROGRAM SECONDS
 */

#include "lab.h"
#include "soak_hostile.h"
#include "soak_load.h"
#include "tests/support/scratch.h"
#include "tests/tls/certs.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define LOOK_MS 20
#define RESTART_NS (UINT64_C(3000) * LAB_MS)
#define MIB ((size_t)1 << 20)
#define MIN_ROUNDS 3u
#define MAX_ROUNDS 4096u
/* What may differ by chance between two halves of equal load. */
#define CHANCE_BYTES (16 * MIB)

static const char *server_program;
static uint64_t duration_ns;

struct server {
    pid_t pid;
    int lines;
    char port[8];
    char tls_port[8];
    char path[96];
    const char *executor; /* NULL: handlers run on the loop */
};

struct round {
    size_t most;  /* bytes resident */
    size_t least; /* the same */
};

struct soak {
    struct certs certs;
    struct server servers[2]; /* the one that stays, and the one that is restarted */
    struct soak_hostile hostile;
    struct soak_load load;
    struct soak_deed_note now;
    struct round rounds[MAX_ROUNDS];
    unsigned n_rounds;
    unsigned n_restarts;
    uint64_t restart_ns;
    char targets[SOAK_MAX_CLIENTS][160];
};

/* Servers */

static void become(const struct soak *soak, const struct server *server, int out)
{
    char certificate[128];
    char key[128];

    certs_path(&soak->certs, "server.pem", certificate, sizeof(certificate));
    certs_path(&soak->certs, "server.key", key, sizeof(key));
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    dup2(out, STDOUT_FILENO);
    execl(server_program, server_program, server->port, server->tls_port, server->path, certificate,
          key, server->executor, (char *)NULL);
    _exit(127);
}

static void start_server(const struct soak *soak, struct server *server)
{
    char line[16] = "";
    int out[2];

    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    server->pid = fork();
    assert_true(server->pid >= 0);
    if (server->pid == 0) {
        become(soak, server, out[1]);
    }
    close(out[1]);
    server->lines = out[0];
    if (read(out[0], line, sizeof(line)) <= 0) {
        fail_msg("the server did not start");
    }
}

static void expect_end(struct server *server)
{
    int status = -1;

    assert_int_equal(waitpid(server->pid, &status, 0), server->pid);
    close(server->lines);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fail_msg("a server ended with %x", (unsigned)status);
    }
}

/* Without waiting: what its calls take to end may be long. */
static void restart_when_due(struct soak *soak)
{
    struct server *server = &soak->servers[1];
    struct pollfd end = {.fd = server->lines, .events = POLLIN};

    if (poll(&end, 1, 0) > 0) { /* its output's end */
        expect_end(server);
        start_server(soak, server);
        soak->n_restarts++;
        soak->restart_ns = lab_now_ns() + RESTART_NS;
    } else if (lab_now_ns() > soak->restart_ns) {
        assert_int_equal(kill(server->pid, SIGTERM), 0);
        soak->restart_ns = UINT64_MAX;
    }
}

/* Free ones, which the kernel does not give to who asks for any: below its range. */
static void choose_port(char port[8])
{
    static uint16_t next;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    if (next == 0) {
        next = (uint16_t)(20000 + getpid() % 5000);
    }
    for (int rc = -1; rc < 0;) {
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_true(fd >= 0);
        address.sin_port = htons(++next);
        rc = bind(fd, (struct sockaddr *)&address, sizeof(address));
        close(fd);
    }
    snprintf(port, 8, "%u", next);
}

static void init_server(struct server *server, const char *executor)
{
    char name[64];

    server->executor = executor;
    choose_port(server->port);
    choose_port(server->tls_port);
    snprintf(name, sizeof(name), "soak-%d-%s", (int)getpid(), server->port);
    scratch_path(server->path, sizeof(server->path), name);
}

/* Memory */

static size_t resident(pid_t pid)
{
    char path[64];
    unsigned long total = 0;
    unsigned long pages = 0;

    snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    FILE *statm = fopen(path, "r");
    assert_non_null(statm);
    assert_int_equal(fscanf(statm, "%lu %lu", &total, &pages), 2);
    fclose(statm);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void look_at_memory(struct soak *soak)
{
    struct round *round = &soak->rounds[soak->n_rounds];
    size_t bytes = resident(soak->servers[0].pid);

    round->most = bytes > round->most ? bytes : round->most;
    round->least = round->least == 0 || bytes < round->least ? bytes : round->least;
}

static struct round extremes(const struct round *rounds, unsigned n)
{
    struct round all = {0};

    for (unsigned i = 0; i < n; i++) {
        all.most = rounds[i].most > all.most ? rounds[i].most : all.most;
        all.least = rounds[i].least > all.least ? rounds[i].least : all.least;
    }
    return all;
}

/* The most that was resident, and the most that was left between two attacks. The first round is
 * where all began. */
static void expect_flat(const struct soak *soak)
{
    unsigned n = (soak->n_rounds - 1) / 2;
    struct round first = extremes(soak->rounds + 1, n);
    struct round second = extremes(soak->rounds + soak->n_rounds - n, n);

    print_message("resident: at most %zu, then %zu MiB; left at most %zu, then %zu MiB\n",
                  first.most / MIB, second.most / MIB, first.least / MIB, second.least / MIB);
    assert_in_range(second.most, 0, first.most + CHANCE_BYTES);
    assert_in_range(second.least, 0, first.least + CHANCE_BYTES / 2);
}

/* All of it */

static void name_targets(struct soak *soak)
{
    const struct server *stays = &soak->servers[0];
    const struct server *rolls = &soak->servers[1];
    int n = 0;

    for (int i = 0; i < 2; i++) {
        const char *prefix = i != 0 ? "grpc:" : "";
        size_t size = sizeof(soak->targets[0]);
        snprintf(soak->targets[n++], size, "%s127.0.0.1:%s", prefix, stays->port);
        snprintf(soak->targets[n++], size, "tls:%s127.0.0.1:%s", prefix, stays->tls_port);
        snprintf(soak->targets[n++], size, "%sunix:%s", prefix, stays->path);
        snprintf(soak->targets[n++], size, "%slist:127.0.0.1:%s,127.0.0.1:%s", prefix, rolls->port,
                 stays->port);
        snprintf(soak->targets[n++], size, "tls:%slist:127.0.0.1:%s,127.0.0.1:%s", prefix,
                 rolls->tls_port, stays->tls_port);
    }
    assert_int_equal(n, SOAK_MAX_CLIENTS);
}

static void begin(struct soak *soak)
{
    const char *targets[SOAK_MAX_CLIENTS];
    uint16_t ports[2];
    char ca[128];

    certs_make(&soak->certs);
    for (int i = 0; i < 2; i++) {
        init_server(&soak->servers[i], i != 0 ? "executor" : NULL);
        start_server(soak, &soak->servers[i]);
        ports[i] = (uint16_t)strtoul(soak->servers[i].port, NULL, 10);
    }
    soak_hostile_fork(&soak->hostile, ports);
    name_targets(soak);
    for (int i = 0; i < SOAK_MAX_CLIENTS; i++) {
        targets[i] = soak->targets[i];
    }
    certs_path(&soak->certs, "ca.pem", ca, sizeof(ca));
    soak_load_start(&soak->load, targets, SOAK_MAX_CLIENTS, ca);
    soak->restart_ns = lab_now_ns() + RESTART_NS;
}

static void end_round(struct soak *soak, uint64_t began_ns)
{
    const struct round *round = &soak->rounds[soak->n_rounds];
    unsigned long n_done[SOAK_DEEDS];
    const char *target = NULL;

    soak_load_take_stock(&soak->load, n_done);
    unsigned long least = soak_load_least(&soak->load, SOAK_CALL, &target);
    print_message("round %u, %llu s: %zu to %zu MiB resident; %lu calls (least: %lu of %s), %lu "
                  "cancelled, %lu late, %lu chats, %lu slow, %lu once; %u restarts; %u not ended\n",
                  soak->n_rounds, (unsigned long long)((lab_now_ns() - began_ns) / LAB_MS / 1000),
                  round->least / MIB, round->most / MIB, n_done[SOAK_CALL], least, target,
                  n_done[SOAK_CANCEL], n_done[SOAK_DEADLINE], n_done[SOAK_CHAT],
                  n_done[SOAK_SLOW_READ], atomic_load(&soak->load.n_once), soak->n_restarts,
                  soak->now.n_unended);
    soak->n_rounds++;
}

static void expect_no_failure(struct soak *soak, int doing)
{
    unsigned long n_done[SOAK_DEEDS];

    if (atomic_load(&soak->load.n_failed) > 0) {
        print_message("during: %s\n", soak_hostile_name(doing));
        soak_load_take_stock(&soak->load, n_done);
    }
}

static void go_on(struct soak *soak)
{
    uint64_t began_ns = lab_now_ns();
    int doing = -1;

    while (lab_now_ns() < began_ns + duration_ns || soak->n_rounds < MIN_ROUNDS) {
        (void)poll(NULL, 0, LOOK_MS);
        look_at_memory(soak);
        restart_when_due(soak);
        expect_no_failure(soak, doing);
        while (soak_hostile_read(&soak->hostile, &soak->now)) {
            doing = soak->now.number;
            if (doing < 0 && soak->n_rounds + 1 < MAX_ROUNDS) {
                end_round(soak, began_ns);
            }
        }
    }
}

static void expect_all_done(const struct soak *soak)
{
    const char *target = NULL;

    for (int deed = 0; deed < SOAK_DEEDS; deed++) {
        assert_true(soak_load_least(&soak->load, (enum soak_deed)deed, &target) > 0);
    }
    assert_true(soak->n_restarts > 0);
    assert_int_equal(soak->now.n_unended, 0);
}

static void end(struct soak *soak)
{
    unsigned long n_done[SOAK_DEEDS];

    soak_load_stop(&soak->load);
    soak_load_take_stock(&soak->load, n_done);
    soak_hostile_end(&soak->hostile);
    for (int i = 0; i < 2; i++) {
        if (soak->restart_ns != UINT64_MAX || i == 0) {
            assert_int_equal(kill(soak->servers[i].pid, SIGTERM), 0);
        }
        expect_end(&soak->servers[i]);
    }
    certs_remove(&soak->certs);
}

static void test_soak_f22_no_call_is_lost_or_wrong_beside_who_means_harm(void **state)
{
    static struct soak soak;

    (void)state;
    begin(&soak);
    go_on(&soak);
    expect_all_done(&soak);
    end(&soak);
    expect_flat(&soak);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_soak_f22_no_call_is_lost_or_wrong_beside_who_means_harm),
    };

    if (argc != 3) {
        fprintf(stderr, "usage: %s SERVER_PROGRAM SECONDS\n", argv[0]);
        return 2;
    }
    server_program = argv[1];
    duration_ns = strtoull(argv[2], NULL, 10) * 1000 * LAB_MS;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
