/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls Echo for peers.py, so many calls at a time for so many seconds, and prints
 *     CALLS FAILED ENDED SECONDS [ERROR]
 * where ENDED is how often the connection was ready and then was not.
 * Usage: echo_client TARGET IN_FLIGHT BYTES SECONDS
 */

#include "echo.bow.h"
#include <bowline/client.h>
#include <bowline/context.h>
#include <bowline/loop.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS 10 /* of the slot's number, with which its body begins */

struct run {
    struct bow_loop *loop;
    struct bow_client *client;
    struct slot *slots;
    size_t n_slots;
    size_t n_running;
    size_t n_bytes;
    uint64_t start_ns;
    uint64_t end_ns;
    uint64_t n_calls;
    uint64_t n_failed;
    uint64_t n_ended; /* connections */
    bool ready;
    char error[512]; /* the first */
};

/* One of the calls in flight, again and again. */
struct slot {
    struct run *run;
    uint8_t *body;
};

static void start_call(struct slot *slot);

static void note_failure(struct run *run, const char *code, const char *message)
{
    if (run->n_failed++ == 0) {
        snprintf(run->error, sizeof(run->error), "%s: %s", code, message);
    }
}

static void leave(struct run *run)
{
    if (--run->n_running == 0) {
        run->end_ns = bow_loop_now(run->loop);
        run->ready = false;
        bow_client_free(run->client);
        bow_loop_shutdown(run->loop, 0, UINT64_C(1000000000));
    }
}

static void on_reply(struct bow_result *result, const Peers__Message *reply, void *user)
{
    struct slot *slot = user;
    struct run *run = slot->run;

    run->n_calls++;
    if (reply == NULL) {
        note_failure(run, bow_code_name(result->status.code), result->status.message);
    } else if (reply->body.len != run->n_bytes ||
               memcmp(reply->body.data, slot->body, run->n_bytes) != 0) {
        note_failure(run, "wrong", "the reply is another call's");
    }
    start_call(slot);
}

static void start_call(struct slot *slot)
{
    struct run *run = slot->run;
    Peers__Message request = PEERS__MESSAGE__INIT;

    if (bow_loop_now(run->loop) >= run->end_ns) {
        leave(run);
        return;
    }
    request.body = (ProtobufCBinaryData){.len = run->n_bytes, .data = slot->body};
    int rc = peers__echo__say__start(run->client, &request, NULL, on_reply, slot, NULL);
    if (rc != 0) {
        note_failure(run, "start", strerror(-rc));
        leave(run);
    }
}

static void on_state(struct bow_client *client, struct bow_loop *loop, enum bow_client_state state,
                     void *user)
{
    struct run *run = user;

    (void)client;
    (void)loop;
    if (run->ready && state != BOW_CLIENT_READY) {
        run->n_ended++;
    }
    run->ready = state == BOW_CLIENT_READY && run->n_running > 0;
}

static int begin(void *user)
{
    struct run *run = user;

    run->start_ns = bow_loop_now(run->loop);
    run->end_ns += run->start_ns;
    run->n_running = run->n_slots;
    for (size_t i = 0; i < run->n_slots; i++) {
        start_call(&run->slots[i]);
    }
    return 0;
}

static bool make_slots(struct run *run)
{
    char number[32];

    run->slots = calloc(run->n_slots, sizeof(*run->slots));
    for (size_t i = 0; run->slots != NULL && i < run->n_slots; i++) {
        struct slot *slot = &run->slots[i];
        slot->run = run;
        slot->body = malloc(run->n_bytes);
        if (slot->body == NULL) {
            return false;
        }
        snprintf(number, sizeof(number), "%010zu", i);
        for (size_t k = 0; k < run->n_bytes; k++) {
            slot->body[k] = k < DIGITS ? (uint8_t)number[k] : 'x';
        }
    }
    return run->slots != NULL;
}

static void free_slots(struct run *run)
{
    for (size_t i = 0; run->slots != NULL && i < run->n_slots; i++) {
        free(run->slots[i].body);
    }
    free(run->slots);
}

int main(int argc, char **argv)
{
    struct run run = {0};
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;

    if (argc != 5) {
        fprintf(stderr, "usage: echo_client TARGET IN_FLIGHT BYTES SECONDS\n");
        return 2;
    }
    run.n_slots = strtoull(argv[2], NULL, 10);
    run.n_bytes = strtoull(argv[3], NULL, 10);
    run.end_ns = (uint64_t)(strtod(argv[4], NULL) * 1e9);
    loop_options.thread = BOW_LOOP_OWNER;
    options.target = argv[1];
    options.on_state = on_state;
    options.state_user = &run;
    if (!make_slots(&run) || bow_context_new(NULL, &options.context) != 0 ||
        bow_loop_new(options.context, &loop_options, &run.loop) != 0) {
        return 1;
    }
    options.loop = run.loop;
    if (bow_client_new(&options, &run.client) != 0 ||
        bow_loop_execute(run.loop, "begin", begin, &run) != 0 || bow_loop_run(run.loop) != 0) {
        return 1;
    }
    printf("%" PRIu64 " %" PRIu64 " %" PRIu64 " %.3f %s\n", run.n_calls, run.n_failed, run.n_ended,
           (double)(run.end_ns - run.start_ns) / 1e9, run.error);
    free_slots(&run);
    bow_loop_unref(run.loop);
    bow_context_unref(options.context);
    return 0;
}
