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

struct connection {
    int fd;
    size_t n_in;
    size_t n_out;
    uint8_t in[RAW_FRAME_BYTES];
    uint8_t *out; /* room for all frames in flight */
};

static struct io_counts counts;

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
    uint8_t *frame = connection->out + connection->n_out;
    uint32_t length = htonl(BENCH_TEXT_BYTES);
    uint64_t now = bench_now_ns();
    memset(frame, 'x', RAW_FRAME_BYTES);
    memcpy(frame, &length, 4);
    memcpy(frame + 4, &now, sizeof(now));
    connection->n_out += RAW_FRAME_BYTES;
}

static void flush(struct connection *connection)
{
    if (connection->n_out == 0) {
        return;
    }
    ssize_t n = send(connection->fd, connection->out, connection->n_out, MSG_NOSIGNAL);
    counts.sends++;
    if (n < 0) {
        fail("raw_client: sending");
    }
    memmove(connection->out, connection->out + n, connection->n_out - (size_t)n);
    connection->n_out -= (size_t)n;
}

/* Returns true when the last reply of all has come. */
static bool receive(struct load *load, struct connection *connection, uint8_t *buffer)
{
    memcpy(buffer, connection->in, connection->n_in);
    ssize_t n =
        recv(connection->fd, buffer + connection->n_in, RAW_BUFFER_BYTES - connection->n_in, 0);
    counts.receives++;
    if (n <= 0) {
        fail("raw_client: receiving");
    }
    size_t all = connection->n_in + (size_t)n;
    size_t at = 0;
    bool last = false;
    for (; all - at >= RAW_FRAME_BYTES; at += RAW_FRAME_BYTES) {
        uint64_t start;
        memcpy(&start, buffer + at + 4, sizeof(start));
        last = load_done(load, start);
        put_frame(load, connection);
    }
    connection->n_in = all - at;
    memcpy(connection->in, buffer + at, connection->n_in);
    flush(connection);
    return last;
}

int main(int argc, char **argv)
{
    struct load load;
    load_parse(&load, argc, argv);
    struct sockaddr_in address = raw_address(load.target);
    struct connection *connections = calloc(load.n_connections, sizeof(*connections));
    uint8_t *buffer = malloc(RAW_BUFFER_BYTES);
    int poller = epoll_create1(EPOLL_CLOEXEC);
    if (connections == NULL || buffer == NULL || poller < 0) {
        fail("raw_client: starting");
    }
    for (uint32_t i = 0; i < load.n_connections; i++) {
        struct connection *connection = &connections[i];
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
        connection->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        raw_tune(connection->fd);
        connection->out = malloc((size_t)load.n_in_flight * RAW_FRAME_BYTES);
        if (connection->out == NULL ||
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
        for (int i = 0; i < n && !last; i++) {
            last = receive(&load, ready[i].data.ptr, buffer);
        }
    }
    load_print(&load, &counts);
    return 0;
}
