/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The raw echo client: keeps so many frames in flight on each connection. Arguments: load.h. */

#include "raw.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* `out` is a ring with room for all frames in flight. */
struct connection {
    int fd;
    bool full;   /* waits for room, too */
    size_t n_in; /* unread tail of the last receive */
    size_t out_at;
    size_t n_out; /* from `out_at` on, not sent yet */
    uint8_t *in;
    uint8_t *out;
};

static struct io_counts counts;
static int poller;
static size_t frame_bytes;
static size_t in_bytes;  /* room of `in` */
static size_t out_bytes; /* room of `out` */

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* The tag is the time of the start, so a reply carries its own start time back. */
static void put_frame(struct load *load, struct connection *connection)
{
    if (!load_start(load)) {
        return;
    }
    uint8_t *frame = connection->out + (connection->out_at + connection->n_out) % out_bytes;
    uint32_t length = htonl(load->text_bytes);
    uint64_t now = bench_now_ns();
    memset(frame, 'x', frame_bytes);
    memcpy(frame, &length, 4);
    memcpy(frame + 4, &now, sizeof(now));
    connection->n_out += frame_bytes;
}

/* Never waits: a server that waits for room itself does not receive meanwhile. */
static void flush(struct connection *connection)
{
    while (connection->n_out > 0) {
        size_t in_row = out_bytes - connection->out_at;
        size_t len = connection->n_out < in_row ? connection->n_out : in_row;
        ssize_t n = send(connection->fd, connection->out + connection->out_at, len,
                         MSG_NOSIGNAL | MSG_DONTWAIT);
        counts.sends++;
        if (n < 0 && errno == EAGAIN) {
            break;
        }
        if (n < 0) {
            fail("raw_client: sending");
        }
        connection->n_out -= (size_t)n;
        connection->out_at =
            connection->n_out == 0 ? 0 : (connection->out_at + (size_t)n) % out_bytes;
    }
    bool full = connection->n_out > 0;
    struct epoll_event event = {.events = full ? EPOLLIN | EPOLLOUT : EPOLLIN,
                                .data.ptr = connection};
    if (full != connection->full) {
        epoll_ctl(poller, EPOLL_CTL_MOD, connection->fd, &event);
        counts.others++;
        connection->full = full;
    }
}

/* Returns true when the last reply of all has come. */
static bool receive(struct load *load, struct connection *connection)
{
    uint8_t *bytes = connection->in;
    ssize_t n = recv(connection->fd, bytes + connection->n_in, in_bytes - connection->n_in, 0);
    counts.receives++;
    if (n <= 0) {
        fail("raw_client: receiving");
    }
    size_t all = connection->n_in + (size_t)n;
    size_t at = 0;
    bool last = false;
    for (; all - at >= frame_bytes; at += frame_bytes) {
        uint64_t start;
        memcpy(&start, bytes + at + 4, sizeof(start));
        last = load_done(load, start);
        put_frame(load, connection);
    }
    connection->n_in = all - at;
    if (at > 0) {
        memmove(bytes, bytes + at, connection->n_in);
    }
    flush(connection);
    return last;
}

int main(int argc, char **argv)
{
    struct load load;
    load_parse(&load, &counts, argc, argv);
    frame_bytes = 4 + (size_t)load.text_bytes;
    in_bytes = frame_bytes + RAW_BUFFER_BYTES;
    out_bytes = load.n_in_flight * frame_bytes;
    struct sockaddr_in address = raw_address(load.target);
    struct connection *connections = calloc(load.n_connections, sizeof(*connections));
    poller = epoll_create1(EPOLL_CLOEXEC);
    if (connections == NULL || poller < 0) {
        fail("raw_client: starting");
    }
    for (uint32_t i = 0; i < load.n_connections; i++) {
        struct connection *connection = &connections[i];
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
        connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        raw_tune(connection->fd);
        connection->in = malloc(in_bytes);
        connection->out = malloc(out_bytes);
        if (connection->in == NULL || connection->out == NULL ||
            connect(connection->fd, (struct sockaddr *)&address, sizeof(address)) != 0 ||
            epoll_ctl(poller, EPOLL_CTL_ADD, connection->fd, &event) != 0) {
            fail("raw_client: connecting");
        }
        for (uint32_t k = 0; k < load.n_in_flight; k++) {
            put_frame(&load, connection);
        }
        flush(connection);
    }
    bool last = false;
    while (!last) {
        struct epoll_event ready[64];
        int n = epoll_wait(poller, ready, 64, -1);
        counts.others++;
        for (int i = 0; i < n && !last; i++) {
            if ((ready[i].events & EPOLLOUT) != 0) {
                flush(ready[i].data.ptr);
            }
            if ((ready[i].events & ~(uint32_t)EPOLLOUT) != 0) {
                last = receive(&load, ready[i].data.ptr);
            }
        }
    }
    load_print(&load);
    return 0;
}
