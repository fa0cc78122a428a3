/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A listening socket for each worker, and listening on sockets that were inherited. */

#include "tests/support/net.h"
#include "tests/support/scratch.h"
#include "transport/channel/acceptor.h"

#include <arpa/inet.h>
#include <bowline/group.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define N_WORKERS 4

struct served {
    struct bow_loop *loops[N_WORKERS];
    atomic_int per_loop[N_WORKERS];
    atomic_int n_active;
    atomic_int n_gone;
    atomic_int n_closed;
    struct bow_loop *closed_on; /* expected */
};

struct echo {
    struct bow_handler handler;
    struct served *served;
};

static size_t echo_read(struct bow_handler *handler, const struct bow_buf *bytes)
{
    assert_int_equal(bow_channel_write_and_flush(handler->channel, bytes, NULL, NULL), 0);
    return bytes->len;
}

static void echo_active(struct bow_handler *handler)
{
    struct served *served = ((struct echo *)(void *)handler)->served;

    for (int i = 0; i < N_WORKERS; i++) {
        if (served->loops[i] == bow_channel_loop(handler->channel)) {
            assert_true(bow_loop_in_loop(served->loops[i]));
            atomic_fetch_add(&served->per_loop[i], 1);
        }
    }
    atomic_fetch_add(&served->n_active, 1);
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

    echo->handler.ops = &echo_ops;
    echo->served = user;
    bow_channel_add_last(channel, &echo->handler);
    return 0;
}

static void on_closed(void *user)
{
    struct served *served = user;

    assert_true(served->closed_on == NULL || bow_loop_in_loop(served->closed_on));
    atomic_fetch_add(&served->n_closed, 1);
}

static struct bow_acceptor_options options_for(const char *address, struct served *served)
{
    struct bow_acceptor_options options = BOW_ACCEPTOR_OPTIONS_INIT;

    options.address = address;
    options.channel.data_bytes = sizeof(struct echo);
    options.channel.on_channel = add_echo;
    options.channel.user = served;
    return options;
}

static struct bow_group *new_workers(struct net *net, struct served *served)
{
    struct bow_group_options options = BOW_GROUP_OPTIONS_INIT;
    struct bow_group *workers = NULL;

    options.n_loops = N_WORKERS;
    assert_int_equal(bow_group_new(net->t.context, &options, &workers), 0);
    for (uint32_t i = 0; i < N_WORKERS; i++) {
        served->loops[i] = bow_group_get(workers, i);
    }
    return workers;
}

static int dial(uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static void assert_echoes(int fd)
{
    char text[5] = {0};

    assert_int_equal(send(fd, "ping", 4, MSG_NOSIGNAL), 4);
    assert_int_equal(recv(fd, text, 4, MSG_WAITALL), 4);
    assert_string_equal(text, "ping");
}

/* Until another thread has done it; a second is a thousand times what it takes. */
static void await(const atomic_int *count, int expected)
{
    uint64_t until = net_deadline();

    while (atomic_load(count) != expected) {
        assert_false(net_is_late(until));
        sched_yield();
    }
}

static void test_listener_l51_each_worker_listens_on_the_same_port(void **state)
{
    struct net net;
    struct served served = {.n_active = 0};
    struct bow_acceptor *acceptor = NULL;
    int fds[200];
    (void)state;
    net_begin(&net);
    struct bow_group *workers = new_workers(&net, &served);
    served.closed_on = served.loops[0];
    struct bow_acceptor_options options = options_for("127.0.0.1:0", &served);
    options.workers = workers;
    options.per_worker = true;
    assert_int_equal(bow_acceptor_new(net.t.context, &options, &acceptor, NULL), 0);
    assert_int_equal(bow_acceptor_start(acceptor), 0);
    uint16_t port = bow_acceptor_port(acceptor);
    assert_true(port > 0);
    for (int i = 0; i < 200; i++) {
        fds[i] = dial(port);
        assert_true(fds[i] >= 0);
        assert_echoes(fds[i]);
    }
    int n_all = 0;
    for (int i = 0; i < N_WORKERS; i++) {
        assert_true(atomic_load(&served.per_loop[i]) > 0);
        n_all += atomic_load(&served.per_loop[i]);
    }
    assert_int_equal(n_all, 200);
    bow_acceptor_close(acceptor, on_closed, &served);
    await(&served.n_closed, 1);
    assert_int_equal(dial(port), -1);
    assert_echoes(fds[0]); /* accepted ones live on */
    for (int i = 0; i < 200; i++) {
        close(fds[i]);
    }
    await(&served.n_gone, 200);
    bow_group_unref(workers);
    assert_int_equal(atomic_load(&served.n_closed), 1);
    net_end(&net);
}

static void test_listener_l51_limit_is_of_all_listeners_together(void **state)
{
    struct net net;
    struct served served = {.n_active = 0};
    struct bow_acceptor *acceptor = NULL;
    int fds[20];
    char byte;
    (void)state;
    net_begin(&net);
    struct bow_group *workers = new_workers(&net, &served);
    struct bow_acceptor_options options = options_for("127.0.0.1:0", &served);
    options.workers = workers;
    options.per_worker = true;
    options.max_channels = 8;
    assert_int_equal(bow_acceptor_new(net.t.context, &options, &acceptor, NULL), 0);
    assert_int_equal(bow_acceptor_start(acceptor), 0);
    for (int i = 0; i < 8; i++) {
        fds[i] = dial(bow_acceptor_port(acceptor));
        assert_echoes(fds[i]);
    }
    for (int i = 8; i < 20; i++) {
        fds[i] = dial(bow_acceptor_port(acceptor));
        assert_true(recv(fds[i], &byte, 1, 0) <= 0);
    }
    assert_int_equal(bow_acceptor_n_refused(acceptor), 12);
    for (int i = 0; i < 20; i++) {
        close(fds[i]);
    }
    bow_acceptor_close(acceptor, NULL, NULL);
    bow_group_unref(workers);
    net_end(&net);
}

static void test_listener_l51_workers_that_have_ended_are_closed_too(void **state)
{
    struct net net;
    struct served served = {.n_active = 0};
    struct bow_acceptor *acceptor = NULL;
    (void)state;
    net_begin(&net);
    struct bow_group *workers = new_workers(&net, &served);
    struct bow_acceptor_options options = options_for("127.0.0.1:0", &served);
    options.workers = workers;
    options.per_worker = true;
    assert_int_equal(bow_acceptor_new(net.t.context, &options, &acceptor, NULL), 0);
    assert_int_equal(bow_acceptor_start(acceptor), 0);
    bow_group_shutdown(workers, 0, 0);
    assert_int_equal(bow_group_join(workers, BOW_NEVER), 0);
    bow_acceptor_close(acceptor, on_closed, &served);
    assert_int_equal(atomic_load(&served.n_closed), 1);
    bow_group_unref(workers);
    net_end(&net);
}

/* A start that fails */

static struct bow_loop *victim; /* NULL: there is none, or it has ended */

static void end_victim(void)
{
    struct bow_loop *loop = victim;

    victim = NULL;
    assert_int_equal(bow_loop_shutdown(loop, 0, 0), 0);
    assert_int_equal(bow_loop_join(loop, BOW_NEVER), 0);
}

static int start_and_end(void *user, const struct bow_thread_options *options,
                         void (*run)(void *argument), void *argument,
                         struct bow_thread **ret_thread)
{
    if (victim != NULL) {
        end_victim();
    }
    return bow_system_default()->thread_start(user, options, run, argument, ret_thread);
}

/* The last worker ends before the start, or when the first one is told to begin. */
static void check_failed_start(bool ends_meanwhile)
{
    enum { N_CLIENTS = 16 };
    struct net net;
    struct served served = {.n_active = 0};
    struct bow_acceptor *acceptor = NULL;
    int fds[N_CLIENTS];

    net_begin(&net);
    struct bow_group *workers = new_workers(&net, &served);
    struct bow_acceptor_options options = options_for("127.0.0.1:0", &served);
    options.workers = workers;
    options.per_worker = true;
    assert_int_equal(bow_acceptor_new(net.t.context, &options, &acceptor, NULL), 0);
    victim = bow_group_get(workers, N_WORKERS - 1);
    if (ends_meanwhile) {
        net.system.thread_start = start_and_end;
    } else {
        end_victim();
    }
    assert_int_equal(bow_acceptor_start(acceptor), -ESHUTDOWN);
    assert_null(victim);
    for (int i = 0; i < N_CLIENTS; i++) {
        fds[i] = dial(bow_acceptor_port(acceptor));
        assert_true(fds[i] >= 0); /* they wait */
    }
    /* One that has begun would take them before it ends. */
    bow_acceptor_close(acceptor, on_closed, &served);
    await(&served.n_closed, 1);
    assert_int_equal(atomic_load(&served.n_active), 0);
    for (int i = 0; i < N_CLIENTS; i++) {
        close(fds[i]);
    }
    bow_group_unref(workers);
    net_end(&net);
}

static void test_listener_none_begins_when_one_cannot(void **state)
{
    (void)state;
    check_failed_start(false);
}

static void test_listener_none_begins_when_a_loop_ends_meanwhile(void **state)
{
    (void)state;
    check_failed_start(true);
}

/* As for the addresses of a server. */
static void test_listener_no_acceptor_begins_when_another_cannot(void **state)
{
    struct net net;
    struct served served = {.n_active = 0};
    struct bow_acceptor *acceptors[2] = {NULL};
    (void)state;
    net_begin(&net);
    struct bow_group *workers = new_workers(&net, &served);
    for (uint32_t i = 0; i < 2; i++) {
        struct bow_acceptor_options options = options_for("127.0.0.1:0", &served);
        options.loop = bow_group_get(workers, i);
        assert_int_equal(bow_acceptor_new(net.t.context, &options, &acceptors[i], NULL), 0);
    }
    victim = bow_group_get(workers, 1);
    end_victim();
    assert_int_equal(bow__acceptors_start(acceptors, 2), -ESHUTDOWN);
    int fd = dial(bow_acceptor_port(acceptors[0]));
    assert_true(fd >= 0);
    bow_acceptor_close(acceptors[0], on_closed, &served);
    await(&served.n_closed, 1);
    assert_int_equal(atomic_load(&served.n_active), 0);
    int port = bow_acceptor_port(acceptors[1]);
    bow__acceptor_undo(acceptors[1]);
    assert_int_equal(dial((uint16_t)port), -1);
    close(fd);
    bow_group_unref(workers);
    net_end(&net);
}

static void *start_elsewhere(void *acceptor)
{
    assert_int_equal(bow_acceptor_start(acceptor), 0);
    return NULL;
}

/* What a loop's own thread posts comes before what others have posted so far. */
static void test_listener_f59_close_that_overtakes_the_start_waits_for_it(void **state)
{
    struct net net;
    struct served served = {.n_active = 0};
    struct bow_acceptor *acceptor = NULL;
    pthread_t thread;
    (void)state;
    net_begin(&net);
    net_turn(&net); /* the loop is this thread's */
    struct bow_acceptor_options options = options_for("127.0.0.1:0", &served);
    options.loop = net.loop;
    assert_int_equal(bow_acceptor_new(net.t.context, &options, &acceptor, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, start_elsewhere, acceptor), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    bow_acceptor_close(acceptor, NULL, NULL);
    net_end(&net);
}

static int fail_third_listen(void *user, int fd, int backlog)
{
    struct net *net = (struct net *)(void *)((char *)user - offsetof(struct net, t.fake));

    if (++net->accept_error == 3) {
        return -EADDRINUSE;
    }
    return bow_system_default()->listen(NULL, fd, backlog);
}

static void assert_refused(struct net *net, const struct bow_acceptor_options *options, int error,
                           const char *text)
{
    struct bow_transport_error reason;
    struct bow_acceptor *acceptor = NULL;

    assert_int_equal(bow_acceptor_new(net->t.context, options, &acceptor, &reason), error);
    assert_int_equal(reason.error, error);
    assert_non_null(strstr(reason.text, text));
    assert_null(acceptor);
}

static void test_listener_l51_what_cannot_be_shared_is_refused_whole(void **state)
{
    struct net net;
    struct served served = {.n_active = 0};
    (void)state;
    net_begin(&net);
    struct bow_group *workers = new_workers(&net, &served);
    struct bow_acceptor_options options = options_for("unix-abstract:bow-listener", &served);
    options.per_worker = true;
    options.loop = net.loop;
    assert_refused(&net, &options, -EINVAL, "options.per_worker needs options.workers");
    options.workers = workers;
    assert_refused(&net, &options, -EINVAL, "a Unix socket can't be listened on by each worker");
    options.address = "fd:0";
    assert_refused(&net, &options, -EINVAL, "one descriptor can't be listened on by each worker");
    options.address = "127.0.0.1:0";
    net.accept_error = 0; /* counts, here */
    net.system.listen = fail_third_listen;
    assert_refused(&net, &options, -EADDRINUSE, "binding 127.0.0.1:0");
    bow_group_unref(workers);
    net_end(&net);
}

/* Two servers on a port */

static void check_second(bool first_shares, bool second_shares, int error)
{
    struct net net;
    struct served served = {.n_active = 0};
    struct bow_acceptor *first = NULL;
    struct bow_acceptor *second = NULL;
    struct bow_transport_error reason;
    char address[32];

    net_begin(&net);
    struct bow_group *workers = new_workers(&net, &served);
    struct bow_acceptor_options options = options_for("127.0.0.1:0", &served);
    options.workers = workers;
    options.per_worker = true;
    options.shares_port = first_shares;
    assert_int_equal(bow_acceptor_new(net.t.context, &options, &first, NULL), 0);
    snprintf(address, sizeof(address), "127.0.0.1:%u", bow_acceptor_port(first));
    options.address = address;
    options.shares_port = second_shares;
    assert_int_equal(bow_acceptor_new(net.t.context, &options, &second, &reason), error);
    if (error < 0) {
        assert_null(second);
        assert_non_null(strstr(reason.text, "set shares_port"));
    } else {
        bow_acceptor_close(second, NULL, NULL);
    }
    bow_acceptor_close(first, NULL, NULL);
    bow_group_unref(workers);
    net_end(&net);
}

static void test_listener_f54_second_server_on_a_port_is_refused(void **state)
{
    (void)state;
    check_second(false, false, -EADDRINUSE);
    check_second(true, false, -EADDRINUSE);
}

static void test_listener_f54_port_is_shared_with_whoever_wants_that(void **state)
{
    (void)state;
    check_second(true, true, 0);
}

/* One that another overtakes between its bind() and its listen(). */
struct race {
    struct net net;
    struct bow_acceptor_options options;
    struct bow_acceptor *other;
    char address[32];
};

static int listen_behind_another(void *user, int fd, int backlog)
{
    struct race *race = (struct race *)(void *)((char *)user - offsetof(struct race, net.t.fake));
    struct sockaddr_in bound;
    socklen_t len = sizeof(bound);

    race->net.system.listen = bow_system_default()->listen;
    assert_int_equal(getsockname(fd, (struct sockaddr *)&bound, &len), 0);
    snprintf(race->address, sizeof(race->address), "127.0.0.1:%u", ntohs(bound.sin_port));
    race->options.address = race->address;
    assert_int_equal(bow_acceptor_new(race->net.t.context, &race->options, &race->other, NULL), 0);
    return bow_system_default()->listen(NULL, fd, backlog);
}

static void test_listener_f54_one_that_another_overtakes_is_refused(void **state)
{
    struct race race = {.other = NULL};
    struct served served = {.n_active = 0};
    (void)state;
    net_begin(&race.net);
    struct bow_group *workers = new_workers(&race.net, &served);
    race.options = options_for("127.0.0.1:0", &served);
    race.options.workers = workers;
    race.options.per_worker = true;
    race.net.system.listen = listen_behind_another;
    assert_refused(&race.net, &race.options, -EADDRINUSE, "set shares_port");
    bow_acceptor_close(race.other, NULL, NULL);
    bow_group_unref(workers);
    net_end(&race.net);
}

/* Inherited sockets */

static int bound_socket(uint16_t *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);

    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

static void check_inherited(bool listens)
{
    struct net net;
    struct served served = {.n_active = 0};
    struct bow_acceptor *acceptor = NULL;
    char address[32];
    uint16_t port = 0;

    net_begin(&net);
    int fd = bound_socket(&port);
    if (listens) {
        assert_int_equal(listen(fd, 5), 0);
    }
    snprintf(address, sizeof(address), "fd:%d", fd);
    assert_int_equal(bow_address_is_local(address), 1);
    struct bow_acceptor_options options = options_for(address, &served);
    options.loop = net.loop;
    assert_int_equal(bow_acceptor_new(net.t.context, &options, &acceptor, NULL), 0);
    assert_int_equal(bow_acceptor_port(acceptor), port);
    assert_true((fcntl(fd, F_GETFL) & O_NONBLOCK) != 0);
    assert_true((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
    assert_int_equal(bow_acceptor_start(acceptor), 0);
    int client = dial(port);
    net_run_until(&net, atomic_load(&served.n_active) == 1);
    close(client);
    bow_acceptor_close(acceptor, on_closed, &served);
    net_run_until(&net, atomic_load(&served.n_closed) == 1);
    assert_int_equal(fcntl(fd, F_GETFD), -1); /* it was ours */
    net_end(&net);
}

static void test_listener_inherited_socket_is_served_and_closed(void **state)
{
    (void)state;
    check_inherited(true);
    check_inherited(false);
}

static void test_listener_inherited_unix_socket_keeps_its_file(void **state)
{
    struct net net;
    struct served served = {.n_active = 0};
    struct bow_acceptor *acceptor = NULL;
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    char address[32];
    char name[32];
    (void)state;
    net_begin(&net);
    snprintf(name, sizeof(name), "inherited-%d", getpid());
    scratch_path(un.sun_path, sizeof(un.sun_path), name);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&un, sizeof(un)), 0);
    snprintf(address, sizeof(address), "fd:%d", fd);
    assert_int_equal(bow_address_is_local(address), 1);
    struct bow_acceptor_options options = options_for(address, &served);
    options.loop = net.loop;
    assert_int_equal(bow_acceptor_new(net.t.context, &options, &acceptor, NULL), 0);
    bow_acceptor_close(acceptor, on_closed, &served);
    net_run_until(&net, atomic_load(&served.n_closed) == 1);
    assert_int_equal(access(un.sun_path, F_OK), 0); /* the manager's, for the next start */
    unlink(un.sun_path);
    net_end(&net);
}

static void never(struct bow_channel *channel, const struct bow_transport_error *error, void *user)
{
    (void)channel;
    (void)error;
    (void)user;
    fail();
}

static void test_listener_inherited_descriptor_that_will_not_do_stays_open(void **state)
{
    struct net net;
    struct served served = {.n_active = 0};
    struct bow_connect *connect = NULL;
    struct bow_channel_options channel = BOW_CHANNEL_OPTIONS_INIT;
    struct bow_transport_error error;
    char address[32];
    (void)state;
    net_begin(&net);
    struct bow_acceptor_options options = options_for(address, &served);
    options.loop = net.loop;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    snprintf(address, sizeof(address), "fd:%d", fd);
    assert_refused(&net, &options, -EPROTOTYPE, "this is not a stream socket");
    assert_int_equal(bow_address_is_local(address), 0); /* bound to nothing: anywhere */
    close(fd);
    fd = open("/dev/null", O_RDONLY);
    snprintf(address, sizeof(address), "fd:%d", fd);
    assert_refused(&net, &options, -ENOTSOCK, "no socket was handed down under this number");
    assert_int_equal(bow_address_is_local(address), -ENOTSOCK);
    assert_true(fcntl(fd, F_GETFD) >= 0);
    close(fd);
    assert_refused(&net, &options, -EBADF, "no descriptor of this number is open");
    assert_int_equal(bow_address_is_local(address), -EBADF);
    int fds[2];
    net_pair(NET_TCP, fds); /* connected ones can't listen */
    int flags = fcntl(fds[0], F_GETFL) & ~O_NONBLOCK;
    assert_int_equal(fcntl(fds[0], F_SETFL, flags), 0);
    assert_int_equal(fcntl(fds[0], F_SETFD, 0), 0);
    snprintf(address, sizeof(address), "fd:%d", fds[0]);
    assert_refused(&net, &options, -EINVAL, "this socket is connected");
    assert_int_equal(fcntl(fds[0], F_GETFL), flags);
    assert_int_equal(fcntl(fds[0], F_GETFD), 0);
    close(fds[0]);
    close(fds[1]);
    assert_int_equal(
        bow_connect_start(net.loop, "fd:3", &channel, FAKE_S, never, NULL, &connect, &error),
        -EINVAL);
    assert_non_null(strstr(error.text, "is for listening"));
    net_end(&net);
}

static int take_over(struct bow_context *context, void *user)
{
    struct served served = {.n_active = 0};
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct bow_acceptor *acceptor = NULL;
    int fd = fcntl(*(int *)user, F_DUPFD_CLOEXEC, 0);
    char address[32];

    assert_true(fd >= 0);
    snprintf(address, sizeof(address), "fd:%d", fd);
    struct bow_acceptor_options options = options_for(address, &served);
    loop_options.thread = BOW_LOOP_OWNER;
    int rc = bow_loop_new(context, &loop_options, &options.loop);
    if (rc == 0) {
        rc = bow_acceptor_new(context, &options, &acceptor, NULL);
    }
    assert_true(fcntl(fd, F_GETFD) >= 0);
    if (rc < 0) {
        close(fd); /* the caller's still */
    } else {
        bow_acceptor_close(acceptor, NULL, NULL);
    }
    bow_loop_unref(options.loop);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
    return rc;
}

static void test_listener_inherited_descriptor_stays_open_without_memory(void **state)
{
    uint16_t port = 0;
    (void)state;
    int fd = bound_socket(&port);
    assert_true(test_alloc_fail_each(NULL, take_over, &fd) > 2);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_listener_l51_each_worker_listens_on_the_same_port),
        cmocka_unit_test(test_listener_l51_limit_is_of_all_listeners_together),
        cmocka_unit_test(test_listener_l51_workers_that_have_ended_are_closed_too),
        cmocka_unit_test(test_listener_none_begins_when_one_cannot),
        cmocka_unit_test(test_listener_none_begins_when_a_loop_ends_meanwhile),
        cmocka_unit_test(test_listener_no_acceptor_begins_when_another_cannot),
        cmocka_unit_test(test_listener_f59_close_that_overtakes_the_start_waits_for_it),
        cmocka_unit_test(test_listener_l51_what_cannot_be_shared_is_refused_whole),
        cmocka_unit_test(test_listener_f54_second_server_on_a_port_is_refused),
        cmocka_unit_test(test_listener_f54_port_is_shared_with_whoever_wants_that),
        cmocka_unit_test(test_listener_f54_one_that_another_overtakes_is_refused),
        cmocka_unit_test(test_listener_inherited_socket_is_served_and_closed),
        cmocka_unit_test(test_listener_inherited_unix_socket_keeps_its_file),
        cmocka_unit_test(test_listener_inherited_descriptor_that_will_not_do_stays_open),
        cmocka_unit_test(test_listener_inherited_descriptor_stays_open_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
