/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The raw server's echo through a pipeline: the frame codec cuts, a handler sends each frame back.
 * Usage: transport_server HOST:PORT */

#include "counted_system.h"
#include "raw.h"
#include <bowline/channel.h>
#include <bowline/frame_codec.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

struct connection {
    struct bow_frame_codec frames;
    struct bow_handler echo;
};

static struct bow_loop *loop;
static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
    (void)number;
    stopped = 1;
    bow_loop_wake(loop);
}

static size_t on_read(struct bow_handler *handler, const struct bow_buf *frame)
{
    struct bow_buf reply = bow_buf_borrow(frame->data, frame->len);
    int rc = bow_handler_write(handler, &reply, NULL, NULL);
    if (rc < 0) {
        bow_handler_close(handler, rc);
    }
    return frame->len;
}

static void on_read_complete(struct bow_handler *handler)
{
    bow_handler_flush(handler);
}

static const struct bow_handler_ops echo_ops = {
    .name = "echo",
    .on_read = on_read,
    .on_read_complete = on_read_complete,
};

static int on_channel(struct bow_channel *channel, void *user)
{
    const struct bow_frame_codec_options frames = {.max_frame_bytes = RAW_BUFFER_BYTES,
                                                   .length_bytes = 4};
    struct connection *connection = bow_channel_data(channel);
    (void)user;
    connection->echo.ops = &echo_ops;
    int rc = bow_frame_codec_init(&connection->frames, &frames);
    if (rc == 0) {
        bow_channel_add_last(channel, &connection->frames.handler);
        bow_channel_add_last(channel, &connection->echo);
    }
    return rc;
}

static int serve(struct bow_context *context, const char *address)
{
    const struct sigaction action = {.sa_handler = on_signal};
    struct bow_acceptor_options options = BOW_ACCEPTOR_OPTIONS_INIT;
    struct bow_transport_error error;
    struct bow_acceptor *acceptor;

    options.address = address;
    options.loop = loop;
    options.channel.data_bytes = sizeof(struct connection);
    options.channel.on_channel = on_channel;
    int rc = bow_acceptor_new(context, &options, &acceptor, &error);
    if (rc < 0) {
        fprintf(stderr, "transport_server: %s\n", error.text);
        return rc;
    }
    sigaction(SIGTERM, &action, NULL);
    rc = bow_acceptor_start(acceptor);
    while (rc == 0 && !stopped) {
        rc = bow_loop_run_once(loop, BOW_NEVER);
    }
    bow_acceptor_close(acceptor, NULL, NULL);
    return rc;
}

int main(int argc, char **argv)
{
    struct io_counts counts = {0};
    struct bow_system system = counted_system(&counts);
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct bow_context *context = NULL;
    context_options.system = &system;
    loop_options.thread = BOW_LOOP_OWNER;
    if (argc != 2 || bow_context_new(&context_options, &context) != 0 ||
        bow_loop_new(context, &loop_options, &loop) != 0) {
        fprintf(stderr, "usage: %s HOST:PORT\n", argv[0]);
        return 2;
    }
    int rc = serve(context, argv[1]);
    bow_loop_unref(loop);
    bow_context_unref(context);
    printf("{\"receives\": %" PRIu64 ", \"sends\": %" PRIu64 "}\n", counts.receives, counts.sends);
    return rc != 0;
}
