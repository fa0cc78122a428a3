/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The raw server's echo over libuv, as somebody who knows libuv writes it: one receive buffer for
 * all connections, the frames of a read batched into one write, which is tried at once
 * and queued only when the socket is full. Usage: uv_echo HOST:PORT
 */

#include "raw.h"
#include <arpa/inet.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

struct peer {
    uv_tcp_t tcp;
    uv_write_t write;
    size_t n_in;  /* unread tail of the last receive */
    size_t n_out; /* echoed bytes the socket did not take yet */
    uint8_t in[RAW_FRAME_BYTES];
    uint8_t out[RAW_BUFFER_BYTES + RAW_FRAME_BYTES];
};

static struct io_counts counts;
static char *buffer; /* with room for a tail in front */

static void on_close(uv_handle_t *handle)
{
    free(handle->data);
}

static void drop(struct peer *peer)
{
    if (!uv_is_closing((uv_handle_t *)&peer->tcp)) {
        uv_close((uv_handle_t *)&peer->tcp, on_close);
    }
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *ret_buf)
{
    (void)handle;
    (void)suggested;
    *ret_buf = uv_buf_init(buffer + RAW_FRAME_BYTES, (unsigned)RAW_BUFFER_BYTES);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf);

static void on_written(uv_write_t *write, int status)
{
    struct peer *peer = write->data;
    peer->n_out = 0;
    if (status < 0) {
        drop(peer);
    } else {
        uv_read_start((uv_stream_t *)&peer->tcp, on_alloc, on_read);
    }
}

static void flush(struct peer *peer)
{
    uv_stream_t *stream = (uv_stream_t *)&peer->tcp;
    uv_buf_t all = uv_buf_init((char *)peer->out, (unsigned)peer->n_out);
    int n = uv_try_write(stream, &all, 1);
    counts.sends++;
    if (n >= 0 && (size_t)n == peer->n_out) {
        peer->n_out = 0;
        return;
    }
    if (n < 0 && n != UV_EAGAIN) {
        drop(peer);
        return;
    }
    size_t sent = n > 0 ? (size_t)n : 0;
    uv_buf_t rest = uv_buf_init(all.base + sent, (unsigned)(peer->n_out - sent));
    uv_read_stop(stream);
    if (uv_write(&peer->write, stream, &rest, 1, on_written) != 0) {
        drop(peer);
    }
}

/* Cut the bytes into frames and echo each into the output; false when one has another length. */
static bool echo(struct peer *peer, const uint8_t *bytes, size_t n)
{
    size_t at = 0;
    while (n - at >= 4) {
        uint32_t length;
        memcpy(&length, bytes + at, 4);
        size_t frame = 4 + (size_t)ntohl(length);
        if (frame != RAW_FRAME_BYTES) {
            return false;
        }
        if (n - at < frame) {
            break;
        }
        memcpy(peer->out + peer->n_out, bytes + at, frame);
        peer->n_out += frame;
        at += frame;
    }
    peer->n_in = n - at;
    memcpy(peer->in, bytes + at, peer->n_in);
    return true;
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buf)
{
    struct peer *peer = stream->data;
    counts.receives++;
    if (n == 0) {
        return; /* EAGAIN */
    }
    if (n < 0) {
        drop(peer);
        return;
    }
    uint8_t *bytes = (uint8_t *)buf->base - peer->n_in;
    memcpy(bytes, peer->in, peer->n_in);
    if (!echo(peer, bytes, peer->n_in + (size_t)n)) {
        drop(peer);
    } else if (peer->n_out > 0) {
        flush(peer);
    }
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct peer *peer = status == 0 ? calloc(1, sizeof(*peer)) : NULL;
    if (peer == NULL || uv_tcp_init(listener->loop, &peer->tcp) != 0) {
        free(peer);
        return;
    }
    peer->tcp.data = peer;
    peer->write.data = peer;
    if (uv_accept(listener, (uv_stream_t *)&peer->tcp) != 0 || uv_tcp_nodelay(&peer->tcp, 1) != 0 ||
        uv_read_start((uv_stream_t *)&peer->tcp, on_alloc, on_read) != 0) {
        drop(peer);
    }
}

static void on_signal(uv_signal_t *signal, int number)
{
    (void)number;
    uv_stop(signal->loop);
}

static void on_walk(uv_handle_t *handle, void *user)
{
    (void)user;
    if (!uv_is_closing(handle)) {
        uv_close(handle, handle->data != NULL ? on_close : NULL);
    }
}

/* An accepted socket inherits its listener's options. */
static int listen_on(uv_tcp_t *listener, const struct sockaddr_in *address)
{
    int fd = -1;
    int rc = uv_tcp_bind(listener, (const struct sockaddr *)address, 0);
    if (rc == 0) {
        rc = uv_fileno((uv_handle_t *)listener, &fd);
    }
    if (rc == 0) {
        raw_tune(fd);
        rc = uv_listen((uv_stream_t *)listener, 128, on_connection);
    }
    return rc;
}

int main(int argc, char **argv)
{
    struct sockaddr_in address = raw_address(argc == 2 ? argv[1] : "");
    uv_loop_t *loop = uv_default_loop();
    uv_tcp_t listener = {.data = NULL};
    uv_signal_t term = {.data = NULL};
    buffer = malloc(RAW_FRAME_BYTES + RAW_BUFFER_BYTES);
    uv_tcp_init_ex(loop, &listener, AF_INET);
    uv_signal_init(loop, &term);
    uv_signal_start(&term, on_signal, SIGTERM);
    int rc = listen_on(&listener, &address);
    if (rc < 0 || buffer == NULL) {
        fprintf(stderr, "uv_echo: listening: %s\n", uv_strerror(rc));
        return 1;
    }
    uv_run(loop, UV_RUN_DEFAULT);
    uv_walk(loop, on_walk, NULL);
    uv_run(loop, UV_RUN_DEFAULT);
    uv_loop_close(loop);
    free(buffer);
    printf("{\"receives\": %" PRIu64 ", \"sends\": %" PRIu64 "}\n", counts.receives, counts.sends);
    return 0;
}
