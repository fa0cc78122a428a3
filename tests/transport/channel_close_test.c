/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The ways a channel ends: half-close, reset, close from inside any callback, shutdown. */

#include "tests/support/net.h"
#include "transport/channel/channel.h"

#include <bowline/loop_stats.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)

static void put(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

static void start_paused(struct probe *probe, const char *event)
{
    if (strcmp(event, "active") == 0) {
        bow_channel_pause_read(probe->handler.channel);
    }
}

/* 1 MB and the end of the peer's side while reading is paused (F09). */
static void check_rdhup_while_paused(enum net_kind kind, bool closes)
{
    struct net net;
    struct probe probe;
    int peer;

    net_begin(&net);
    probe_init(&probe, &net);
    probe.checks_pattern = true;
    probe.on_event = start_paused;
    struct bow_channel *channel = net_channel(&net, kind, &peer, &probe, 1);
    int size = 4 << 20;
    (void)setsockopt(peer, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    uint8_t *big = malloc(MIB);
    net_fill_pattern(big, MIB, 0);
    size_t sent = 0;
    while (sent < MIB) {
        ssize_t n = send(peer, big + sent, MIB - sent, MSG_NOSIGNAL);
        if (n < 0) {
            break; /* as much as fits */
        }
        sent += (size_t)n;
    }
    assert_true(sent > 65536);
    shutdown(peer, SHUT_WR);
    if (closes) {
        close(peer);
    }
    net_turn(&net); /* a hang-up is seen once */
    net_turn(&net);
    int n_recv = atomic_load(&net.n_recv);
    struct bow_loop_stats stats = {.size = sizeof(stats)};
    assert_int_equal(bow_loop_get_stats(net.loop, &stats), 0);
    uint64_t events = stats.events;
    for (int i = 0; i < 5; i++) {
        net_turn(&net);
    }
    assert_int_equal(bow_loop_get_stats(net.loop, &stats), 0);
    assert_int_equal(stats.events, events); /* no spin */
    assert_int_equal(atomic_load(&net.n_recv), n_recv);
    assert_int_equal(probe.n_bytes + (size_t)probe.n_eofs + (size_t)probe.n_inactive, 0);

    bow_channel_resume_read(channel);
    net_run_until(&net, probe.n_eofs == 1);
    assert_int_equal(probe.n_bytes, sent);
    net_run_until(&net, probe.n_removed == 1);
    assert_int_equal(probe.inactive_error, 0);
    free(big);
    if (!closes) {
        close(peer);
    }
    net_end(&net);
}

static void test_channel_l59_f09_rdhup_with_unread_data_delivers_first(void **state)
{
    (void)state;
    check_rdhup_while_paused(NET_TCP, false);
    check_rdhup_while_paused(NET_UNIX, false);
}

static void test_channel_l59_f09_hangup_with_unread_data_delivers_first(void **state)
{
    (void)state;
    check_rdhup_while_paused(NET_TCP, true);
    check_rdhup_while_paused(NET_UNIX, true);
}

static void answer_eof(struct probe *probe, const char *event)
{
    if (strcmp(event, "eof") == 0) {
        const struct bow_buf buf = bow_buf_borrow("bye", 3);
        assert_int_equal(
            bow_channel_write_and_flush(probe->handler.channel, &buf, probe_done, probe), 0);
    }
}

static void test_channel_l59_half_close_by_the_peer_still_gets_answers(void **state)
{
    struct net net;
    struct probe probe;
    char text[8] = {0};
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    probe.on_event = answer_eof;
    probe.stops_events = true;
    struct bow_channel *channel = net_channel(&net, NET_TCP, &peer, &probe, 1);
    put(peer, "hello");
    shutdown(peer, SHUT_WR);
    net_run_until(&net, probe.n_completions == 1);
    assert_int_equal(probe.n_bytes, 5);
    net_recv_all(&net, peer, text, 3);
    assert_string_equal(text, "bye");
    assert_true(bow_channel_is_active(channel));
    for (int i = 0; i < 3; i++) {
        net_turn(&net);
    }
    assert_int_equal(probe.n_eofs, 1);
    /* Both sides have ended: the channel has too. */
    bow_channel_shutdown_write(channel);
    net_run_until(&net, probe.n_inactive == 1);
    assert_int_equal(probe.inactive_error, 0);
    assert_int_equal(recv(peer, text, 1, 0), 0);
    close(peer);
    net_end(&net);
}

static void test_channel_l59_half_close_by_us_still_reads(void **state)
{
    struct net net;
    struct probe probe;
    char text[8];
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    struct bow_channel *channel = net_channel(&net, NET_TCP, &peer, &probe, 1);
    const struct bow_buf buf = bow_buf_borrow("last", 4);
    assert_int_equal(bow_channel_write(channel, &buf, probe_done, &probe), 0);
    bow_channel_shutdown_write(channel); /* after what is queued */
    assert_int_equal(bow_channel_write(channel, &buf, probe_done, &probe), -EPIPE);
    assert_false(bow_channel_is_writable(channel));
    net_recv_all(&net, peer, text, 4);
    net_run_until(&net, recv(peer, text, 1, 0) == 0);
    put(peer, "still here");
    net_run_until(&net, probe.n_bytes == 10);
    close(peer);
    net_run_until(&net, probe.n_removed == 1);
    assert_int_equal(probe.inactive_error, 0);
    assert_int_equal(probe.n_completions, 1);
    net_end(&net);
}

static void test_channel_l59_eof_nobody_handles_closes_after_the_reply(void **state)
{
    struct net net;
    char text[8] = {0};
    struct probe probe;
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    probe.on_event = answer_eof; /* and passes it on to the tail */
    net_channel(&net, NET_TCP, &peer, &probe, 1);
    shutdown(peer, SHUT_WR);
    net_recv_all(&net, peer, text, 3);
    assert_string_equal(text, "bye");
    net_run_until(&net, probe.n_inactive == 1);
    assert_int_equal(probe.inactive_error, 0);
    close(peer);
    net_end(&net);
}

static void test_channel_l59_reset_closes_once(void **state)
{
    struct net net;
    struct probe probe;
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    net_channel(&net, NET_TCP, &peer, &probe, 1);
    net_reset(peer);
    net_run_until(&net, probe.n_removed == 1);
    net_turn(&net);
    assert_string_equal(probe.log, " added active error inactive removed");
    assert_int_equal(probe.last_error, -ECONNRESET);
    assert_int_equal(probe.inactive_error, -ECONNRESET);
    net_end(&net);
}

static void test_channel_l59_reset_while_paused_is_seen(void **state)
{
    struct net net;
    struct probe probe;
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    probe.on_event = start_paused;
    net_channel(&net, NET_TCP, &peer, &probe, 1);
    net_reset(peer);
    net_run_until(&net, probe.n_removed == 1);
    assert_int_equal(probe.inactive_error, -ECONNRESET);
    net_end(&net);
}

/* F08: close inside each callback, with more of everything pending. */
static void close_at(struct probe *probe, const char *event)
{
    if (strcmp(event, probe->user) == 0) {
        bow_channel_close(probe->handler.channel, -EBADMSG);
        bow_channel_close(probe->handler.channel, -EIO); /* idempotent: the first counts */
    }
}

static size_t read_and_close(struct probe *probe, const struct bow_buf *bytes)
{
    close_at(probe, "read");
    return bytes->len / 2;
}

static void check_close_inside(const char *event)
{
    struct net net;
    struct probe probes[2];
    int peer;
    char name[32];

    strcpy(name, event);
    net_begin(&net);
    probe_init(&probes[0], &net);
    probe_init(&probes[1], &net);
    for (int i = 0; i < 2; i++) {
        probes[i].user = name;
    }
    probes[0].on_event = close_at;
    if (strcmp(event, "read") == 0) {
        probes[0].on_read = read_and_close;
    }
    struct bow_channel *channel = net_channel(&net, NET_TCP, &peer, probes, 2);
    uint8_t *big = calloc(1, 8 * MIB);
    const struct bow_buf buf = bow_buf_borrow(big, 8 * MIB);
    int rc = 0;

    if (probes[0].n_removed == 0) {
        bow_channel_set_water_marks(channel, 10, 20);
        const struct bow_buf small = bow_buf_borrow("x", 1);
        rc = bow_channel_write(channel, &small, probe_done, &probes[0]);
        assert_int_equal(rc, 0);
        rc = bow_channel_write_and_flush(channel, &buf, probe_done, &probes[0]);
        assert_int_equal(rc, 0);
    }
    put(peer, "some bytes");
    shutdown(peer, SHUT_WR);
    if (strcmp(event, "error") == 0) {
        net_reset(peer);
        peer = -1;
    }
    net_run_until(&net, probes[1].n_removed == 1);
    assert_int_equal(probes[0].n_inactive, strcmp(event, "added") == 0 ? 0 : 1);
    assert_int_equal(probes[0].n_removed, 1);
    if (strcmp(event, "added") != 0) {
        assert_int_equal(probes[0].inactive_error, -EBADMSG);
    }
    assert_non_null(strstr(probes[1].log, " removed"));
    free(big);
    if (peer >= 0) {
        close(peer);
    }
    net_end(&net);
}

static void test_channel_l59_f08_close_inside_any_callback_is_safe(void **state)
{
    (void)state;
    check_close_inside("active");
    check_close_inside("read");
    check_close_inside("complete");
    check_close_inside("eof");
    check_close_inside("unwritable");
    check_close_inside("done");
    check_close_inside("error");
    check_close_inside("added");
}

/* F07, at the level of channels: B's handler closes A, whose event is in the same batch, and
 * opens a channel on a descriptor of the same number. */
struct crossing {
    struct net net;
    struct probe a;
    struct probe b;
    struct probe c;
    struct bow_channel *channels[2];
    int fd_of_other;
    int spare[2];
    bool has_crossed;
};

static int add_c(struct bow_channel *channel, void *user)
{
    struct crossing *crossing = user;

    bow_channel_add_last(channel, &crossing->c.handler);
    return 0;
}

static size_t cross(struct probe *probe, const struct bow_buf *bytes)
{
    struct crossing *crossing = probe->user;
    struct bow_channel *other =
        probe == &crossing->a ? crossing->channels[1] : crossing->channels[0];
    struct bow_channel_options options = BOW_CHANNEL_OPTIONS_INIT;
    struct bow_channel *channel = NULL;
    struct bow_sockaddr peer = {.len = 0};

    if (crossing->has_crossed) {
        return bytes->len;
    }
    crossing->has_crossed = true;
    crossing->fd_of_other = other->watch.fd;
    bow_channel_close(other, 0);
    /* The number is free now, and the lowest free one is given. */
    int fd = fcntl(crossing->spare[0], F_DUPFD_CLOEXEC, crossing->fd_of_other);
    assert_int_equal(fd, crossing->fd_of_other);
    options.on_channel = add_c;
    options.user = crossing;
    const struct bow__socket connected = {fd, bow__loop_system(crossing->net.loop), NULL};
    const struct bow__channel_birth birth = {
        .loop = crossing->net.loop, .socket = &connected, .peer = &peer, .options = &options};
    assert_int_equal(bow__channel_new(&birth, &channel), 0);
    assert_int_equal(bow__channel_start(channel), 0);
    return bytes->len;
}

static void test_channel_l17_f07_event_of_a_closed_channel_reaches_no_other(void **state)
{
    struct crossing crossing = {.has_crossed = false};
    struct net *net = &crossing.net;
    int peers[2];
    (void)state;
    net_begin(net);
    probe_init(&crossing.a, net);
    probe_init(&crossing.b, net);
    probe_init(&crossing.c, net);
    crossing.a.user = crossing.b.user = &crossing;
    crossing.a.on_read = crossing.b.on_read = cross;
    crossing.channels[0] = net_channel(net, NET_UNIX, &peers[0], &crossing.a, 1);
    crossing.channels[1] = net_channel(net, NET_UNIX, &peers[1], &crossing.b, 1);
    net_pair(NET_UNIX, crossing.spare);
    net_turn(net);
    int n_recv = atomic_load(&net->n_recv);
    put(peers[0], "x");
    put(peers[1], "x");
    net_turn(net);
    assert_true(crossing.has_crossed);
    assert_int_equal(atomic_load(&net->n_recv), n_recv + 1); /* nothing was read for C */
    assert_string_equal(crossing.c.log, " added active");
    put(crossing.spare[1], "for c");
    net_run_until(net, crossing.c.n_bytes == 5);
    assert_int_equal(crossing.a.n_bytes + crossing.b.n_bytes, 1);
    close(peers[0]);
    close(peers[1]);
    close(crossing.spare[0]);
    close(crossing.spare[1]);
    net_end(net);
}

static void test_channel_l59_f20_memory_goes_after_the_last_reference(void **state)
{
    struct net net;
    struct probe probe;
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    struct bow_channel *channel = bow_channel_ref(net_channel(&net, NET_UNIX, &peer, &probe, 1));
    close(peer);
    net_run_until(&net, probe.n_removed == 1);
    net_stop(&net);
    const struct bow_buf buf = bow_buf_borrow("x", 1);
    assert_int_equal(bow_channel_write(channel, &buf, probe_done, &probe), -EPIPE);
    bow_channel_flush(channel);
    bow_channel_close(channel, 0);
    bow_channel_shutdown_write(channel);
    assert_string_equal(bow_channel_peer(channel), "unix:");
    assert_false(bow_channel_is_active(channel));
    assert_null(bow_channel_unref(channel));
    net_end(&net);
}

static void test_channel_l08_loop_shutdown_closes_and_fails_writes(void **state)
{
    struct net net;
    struct probe probe;
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    struct bow_channel *channel = net_channel(&net, NET_UNIX, &peer, &probe, 1);
    const struct bow_buf buf = bow_buf_borrow("x", 1);
    assert_int_equal(bow_channel_write(channel, &buf, probe_done, &probe), 0);
    net_stop(&net);
    assert_int_equal(probe.n_removed, 1);
    assert_int_equal(probe.completion_error, -ESHUTDOWN);
    assert_int_equal(probe.inactive_error, -ESHUTDOWN);
    close(peer);
    net_end(&net);
}

static void pause_when_complete(struct probe *probe, const char *event)
{
    if (strcmp(event, "complete") == 0) {
        bow_channel_pause_read(probe->handler.channel);
    }
}

static void test_channel_l59_f09_end_of_the_peer_waits_while_reading_is_paused(void **state)
{
    struct net net;
    struct probe probe;
    uint8_t bytes[16384] = {
        0}; /* what is asked for first: the read is full, the next finds the end */
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    probe.on_event = pause_when_complete;
    struct bow_channel *channel = net_channel(&net, NET_UNIX, &peer, &probe, 1);
    assert_int_equal(send(peer, bytes, sizeof(bytes), MSG_NOSIGNAL), sizeof(bytes));
    shutdown(peer, SHUT_WR);
    net_run_until(&net, probe.n_completes == 1);
    assert_int_equal(probe.n_bytes, sizeof(bytes));
    assert_int_equal(atomic_load(&net.n_recv), 2);
    net_turn(&net);
    assert_int_equal(probe.n_eofs, 0);
    probe.on_event = NULL;
    bow_channel_resume_read(channel);
    net_run_until(&net, probe.n_eofs == 1);
    close(peer);
    net_end(&net);
}

/* Resumed in a task, it sees the end with the next events, and these come before the timer that
 * brings the bytes it has not taken. */
static int resume(void *channel)
{
    bow_channel_resume_read(channel);
    return 0;
}

static size_t take_one(struct probe *probe, const struct bow_buf *bytes)
{
    (void)bytes;
    bow_channel_pause_read(probe->handler.channel);
    probe->on_read = NULL;
    return 1;
}

static void test_channel_l59_f09_bytes_kept_by_a_pause_come_before_the_end(void **state)
{
    struct net net;
    struct probe probe;
    int peer;
    (void)state;
    net_begin(&net);
    probe_init(&probe, &net);
    probe.keeps = true;
    probe.on_read = take_one;
    struct bow_channel *channel = net_channel(&net, NET_UNIX, &peer, &probe, 1);
    put(peer, "abc");
    net_run_until(&net, probe.n_bytes == 1);
    shutdown(peer, SHUT_WR);
    net_turn(&net);
    assert_int_equal(bow_loop_execute(net.loop, "resume", resume, channel), 0);
    net_run_until(&net, probe.n_eofs == 1);
    assert_int_equal(probe.n_bytes, 3);
    assert_memory_equal(probe.bytes, "abc", 3);
    assert_non_null(strstr(probe.log, "read:2 complete eof"));
    close(peer);
    net_end(&net);
    probe_fini(&probe);
}

struct broken {
    struct probe probe;
    struct bow_channel *channel;
    struct bow__deferred resume;
    int peer;
};

/* And wait until it has come, which takes a while on a busy machine. */
static void reset(const struct broken *broken)
{
    const struct linger hard = {.l_onoff = 1, .l_linger = 0};
    struct pollfd watched = {.fd = broken->channel->watch.fd};

    (void)setsockopt(broken->peer, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    close(broken->peer);
    while (poll(&watched, 1, -1) < 0) {
        assert_int_equal(errno, EINTR);
    }
}

/* Both are seen in the next turn, and what it reads it takes in two. */
static int reset_and_resume(void *user)
{
    struct broken *broken = user;

    broken->probe.on_read = take_one;
    reset(broken);
    bow_channel_resume_read(broken->channel);
    return 0;
}

static void test_channel_l59_f09_bytes_kept_by_a_pause_come_before_a_reset(void **state)
{
    struct net net;
    struct broken broken;
    struct probe *probe = &broken.probe;
    (void)state;
    net_begin(&net);
    probe_init(probe, &net);
    probe->keeps = true;
    probe->on_read = take_one;
    broken.channel = net_channel(&net, NET_TCP, &broken.peer, probe, 1);
    put(broken.peer, "abc");
    net_run_until(&net, probe->n_bytes == 1);
    assert_int_equal(bow_loop_execute(net.loop, "reset", reset_and_resume, &broken), 0);
    net_run_until(&net, probe->n_bytes == 2);
    net_turn(&net);
    assert_int_equal(probe->n_inactive, 0);
    assert_int_equal(bow_loop_execute(net.loop, "resume", resume, broken.channel), 0);
    net_run_until(&net, probe->n_removed == 1);
    assert_int_equal(probe->n_bytes, 3);
    assert_memory_equal(probe->bytes, "abc", 3);
    assert_int_equal(probe->inactive_error, -ECONNRESET);
    net_end(&net);
    probe_fini(probe);
}

static void go_on(struct bow__deferred *deferred)
{
    bow_channel_resume_read(BOW__CONTAINER(deferred, struct broken, resume)->channel);
}

/* With a pause for the turn's rest. */
static size_t take_one_a_turn(struct probe *probe, const struct bow_buf *bytes)
{
    struct broken *broken = probe->user;

    (void)bytes;
    bow_channel_pause_read(broken->channel);
    bow__loop_defer_flush(bow_channel_loop(broken->channel), &broken->resume);
    return 1;
}

/* It is the write that finds it. */
static int reset_and_write(void *user)
{
    struct broken *broken = user;
    struct bow_buf buf = bow_buf_borrow("x", 1);

    reset(broken);
    assert_int_equal(bow_channel_write(broken->channel, &buf, NULL, NULL), 0);
    bow_channel_flush(broken->channel);
    bow_channel_resume_read(broken->channel);
    return 0;
}

/* Of "abc" the first byte is taken before. */
static void break_by_a_write(struct net *net, struct broken *broken,
                             size_t (*on_read)(struct probe *probe, const struct bow_buf *bytes))
{
    struct probe *probe = &broken->probe;

    net_begin(net);
    probe_init(probe, net);
    probe->user = broken;
    probe->keeps = true;
    probe->on_read = take_one;
    broken->resume.fn = go_on;
    bow__list_init(&broken->resume.link);
    broken->channel = net_channel(net, NET_TCP, &broken->peer, probe, 1);
    put(broken->peer, "abc");
    net_run_until(net, probe->n_bytes == 1);
    probe->on_read = on_read;
    assert_int_equal(bow_loop_execute(net->loop, "reset", reset_and_write, broken), 0);
    net_run_until(net, probe->n_removed == 1);
    assert_int_equal(probe->inactive_error, -ECONNRESET);
}

static void test_channel_l59_f09_bytes_taken_by_turns_come_before_a_writes_error(void **state)
{
    struct net net;
    struct broken broken;
    (void)state;

    break_by_a_write(&net, &broken, take_one_a_turn);
    assert_int_equal(broken.probe.n_bytes, 3);
    assert_memory_equal(broken.probe.bytes, "abc", 3);
    net_end(&net);
    probe_fini(&broken.probe);
}

static size_t take_one_and_hold(struct probe *probe, const struct bow_buf *bytes)
{
    (void)bytes;
    bow__channel_hold_read(probe->handler.channel);
    probe->on_read = NULL;
    return 1;
}

static int release(void *channel)
{
    bow__channel_release_read(channel);
    return 0;
}

static int pause_and_release(void *channel)
{
    bow_channel_pause_read(channel);
    bow__channel_release_read(channel);
    return 0;
}

/* A hang-up, that writing finds or that the poller tells, while others have their turn. */
static void lose_while_held(struct net *net, struct broken *broken, bool writes)
{
    struct probe *probe = &broken->probe;
    struct bow_loop_stats stats = {.size = sizeof(stats)};
    struct bow_buf buf = bow_buf_borrow("x", 1);

    net_begin(net);
    probe_init(probe, net);
    probe->keeps = true;
    probe->on_read = take_one_and_hold;
    broken->channel = net_channel(net, NET_TCP, &broken->peer, probe, 1);
    put(broken->peer, "abc");
    net_run_until(net, probe->n_bytes == 1);
    put(broken->peer, "def"); /* and this is in the kernel */
    reset(broken);
    if (writes) {
        assert_int_equal(bow_channel_write_and_flush(broken->channel, &buf, NULL, NULL), 0);
    }
    net_turn(net);
    net_turn(net);
    assert_int_equal(bow_loop_get_stats(net->loop, &stats), 0);
    uint64_t events = stats.events;
    for (int i = 0; i < 5; i++) {
        net_turn(net);
    }
    assert_int_equal(bow_loop_get_stats(net->loop, &stats), 0);
    assert_int_equal(stats.events, events); /* no spin */
    assert_int_equal(probe->n_inactive, 0);
}

static void check_hold(bool writes)
{
    struct net net;
    struct broken broken;
    struct probe *probe = &broken.probe;

    lose_while_held(&net, &broken, writes);
    assert_int_equal(bow_loop_execute(net.loop, "release", release, broken.channel), 0);
    net_run_until(&net, probe->n_removed == 1);
    assert_int_equal(probe->n_bytes, 6);
    assert_memory_equal(probe->bytes, "abcdef", 6);
    assert_int_equal(probe->n_eofs, 0); /* what was cut short is not taken for whole */
    assert_int_equal(probe->inactive_error, -ECONNRESET);
    net_end(&net);
    probe_fini(probe);
}

static void test_channel_l59_f09_bytes_kept_by_a_hold_come_before_a_hangup(void **state)
{
    (void)state;
    check_hold(false);
    check_hold(true);
}

static void test_channel_l59_f09_a_pause_behind_a_hold_ends_by_a_hangup(void **state)
{
    struct net net;
    struct broken broken;
    (void)state;

    lose_while_held(&net, &broken, false);
    assert_int_equal(bow_loop_execute(net.loop, "pause", pause_and_release, broken.channel), 0);
    net_run_until(&net, broken.probe.n_removed == 1);
    assert_int_equal(broken.probe.n_bytes, 1);
    assert_int_equal(broken.probe.inactive_error, -ECONNRESET);
    net_end(&net);
    probe_fini(&broken.probe);
}

/* What it waits for may be that something is sent. */
static void test_channel_l59_f09_a_pause_that_lasts_ends_by_a_writes_error(void **state)
{
    struct net net;
    struct broken broken;
    (void)state;

    break_by_a_write(&net, &broken, take_one);
    assert_int_equal(broken.probe.n_bytes, 2);
    net_end(&net);
    probe_fini(&broken.probe);
}

/* The peer has closed in good order, and answers what still comes with a reset. */
static int close_and_write(void *user)
{
    struct broken *broken = user;
    struct bow_buf buf = bow_buf_borrow("x", 1);
    struct pollfd watched = {.fd = broken->channel->watch.fd};

    close(broken->peer);
    assert_int_equal(send(watched.fd, "x", 1, MSG_NOSIGNAL), 1);
    while ((watched.revents & POLLERR) == 0) {
        (void)poll(&watched, 1, -1);
    }
    assert_int_equal(bow_channel_write(broken->channel, &buf, NULL, NULL), 0);
    bow_channel_flush(broken->channel);
    return 0;
}

static void test_channel_l59_f09_after_a_pause_the_writes_own_error_is_told(void **state)
{
    struct net net;
    struct broken broken;
    struct probe *probe = &broken.probe;
    (void)state;

    net_begin(&net);
    probe_init(probe, &net);
    probe->keeps = true;
    probe->on_read = take_one;
    broken.channel = net_channel(&net, NET_TCP, &broken.peer, probe, 1);
    put(broken.peer, "abc");
    net_run_until(&net, probe->n_bytes == 1);
    assert_int_equal(bow_loop_execute(net.loop, "close", close_and_write, &broken), 0);
    net_run_until(&net, probe->n_removed == 1);
    assert_int_equal(probe->inactive_error, -EPIPE);
    net_end(&net);
    probe_fini(probe);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_channel_l17_f07_event_of_a_closed_channel_reaches_no_other),
        cmocka_unit_test(test_channel_l59_f09_rdhup_with_unread_data_delivers_first),
        cmocka_unit_test(test_channel_l59_f09_hangup_with_unread_data_delivers_first),
        cmocka_unit_test(test_channel_l59_half_close_by_the_peer_still_gets_answers),
        cmocka_unit_test(test_channel_l59_half_close_by_us_still_reads),
        cmocka_unit_test(test_channel_l59_eof_nobody_handles_closes_after_the_reply),
        cmocka_unit_test(test_channel_l59_reset_closes_once),
        cmocka_unit_test(test_channel_l59_reset_while_paused_is_seen),
        cmocka_unit_test(test_channel_l59_f08_close_inside_any_callback_is_safe),
        cmocka_unit_test(test_channel_l59_f20_memory_goes_after_the_last_reference),
        cmocka_unit_test(test_channel_l08_loop_shutdown_closes_and_fails_writes),
        cmocka_unit_test(test_channel_l59_f09_end_of_the_peer_waits_while_reading_is_paused),
        cmocka_unit_test(test_channel_l59_f09_bytes_kept_by_a_pause_come_before_the_end),
        cmocka_unit_test(test_channel_l59_f09_bytes_kept_by_a_pause_come_before_a_reset),
        cmocka_unit_test(test_channel_l59_f09_bytes_taken_by_turns_come_before_a_writes_error),
        cmocka_unit_test(test_channel_l59_f09_bytes_kept_by_a_hold_come_before_a_hangup),
        cmocka_unit_test(test_channel_l59_f09_a_pause_behind_a_hold_ends_by_a_hangup),
        cmocka_unit_test(test_channel_l59_f09_a_pause_that_lasts_ends_by_a_writes_error),
        cmocka_unit_test(test_channel_l59_f09_after_a_pause_the_writes_own_error_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
