/* SPDX-License-Identifier: 0BSD */
/* An echo server over the transport alone: frames of a 32-bit length and that many bytes go back as
 * they came. Usage: transport-echo [ADDRESS [IDLE_SECONDS]] */

#include <bowline/channel.h>
#include <bowline/frame_codec.h>
#include <bowline/idle.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The memory that comes with each channel: its handlers. */
struct connection {
    struct bow_idle idle;
    struct bow_frame_codec frames;
    struct bow_handler echo;
};

static void on_active(struct bow_handler *handler)
{
    printf("%s: connected\n", bow_channel_peer(handler->channel));
}

/* One call for each frame, whole. */
static size_t on_read(struct bow_handler *handler, const struct bow_buf *frame)
{
    int rc = bow_channel_write(handler->channel, frame, NULL, NULL); /* copies it */
    if (rc < 0) {
        bow_channel_close(handler->channel, rc);
    }
    return frame->len;
}

/* The frames of one read leave with one system call. */
static void on_read_complete(struct bow_handler *handler)
{
    bow_channel_flush(handler->channel);
}

/* A peer that sends and does not read must not fill our memory. */
static void on_writable(struct bow_handler *handler, bool writable)
{
    if (writable) {
        bow_channel_resume_read(handler->channel);
    } else {
        bow_channel_pause_read(handler->channel);
    }
}

static void on_inactive(struct bow_handler *handler, int error)
{
    const char *why = error < 0 ? strerror(-error) : "end of input";
    printf("%s: disconnected: %s\n", bow_channel_peer(handler->channel), why);
}

static const struct bow_handler_ops echo_ops = {
    .name = "echo",
    .on_active = on_active,
    .on_read = on_read,
    .on_read_complete = on_read_complete,
    .on_writable = on_writable,
    .on_inactive = on_inactive,
};

static int on_channel(struct bow_channel *channel, void *user)
{
    const struct bow_frame_codec_options frames = {.max_frame_bytes = 1 << 20, .length_bytes = 4};
    const struct bow_idle_options *idle = user;
    struct connection *connection = bow_channel_data(channel);
    bow_idle_init(&connection->idle, idle);
    connection->echo.ops = &echo_ops;
    int rc = bow_frame_codec_init(&connection->frames, &frames);
    if (rc == 0) {
        bow_channel_add_last(channel, &connection->idle.handler);
        bow_channel_add_last(channel, &connection->frames.handler);
        bow_channel_add_last(channel, &connection->echo);
    }
    return rc;
}

int main(int argc, char **argv)
{
    struct bow_acceptor_options options = BOW_ACCEPTOR_OPTIONS_INIT;
    struct bow_transport_error error = {.text = "no memory or descriptors left"};
    struct bow_idle_options idle = {0}; /* one who is idle is closed with -ETIMEDOUT */
    struct bow_context *context = NULL;
    struct bow_acceptor *acceptor = NULL;
    sigset_t end;
    int number = 0;

    sigemptyset(&end);
    sigaddset(&end, SIGTERM);
    sigaddset(&end, SIGINT);
    pthread_sigmask(SIG_BLOCK, &end, NULL); /* they are waited for below */
    setvbuf(stdout, NULL, _IOLBF, 0);
    idle.reader_ns = (uint64_t)((argc > 2 ? strtod(argv[2], NULL) : 60) * 1e9);
    options.address = argc > 1 ? argv[1] : "127.0.0.1:7007";
    options.channel.data_bytes = sizeof(struct connection);
    options.channel.on_channel = on_channel;
    options.channel.user = &idle;
    if (bow_context_new(NULL, &context) == 0 && bow_loop_new(context, NULL, &options.loop) == 0 &&
        bow_acceptor_new(context, &options, &acceptor, &error) == 0 &&
        bow_acceptor_start(acceptor) == 0) { /* the loop's thread starts with this */
        printf("listening on %s, port %d\n", options.address, (int)bow_acceptor_port(acceptor));
        sigwait(&end, &number);
    } else {
        fprintf(stderr, "transport-echo: %s\n", error.text);
    }
    if (acceptor != NULL) {
        bow_acceptor_close(acceptor, NULL, NULL);
    }
    bow_loop_unref(options.loop); /* closes what is open and waits for the loop's thread */
    bow_context_unref(context);
    return number != 0 ? 0 : 1;
}
