/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The raw echo server: one receive and one send for each readiness. Arguments: service.h. */

#include "raw.h"
#include "service.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

struct peer {
    int fd;
    size_t n_in; /* unread tail of the last receive */
    size_t out_at;
    size_t n_out; /* echoed bytes the socket did not take yet, from `out_at` on */
    bool full;    /* waits for room instead of bytes */
    uint8_t *in;
    uint8_t *out;
};

static struct service service;
static size_t frame_bytes;
static size_t in_bytes; /* room of `in`, and of `out`, which takes what one receive brings */
static volatile sig_atomic_t stopped;

static void on_signal(int signal_number)
{
    (void)signal_number;
    stopped = 1;
}

static void drop(struct peer *peer)
{
    close(peer->fd);
    free(peer->in);
    free(peer->out);
    free(peer);
}

/* Send what is pending; false when the peer is gone. */
static bool flush(int poller, struct peer *peer)
{
    while (peer->n_out > 0) {
        ssize_t n = send(peer->fd, peer->out + peer->out_at, peer->n_out, MSG_NOSIGNAL);
        service.io.sends++;
        if (n < 0 && errno == EAGAIN) {
            break;
        }
        if (n < 0) {
            return false;
        }
        peer->n_out -= (size_t)n;
        peer->out_at = peer->n_out == 0 ? 0 : peer->out_at + (size_t)n;
    }
    bool full = peer->n_out > 0;
    struct epoll_event event = {.events = full ? EPOLLOUT : EPOLLIN, .data.ptr = peer};
    if (full != peer->full) {
        epoll_ctl(poller, EPOLL_CTL_MOD, peer->fd, &event);
        service.io.others++;
        peer->full = full;
    }
    return true;
}

/* Cut the bytes into frames of `expected` bytes and echo each into the output, as a server that
 * looks at them would. Returns how many bytes those were. */
static inline size_t cut(struct peer *peer, size_t n, size_t expected)
{
    const uint8_t *bytes = peer->in;
    uint8_t *out = peer->out;
    size_t at = 0;
    while (n - at >= 4) {
        uint32_t length;
        memcpy(&length, bytes + at, 4);
        size_t frame = 4 + (size_t)ntohl(length);
        if (frame != expected || n - at < frame) {
            break;
        }
        memcpy(out + peer->n_out, bytes + at, expected);
        peer->n_out += expected;
        at += expected;
    }
    return at;
}

static void echo(struct peer *peer, size_t n)
{
    /* With a size that the compiler knows, copying is no call. */
    size_t at =
        frame_bytes == RAW_FRAME_BYTES ? cut(peer, n, RAW_FRAME_BYTES) : cut(peer, n, frame_bytes);
    peer->n_in = n - at;
    if (at > 0) {
        memmove(peer->in, peer->in + at, peer->n_in);
    }
    if (service.n_calls > 0) {
        service_count(&service, at / frame_bytes);
    }
}

static bool serve(int poller, struct peer *peer, uint32_t events)
{
    if ((events & EPOLLOUT) != 0) {
        return flush(poller, peer);
    }
    ssize_t n = recv(peer->fd, peer->in + peer->n_in, in_bytes - peer->n_in, 0);
    service.io.receives++;
    if (n <= 0) {
        return n < 0 && errno == EAGAIN;
    }
    echo(peer, peer->n_in + (size_t)n);
    return peer->n_in < frame_bytes && (peer->n_out == 0 || flush(poller, peer));
}

static void accept_peer(int poller, int listener)
{
    struct peer *peer = calloc(1, sizeof(*peer));
    if (peer == NULL) {
        return;
    }
    peer->fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    peer->in = malloc(in_bytes);
    peer->out = malloc(in_bytes);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};
    if (peer->fd < 0 || peer->in == NULL || peer->out == NULL ||
        epoll_ctl(poller, EPOLL_CTL_ADD, peer->fd, &event) != 0) {
        drop(peer);
        return;
    }
    raw_tune(peer->fd);
}

int main(int argc, char **argv)
{
    service_parse(&service, argc, argv);
    frame_bytes = 4 + (size_t)service.text_bytes;
    in_bytes = frame_bytes + RAW_BUFFER_BYTES;
    struct sockaddr_in address = raw_address(service.listen);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int one = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    raw_tune(listener);
    if (bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        listen(listener, 128) != 0) {
        perror("raw_server: listening");
        return 1;
    }
    /* Taken only while it waits: a signal between the look at `stopped` and the wait would be lost.
     */
    struct sigaction action = {.sa_handler = on_signal};
    sigset_t term;
    sigset_t waiting;
    sigemptyset(&term);
    sigaddset(&term, SIGTERM);
    sigprocmask(SIG_BLOCK, &term, &waiting);
    sigaction(SIGTERM, &action, NULL);
    int poller = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event);
    while (!stopped) {
        struct epoll_event ready[64];
        int n = epoll_pwait(poller, ready, 64, -1, &waiting);
        service.io.others++;
        for (int i = 0; i < n; i++) {
            struct peer *peer = ready[i].data.ptr;
            if (peer == NULL) {
                accept_peer(poller, listener);
            } else if (!serve(poller, peer, ready[i].events)) {
                drop(peer);
            }
        }
    }
    service_print(&service);
    return 0;
}
