/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Streaming calls of a simulated client: it sends so many messages as the stream takes, ends its
 * side, and checks what comes back: in order, whole, its own, none while it is paused, and all
 * of it before an OK.
 */

#include "world.h"

#include <errno.h>

#define MAX_PAUSE_NS (100 * SIM_MS)

static int index_of(const struct sim_call *call)
{
    return (int)(call - call->world->calls);
}

static int send_one(struct sim_call *call)
{
    Sim__Request message = SIM__REQUEST__INIT;

    message.number = sim_number(call, call->n_sent - 1);
    sim_fill(message.number, call->request_bytes, &message.payload);
    return bow_stream_send(call->stream, &message.base);
}

static void on_send_failed(struct sim_call *call, int rc)
{
    bool is_short = rc == -ENOMEM && sim_is_short_of_memory(call);

    if (rc != -EAGAIN && rc != -ECANCELED && !is_short) {
        sim_violate(call->world, "a message of call %d failed with %d", index_of(call), rc);
    }
    if (rc == -ENOMEM) {
        bow_stream_cancel(call->stream);
        call->is_cancelled = true;
    }
}

void sim_client_send(struct sim_call *call)
{
    if (call->kind == SIM_DOWNLOAD || call->is_done) {
        return;
    }
    while (call->n_sent < call->n_requests) {
        /* The other side may have it before this returns. */
        call->n_sent++;
        int rc = send_one(call);
        if (rc != 0) {
            call->n_sent--;
            on_send_failed(call, rc);
            return;
        }
    }
    if (!call->has_half_closed) {
        call->has_half_closed = true;
        int rc = bow_stream_half_close(call->stream);
        if (rc != 0 && rc != -ECANCELED) {
            sim_violate(call->world, "half-closing call %d failed with %d", index_of(call), rc);
        }
    }
}

static void pause_for_a_while(struct sim_call *call)
{
    uint64_t pause_ns = sim_below(&call->world->net, MAX_PAUSE_NS);

    if (call->n_received - 1 != call->pause_at || !sim_sleep(call, false, pause_ns)) {
        return;
    }
    call->is_paused = true;
    call->paused_ns += pause_ns;
    bow_stream_pause(call->stream);
}

void sim_client_resume(struct sim_call *call)
{
    call->is_paused = false;
    if (call->is_done) {
        return;
    }
    bow_stream_resume(call->stream);
    sim_machine_wake(call->client->machine);
}

static void on_message(struct sim_call *call, const Sim__Reply *message)
{
    if (call->is_done || call->is_paused) {
        sim_violate(call->world, "call %d: a message to a stream that is paused or has ended",
                    index_of(call));
    }
    sim_client_check_reply(call, message, call->n_received);
    call->n_received++;
    if (call->n_received > call->n_said) {
        sim_violate(call->world, "call %d: more came back than was sent", index_of(call));
    }
    pause_for_a_while(call);
}

static void on_closed(struct sim_call *call, const struct bow_result *result)
{
    int n = call->kind == SIM_UPLOAD ? 0 : call->n_replies;

    n = call->behaviour == SIM_END_EARLY ? n / 2 : n;
    if (result->status.code == BOW_OK && call->n_received != n) {
        sim_violate(call->world, "call %d ended well with %d of %d messages", index_of(call),
                    call->n_received, n);
    }
    sim_told_check(call, result);
    bow_stream_unref(call->stream);
    sim_verdict_end(call, &result->status);
}

/* The methods */

static void on_echo_message(struct sim__calls__echo__stream stream, const Sim__Reply *message,
                            void *user)
{
    (void)stream;
    on_message(user, message);
}

static void on_echo_writable(struct sim__calls__echo__stream stream, void *user)
{
    (void)stream;
    sim_client_send(user);
}

static void on_echo_closed(struct sim__calls__echo__stream stream, struct bow_result *result,
                           void *user)
{
    (void)stream;
    on_closed(user, result);
}

static void on_upload_writable(struct sim__calls__upload__stream stream, void *user)
{
    (void)stream;
    sim_client_send(user);
}

static void on_upload_closed(struct sim__calls__upload__stream stream, struct bow_result *result,
                             const Sim__Reply *reply, void *user)
{
    struct sim_call *call = user;

    (void)stream;
    if ((reply != NULL) != (result->status.code == BOW_OK)) {
        sim_violate(call->world, "call %d: a reply means OK", index_of(call));
    } else if (reply != NULL) {
        sim_client_check_reply(call, reply, 0);
    }
    on_closed(call, result);
}

static void on_download_message(struct sim__calls__download__stream stream,
                                const Sim__Reply *message, void *user)
{
    (void)stream;
    on_message(user, message);
}

static void on_download_closed(struct sim__calls__download__stream stream,
                               struct bow_result *result, void *user)
{
    (void)stream;
    on_closed(user, result);
}

static int open_echo(struct sim_call *call, const struct bow_call_options *options)
{
    static const struct sim__calls__echo__stream_events events = {
        .on_message = on_echo_message,
        .on_writable = on_echo_writable,
        .on_closed = on_echo_closed,
    };
    struct sim__calls__echo__stream stream;
    int rc = sim__calls__echo__open(call->client->client, options, &events, call, &stream);

    call->stream = rc == 0 ? stream.stream : NULL;
    return rc;
}

static int open_upload(struct sim_call *call, const struct bow_call_options *options)
{
    static const struct sim__calls__upload__stream_events events = {
        .on_writable = on_upload_writable,
        .on_closed = on_upload_closed,
    };
    struct sim__calls__upload__stream stream;
    int rc = sim__calls__upload__open(call->client->client, options, &events, call, &stream);

    call->stream = rc == 0 ? stream.stream : NULL;
    return rc;
}

static int open_download(struct sim_call *call, const struct bow_call_options *options)
{
    static const struct sim__calls__download__stream_events events = {
        .on_message = on_download_message,
        .on_closed = on_download_closed,
    };
    struct sim__calls__download__stream stream;
    Sim__Request request = SIM__REQUEST__INIT;

    request.number = sim_number(call, 0);
    sim_fill(request.number, call->request_bytes, &request.payload);
    call->n_sent = 1;
    call->has_half_closed = true;
    int rc =
        sim__calls__download__open(call->client->client, &request, options, &events, call, &stream);
    call->stream = rc == 0 ? stream.stream : NULL;
    return rc;
}

int sim_client_open(struct sim_call *call, const struct bow_call_options *options)
{
    switch (call->kind) {
    case SIM_ECHO:
        return open_echo(call, options);
    case SIM_UPLOAD:
        return open_upload(call, options);
    case SIM_DOWNLOAD:
        return open_download(call, options);
    case SIM_SAY:
        break;
    }
    return -EINVAL;
}
