/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Listening: the shapes, the spread over workers, limits, and what binding refuses. */

#include "tests/support/net.h"
#include "tests/support/scratch.h"

#include <arpa/inet.h>
#include <bowline/group.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* An echo server's connection, in the channel's own memory. */
struct echo {
    struct bow_handler handler;
    struct served *served;
};

struct served {
    atomic_int n_active;
    atomic_int n_gone;
    atomic_int n_closed; /* the acceptor's last callback */
    struct bow_loop *loops[8];
    atomic_int per_loop[8];
    uint32_t n_loops;
};

static void echo_active(struct bow_handler *handler)
{
    struct served *served = ((struct echo *)(void *)handler)->served;

    assert_true(bow_loop_in_loop(bow_channel_loop(handler->channel)));
    for (uint32_t i = 0; i < served->n_loops; i++) {
        if (served->loops[i] == bow_channel_loop(handler->channel)) {
            atomic_fetch_add(&served->per_loop[i], 1);
        }
    }
    atomic_fetch_add(&served->n_active, 1);
}

static size_t echo_read(struct bow_handler *handler, const struct bow_buf *bytes)
{
    assert_int_equal(bow_channel_write_and_flush(handler->channel, bytes, NULL, NULL), 0);
    return bytes->len;
}

static void echo_removed(struct bow_handler *handler)
{
    atomic_fetch_add(&((struct echo *)(void *)handler)->served->n_gone, 1);
}

static const struct bow_handler_ops echo_ops = {
    .name = "echo",
    .on_active = echo_active,
    .on_read = echo_read,
    .on_removed = echo_removed,
};

static int add_echo(struct bow_channel *channel, void *user)
{
    struct echo *echo = bow_channel_data(channel);

    assert_int_equal((uintptr_t)echo % 16, 0);
    assert_null(echo->served);
    echo->served = user;
    echo->handler.ops = &echo_ops;
    bow_channel_add_last(channel, &echo->handler);
    return 0;
}

static struct bow_acceptor_options echo_options(const char *address, struct bow_loop *loop,
                                                struct served *served)
{
    struct bow_acceptor_options options = BOW_ACCEPTOR_OPTIONS_INIT;

    options.address = address;
    options.loop = loop;
    options.channel.data_bytes = sizeof(struct echo);
    options.channel.on_channel = add_echo;
    options.channel.user = served;
    return options;
}

static struct bow_acceptor *start_echo(struct net *net, const struct bow_acceptor_options *options)
{
    struct bow_transport_error error;
    struct bow_acceptor *acceptor = NULL;

    int rc = bow_acceptor_new(net->t.context, options, &acceptor, &error);
    if (rc < 0) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(bow_acceptor_start(acceptor), 0);
    return acceptor;
}

static void on_closed(void *user)
{
    struct served *served = user;
    atomic_fetch_add(&served->n_closed, 1);
}

static int dial(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* Blocking: for loops with threads of their own. */
static void assert_echoes(int fd)
{
    char text[5] = {0};

    assert_int_equal(send(fd, "ping", 4, MSG_NOSIGNAL), 4);
    assert_int_equal(recv(fd, text, 4, MSG_WAITALL), 4);
    assert_string_equal(text, "ping");
}

static void assert_closed(int fd)
{
    char byte;
    assert_true(recv(fd, &byte, 1, 0) <= 0);
    close(fd);
}

static void test_acceptor_l51_one_loop_accepts_and_serves(void **state)
{
    struct net net;
    struct served served = {.n_loops = 0};
    char text[4];
    (void)state;
    net_begin(&net);
    const struct bow_acceptor_options options = echo_options("127.0.0.1:0", net.loop, &served);
    struct bow_acceptor *acceptor = start_echo(&net, &options);
    assert_int_not_equal(bow_acceptor_port(acceptor), 0);

    int fd = dial(bow_acceptor_port(acceptor));
    assert_int_equal(send(fd, "ping", 4, MSG_NOSIGNAL), 4);
    net_run_until(&net, recv(fd, text, 4, MSG_DONTWAIT) == 4);
    assert_memory_equal(text, "ping", 4);
    bow_acceptor_close(acceptor, on_closed, &served);
    assert_int_equal(atomic_load(&served.n_closed), 0);
    net_run_until(&net, atomic_load(&served.n_closed) == 1);
    /* Accepted channels live on. */
    assert_int_equal(send(fd, "pong", 4, MSG_NOSIGNAL), 4);
    net_run_until(&net, recv(fd, text, 4, MSG_DONTWAIT) == 4);
    close(fd);
    net_run_until(&net, atomic_load(&served.n_gone) == 1);
    net_end(&net);
}

static void test_acceptor_l51_one_acceptor_loop_and_workers(void **state)
{
    struct net net;
    struct served served = {.n_loops = 3};
    struct bow_group_options group_options = BOW_GROUP_OPTIONS_INIT;
    struct bow_group *workers = NULL;
    int fds[9];
    (void)state;
    net_begin(&net);
    group_options.n_loops = 3;
    assert_int_equal(bow_group_new(net.t.context, &group_options, &workers), 0);
    for (uint32_t i = 0; i < 3; i++) {
        served.loops[i] = bow_group_get(workers, i);
    }
    struct bow_loop *boss = loops_new_threaded(&net.t);
    struct bow_acceptor_options options = echo_options("127.0.0.1:0", boss, &served);
    options.workers = workers;
    struct bow_acceptor *acceptor = start_echo(&net, &options);

    for (int i = 0; i < 9; i++) {
        fds[i] = dial(bow_acceptor_port(acceptor));
        assert_echoes(fds[i]);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(atomic_load(&served.per_loop[i]), 3);
    }
    bow_acceptor_close(acceptor, on_closed, &served);
    loops_stop(boss);
    assert_int_equal(atomic_load(&served.n_closed), 1);
    bow_group_unref(workers);
    assert_int_equal(atomic_load(&served.n_gone), 9);
    for (int i = 0; i < 9; i++) {
        assert_closed(fds[i]);
    }
    net_end(&net);
}

static void test_acceptor_l51_boss_group_and_worker_group(void **state)
{
    struct net net;
    struct served served = {.n_loops = 2};
    struct bow_group_options group_options = BOW_GROUP_OPTIONS_INIT;
    struct bow_group *bosses = NULL;
    struct bow_group *workers = NULL;
    struct bow_acceptor *acceptors[2];
    int fds[4];
    (void)state;
    net_begin(&net);
    group_options.n_loops = 2;
    assert_int_equal(bow_group_new(net.t.context, &group_options, &bosses), 0);
    assert_int_equal(bow_group_new(net.t.context, &group_options, &workers), 0);
    for (uint32_t i = 0; i < 2; i++) {
        served.loops[i] = bow_group_get(workers, i);
        struct bow_acceptor_options options =
            echo_options("127.0.0.1:0", bow_group_next(bosses), &served);
        options.workers = workers;
        acceptors[i] = start_echo(&net, &options);
    }
    for (int i = 0; i < 4; i++) {
        fds[i] = dial(bow_acceptor_port(acceptors[i % 2]));
        assert_echoes(fds[i]);
    }
    assert_int_equal(atomic_load(&served.per_loop[0]), 2);
    assert_int_equal(atomic_load(&served.per_loop[1]), 2);
    for (int i = 0; i < 2; i++) {
        bow_acceptor_close(acceptors[i], NULL, NULL);
    }
    bow_group_unref(bosses);
    bow_group_unref(workers);
    for (int i = 0; i < 4; i++) {
        assert_closed(fds[i]);
    }
    net_end(&net);
}

static void test_acceptor_l52_1000_connections_spread_evenly_over_4_workers(void **state)
{
    struct net net;
    struct served served = {.n_loops = 4};
    struct bow_group_options group_options = BOW_GROUP_OPTIONS_INIT;
    struct bow_group *workers = NULL;
    (void)state;
    net_begin(&net);
    group_options.n_loops = 4;
    assert_int_equal(bow_group_new(net.t.context, &group_options, &workers), 0);
    for (uint32_t i = 0; i < 4; i++) {
        served.loops[i] = bow_group_get(workers, i);
    }
    struct bow_acceptor_options options = echo_options("127.0.0.1:0", net.loop, &served);
    options.workers = workers;
    struct bow_acceptor *acceptor = start_echo(&net, &options);

    for (int i = 0; i < 1000; i++) {
        int fd = dial(bow_acceptor_port(acceptor));
        if (i % 50 == 49) {
            net_run_until(&net, atomic_load(&served.n_active) == i + 1);
        }
        close(fd);
    }
    for (int i = 0; i < 4; i++) {
        int n = atomic_load(&served.per_loop[i]);
        assert_true(n >= 225 && n <= 275); /* they differ by at most 20 % */
    }
    bow_acceptor_close(acceptor, NULL, NULL);
    net_run_until(&net, atomic_load(&served.n_gone) == 1000);
    bow_group_unref(workers);
    net_end(&net);
}

static void test_acceptor_l52_f03_turn_accepts_a_bounded_batch(void **state)
{
    struct net net;
    struct served served = {.n_loops = 0};
    int fds[10];
    (void)state;
    net_begin(&net);
    struct bow_acceptor_options options = echo_options("127.0.0.1:0", net.loop, &served);
    options.max_accepts_per_turn = 4;
    struct bow_acceptor *acceptor = start_echo(&net, &options);
    net_turn(&net);

    for (int i = 0; i < 10; i++) {
        fds[i] = dial(bow_acceptor_port(acceptor));
    }
    net_turn(&net);
    assert_int_equal(atomic_load(&served.n_active), 4);
    net_turn(&net);
    assert_int_equal(atomic_load(&served.n_active), 8);
    net_turn(&net);
    assert_int_equal(atomic_load(&served.n_active), 10);
    for (int i = 0; i < 10; i++) {
        close(fds[i]);
    }
    bow_acceptor_close(acceptor, NULL, NULL);
    net_end(&net);
}

static void test_acceptor_beyond_max_channels_closes_at_once_and_counts(void **state)
{
    struct net net;
    struct served served = {.n_loops = 0};
    char byte;
    (void)state;
    net_begin(&net);
    struct bow_acceptor_options options = echo_options("127.0.0.1:0", net.loop, &served);
    options.max_channels = 1;
    struct bow_acceptor *acceptor = start_echo(&net, &options);

    int first = dial(bow_acceptor_port(acceptor));
    net_run_until(&net, atomic_load(&served.n_active) == 1);
    int second = dial(bow_acceptor_port(acceptor));
    net_run_until(&net, bow_acceptor_n_refused(acceptor) == 1);
    assert_int_equal(recv(second, &byte, 1, 0), 0);
    close(second);
    close(first);
    net_run_until(&net, atomic_load(&served.n_gone) == 1);
    /* There is room again. */
    int third = dial(bow_acceptor_port(acceptor));
    net_run_until(&net, atomic_load(&served.n_active) == 2);
    close(third);
    bow_acceptor_close(acceptor, NULL, NULL);
    net_end(&net);
}

static void test_acceptor_l53_f11_out_of_descriptors_pauses_and_logs_once(void **state)
{
    struct net net;
    struct served served = {.n_loops = 0};
    (void)state;
    net_begin_fake(&net);
    const struct bow_acceptor_options options = echo_options("127.0.0.1:0", net.loop, &served);
    struct bow_acceptor *acceptor = start_echo(&net, &options);
    net_turn(&net);

    net.accept_error = -EMFILE;
    int fd = dial(bow_acceptor_port(acceptor));
    uint64_t waits = atomic_load(&net.t.fake.n_waits);
    uint64_t from = atomic_load(&net.t.fake.now_ns);
    while (atomic_load(&net.t.fake.now_ns) < from + FAKE_S) {
        net_turn(&net);
    }
    /* A turn for each 20 ms that was waited, not one for each time the socket was ready. */
    assert_true(atomic_load(&net.t.fake.n_waits) - waits < 200);
    assert_non_null(strstr(net.t.log, "EMFILE"));
    assert_null(strstr(strstr(net.t.log, "EMFILE") + 1, "EMFILE"));
    net.accept_error = 0;
    net_run_until(&net, atomic_load(&served.n_active) == 1);
    close(fd);
    bow_acceptor_close(acceptor, NULL, NULL);
    net_end(&net);
}

static int refuse(struct bow_channel *channel, void *user)
{
    struct served *served = user;

    (void)channel;
    atomic_fetch_add(&served->n_gone, 1);
    return -EMFILE;
}

/* Whoever connects could fill the log. */
static void test_acceptor_that_refuses_logs_once_in_a_while(void **state)
{
    struct net net;
    struct served served = {.n_loops = 0};
    (void)state;
    net_begin_fake(&net);
    struct bow_acceptor_options options = echo_options("127.0.0.1:0", net.loop, &served);
    options.channel.on_channel = refuse;
    struct bow_acceptor *acceptor = start_echo(&net, &options);

    for (int i = 1; i <= 20; i++) {
        int fd = dial(bow_acceptor_port(acceptor));
        net_run_until(&net, atomic_load(&served.n_gone) == i);
        close(fd);
    }
    assert_non_null(strstr(net.t.log, "was not set up (1 since it was last said): "));
    assert_null(strchr(strchr(net.t.log, '\n') + 1, '\n'));
    fake_system_advance(&net.t.fake, 10 * FAKE_S);
    int fd = dial(bow_acceptor_port(acceptor));
    net_run_until(&net, atomic_load(&served.n_gone) == 21);
    assert_non_null(strstr(net.t.log, "was not set up (20 since it was last said): "));
    close(fd);
    bow_acceptor_close(acceptor, NULL, NULL);
    net_end(&net);
}

static void test_acceptor_star_is_one_dual_stack_socket(void **state)
{
    struct net net;
    struct served served = {.n_loops = 0};
    struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    (void)state;
    net_begin(&net);
    const struct bow_acceptor_options options = echo_options("*:0", net.loop, &served);
    struct bow_acceptor *acceptor = start_echo(&net, &options);

    int v4 = dial(bow_acceptor_port(acceptor));
    net_run_until(&net, atomic_load(&served.n_active) == 1);
    int v6 = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (v6 >= 0) {
        address.sin6_port = htons(bow_acceptor_port(acceptor));
        if (connect(v6, (struct sockaddr *)&address, sizeof(address)) == 0) {
            net_run_until(&net, atomic_load(&served.n_active) == 2);
        }
        close(v6);
    }
    close(v4);
    bow_acceptor_close(acceptor, NULL, NULL);
    net_end(&net);
}

static void test_acceptor_unix_path_replaces_a_stale_file_and_unlinks_its_own(void **state)
{
    struct net net;
    struct served served = {.n_loops = 0};
    struct bow_transport_error error;
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    char directory[64];
    char target[128];
    (void)state;
    net_begin(&net);
    assert_non_null(mkdtemp(scratch_path(directory, sizeof(directory), "acceptor-XXXXXX")));
    snprintf(un.sun_path, sizeof(un.sun_path), "%s/socket", directory);
    snprintf(target, sizeof(target), "unix:%s", un.sun_path);
    /* Left over from a server that was killed. */
    int dead = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(dead, (struct sockaddr *)&un, sizeof(un)), 0);
    close(dead);

    const struct bow_acceptor_options options = echo_options(target, net.loop, &served);
    struct bow_acceptor *acceptor = start_echo(&net, &options);
    assert_int_equal(bow_acceptor_port(acceptor), 0);
    /* A live one is not replaced. */
    struct bow_acceptor *second = NULL;
    assert_int_equal(bow_acceptor_new(net.t.context, &options, &second, &error), -EADDRINUSE);
    assert_string_equal(error.stage, "binding");

    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&un, sizeof(un)), 0);
    /* Asking whether it is live was a connection too. */
    net_run_until(&net, atomic_load(&served.n_active) == 2);
    close(fd);
    bow_acceptor_close(acceptor, on_closed, &served);
    net_run_until(&net, atomic_load(&served.n_closed) == 1);
    assert_int_equal(access(un.sun_path, F_OK), -1);
    assert_int_equal(rmdir(directory), 0);
    net_end(&net);
}

/* Connecting to it is refused as by a socket that nobody listens on. */
static void test_acceptor_unix_path_leaves_a_file_that_is_no_socket(void **state)
{
    struct net net;
    struct served served = {.n_loops = 0};
    struct bow_transport_error error;
    struct bow_acceptor *acceptor = NULL;
    char path[64];
    char target[128];
    (void)state;
    net_begin(&net);
    int fd = mkstemp(scratch_path(path, sizeof(path), "acceptor-XXXXXX"));
    assert_true(fd >= 0);
    snprintf(target, sizeof(target), "unix:%s", path);
    const struct bow_acceptor_options options = echo_options(target, net.loop, &served);
    assert_int_equal(bow_acceptor_new(net.t.context, &options, &acceptor, &error), -EADDRINUSE);
    assert_non_null(strstr(error.text, "not a socket"));
    assert_int_equal(access(path, F_OK), 0);
    close(fd);
    assert_int_equal(unlink(path), 0);
    net_end(&net);
}

static void assert_refused(struct net *net, const char *address, int error, const char *text)
{
    struct served served = {.n_loops = 0};
    const struct bow_acceptor_options options = echo_options(address, net->loop, &served);
    struct bow_transport_error reason;
    struct bow_acceptor *acceptor = NULL;

    assert_int_equal(bow_acceptor_new(net->t.context, &options, &acceptor, &reason), error);
    assert_int_equal(reason.error, error);
    assert_string_equal(reason.text, text);
    assert_null(acceptor);
    assert_int_equal(bow_acceptor_new(net->t.context, &options, &acceptor, NULL), error);
}

static void test_acceptor_bad_address_says_stage_address_and_advice(void **state)
{
    struct net net;
    char text[256];
    char address[64];
    (void)state;
    net_begin(&net);
    struct served served = {.n_loops = 0};
    const struct bow_acceptor_options options = echo_options("127.0.0.1:0", net.loop, &served);
    struct bow_acceptor *acceptor = start_echo(&net, &options);
    snprintf(address, sizeof(address), "127.0.0.1:%u", bow_acceptor_port(acceptor));
    snprintf(text, sizeof(text),
             "binding %s: EADDRINUSE (Address already in use): is another server running there?",
             address);
    assert_refused(&net, address, -EADDRINUSE, text);
    assert_refused(&net, "192.0.2.1:0", -EADDRNOTAVAIL,
                   "binding 192.0.2.1:0: EADDRNOTAVAIL (Cannot assign requested address): does "
                   "this machine have that address?");
    assert_refused(&net, "unix:/nowhere/at/all", -ENOENT,
                   "binding unix:/nowhere/at/all: ENOENT (No such file or directory): does the "
                   "directory exist?");
    assert_refused(&net, "localhost", -EINVAL,
                   "parsing localhost: EINVAL (Invalid argument): \"localhost\": no port: write "
                   "HOST:PORT");
    bow_acceptor_close(acceptor, NULL, NULL);
    net_end(&net);
}

static void test_acceptor_closed_after_its_loop_has_ended_leaves_nothing(void **state)
{
    struct net net;
    struct served served = {.n_loops = 0};
    (void)state;
    net_begin(&net);
    struct bow_loop *loop = loops_new_threaded(&net.t);
    const struct bow_acceptor_options options = echo_options("127.0.0.1:0", loop, &served);
    struct bow_acceptor *acceptor = start_echo(&net, &options);
    int fd = dial(bow_acceptor_port(acceptor));
    assert_echoes(fd);
    loops_stop(loop);
    assert_closed(fd);
    bow_acceptor_close(acceptor, on_closed, &served);
    assert_int_equal(atomic_load(&served.n_closed), 1);
    net_end(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_acceptor_l51_one_loop_accepts_and_serves),
        cmocka_unit_test(test_acceptor_l51_one_acceptor_loop_and_workers),
        cmocka_unit_test(test_acceptor_l51_boss_group_and_worker_group),
        cmocka_unit_test(test_acceptor_l52_1000_connections_spread_evenly_over_4_workers),
        cmocka_unit_test(test_acceptor_l52_f03_turn_accepts_a_bounded_batch),
        cmocka_unit_test(test_acceptor_beyond_max_channels_closes_at_once_and_counts),
        cmocka_unit_test(test_acceptor_l53_f11_out_of_descriptors_pauses_and_logs_once),
        cmocka_unit_test(test_acceptor_that_refuses_logs_once_in_a_while),
        cmocka_unit_test(test_acceptor_star_is_one_dual_stack_socket),
        cmocka_unit_test(test_acceptor_unix_path_replaces_a_stale_file_and_unlinks_its_own),
        cmocka_unit_test(test_acceptor_unix_path_leaves_a_file_that_is_no_socket),
        cmocka_unit_test(test_acceptor_bad_address_says_stage_address_and_advice),
        cmocka_unit_test(test_acceptor_closed_after_its_loop_has_ended_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
