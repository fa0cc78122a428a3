/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The echo client through generated stubs: one client a connection, all on one loop. Arguments:
 * load.h. */

#include "counted_system.h"
#include "echo.bow.h"
#include <bowline/client.h>
#include <bowline/context.h>
#include <bowline/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct slot {
    struct run *run;
    struct bow_client *client;
    uint64_t start_ns;
    char *text;
};

struct run {
    struct load load;
    struct bow_loop *loop;
    struct slot *slots;
    size_t n_slots;
    char *texts; /* of all slots */
    struct bow_client **clients;
    bool failed;
};

/* Of a reply's text, looked at: raw_client looks at no more, and a megabyte takes its time. */
#define CHECKED_BYTES 64

static void start_call(struct slot *slot);

static void finish_run(struct run *run)
{
    for (uint32_t i = 0; i < run->load.n_connections; i++) {
        bow_client_free(run->clients[i]);
    }
    bow_loop_shutdown(run->loop, 0, UINT64_C(1000000000));
}

static void on_reply(struct bow_result *result, const Bench__Text *reply, void *user)
{
    struct slot *slot = user;
    struct run *run = slot->run;
    if (run->failed) {
        return;
    }
    if (reply == NULL || strncmp(reply->text, slot->text, CHECKED_BYTES) != 0) {
        fprintf(stderr, "bowline_client: %s: %s\n", bow_code_name(result->status.code),
                reply == NULL ? result->status.message : "the reply is another call's");
        run->failed = true;
        finish_run(run);
        return;
    }
    if (load_done(&run->load, slot->start_ns)) {
        finish_run(run);
        return;
    }
    start_call(slot);
}

static void start_call(struct slot *slot)
{
    Bench__Text request = BENCH__TEXT__INIT;
    if (slot->run->failed || !load_start(&slot->run->load)) {
        return;
    }
    slot->start_ns = bench_now_ns();
    request.text = slot->text;
    int rc = bench__echo__unary__start(slot->client, &request, NULL, on_reply, slot, NULL);
    if (rc != 0) {
        fprintf(stderr, "bowline_client: starting a call: %s\n", strerror(-rc));
        slot->run->failed = true;
        finish_run(slot->run);
    }
}

static int start_all(void *user)
{
    struct run *run = user;
    for (size_t i = 0; i < run->n_slots; i++) {
        start_call(&run->slots[i]);
    }
    return 0;
}

/* Each slot echoes a text of its own: it begins with its number, so that a crossed reply shows. */
static void make_slots(struct run *run)
{
    for (size_t i = 0; i < run->n_slots; i++) {
        struct slot *slot = &run->slots[i];
        slot->run = run;
        slot->client = run->clients[i % run->load.n_connections];
        slot->text = run->texts + i * ((size_t)run->load.text_bytes + 1);
        snprintf(slot->text, (size_t)run->load.text_bytes + 1, "%-*zu", (int)run->load.text_bytes,
                 i);
    }
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
    run.n_slots = (size_t)run.load.n_connections * run.load.n_in_flight;
    run.slots = calloc(run.n_slots, sizeof(*run.slots));
    run.clients = calloc(run.load.n_connections, sizeof(struct bow_client *));
    run.texts = calloc(run.n_slots, (size_t)run.load.text_bytes + 1);
    if (run.slots == NULL || run.clients == NULL || run.texts == NULL) {
        return 1;
    }
    for (uint32_t i = 0; i < run.load.n_connections; i++) {
        if (bow_client_new(&options, &run.clients[i]) != 0) {
            fprintf(stderr, "bowline_client: bad target '%s'\n", run.load.target);
            return 2;
        }
    }
    make_slots(&run);
    if (bow_loop_execute(run.loop, "start", start_all, &run) != 0 || bow_loop_run(run.loop) != 0) {
        return 1;
    }
    if (!run.failed) {
        load_print(&run.load);
    }
    free(run.slots);
    free(run.texts);
    free(run.clients);
    bow_loop_unref(run.loop);
    bow_context_unref(options.context);
    return run.failed;
}
