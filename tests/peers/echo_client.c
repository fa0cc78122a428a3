/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls Echo for peers.py, so many calls at a time for so many seconds, and prints
 *     CALLS FAILED ENDED SECONDS [ERROR]
 * where ENDED is how often the connection was ready and then was not.
 * Usage: echo_client [-m MESSAGES] [-r] TARGET IN_FLIGHT BYTES SECONDS
 * With -m the calls are streams of so many messages each, and CALLS are messages that came back.
 * With -r it prints a line, and begins when it is sent one.
 */

#include "echo.bow.h"
#include <bowline/client.h>
#include <bowline/context.h>
#include <bowline/loop.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DIGITS 10          /* of the slot's number, with which its body begins */
#define MAX_OUTSTANDING 16 /* messages of a stream that have not come back yet */
#define STREAM_NS UINT64_C(60000000000)

struct run {
    struct bow_loop *loop;
    struct bow_client *client;
    struct slot *slots;
    size_t n_slots;
    size_t n_running;
    size_t n_bytes;
    size_t n_messages; /* of a stream; 0: the calls are unary */
    bool waits;        /* for a line before it begins */
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
    struct peers__echo__talk__stream stream;
    size_t n_sent; /* on it */
    size_t n_back;
    bool half_closed;
};

static void start_call(struct slot *slot);
static void open_stream(struct slot *slot);

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

/* Streams */

/* The digits of a message say whose it is, and which. */
static void put_number(const struct slot *slot, size_t n_before, uint8_t *digits)
{
    char number[32];

    snprintf(number, sizeof(number), "%0*zu", DIGITS,
             (size_t)(slot - slot->run->slots) * slot->run->n_messages + n_before);
    memcpy(digits, number, DIGITS);
}

static void half_close(struct slot *slot)
{
    slot->half_closed = true;
    bow_stream_half_close(slot->stream.stream);
}

static void send_messages(struct slot *slot)
{
    struct run *run = slot->run;
    Peers__Message message = PEERS__MESSAGE__INIT;

    message.body = (ProtobufCBinaryData){.len = run->n_bytes, .data = slot->body};
    while (!slot->half_closed) {
        bool is_late = slot->n_sent > 0 && bow_loop_now(run->loop) >= run->end_ns;
        if (is_late || slot->n_sent == run->n_messages) {
            half_close(slot);
            return;
        }
        if (slot->n_sent - slot->n_back == MAX_OUTSTANDING) {
            return;
        }
        put_number(slot, slot->n_sent, slot->body);
        int rc = peers__echo__talk__stream_send(slot->stream, &message);
        if (rc == -EAGAIN || rc == -ECANCELED) {
            return; /* on_writable, or on_closed, comes */
        }
        if (rc != 0) {
            note_failure(run, "send", strerror(-rc));
            half_close(slot);
            return;
        }
        slot->n_sent++;
    }
}

static void on_writable(struct peers__echo__talk__stream stream, void *user)
{
    (void)stream;
    send_messages(user);
}

static void on_message(struct peers__echo__talk__stream stream, const Peers__Message *message,
                       void *user)
{
    struct slot *slot = user;
    struct run *run = slot->run;
    uint8_t digits[DIGITS];

    (void)stream;
    run->n_calls++;
    put_number(slot, slot->n_back++, digits);
    if (message->body.len != run->n_bytes || memcmp(message->body.data, digits, DIGITS) != 0 ||
        memcmp(message->body.data + DIGITS, slot->body + DIGITS, run->n_bytes - DIGITS) != 0) {
        note_failure(run, "wrong", "the message is another one");
    }
    send_messages(slot);
}

static void on_closed(struct peers__echo__talk__stream stream, struct bow_result *result,
                      void *user)
{
    struct slot *slot = user;

    if (result->status.code != BOW_OK) {
        note_failure(slot->run, bow_code_name(result->status.code), result->status.message);
    } else if (slot->n_back != slot->n_sent) {
        note_failure(slot->run, "wrong", "messages did not come back");
    }
    bow_stream_unref(stream.stream);
    open_stream(slot);
}

static void open_stream(struct slot *slot)
{
    static const struct peers__echo__talk__stream_events events = {
        .on_message = on_message, .on_writable = on_writable, .on_closed = on_closed};
    struct run *run = slot->run;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;

    if (bow_loop_now(run->loop) >= run->end_ns) {
        leave(run);
        return;
    }
    slot->n_sent = slot->n_back = 0;
    slot->half_closed = false;
    options.timeout_ns = STREAM_NS;
    int rc = peers__echo__talk__open(run->client, &options, &events, slot, &slot->stream);
    if (rc != 0) {
        note_failure(run, "open", strerror(-rc));
        leave(run);
        return;
    }
    send_messages(slot);
}

/* The run */

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
        if (run->n_messages > 0) {
            open_stream(&run->slots[i]);
        } else {
            start_call(&run->slots[i]);
        }
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

static bool parse(struct run *run, int argc, char **argv)
{
    int option;

    while ((option = getopt(argc, argv, "m:r")) != -1) {
        switch (option) {
        case 'm':
            run->n_messages = strtoull(optarg, NULL, 10);
            break;
        case 'r':
            run->waits = true;
            break;
        default:
            return false;
        }
    }
    if (optind + 4 != argc) {
        return false;
    }
    run->n_slots = strtoull(argv[optind + 1], NULL, 10);
    run->n_bytes = strtoull(argv[optind + 2], NULL, 10);
    run->end_ns = (uint64_t)(strtod(argv[optind + 3], NULL) * 1e9);
    return run->n_bytes >= DIGITS;
}

static void wait_for_line(void)
{
    puts("ready");
    fflush(stdout);
    while (getchar() != '\n' && !feof(stdin)) {
        continue;
    }
}

int main(int argc, char **argv)
{
    struct run run = {0};
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;

    if (!parse(&run, argc, argv)) {
        fprintf(stderr, "usage: echo_client [-m MESSAGES] [-r] TARGET IN_FLIGHT BYTES SECONDS\n");
        return 2;
    }
    loop_options.thread = BOW_LOOP_OWNER;
    options.target = argv[optind];
    options.on_state = on_state;
    options.state_user = &run;
    if (!make_slots(&run) || bow_context_new(NULL, &options.context) != 0 ||
        bow_loop_new(options.context, &loop_options, &run.loop) != 0) {
        return 1;
    }
    options.loop = run.loop;
    if (run.waits) {
        wait_for_line();
    }
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
