/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The conformance suite over TCP, over a Unix socket, within the process, and without a socket. */

#include "tests/transport/conformance.h"
#include "transport/channel/channel.h"
#include "transport/memory/inproc.h"

#include <bowline/embedded.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Sockets: the peer is a plain one. */

struct sockets {
    struct net net;
    int peer;
    bool has_ended;
};

static void sockets_begin(struct conformance *c, enum net_kind kind)
{
    struct sockets *s = calloc(1, sizeof(*s));

    assert_non_null(s);
    c->state = s;
    net_begin(&s->net);
    c->loop = s->net.loop;
    s->net.options.on_channel = conformance_add_probes;
    s->net.options.user = c;
    (void)net_channel(&s->net, kind, &s->peer, NULL, 0);
}

static void tcp_begin(struct conformance *c)
{
    int size = 64 << 10;

    sockets_begin(c, NET_TCP);
    /* Left to itself the kernel takes megabytes. */
    int peer = ((struct sockets *)c->state)->peer;
    if (!bow_channel_is_active(c->channel)) {
        return;
    }
    assert_int_equal(setsockopt(c->channel->watch.fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)),
                     0);
    assert_int_equal(setsockopt(peer, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)), 0);
}

static void unix_begin(struct conformance *c)
{
    sockets_begin(c, NET_UNIX);
}

static void sockets_end(struct conformance *c)
{
    struct sockets *s = c->state;

    if (s->peer >= 0) {
        close(s->peer);
    }
    net_end(&s->net);
    free(s);
}

static void sockets_turn(struct conformance *c)
{
    assert_int_equal(bow_loop_run_once(c->loop, 5 * FAKE_MS), 0);
}

static void sockets_send(struct conformance *c, const void *bytes, size_t len)
{
    struct sockets *s = c->state;
    net_send_all(&s->net, s->peer, bytes, len);
}

static size_t sockets_receive(struct conformance *c, void *bytes, size_t max)
{
    struct sockets *s = c->state;

    if (max == 0) {
        return 0;
    }
    ssize_t n = recv(s->peer, bytes, max, 0);
    if (n == 0 || (n < 0 && errno != EAGAIN)) {
        s->has_ended = true;
    }
    return n > 0 ? (size_t)n : 0;
}

static bool sockets_has_ended(struct conformance *c)
{
    return ((struct sockets *)c->state)->has_ended;
}

static void sockets_shut(struct conformance *c)
{
    assert_int_equal(shutdown(((struct sockets *)c->state)->peer, SHUT_WR), 0);
}

static void tcp_reset(struct conformance *c)
{
    struct sockets *s = c->state;

    net_reset(s->peer);
    s->peer = -1;
}

/* A Unix socket has no reset of its own: closing one with bytes unread is told as that. */
static void unix_reset(struct conformance *c)
{
    struct sockets *s = c->state;

    assert_int_equal(send(c->channel->watch.fd, "never read", 10, MSG_NOSIGNAL), 10);
    close(s->peer);
    s->peer = -1;
}

/* No socket: the test's own hands. */

static void embedded_begin(struct conformance *c)
{
    struct bow_embedded_options options = BOW_EMBEDDED_OPTIONS_INIT;
    struct bow_embedded *embedded = NULL;

    loops_begin_real(&c->t);
    options.channel.on_channel = conformance_add_probes;
    options.channel.user = c;
    options.socket_bytes = 128 << 10;
    assert_int_equal(bow_embedded_new(c->t.context, &options, &embedded), 0);
    c->state = embedded;
    c->loop = bow_embedded_loop(embedded);
}

static void embedded_end(struct conformance *c)
{
    bow_embedded_free(c->state);
    loops_end(&c->t);
}

static void embedded_turn(struct conformance *c)
{
    assert_int_equal(bow_embedded_run(c->state), 0);
}

static void embedded_send(struct conformance *c, const void *bytes, size_t len)
{
    assert_int_equal(bow_embedded_feed(c->state, bytes, len), 0);
}

static size_t embedded_receive(struct conformance *c, void *bytes, size_t max)
{
    struct bow_slice output = bow_embedded_output(c->state);
    size_t n = output.len < max ? output.len : max;

    if (n > 0) {
        memcpy(bytes, output.data, n);
        bow_embedded_consume(c->state, n);
    }
    return n;
}

static bool embedded_has_ended(struct conformance *c)
{
    return bow_embedded_is_ended(c->state) && bow_embedded_output(c->state).len == 0;
}

static void embedded_shut(struct conformance *c)
{
    assert_int_equal(bow_embedded_end(c->state), 0);
}

static void embedded_reset(struct conformance *c)
{
    assert_int_equal(bow_embedded_reset(c->state), 0);
}

/* Within the process: the peer is the other end itself, without a channel. */

struct inproc {
    struct bow_acceptor *acceptor;
    struct bow__socket peer; /* system NULL: closed */
    bool has_ended;
};

static void inproc_turn(struct conformance *c)
{
    assert_int_equal(bow_loop_run_once(c->loop, 5 * FAKE_MS), 0);
}

static void inproc_begin(struct conformance *c)
{
    struct bow_acceptor_options options = BOW_ACCEPTOR_OPTIONS_INIT;
    struct inproc *s = calloc(1, sizeof(*s));
    struct bow__inproc_end *end = NULL;

    assert_non_null(s);
    c->state = s;
    loops_begin(&c->t);
    c->loop = loops_new_owner(&c->t);
    options.address = "inproc:conformance";
    options.loop = c->loop;
    options.channel.on_channel = conformance_add_probes;
    options.channel.user = c;
    assert_int_equal(bow_acceptor_new(c->t.context, &options, &s->acceptor, NULL), 0);
    assert_int_equal(bow_acceptor_start(s->acceptor), 0);
    assert_int_equal(bow__inproc_connect(c->t.context, "conformance", &end), 0);
    s->peer = bow__inproc_socket(end);
    for (int i = 0; i < 10 && c->channel == NULL; i++) {
        inproc_turn(c);
    }
    assert_non_null(c->channel);
}

static void inproc_close_peer(struct inproc *s)
{
    if (s->peer.system != NULL) {
        bow__socket_close(&s->peer);
        s->peer.system = NULL;
    }
}

static void inproc_end(struct conformance *c)
{
    struct inproc *s = c->state;

    inproc_close_peer(s);
    bow_acceptor_close(s->acceptor, NULL, NULL);
    assert_int_equal(bow_loop_shutdown(c->loop, 0, 0), 0);
    assert_int_equal(bow_loop_run(c->loop), 0);
    bow_loop_unref(c->loop);
    loops_end(&c->t);
    free(s);
}

static void inproc_send(struct conformance *c, const void *bytes, size_t len)
{
    const struct bow__socket *peer = &((struct inproc *)c->state)->peer;
    uint64_t until_ns = net_deadline();
    size_t at = 0;

    while (at < len) {
        struct iovec piece = {(void *)((uintptr_t)bytes + at), len - at};
        const struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};
        ssize_t n = peer->system->sendmsg(peer->system->user, peer->fd, &message, 0);
        assert_true(n > 0 || n == -EAGAIN);
        at += n > 0 ? (size_t)n : 0;
        if (at < len) {
            inproc_turn(c);
        }
        assert_false(net_is_late(until_ns));
    }
}

static size_t inproc_receive(struct conformance *c, void *bytes, size_t max)
{
    struct inproc *s = c->state;

    if (max == 0) {
        return 0;
    }
    ssize_t n = s->peer.system->recv(s->peer.system->user, s->peer.fd, bytes, max);
    if (n == 0 || (n < 0 && n != -EAGAIN)) {
        s->has_ended = true;
    }
    return n > 0 ? (size_t)n : 0;
}

static bool inproc_has_ended(struct conformance *c)
{
    return ((struct inproc *)c->state)->has_ended;
}

static void inproc_shut(struct conformance *c)
{
    const struct bow__socket *peer = &((struct inproc *)c->state)->peer;
    assert_int_equal(peer->system->shutdown(peer->system->user, peer->fd, SHUT_WR), 0);
}

/* As with a Unix socket: what it never reads makes its close a reset. */
static void inproc_reset(struct conformance *c)
{
    const struct bow_system *system = c->channel->system;
    struct iovec piece = {(void *)(uintptr_t) "never read", 10};
    const struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1};

    assert_int_equal(system->sendmsg(system->user, c->channel->watch.fd, &message, 0), 10);
    inproc_close_peer(c->state);
}

static const struct conformance_fixture over_tcp = {
    .name = "tcp",
    .begin = tcp_begin,
    .end = sockets_end,
    .turn = sockets_turn,
    .send = sockets_send,
    .receive = sockets_receive,
    .has_ended = sockets_has_ended,
    .shut = sockets_shut,
    .reset = tcp_reset,
};

static const struct conformance_fixture over_unix = {
    .name = "unix",
    .begin = unix_begin,
    .end = sockets_end,
    .turn = sockets_turn,
    .send = sockets_send,
    .receive = sockets_receive,
    .has_ended = sockets_has_ended,
    .shut = sockets_shut,
    .reset = unix_reset,
};

static const struct conformance_fixture over_inproc = {
    .name = "inproc",
    .begin = inproc_begin,
    .end = inproc_end,
    .turn = inproc_turn,
    .send = inproc_send,
    .receive = inproc_receive,
    .has_ended = inproc_has_ended,
    .shut = inproc_shut,
    .reset = inproc_reset,
};

static const struct conformance_fixture over_embedded = {
    .name = "embedded",
    .begin = embedded_begin,
    .end = embedded_end,
    .turn = embedded_turn,
    .send = embedded_send,
    .receive = embedded_receive,
    .has_ended = embedded_has_ended,
    .shut = embedded_shut,
    .reset = embedded_reset,
};

int main(void)
{
    const struct conformance_fixture *const fixtures[] = {&over_tcp, &over_unix, &over_inproc,
                                                          &over_embedded};
    return conformance_run(fixtures, sizeof(fixtures) / sizeof(fixtures[0]));
}
