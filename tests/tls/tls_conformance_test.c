/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The conformance suite over TLS over TCP; the peer is OpenSSL on a plain socket. */

#include "tests/tls/certs.h"
#include "tests/tls/peer.h"
#include "tests/transport/conformance.h"
#include "transport/channel/channel.h"

#include <bowline/tls.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

struct tls_state {
    struct net net;
    struct certs certs;
    struct bow_tls_context *context;
    struct tls_peer peer;
};

static int add_tls_and_probes(struct bow_channel *channel, void *user)
{
    struct conformance *c = user;
    struct bow_tls *tls = NULL;

    int rc = bow_tls_new(((struct tls_state *)c->state)->context, NULL, &tls);
    if (rc < 0) {
        return rc;
    }
    bow_channel_add_last(channel, bow_tls_handler(tls));
    return conformance_add_probes(channel, c);
}

static void make_context(struct tls_state *s)
{
    struct bow_tls_context_options options = BOW_TLS_CONTEXT_OPTIONS_INIT;
    char certificate[256];
    char key[256];

    certs_make(&s->certs);
    options.certificate.certificate_file =
        certs_path(&s->certs, "server.pem", certificate, sizeof(certificate));
    options.certificate.key_file = certs_path(&s->certs, "server.key", key, sizeof(key));
    assert_int_equal(bow_tls_context_new(s->net.t.context, &options, &s->context, NULL), 0);
}

/* Left to itself the kernel takes megabytes. */
static void make_small(const struct conformance *c, int peer)
{
    int size = 64 << 10;

    assert_int_equal(setsockopt(c->channel->watch.fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size)),
                     0);
    assert_int_equal(setsockopt(peer, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size)), 0);
}

static void tls_begin(struct conformance *c)
{
    struct tls_state *s = calloc(1, sizeof(*s));
    int fd = -1;

    assert_non_null(s);
    c->state = s;
    net_begin(&s->net);
    make_context(s);
    c->loop = s->net.loop;
    s->net.options.on_channel = add_tls_and_probes;
    s->net.options.user = c;
    (void)net_channel(&s->net, NET_TCP, &fd, NULL, 0);
    make_small(c, fd);
    tls_peer_init(&s->peer, fd);
    while (!tls_peer_shake_hands(&s->peer) ||
           (bow_channel_is_active(c->channel) && !bow_tls_is_open(bow_tls_of(c->channel)))) {
        net_turn(&s->net);
    }
}

static void tls_end(struct conformance *c)
{
    struct tls_state *s = c->state;

    tls_peer_fini(&s->peer);
    net_stop(&s->net);
    bow_tls_context_unref(s->context);
    certs_remove(&s->certs);
    loops_end(&s->net.t);
    free(s);
}

static void tls_turn(struct conformance *c)
{
    assert_int_equal(bow_loop_run_once(c->loop, 5 * FAKE_MS), 0);
}

static void tls_send(struct conformance *c, const void *bytes, size_t len)
{
    struct tls_state *s = c->state;
    const char *next = bytes;

    while (len > 0) {
        size_t n = tls_peer_send(&s->peer, next, len);
        next += n;
        len -= n;
        if (n == 0) {
            tls_turn(c);
        }
    }
}

static size_t tls_receive(struct conformance *c, void *bytes, size_t max)
{
    return tls_peer_receive(&((struct tls_state *)c->state)->peer, bytes, max);
}

static bool tls_has_ended(struct conformance *c)
{
    return ((struct tls_state *)c->state)->peer.has_ended;
}

static void tls_shut(struct conformance *c)
{
    tls_peer_shut(&((struct tls_state *)c->state)->peer);
}

static void tls_reset(struct conformance *c)
{
    struct tls_state *s = c->state;

    net_reset(s->peer.fd);
    s->peer.fd = -1;
}

static const struct conformance_fixture over_tls = {
    .name = "tls",
    .begin = tls_begin,
    .end = tls_end,
    .turn = tls_turn,
    .send = tls_send,
    .receive = tls_receive,
    .has_ended = tls_has_ended,
    .shut = tls_shut,
    .reset = tls_reset,
};

int main(void)
{
    const struct conformance_fixture *const fixtures[] = {&over_tls};
    return conformance_run(fixtures, 1);
}
