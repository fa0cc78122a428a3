/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The raw echo server: one receive and one send for each readiness. Usage: raw_server HOST:PORT */

#include "raw.h"
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

struct peer {
    int fd;
    size_t n_in;  /* unread tail of the last receive */
    size_t n_out; /* echoed bytes the socket did not take yet */
    bool full;    /* waits for room instead of bytes */
    uint8_t in[RAW_FRAME_BYTES];
    uint8_t *out;
};

static struct io_counts counts;
static volatile sig_atomic_t stopped;

static void on_signal(int signal_number)
{
    (void)signal_number;
    stopped = 1;
}

static void drop(struct peer *peer)
{
    close(peer->fd);
    free(peer->out);
    free(peer);
}

/* Send what is pending; false when the peer is gone. */
static bool flush(int poller, struct peer *peer)
{
    size_t sent = 0;
    while (sent < peer->n_out) {
        ssize_t n = send(peer->fd, peer->out + sent, peer->n_out - sent, MSG_NOSIGNAL);
        counts.sends++;
        if (n < 0 && errno == EAGAIN) {
            break;
        }
        if (n < 0) {
            return false;
        }
        sent += (size_t)n;
    }
    memmove(peer->out, peer->out + sent, peer->n_out - sent);
    peer->n_out -= sent;
    bool full = peer->n_out > 0;
    struct epoll_event event = {.events = full ? EPOLLOUT : EPOLLIN, .data.ptr = peer};
    if (full != peer->full) {
        epoll_ctl(poller, EPOLL_CTL_MOD, peer->fd, &event);
        peer->full = full;
    }
    return true;
}

/* Cut the bytes into frames and echo each into the output, as a server that looks at them would. */
static void echo(struct peer *peer, const uint8_t *bytes, size_t n)
{
    size_t at = 0;
    while (n - at >= 4) {
        uint32_t length;
        memcpy(&length, bytes + at, 4);
        size_t frame = 4 + (size_t)ntohl(length);
        if (frame != RAW_FRAME_BYTES || n - at < frame) {
            break;
        }
        memcpy(peer->out + peer->n_out, bytes + at, frame);
        peer->n_out += frame;
        at += frame;
    }
    peer->n_in = n - at;
    memcpy(peer->in, bytes + at, peer->n_in);
}

static bool serve(int poller, struct peer *peer, uint32_t events, uint8_t *buffer)
{
    if ((events & EPOLLOUT) != 0) {
        return flush(poller, peer);
    }
    memcpy(buffer, peer->in, peer->n_in);
    ssize_t n = recv(peer->fd, buffer + peer->n_in, RAW_BUFFER_BYTES - peer->n_in, 0);
    counts.receives++;
    if (n <= 0) {
        return n < 0 && errno == EAGAIN;
    }
    echo(peer, buffer, peer->n_in + (size_t)n);
    return peer->n_in < RAW_FRAME_BYTES && (peer->n_out == 0 || flush(poller, peer));
}

static void accept_peer(int poller, int listener)
{
    struct peer *peer = calloc(1, sizeof(*peer));
    if (peer == NULL) {
        return;
    }
    peer->fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    peer->out = malloc(2 * RAW_BUFFER_BYTES);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = peer};
    if (peer->fd < 0 || peer->out == NULL ||
        epoll_ctl(poller, EPOLL_CTL_ADD, peer->fd, &event) != 0) {
        drop(peer);
        return;
    }
    raw_tune(peer->fd);
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = raw_address(argc == 2 ? argv[1] : "");
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
    uint8_t *buffer = malloc(RAW_BUFFER_BYTES);
    while (buffer != NULL && !stopped) {
        struct epoll_event ready[64];
        int n = epoll_pwait(poller, ready, 64, -1, &waiting);
        for (int i = 0; i < n; i++) {
            struct peer *peer = ready[i].data.ptr;
            if (peer == NULL) {
                accept_peer(poller, listener);
            } else if (!serve(poller, peer, ready[i].events, buffer)) {
                drop(peer);
            }
        }
    }
    free(buffer);
    printf("{\"receives\": %" PRIu64 ", \"sends\": %" PRIu64 "}\n", counts.receives, counts.sends);
    return 0;
}
