/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What tests of channels have in common; see the header. */

#include "tests/support/net.h"
#include "transport/channel/channel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* The system with its calls counted; its `user` is the fake system inside, used or not. */

static struct net *net_of(void *user)
{
    return BOW__CONTAINER(user, struct net, t.fake);
}

static ssize_t count_recv(void *user, int fd, void *bytes, size_t len)
{
    struct net *net = net_of(user);

    atomic_fetch_add(&net->n_recv, 1);
    if (len > atomic_load(&net->max_asked)) {
        atomic_store(&net->max_asked, len);
    }
    fake_system_advance(&net->t.fake, net->call_ns);
    return bow_system_default()->recv(NULL, fd, bytes, len);
}

/* As a socket whose buffer has that much room. */
static ssize_t send_first(int fd, const struct msghdr *message, size_t max, int flags)
{
    struct iovec pieces[64];
    struct msghdr cut = {.msg_iov = pieces};

    for (size_t i = 0; i < message->msg_iovlen && max > 0; i++) {
        assert_true(i < sizeof(pieces) / sizeof(pieces[0]));
        pieces[i] = message->msg_iov[i];
        pieces[i].iov_len = pieces[i].iov_len < max ? pieces[i].iov_len : max;
        max -= pieces[i].iov_len;
        cut.msg_iovlen++;
    }
    return bow_system_default()->sendmsg(NULL, fd, &cut, flags);
}

static ssize_t count_sendmsg(void *user, int fd, const struct msghdr *message, int flags)
{
    struct net *net = net_of(user);

    atomic_fetch_add(&net->n_send, 1);
    atomic_store(&net->n_pieces, (int)message->msg_iovlen);
    fake_system_advance(&net->t.fake, net->call_ns);
    if (net->send_error != 0) {
        return net->send_error;
    }
    if (net->send_bytes > 0) {
        return send_first(fd, message, net->send_bytes, flags);
    }
    return bow_system_default()->sendmsg(NULL, fd, message, flags);
}

static int count_accept(void *user, int fd, struct bow_sockaddr *ret_address)
{
    struct net *net = net_of(user);

    if (net->accept_error != 0) {
        return net->accept_error;
    }
    return bow_system_default()->accept(NULL, fd, ret_address);
}

static void begin(struct net *net, bool is_fake)
{
    memset(net, 0, sizeof(*net));
    net->options = (struct bow_channel_options)BOW_CHANNEL_OPTIONS_INIT;
    fake_system_init(&net->t.fake);
    net->system = is_fake ? net->t.fake.system : *bow_system_default();
    net->system.user = &net->t.fake;
    net->system.recv = count_recv;
    net->system.sendmsg = count_sendmsg;
    net->system.accept = count_accept;
    loops_begin_with(&net->t, &net->system);
    net->loop = loops_new_owner(&net->t);
}

void net_begin(struct net *net)
{
    begin(net, false);
}

void net_begin_fake(struct net *net)
{
    begin(net, true);
}

void net_stop(struct net *net)
{
    net->loop = bow_loop_unref(net->loop);
}

void net_end(struct net *net)
{
    net_stop(net);
    loops_end(&net->t);
}

/* Sockets */

static void tcp_pair(int fds[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);

    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(listener >= 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &len), 0);
    fds[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fds[1], (struct sockaddr *)&address, len), 0);
    fds[0] = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_true(fds[0] >= 0);
    close(listener);
    assert_int_equal(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
}

void net_pair(enum net_kind kind, int fds[2])
{
    if (kind == NET_TCP) {
        tcp_pair(fds);
        return;
    }
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
}

struct setup {
    struct probe *probes;
    int n;
};

static int add_probes(struct bow_channel *channel, void *user)
{
    const struct setup *setup = user;

    for (int i = 0; i < setup->n; i++) {
        bow_channel_add_last(channel, &setup->probes[i].handler);
    }
    return 0;
}

struct start {
    struct bow_task task;
    struct bow_channel *channel;
    int rc;
};

static int run_start(void *user)
{
    struct start *start = user;

    start->rc = bow__channel_start(start->channel);
    return 0;
}

struct bow_channel *net_channel(struct net *net, enum net_kind kind, int *ret_peer,
                                struct probe *probes, int n)
{
    struct bow_channel_options options = net->options;
    struct setup setup = {probes, n};
    struct bow_sockaddr peer;
    struct start start = {.rc = 1};
    int fds[2];

    net_pair(kind, fds);
    assert_int_equal(net->system.getpeername(net->system.user, fds[0], &peer), 0);
    if (options.on_channel == NULL) {
        options.on_channel = add_probes;
        options.user = &setup;
    }
    const struct bow__socket connected = {fds[0], bow__loop_system(net->loop), NULL};
    const struct bow__channel_birth birth = {
        .loop = net->loop, .socket = &connected, .peer = &peer, .options = &options};
    assert_int_equal(bow__channel_new(&birth, &start.channel), 0);
    bow_task_init(&start.task, "start", run_start, &start);
    assert_int_equal(bow_loop_post(net->loop, &start.task), 0);
    net_run_until(net, start.rc == 0);
    *ret_peer = fds[1];
    return start.channel;
}

static uint64_t real_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t net_deadline(void)
{
    return real_now() + 10 * FAKE_S;
}

bool net_is_late(uint64_t deadline)
{
    return real_now() > deadline;
}

void net_turn(struct net *net)
{
    atomic_fetch_add(&net->n_wait, 1);
    assert_int_equal(bow_loop_run_once(net->loop, 20 * FAKE_MS), 0);
}

void net_send_all(struct net *net, int fd, const void *bytes, size_t len)
{
    const uint8_t *next = bytes;

    while (len > 0) {
        ssize_t n = send(fd, next, len, MSG_NOSIGNAL);
        if (n < 0) {
            assert_int_equal(errno, EAGAIN);
            net_turn(net);
            continue;
        }
        next += n;
        len -= (size_t)n;
    }
}

void net_recv_all(struct net *net, int fd, void *bytes, size_t len)
{
    uint8_t *next = bytes;
    uint64_t until = net_deadline();

    while (len > 0) {
        ssize_t n = recv(fd, next, len, 0);
        if (n > 0) {
            next += n;
            len -= (size_t)n;
            continue;
        }
        assert_true(n < 0 && errno == EAGAIN);
        assert_false(net_is_late(until));
        net_turn(net);
    }
}

size_t net_recv_pattern(struct net *net, int fd)
{
    uint8_t bytes[65536];
    uint64_t until = net_deadline();
    size_t total = 0;
    ssize_t n;

    while ((n = recv(fd, bytes, sizeof(bytes), 0)) != 0) {
        if (n < 0) {
            assert_int_equal(errno, EAGAIN);
            assert_false(net_is_late(until));
            net_turn(net);
            continue;
        }
        assert_true(net_is_pattern(bytes, (size_t)n, total));
        total += (size_t)n;
    }
    return total;
}

void net_reset(int fd)
{
    struct linger linger = {.l_onoff = 1, .l_linger = 0};

    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
    close(fd);
}

static uint8_t pattern_at(size_t position)
{
    return (uint8_t)(position * 7 + position / 251);
}

void net_fill_pattern(uint8_t *bytes, size_t len, size_t position)
{
    for (size_t i = 0; i < len; i++) {
        bytes[i] = pattern_at(position + i);
    }
}

bool net_is_pattern(const uint8_t *bytes, size_t len, size_t position)
{
    for (size_t i = 0; i < len; i++) {
        if (bytes[i] != pattern_at(position + i)) {
            return false;
        }
    }
    return true;
}

/* The probe */

static struct probe *probe_of(struct bow_handler *handler)
{
    return (struct probe *)(void *)handler;
}

void probe_note(struct probe *probe, const char *format, ...)
{
    size_t room = sizeof(probe->log) - probe->log_len;
    va_list args;

    va_start(args, format);
    int n = vsnprintf(probe->log + probe->log_len, room, format, args);
    va_end(args);
    if (n > 0 && (size_t)n < room) {
        probe->log_len += (size_t)n;
    }
}

static void note_event(struct probe *probe, const char *event)
{
    probe_note(probe, " %s", event);
    if (probe->on_event != NULL) {
        probe->on_event(probe, event);
    }
}

static void on_added(struct bow_handler *handler)
{
    note_event(probe_of(handler), "added");
}

static void on_removed(struct bow_handler *handler)
{
    struct probe *probe = probe_of(handler);

    probe->n_removed++;
    note_event(probe, "removed");
}

static void on_active(struct bow_handler *handler)
{
    struct probe *probe = probe_of(handler);

    note_event(probe, "active");
    if (!probe->stops_events) {
        bow_handler_fire_active(handler);
    }
}

static void keep(struct probe *probe, const uint8_t *data, size_t len)
{
    if (probe->checks_pattern) {
        assert_true(net_is_pattern(data, len, probe->n_bytes));
    }
    if (probe->keeps && len > 0) {
        if (probe->n_bytes + len > probe->cap) {
            probe->cap = (probe->n_bytes + len) * 2;
            probe->bytes = realloc(probe->bytes, probe->cap);
            assert_non_null(probe->bytes);
        }
        memcpy(probe->bytes + probe->n_bytes, data, len);
    }
    probe->n_bytes += len;
}

static size_t on_read(struct bow_handler *handler, const struct bow_buf *bytes)
{
    struct probe *probe = probe_of(handler);

    probe->n_reads++;
    if (probe->n_reads < 20) {
        probe_note(probe, " read:%zu", bytes->len);
    }
    size_t n = probe->on_read != NULL ? probe->on_read(probe, bytes) : bytes->len;
    keep(probe, bytes->data, n);
    return n;
}

static void on_read_complete(struct bow_handler *handler)
{
    struct probe *probe = probe_of(handler);

    probe->n_completes++;
    if (probe->n_completes < 20) {
        probe_note(probe, " complete");
    }
    if (probe->on_event != NULL) {
        probe->on_event(probe, "complete");
    }
    bow_handler_fire_read_complete(handler);
}

static void on_eof(struct bow_handler *handler)
{
    struct probe *probe = probe_of(handler);

    probe->n_eofs++;
    note_event(probe, "eof");
    if (!probe->stops_events) {
        bow_handler_fire_eof(handler);
    }
}

static void on_writable(struct bow_handler *handler, bool writable)
{
    note_event(probe_of(handler), writable ? "writable" : "unwritable");
    bow_handler_fire_writable(handler, writable);
}

static void on_error(struct bow_handler *handler, int error)
{
    struct probe *probe = probe_of(handler);

    probe->n_errors++;
    probe->last_error = error;
    note_event(probe, "error");
    if (!probe->stops_events) {
        bow_handler_fire_error(handler, error);
    }
}

static void on_inactive(struct bow_handler *handler, int error)
{
    struct probe *probe = probe_of(handler);

    probe->n_inactive++;
    probe->inactive_error = error;
    note_event(probe, "inactive");
}

static const struct bow_handler_ops probe_ops = {
    .name = "probe",
    .on_added = on_added,
    .on_removed = on_removed,
    .on_active = on_active,
    .on_read = on_read,
    .on_read_complete = on_read_complete,
    .on_eof = on_eof,
    .on_writable = on_writable,
    .on_error = on_error,
    .on_inactive = on_inactive,
};

void probe_init(struct probe *probe, struct net *net)
{
    memset(probe, 0, sizeof(*probe));
    probe->handler.ops = &probe_ops;
    probe->net = net;
}

void probe_fini(struct probe *probe)
{
    free(probe->bytes);
    probe->bytes = NULL;
}

void probe_done(struct bow_channel *channel, int error, void *user)
{
    struct probe *probe = user;
    (void)channel;

    probe->n_completions++;
    probe->completion_error = error;
    if (probe->n_completions < 20) {
        probe_note(probe, " done:%d", error);
    }
    if (probe->on_event != NULL) {
        probe->on_event(probe, "done");
    }
}
