/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The streaming handlers of a simulated server. Echo sends each message back, Upload counts
 * them, Download sends as many as are planned; each may pause, fail, or end early. What it is
 * told is checked: messages in order and whole, none while it is paused or after the end, the
 * half-close once, on_closed last and once.
 */

#include "world.h"

#include <errno.h>

#define MAX_PAUSE_NS (60 * SIM_MS)

/** A stream that is being served; in the call's memory. */
struct sim_served {
    struct sim_server *server;
    struct sim_call *of;
    struct bow_call *call;
    int n_due; /* replies to be sent for what has come */
    bool is_full;
};

static int index_of(const struct sim_call *call)
{
    return (int)(call - call->world->calls);
}

/* The client knows how many: early is after half of them. */
static int last_of(const struct sim_call *of)
{
    int n = of->kind == SIM_UPLOAD ? of->n_requests : of->n_replies;

    return of->behaviour == SIM_END_EARLY ? n / 2 : n;
}

static bool is_short(const struct sim_served *served)
{
    return served->server->machine.memory_failed_ns > 0;
}

static void fail_for_memory(struct sim_served *served)
{
    sim_server_answered(served->of, BOW_RESOURCE_EXHAUSTED,
                        bow_call_fail(served->call, BOW_RESOURCE_EXHAUSTED, "no memory"));
}

static void fail_as_asked(struct sim_served *served)
{
    sim_server_answered(served->of, BOW_ABORTED, sim_told_fail(served->call, served->of));
}

static void finish(struct sim_served *served)
{
    struct sim_call *of = served->of;

    if (of->kind == SIM_UPLOAD) {
        sim_server_answer(served->call, of);
        return;
    }
    sim_server_answered(of, BOW_OK, bow_call_finish(served->call));
}

/* Every second world's messages are payloads that were encoded before. */
static int send_one(struct sim_served *served, uint64_t number)
{
    Sim__Reply reply = SIM__REPLY__INIT;
    struct bow_payload *payload = NULL;

    reply.number = number;
    sim_fill(number, served->of->reply_bytes, &reply.payload);
    if (served->of->world->net.seed % 2 == 0) {
        return bow_call_send(served->call, &reply.base);
    }
    int rc = bow_payload_new(served->server->machine.context, &reply.base, &payload);
    if (rc == 0) {
        rc = bow_call_send_payload(served->call, payload);
        bow_payload_unref(payload);
    }
    return rc;
}

/* Send what is due. Returns whether the call goes on. */
static bool send_due(struct sim_served *served)
{
    struct sim_call *of = served->of;

    served->is_full = false;
    while (of->n_said < served->n_due) {
        int rc = send_one(served, sim_number(of, of->n_said));
        if (rc == -EAGAIN) {
            served->is_full = true;
            return true;
        }
        if (rc == -ENOMEM && is_short(served)) {
            fail_for_memory(served);
            return false;
        }
        if (rc == -ECANCELED) {
            return true; /* on_closed comes */
        }
        if (rc != 0) {
            sim_violate(of->world, "a message to call %d failed with %d", index_of(of), rc);
        }
        of->n_said++;
    }
    return true;
}

/* After something was sent or has come. */
static void go_on(struct sim_served *served)
{
    struct sim_call *of = served->of;

    if (of->is_served) {
        return;
    }
    bool is_all = of->kind == SIM_UPLOAD ? of->n_heard >= last_of(of) : of->n_said == last_of(of);
    if (of->behaviour == SIM_FAIL && (of->n_heard > 0 || of->n_said > 0 || of->has_ended)) {
        fail_as_asked(served);
    } else if (is_all &&
               (of->behaviour == SIM_END_EARLY || of->kind == SIM_DOWNLOAD || of->has_ended)) {
        finish(served);
    }
}

static void pause_for_a_while(struct sim_served *served)
{
    struct sim_call *of = served->of;

    if (of->n_heard - 1 != of->serving_pause_at || of->is_served ||
        !sim_sleep(of, true, sim_below(&of->world->net, MAX_PAUSE_NS))) {
        return;
    }
    of->is_serving_paused = true;
    bow_call_pause(served->call);
}

void sim_server_resume(struct sim_call *call)
{
    call->is_serving_paused = false;
    if (call->served == NULL) {
        return;
    }
    if (!call->served->is_full) {
        bow_call_resume(call->served->call);
    }
    sim_machine_wake(&call->served->server->machine);
}

static void on_message(struct sim_served *served, const Sim__Request *message)
{
    struct sim_call *of = served->of;

    if (of->served != served || of->has_ended || of->is_serving_paused || served->is_full) {
        sim_violate(of->world, "call %d: a message to a stream that is paused or has ended",
                    index_of(of));
    }
    if (of->is_served) {
        sim_violate(of->world, "call %d: a message after the answer", index_of(of));
    }
    if (message->number != sim_number(of, of->n_heard) ||
        !sim_is_filled(message->number, of->request_bytes, &message->payload)) {
        sim_violate(of->world, "call %d: message %d is not its own", index_of(of), of->n_heard);
    }
    of->n_heard++;
    if (of->n_heard > of->n_sent) {
        sim_violate(of->world, "call %d: more has come than was sent", index_of(of));
    }
    if (of->kind == SIM_ECHO && of->behaviour != SIM_FAIL && served->n_due < last_of(of)) {
        served->n_due++;
        if (!send_due(served)) {
            return;
        }
        if (served->is_full) {
            bow_call_pause(served->call);
        }
    }
    go_on(served);
    pause_for_a_while(served);
}

static void on_half_close(struct sim_served *served)
{
    struct sim_call *of = served->of;

    if (of->served != served || of->has_ended || of->is_served) {
        sim_violate(of->world, "call %d: the client's end came twice or late", index_of(of));
    }
    if (!of->has_half_closed || of->n_heard != of->n_requests) {
        sim_violate(of->world, "call %d: the client's end came after %d of %d messages",
                    index_of(of), of->n_heard, of->n_requests);
    }
    of->has_ended = true;
    go_on(served);
}

static void on_writable(struct sim_served *served)
{
    struct sim_call *of = served->of;
    bool was_full = served->is_full;

    if (of->is_served || !send_due(served)) {
        return;
    }
    go_on(served);
    if (!of->is_served && of->kind == SIM_ECHO && was_full && !served->is_full &&
        !of->is_serving_paused) {
        bow_call_resume(served->call);
    }
}

static void on_closed(struct sim_served *served, const struct bow_status *status)
{
    struct sim_call *of = served->of;

    if (of->served != served) {
        sim_violate(of->world, "call %d was closed twice", index_of(of));
    }
    if (!of->is_served && status->code == BOW_OK) {
        sim_violate(of->world, "call %d was closed with OK and never answered", index_of(of));
    }
    of->served = NULL;
    of->is_served = true;
}

/* Returns NULL when there is no memory, and the call is answered. */
static struct sim_served *enter(struct sim_server *server, struct bow_call *call)
{
    const struct bow_slice *number = bow_metadata_find(bow_call_metadata(call), "number-bin");
    uint64_t value = 0;

    for (size_t i = 0; number != NULL && i < number->len; i++) {
        value = value << 8 | number->data[i];
    }
    struct sim_call *of = number != NULL ? sim_call_of(server->machine.world, value) : NULL;
    sim_verdict_enter(server, call, of);
    if (of != NULL) {
        sim_told_enter(call, of);
    }
    struct sim_served *served = bow_call_alloc(call, sizeof(*served));
    if (of == NULL || served == NULL) {
        int rc = bow_call_fail(call, BOW_RESOURCE_EXHAUSTED, "no memory");
        if (of != NULL) {
            sim_server_answered(of, BOW_RESOURCE_EXHAUSTED, rc);
        }
        return NULL;
    }
    *served = (struct sim_served){.server = server, .of = of, .call = call};
    of->served = served;
    return served;
}

/* The methods */

static void on_echo_message(struct sim__calls__echo__call call, const Sim__Request *message,
                            void *user)
{
    (void)call;
    on_message(user, message);
}

static void on_echo_half_close(struct sim__calls__echo__call call, void *user)
{
    (void)call;
    on_half_close(user);
}

static void on_echo_writable(struct sim__calls__echo__call call, void *user)
{
    (void)call;
    on_writable(user);
}

static void on_echo_closed(struct sim__calls__echo__call call, const struct bow_status *status,
                           void *user)
{
    (void)call;
    on_closed(user, status);
}

void sim_server_echo(struct sim__calls__echo__call call, void *user)
{
    static const struct sim__calls__echo__call_events events = {
        .on_message = on_echo_message,
        .on_half_close = on_echo_half_close,
        .on_writable = on_echo_writable,
        .on_closed = on_echo_closed,
    };
    struct sim_served *served = enter(user, call.call);

    if (served != NULL) {
        (void)sim__calls__echo__listen(call, &events, served);
    }
}

static void on_upload_message(struct sim__calls__upload__call call, const Sim__Request *message,
                              void *user)
{
    (void)call;
    on_message(user, message);
}

static void on_upload_half_close(struct sim__calls__upload__call call, void *user)
{
    (void)call;
    on_half_close(user);
}

static void on_upload_closed(struct sim__calls__upload__call call, const struct bow_status *status,
                             void *user)
{
    (void)call;
    on_closed(user, status);
}

void sim_server_upload(struct sim__calls__upload__call call, void *user)
{
    static const struct sim__calls__upload__call_events events = {
        .on_message = on_upload_message,
        .on_half_close = on_upload_half_close,
        .on_closed = on_upload_closed,
    };
    struct sim_served *served = enter(user, call.call);

    if (served != NULL) {
        (void)sim__calls__upload__listen(call, &events, served);
    }
}

static void on_download_writable(struct sim__calls__download__call call, void *user)
{
    (void)call;
    on_writable(user);
}

static void on_download_closed(struct sim__calls__download__call call,
                               const struct bow_status *status, void *user)
{
    (void)call;
    on_closed(user, status);
}

void sim_server_download(struct sim__calls__download__call call, const Sim__Request *request,
                         void *user)
{
    static const struct sim__calls__download__call_events events = {
        .on_writable = on_download_writable,
        .on_closed = on_download_closed,
    };
    struct sim_served *served = enter(user, call.call);

    if (served == NULL) {
        return;
    }
    if (request->number != sim_number(served->of, 0)) {
        sim_violate(served->of->world, "call %d was asked for by another", index_of(served->of));
    }
    (void)sim__calls__download__listen(call, &events, served);
    served->of->n_heard = 1;
    served->n_due = last_of(served->of);
    if (served->of->behaviour == SIM_FAIL || send_due(served)) {
        go_on(served);
    }
}
