/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A message through a pipeline and back: handlers that pass on what comes, between one at the
 * head's side that begins and takes, and one at the tail's that answers. No socket, no clock. */

#include "micro.h"
#include <bowline/embedded.h>
#include <stdio.h>

#define MESSAGES 200000
#define MAX_HANDLERS 8

struct line {
    struct bow_handler begin;
    struct bow_handler between[MAX_HANDLERS];
    struct bow_handler echo;
    int n;
    uint64_t n_back;
};

static size_t pass_read(struct bow_handler *handler, const struct bow_buf *bytes)
{
    return bow_handler_fire_read(handler, bytes);
}

static int pass_write(struct bow_handler *handler, struct bow_buf *buf, bow_write_fn done,
                      void *user)
{
    return bow_handler_write(handler, buf, done, user);
}

static size_t answer(struct bow_handler *handler, const struct bow_buf *bytes)
{
    struct bow_buf reply = bow_buf_borrow(bytes->data, bytes->len);
    int rc = bow_handler_write(handler, &reply, NULL, NULL);
    if (rc < 0) {
        micro_fail("bow_handler_write", rc);
    }
    return bytes->len;
}

static int take(struct bow_handler *handler, struct bow_buf *buf, bow_write_fn done, void *user)
{
    struct line *line = (struct line *)(void *)handler;
    (void)buf;
    (void)done;
    (void)user;
    line->n_back++;
    return 0;
}

static const struct bow_handler_ops begin_ops = {.name = "begin", .on_write = take};
static const struct bow_handler_ops pass_ops = {
    .name = "pass", .on_read = pass_read, .on_write = pass_write};
static const struct bow_handler_ops echo_ops = {.name = "echo", .on_read = answer};

static int on_channel(struct bow_channel *channel, void *user)
{
    struct line *line = user;
    line->begin.ops = &begin_ops;
    bow_channel_add_last(channel, &line->begin);
    for (int i = 0; i < line->n; i++) {
        line->between[i].ops = &pass_ops;
        bow_channel_add_last(channel, &line->between[i]);
    }
    line->echo.ops = &echo_ops;
    bow_channel_add_last(channel, &line->echo);
    return 0;
}

static double there_and_back(void *user)
{
    static const uint8_t text[BENCH_TEXT_BYTES];
    const struct bow_buf message = bow_buf_borrow(text, sizeof(text));
    struct line *line = user;
    line->n_back = 0;
    uint64_t begin_ns = bench_now_ns();
    for (int i = 0; i < MESSAGES; i++) {
        (void)bow_handler_fire_read(&line->begin, &message);
    }
    uint64_t took_ns = bench_now_ns() - begin_ns;
    if (line->n_back != MESSAGES) {
        micro_fail("messages were lost", 0);
    }
    return (double)took_ns / MESSAGES;
}

static void measure(struct bow_context *context, int n)
{
    struct bow_embedded_options options = BOW_EMBEDDED_OPTIONS_INIT;
    struct bow_embedded *embedded;
    struct line line = {.n = n};
    char name[64];
    options.channel.on_channel = on_channel;
    options.channel.user = &line;
    int rc = bow_embedded_new(context, &options, &embedded);
    if (rc < 0) {
        micro_fail("bow_embedded_new", rc);
    }
    snprintf(name, sizeof(name), "through %d handler%s and back", n, n == 1 ? "" : "s");
    micro_run(name, there_and_back, &line);
    bow_embedded_free(embedded);
}

int main(void)
{
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context;
    int rc = bow_context_new(&context_options, &context);
    if (rc < 0) {
        micro_fail("bow_context_new", rc);
    }
    micro_pin(0);
    measure(context, 1);
    measure(context, 4);
    measure(context, MAX_HANDLERS);
    bow_context_unref(context);
    return 0;
}
