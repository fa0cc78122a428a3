/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Reads one stream of bowline_server, which must be told the same numbers. Arguments: load.h, with
 * one connection and one in flight. */

#include "counted_system.h"
#include "echo.bow.h"
#include <bowline/client.h>
#include <bowline/context.h>
#include <bowline/loop.h>
#include <bowline/stream.h>
#include <stdio.h>
#include <string.h>

struct run {
    struct load load;
    struct bow_loop *loop;
    struct bow_client *client;
    uint64_t last_ns; /* when the message before came */
    bool complete;
};

static void on_message(struct bench__fan__listen__stream stream, const Bench__Text *message,
                       void *user)
{
    struct run *run = user;
    uint64_t before_ns = run->last_ns;
    if (strlen(message->text) != run->load.text_bytes || !load_start(&run->load)) {
        fprintf(stderr, "stream_client: another message than it should be\n");
        bow_stream_cancel(stream.stream);
        return;
    }
    run->last_ns = bench_now_ns();
    run->complete = load_done(&run->load, before_ns);
}

static void on_closed(struct bench__fan__listen__stream stream, struct bow_result *result,
                      void *user)
{
    struct run *run = user;
    (void)stream;
    if (result->status.code != BOW_OK) {
        fprintf(stderr, "stream_client: %s: %s\n", bow_code_name(result->status.code),
                result->status.message);
        run->complete = false;
    }
    bow_client_free(run->client);
    bow_loop_shutdown(run->loop, 0, UINT64_C(1000000000));
}

static int open_stream(void *user)
{
    static const struct bench__fan__listen__stream_events events = {.on_message = on_message,
                                                                    .on_closed = on_closed};
    struct run *run = user;
    Bench__Text request = BENCH__TEXT__INIT;
    run->last_ns = bench_now_ns();
    return bench__fan__listen__open(run->client, &request, NULL, &events, run, NULL);
}

int main(int argc, char **argv)
{
    struct run run = {0};
    struct io_counts counts = {0};
    struct bow_system system = counted_system(&counts);
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    load_parse(&run.load, &counts, argc, argv);
    counted_system_poller(&system, &counts);
    context_options.system = &system;
    loop_options.thread = BOW_LOOP_OWNER;
    if (bow_context_new(&context_options, &options.context) != 0 ||
        bow_loop_new(options.context, &loop_options, &run.loop) != 0) {
        return 1;
    }
    options.loop = run.loop;
    options.target = run.load.target;
    if (bow_client_new(&options, &run.client) != 0) {
        fprintf(stderr, "stream_client: bad target '%s'\n", run.load.target);
        return 2;
    }
    if (bow_loop_execute(run.loop, "open", open_stream, &run) != 0 || bow_loop_run(run.loop) != 0) {
        return 1;
    }
    if (run.complete) {
        load_print(&run.load);
    }
    bow_loop_unref(run.loop);
    bow_context_unref(options.context);
    return !run.complete;
}
