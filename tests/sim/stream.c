/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Streaming calls under simulation: the client sends so many messages as the stream takes,
 * the server sends each back, and both end. What comes back is in order, whole and the
 * call's own; an OK means that all of it came.
 */

#include "world.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define MAX_MESSAGE_BYTES 40000

/* The server's side */

struct echo {
    struct sim_server *server;
    bool has_waiting; /* one message that did not fit */
    uint64_t waiting;
    uint32_t waiting_bytes;
    bool is_ended; /* by the client */
    bool fails;    /* after the first message */
};

static void fill(uint64_t number, size_t n, ProtobufCBinaryData *payload)
{
    static uint8_t bytes[MAX_MESSAGE_BYTES];

    memset(bytes, sim_payload_byte(number), n);
    payload->data = bytes;
    payload->len = n;
}

static int send_back(struct calls__echo__stream__call call, uint64_t number, uint32_t n_bytes)
{
    Calls__Reply reply = CALLS__REPLY__INIT;

    reply.number = number;
    fill(number, n_bytes, &reply.payload);
    return calls__echo__stream__send(call, &reply);
}

static void check_sent(struct echo *echo, int rc)
{
    bool is_short = echo->server->machine.no_memory_until_ns > 0;

    if (rc != 0 && rc != -ECANCELED && !(rc == -ENOMEM && is_short)) {
        sim_violate(echo->server->machine.world, "a server's send failed with %d", rc);
    }
}

static void fail_for_memory(struct calls__echo__stream__call call, int rc)
{
    if (rc == -ENOMEM) {
        (void)bow_call_fail(call.call, BOW_RESOURCE_EXHAUSTED, "no memory");
    }
}

static void on_message(struct calls__echo__stream__call call, const Calls__Request *message,
                       void *user)
{
    struct echo *echo = user;

    if (echo->has_waiting || echo->is_ended) {
        sim_violate(echo->server->machine.world, "a message came to a paused or ended stream");
    }
    if (echo->fails) {
        (void)bow_call_fail(call.call, BOW_ABORTED, "as asked");
        return;
    }
    int rc = send_back(call, message->number, message->reply_bytes);
    if (rc == -EAGAIN) {
        echo->has_waiting = true;
        echo->waiting = message->number;
        echo->waiting_bytes = message->reply_bytes;
        bow_call_pause(call.call);
        return;
    }
    check_sent(echo, rc);
    fail_for_memory(call, rc);
}

static void on_writable(struct calls__echo__stream__call call, void *user)
{
    struct echo *echo = user;

    if (!echo->has_waiting) {
        return;
    }
    int rc = send_back(call, echo->waiting, echo->waiting_bytes);
    if (rc == -EAGAIN) {
        return;
    }
    check_sent(echo, rc);
    echo->has_waiting = false;
    fail_for_memory(call, rc);
    if (rc == 0) {
        bow_call_resume(call.call);
    }
}

static void on_half_close(struct calls__echo__stream__call call, void *user)
{
    struct echo *echo = user;

    if (echo->has_waiting) {
        sim_violate(echo->server->machine.world, "the end overtook a message that waits");
    }
    echo->is_ended = true;
    if (echo->fails) {
        (void)bow_call_fail(call.call, BOW_ABORTED, "as asked");
        return;
    }
    calls__echo__stream__finish(call);
}

void sim_server_stream(struct calls__echo__stream__call call, void *user)
{
    static const struct calls__echo__stream__call_events events = {
        .on_message = on_message,
        .on_half_close = on_half_close,
        .on_writable = on_writable,
    };
    struct echo *echo = bow_call_alloc(call.call, sizeof(*echo));
    const struct bow_slice *fails = bow_metadata_find(bow_call_metadata(call.call), "fails");

    if (echo == NULL) {
        (void)bow_call_fail(call.call, BOW_RESOURCE_EXHAUSTED, "no memory");
        return;
    }
    *echo = (struct echo){.server = user, .fails = fails != NULL};
    (void)calls__echo__stream__listen(call, &events, echo);
}

/* The client's side */

static void send_more(struct sim_call *call)
{
    while (call->n_sent < call->n_messages) {
        Calls__Request message = CALLS__REQUEST__INIT;
        message.number = call->number + (uint64_t)call->n_sent;
        message.reply_bytes = call->reply_bytes;
        fill(message.number, call->reply_bytes, &message.payload);
        int rc = calls__echo__stream__stream_send(call->stream, &message);
        if (rc != 0) {
            bool is_short = rc == -ENOMEM && sim_call_is_short_of_memory(call);
            if (rc != -EAGAIN && rc != -ECANCELED && !is_short) {
                sim_violate(call->world, "a client's send failed with %d", rc);
            }
            if (rc == -ENOMEM) {
                bow_stream_cancel(call->stream.stream);
                call->is_cancelled = true;
            }
            return;
        }
        call->n_sent++;
    }
    if (!call->has_half_closed) {
        int rc = bow_stream_half_close(call->stream.stream);
        call->has_half_closed = rc != -ENOMEM;
    }
}

static void on_back(struct calls__echo__stream__stream stream, const Calls__Reply *message,
                    void *user)
{
    struct sim_call *call = user;
    uint64_t expected = call->number + (uint64_t)call->n_received;

    (void)stream;
    if (message->number != expected || message->payload.len != call->reply_bytes) {
        sim_violate(
            call->world, "stream %" PRIu64 ": message %" PRIu64 " (%zu bytes) instead of %d",
            call->number, message->number - call->number, message->payload.len, call->n_received);
    }
    for (size_t i = 0; i < message->payload.len; i += 97) {
        if (message->payload.data[i] != sim_payload_byte(expected)) {
            sim_violate(call->world, "stream %" PRIu64 ": a message is not its own", call->number);
            break;
        }
    }
    call->n_received++;
    if (call->n_received > call->n_sent) {
        sim_violate(call->world, "stream %" PRIu64 ": more came back than was sent", call->number);
    }
}

static void on_room(struct calls__echo__stream__stream stream, void *user)
{
    (void)stream;
    send_more(user);
}

static void on_closed(struct calls__echo__stream__stream stream, struct bow_result *result,
                      void *user)
{
    struct sim_call *call = user;

    (void)stream;
    if (result->status.code == BOW_OK && call->n_received != call->n_messages) {
        sim_violate(call->world, "stream %" PRIu64 " ended well with %d of %d messages",
                    call->number, call->n_received, call->n_messages);
    }
    if (result->status.code == BOW_OK && call->behaviour == SIM_FAIL) {
        sim_violate(call->world, "stream %" PRIu64 " was failed and succeeded", call->number);
    }
    sim_call_end(call, &result->status);
}

void sim_client_stream(struct sim_call *call)
{
    static const struct calls__echo__stream__stream_events events = {
        .on_message = on_back,
        .on_writable = on_room,
        .on_closed = on_closed,
    };
    struct sim_world *world = call->world;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct bow_metadata_entry entry = {"fails", {(const uint8_t *)"yes", 3}};
    struct bow_metadata metadata = {&entry, 1};

    if (call->client->is_freed) {
        return;
    }
    options.timeout_ns = call->deadline_ns;
    options.metadata = call->behaviour == SIM_FAIL ? &metadata : NULL;
    call->started_ns = world->net.now_ns;
    call->deadline_ns += world->net.now_ns;
    sim_tell(&world->net, "%s: stream %d of %d messages of %u bytes, behaviour %d",
             call->client->machine.name, (int)(call - world->calls), call->n_messages,
             call->reply_bytes, (int)call->behaviour);
    int rc =
        calls__echo__stream__open(call->client->client, &options, &events, call, &call->stream);
    if (rc < 0) {
        if (rc != -ENOMEM || !sim_call_is_short_of_memory(call)) {
            sim_violate(world, "stream %" PRIu64 " was refused: %d", call->number, rc);
        }
        return;
    }
    call->is_started = true;
    world->n_open++;
    send_more(call);
    sim_machine_wake(&call->client->machine);
}

void sim_client_cancel_stream(struct sim_call *call)
{
    bow_stream_cancel(call->stream.stream);
}
