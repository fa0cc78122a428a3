/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The operating system's table: descriptors, signals, threads, names, CPUs (L62, L50). */

#include "tests/support/loops.h"
#include "tests/support/scratch.h"
#include "transport/system/system_linux.h"

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
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

static const struct bow_system *sys_table(void)
{
    return bow_system_default();
}

static void assert_born_well(int fd)
{
    assert_true(fd >= 0);
    assert_true((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
}

/* A pair of connected TCP sockets on loopback, through the table. */
struct pair {
    int listener;
    int client;
    int server;
};

static void pair_open(struct pair *pair)
{
    const struct bow_system *s = sys_table();
    struct bow_sockaddr address = {.len = sizeof(struct sockaddr_in)};
    struct sockaddr_in loopback = {.sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    memcpy(&address.storage, &loopback, sizeof(loopback));
    pair->listener = s->socket(s->user, AF_INET, SOCK_STREAM, 0);
    assert_born_well(pair->listener);
    assert_int_equal(s->bind(s->user, pair->listener, &address), 0);
    assert_int_equal(s->listen(s->user, pair->listener, 4), 0);
    assert_int_equal(s->getsockname(s->user, pair->listener, &address), 0);
    assert_int_equal(s->accept(s->user, pair->listener, NULL), -EAGAIN);
    pair->client = s->socket(s->user, AF_INET, SOCK_STREAM, 0);
    int rc = s->connect(s->user, pair->client, &address);
    assert_true(rc == 0 || rc == -EINPROGRESS);
    do {
        pair->server = s->accept(s->user, pair->listener, &address);
    } while (pair->server == -EAGAIN);
    assert_born_well(pair->server);
}

static void pair_close(struct pair *pair)
{
    const struct bow_system *s = sys_table();

    assert_int_equal(s->close(s->user, pair->listener), 0);
    assert_int_equal(s->close(s->user, pair->client), 0);
    assert_int_equal(s->close(s->user, pair->server), 0);
}

static ssize_t send_text(int fd, const char *text)
{
    char bytes[32];
    struct iovec piece = {.iov_base = bytes, .iov_len = strlen(text)};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};

    memcpy(bytes, text, strlen(text) + 1);
    return sys_table()->sendmsg(NULL, fd, &message, 0);
}

static void test_system_l62_descriptors_are_nonblocking_and_cloexec_from_birth(void **state)
{
    const struct bow_system *s = sys_table();
    struct bow_poller *poller = NULL;
    struct pair pair;

    (void)state;
    pair_open(&pair);
    pair_close(&pair);
    int wake = s->wake_open(s->user);
    assert_born_well(wake);
    s->close(s->user, wake);
    assert_int_equal(s->poller->open(s->user, &poller), 0);
    assert_true((fcntl(s->poller->fd(poller), F_GETFD) & FD_CLOEXEC) != 0);
    s->poller->close(poller);
}

/* F14: the disposition is the default, so a SIGPIPE would end this program. */
static void test_system_l62_f14_writing_to_a_reset_connection_raises_no_signal(void **state)
{
    const struct bow_system *s = sys_table();
    const struct linger abort_it = {.l_onoff = 1, .l_linger = 0};
    struct pair pair;
    ssize_t n = 0;

    (void)state;
    pair_open(&pair);
    assert_int_equal(
        s->setsockopt(s->user, pair.server, SOL_SOCKET, SO_LINGER, &abort_it, sizeof(abort_it)), 0);
    assert_int_equal(s->close(s->user, pair.server), 0);
    while (n >= 0 || n == -ECONNRESET) {
        n = send_text(pair.client, "hello");
    }
    assert_int_equal(n, -EPIPE);
    pair.server = s->wake_open(s->user);
    pair_close(&pair);
}

static void test_system_l62_sockets_pass_bytes_and_errors(void **state)
{
    const struct bow_system *s = sys_table();
    struct bow_sockaddr name;
    struct bow_sockaddr peer;
    struct pair pair;
    char bytes[32];
    ssize_t n;

    (void)state;
    pair_open(&pair);
    assert_int_equal(s->getsockname(s->user, pair.client, &name), 0);
    assert_int_equal(s->getpeername(s->user, pair.server, &peer), 0);
    assert_int_equal(name.len, peer.len);
    assert_memory_equal(&name.storage, &peer.storage, name.len);
    assert_int_equal(s->recv(s->user, pair.server, bytes, sizeof(bytes)), -EAGAIN);
    assert_int_equal(send_text(pair.client, "hello"), 5);
    assert_int_equal(s->shutdown(s->user, pair.client, SHUT_WR), 0);
    do {
        n = s->recv(s->user, pair.server, bytes, sizeof(bytes));
    } while (n == -EAGAIN);
    assert_int_equal(n, 5);
    assert_memory_equal(bytes, "hello", 5);
    do {
        n = s->recv(s->user, pair.server, bytes, sizeof(bytes));
    } while (n == -EAGAIN);
    assert_int_equal(n, 0);
    int error = -1;
    socklen_t len = sizeof(error);
    assert_int_equal(s->getsockopt(s->user, pair.client, SOL_SOCKET, SO_ERROR, &error, &len), 0);
    assert_int_equal(error, 0);
    pair_close(&pair);

    assert_int_equal(s->close(s->user, -1), -EBADF);
    assert_int_equal(s->listen(s->user, -1, 1), -EBADF);
    assert_int_equal(s->recv(s->user, -1, bytes, 1), -EBADF);
    assert_int_equal(s->getsockname(s->user, -1, &name), -EBADF);
    assert_int_equal(s->getpeername(s->user, -1, &name), -EBADF);
}

static void test_system_l62_wake_ups_add_up_to_one(void **state)
{
    const struct bow_system *s = sys_table();
    uint64_t most = UINT64_MAX - 1;

    (void)state;
    int wake = s->wake_open(s->user);
    assert_int_equal(s->wake_signal(s->user, wake), 0);
    assert_int_equal(s->wake_signal(s->user, wake), 0);
    assert_int_equal(s->wake_drain(s->user, wake), 0);
    assert_int_equal(s->wake_drain(s->user, wake), 0); /* nothing left: no block, no error */
    assert_int_equal(write(wake, &most, sizeof(most)), sizeof(most));
    assert_int_equal(s->wake_signal(s->user, wake), 0); /* full is readable, too */
    s->close(s->user, wake);
    assert_int_equal(s->wake_signal(s->user, wake), -EBADF);
}

/* Threads and signals */

static int see_mask(void *user)
{
    return pthread_sigmask(SIG_BLOCK, NULL, user);
}

static void read_dispositions(struct sigaction *actions)
{
    memset(actions, 0, sizeof(*actions) * (size_t)(SIGRTMAX + 1));
    for (int i = 1; i <= SIGRTMAX; i++) {
        sigaction(i, NULL, &actions[i]);
    }
}

static void test_system_l62_threads_block_all_signals_and_no_disposition_changes(void **state)
{
    struct loops t;
    static struct sigaction before[128];
    static struct sigaction after[128];
    sigset_t mask;
    sigset_t own_before;
    sigset_t own_after;

    (void)state;
    assert_true(SIGRTMAX < 128);
    read_dispositions(before);
    pthread_sigmask(SIG_BLOCK, NULL, &own_before);
    sigemptyset(&mask);
    loops_begin_real(&t);
    struct bow_loop *loop = loops_new_threaded(&t);
    assert_int_equal(bow_loop_execute(loop, "see", see_mask, &mask), 0);
    loops_stop(loop);
    loops_end(&t);
    for (int i = 1; i <= SIGRTMAX; i++) {
        bool is_the_c_librarys = i > 31 && i < SIGRTMIN;
        if (i != SIGKILL && i != SIGSTOP && !is_the_c_librarys) {
            assert_int_equal(sigismember(&mask, i), 1);
        }
    }
    pthread_sigmask(SIG_BLOCK, NULL, &own_after);
    read_dispositions(after);
    for (int i = 1; i <= SIGRTMAX; i++) {
        assert_int_equal(sigismember(&own_after, i), sigismember(&own_before, i));
        assert_true(before[i].sa_handler == after[i].sa_handler);
        assert_int_equal(before[i].sa_flags, after[i].sa_flags);
    }
}

static void do_nothing(void *argument)
{
    (void)argument;
}

static void test_system_threads_refuse_what_cannot_be(void **state)
{
    struct bow_thread *thread = NULL;
    struct bow_thread_options options = {.name = "x", .cpu = -1, .stack_bytes = 1};
    const struct bow_system *s = sys_table();

    (void)state;
    assert_int_equal(s->thread_start(s->user, &options, do_nothing, NULL, &thread), -EINVAL);
    options.stack_bytes = 0;
    options.cpu = CPU_SETSIZE;
    assert_int_equal(s->thread_start(s->user, &options, do_nothing, NULL, &thread), -EINVAL);
    options.cpu = CPU_SETSIZE - 1; /* more than this machine has */
    assert_int_equal(s->thread_start(s->user, &options, do_nothing, NULL, &thread), -EINVAL);
    assert_null(thread);
    options.cpu = -1;
    assert_int_equal(s->thread_start(s->user, &options, do_nothing, NULL, &thread), 0);
    s->thread_join(s->user, thread);
}

static void test_system_clock_and_random_give_what_they_should(void **state)
{
    const struct bow_system *s = sys_table();
    uint8_t bytes[2][300] = {{0}, {0}};

    (void)state;
    uint64_t first = s->now_ns(s->user);
    uint64_t second = s->now_ns(s->user);
    assert_true(first > 0 && second >= first);
    assert_int_equal(s->random(s->user, bytes[0], sizeof(bytes[0])), 0);
    assert_int_equal(s->random(s->user, bytes[1], sizeof(bytes[1])), 0);
    assert_memory_not_equal(bytes[0], bytes[1], sizeof(bytes[0]));
    assert_memory_not_equal(bytes[0] + 200, (uint8_t[100]){0}, 100);
}

static void test_system_resolve_gives_addresses_with_the_port(void **state)
{
    const struct bow_system *s = sys_table();
    struct bow_sockaddr addresses[4];
    const char *reason = NULL;

    (void)state;
    int n = s->resolve(s->user, "127.0.0.1", 4711, addresses, 4, &reason);
    assert_int_equal(n, 1);
    assert_int_equal(addresses[0].len, sizeof(struct sockaddr_in));
    struct sockaddr_in address;
    memcpy(&address, &addresses[0].storage, sizeof(address));
    assert_int_equal(address.sin_family, AF_INET);
    assert_int_equal(ntohs(address.sin_port), 4711);
    assert_int_equal(ntohl(address.sin_addr.s_addr), INADDR_LOOPBACK);
    assert_int_equal(s->resolve(s->user, "::1", 1, addresses, 4, &reason), 1);
    assert_int_equal(addresses[0].storage.ss_family, AF_INET6);
    assert_int_equal(s->resolve(s->user, "127.0.0.1", 1, addresses, 0, &reason), 0);
    assert_null(reason);

    /* 256 characters are no name, so nobody is asked. */
    char name[257];
    memset(name, 'a', 256);
    name[256] = '\0';
    n = s->resolve(s->user, name, 1, addresses, 4, &reason);
    assert_true(n < 0);
    assert_non_null(reason);
}

/* L50: cgroups */

struct tree {
    char root[64];
    char self[96];
};

static void tree_write(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void tree_open(struct tree *tree)
{
    assert_non_null(mkdtemp(scratch_path(tree->root, sizeof(tree->root), "cgroup-XXXXXX")));
    snprintf(tree->self, sizeof(tree->self), "%s/self", tree->root);
}

static void tree_set(struct tree *tree, const char *folder, const char *text)
{
    char path[160];

    snprintf(path, sizeof(path), "%s%s", tree->root, folder);
    if (mkdir(path, 0700) < 0) {
        assert_int_equal(errno, EEXIST);
    }
    if (text != NULL) {
        snprintf(path, sizeof(path), "%s%s/cpu.max", tree->root, folder);
        tree_write(path, text);
    }
}

static void tree_close(struct tree *tree)
{
    const char *files[] = {"/a/b/cpu.max", "/a/b", "/a/cpu.max", "/a", "/cpu.max", "/self", ""};
    char path[160];

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), "%s%s", tree->root, files[i]);
        remove(path);
    }
}

static uint32_t tree_cpus(const struct tree *tree)
{
    return bow__linux_cgroup_cpus(tree->self, tree->root);
}

static void test_system_l50_the_smallest_quota_on_the_way_up_counts(void **state)
{
    struct tree tree;

    (void)state;
    tree_open(&tree);
    assert_int_equal(tree_cpus(&tree), 0); /* no such file */
    tree_write(tree.self, "12:pids:/x\n1:name=systemd:/y\n");
    assert_int_equal(tree_cpus(&tree), 0); /* version 1 only */
    tree_write(tree.self, "1:name=systemd:/y\n0::/a/b\n");
    assert_int_equal(tree_cpus(&tree), 0); /* no quota anywhere */
    tree_set(&tree, "/a", "max 100000\n");
    tree_set(&tree, "/a/b", "250000 100000\n");
    assert_int_equal(tree_cpus(&tree), 3); /* 2.5 keeps three busy */
    tree_set(&tree, "/a", "200000 100000\n");
    assert_int_equal(tree_cpus(&tree), 2);
    tree_set(&tree, "", "10000 100000\n");
    assert_int_equal(tree_cpus(&tree), 1); /* a tenth of one is one */
    tree_set(&tree, "", "nonsense\n");
    assert_int_equal(tree_cpus(&tree), 2);
    tree_write(tree.self, "0::/\n");
    tree_set(&tree, "", "400000 100000\n");
    assert_int_equal(tree_cpus(&tree), 4); /* inside a cgroup namespace */
    tree_close(&tree);
}

static void tree_set_v1(struct tree *tree, const char *folder, const char *quota)
{
    char path[200];

    snprintf(path, sizeof(path), "%s%s", tree->root, folder);
    if (mkdir(path, 0700) < 0) {
        assert_int_equal(errno, EEXIST);
    }
    snprintf(path, sizeof(path), "%s%s/cpu.cfs_quota_us", tree->root, folder);
    tree_write(path, quota);
    snprintf(path, sizeof(path), "%s%s/cpu.cfs_period_us", tree->root, folder);
    tree_write(path, "100000\n");
}

static void tree_close_v1(const struct tree *tree)
{
    static const char *const folders[] = {"/cpu/a/b", "/cpu/a", "/cpu"};
    char path[200];

    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        snprintf(path, sizeof(path), "%s%s/cpu.cfs_quota_us", tree->root, folders[i]);
        remove(path);
        snprintf(path, sizeof(path), "%s%s/cpu.cfs_period_us", tree->root, folders[i]);
        remove(path);
        snprintf(path, sizeof(path), "%s%s", tree->root, folders[i]);
        remove(path);
    }
}

static void test_system_f54_quota_of_version_1_counts(void **state)
{
    struct tree tree;

    (void)state;
    tree_open(&tree);
    tree_write(tree.self, "12:cpuset:/x\n11:cpuacct,cpu:/a/b\n1:name=systemd:/y\n0::/z\n");
    assert_int_equal(tree_cpus(&tree), 0);
    tree_set_v1(&tree, "/cpu", "-1\n");
    assert_int_equal(tree_cpus(&tree), 0); /* none */
    tree_set_v1(&tree, "/cpu/a", "400000\n");
    tree_set_v1(&tree, "/cpu/a/b", "250000\n");
    assert_int_equal(tree_cpus(&tree), 3);
    tree_set_v1(&tree, "/cpu", "150000\n");
    assert_int_equal(tree_cpus(&tree), 2);
    tree_set(&tree, "", "90000 100000\n"); /* both versions: the smaller one */
    assert_int_equal(tree_cpus(&tree), 1);
    tree_set(&tree, "", "900000 100000\n");
    assert_int_equal(tree_cpus(&tree), 2);
    tree_write(tree.self, "11:cpuacct:/a/b\n");
    assert_int_equal(tree_cpus(&tree), 0); /* of another controller */
    tree_close_v1(&tree);
    tree_close(&tree);
}

#define N_POSSIBLE 3000

static int affinity_of_many(pid_t pid, size_t size, cpu_set_t *ret_set)
{
    if (pid != 0 || size * 8 < N_POSSIBLE) {
        errno = EINVAL;
        return -1;
    }
    for (size_t cpu = 0; cpu < N_POSSIBLE; cpu += 2) {
        CPU_SET_S(cpu, size, ret_set);
    }
    return 0;
}

static int affinity_of_none(pid_t pid, size_t size, cpu_set_t *ret_set)
{
    (void)pid;
    (void)size;
    (void)ret_set;
    errno = EINVAL;
    return -1;
}

static void test_system_f54_cpus_beyond_1024_count(void **state)
{
    (void)state;
    assert_int_equal(bow__linux_affinity_cpus(affinity_of_many), N_POSSIBLE / 2);
    assert_int_equal(bow__linux_affinity_cpus(affinity_of_none), 1);
}

static void test_system_l50_cpus_is_no_more_than_the_affinity(void **state)
{
    cpu_set_t cpus;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof(cpus), &cpus), 0);
    assert_in_range(sys_table()->cpus(NULL), 1, (unsigned)CPU_COUNT(&cpus));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_system_l62_descriptors_are_nonblocking_and_cloexec_from_birth),
        cmocka_unit_test(test_system_l62_f14_writing_to_a_reset_connection_raises_no_signal),
        cmocka_unit_test(test_system_l62_sockets_pass_bytes_and_errors),
        cmocka_unit_test(test_system_l62_wake_ups_add_up_to_one),
        cmocka_unit_test(test_system_l62_threads_block_all_signals_and_no_disposition_changes),
        cmocka_unit_test(test_system_threads_refuse_what_cannot_be),
        cmocka_unit_test(test_system_clock_and_random_give_what_they_should),
        cmocka_unit_test(test_system_resolve_gives_addresses_with_the_port),
        cmocka_unit_test(test_system_l50_the_smallest_quota_on_the_way_up_counts),
        cmocka_unit_test(test_system_f54_quota_of_version_1_counts),
        cmocka_unit_test(test_system_f54_cpus_beyond_1024_count),
        cmocka_unit_test(test_system_l50_cpus_is_no_more_than_the_affinity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
