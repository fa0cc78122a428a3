/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The streaming methods of TestService. What one is asked for waits in a line: each response comes
 * after its pause, and when the client has room for it.
 */

#include "service.h"
#include <bowline/call_stream.h>
#include <bowline/loop.h>
#include <bowline/timer.h>
#include <errno.h>
#include <stdlib.h>

/* One response that is to come. */
struct wish {
    int32_t size;
    uint64_t pause_ns; /* before it; 0 once it is over */
    bool says_compressed;
    bool compressed;
};

/* A call that pours responses; freed with on_closed. */
struct pouring {
    struct bow_call *call;
    struct bow_timer timer;
    bool waits;   /* for the timer */
    bool is_last; /* no further wish comes */
    bool holds;   /* nothing is sent before that */
    struct wish *wishes;
    size_t n_wishes;
    size_t n_sent;
};

static bool wish(struct pouring *pouring, const Grpc__Testing__StreamingOutputCallRequest *request)
{
    size_t n = pouring->n_wishes + request->n_response_parameters;

    struct wish *wishes = realloc(pouring->wishes, (n + 1) * sizeof(*wishes));
    if (wishes == NULL) {
        bow_call_fail(pouring->call, BOW_RESOURCE_EXHAUSTED, "no memory for what is asked for");
        return false;
    }
    pouring->wishes = wishes;
    for (size_t i = 0; i < request->n_response_parameters; i++) {
        const Grpc__Testing__ResponseParameters *one = request->response_parameters[i];
        wishes[pouring->n_wishes++] = (struct wish){
            .size = one->size,
            .pause_ns = one->interval_us > 0 ? (uint64_t)one->interval_us * 1000 : 0,
            .says_compressed = one->compressed != NULL,
            .compressed = one->compressed != NULL && one->compressed->value != 0,
        };
    }
    return true;
}

/* Returns 0, -EAGAIN, or another errno when the call is over. */
static int send_one(struct pouring *pouring, const struct wish *next)
{
    Grpc__Testing__StreamingOutputCallResponse response =
        GRPC__TESTING__STREAMING_OUTPUT_CALL_RESPONSE__INIT;
    Grpc__Testing__Payload payload = GRPC__TESTING__PAYLOAD__INIT;

    if (!service_fill(pouring->call, next->size, &payload)) {
        return -EINVAL;
    }
    if (next->says_compressed && bow_call_compress(pouring->call, next->compressed) < 0) {
        bow_call_fail(pouring->call, BOW_INTERNAL, "it cannot be compressed any more");
        return -EALREADY;
    }
    response.payload = &payload;
    return bow_call_send(pouring->call, &response.base);
}

static void on_pause_over(struct bow_timer *timer, void *user);

static void pause_before(struct pouring *pouring, struct wish *next)
{
    bow_timer_init(&pouring->timer, bow_call_loop(pouring->call), on_pause_over, pouring);
    bow_timer_start(&pouring->timer, next->pause_ns);
    pouring->waits = true;
    next->pause_ns = 0;
}

static void pour(struct pouring *pouring)
{
    while (!pouring->waits && !pouring->holds && pouring->n_sent < pouring->n_wishes) {
        struct wish *next = &pouring->wishes[pouring->n_sent];
        if (next->pause_ns > 0) {
            pause_before(pouring, next);
            return;
        }
        if (send_one(pouring, next) != 0) {
            return; /* on_writable comes, or on_closed */
        }
        pouring->n_sent++;
    }
    if (pouring->is_last && pouring->n_sent == pouring->n_wishes) {
        (void)bow_call_finish(pouring->call);
    }
}

static void on_pause_over(struct bow_timer *timer, void *user)
{
    struct pouring *pouring = user;

    (void)timer;
    pouring->waits = false;
    pour(pouring);
}

static struct pouring *pouring_new(struct bow_call *call)
{
    struct pouring *pouring = calloc(1, sizeof(*pouring));

    if (pouring == NULL) {
        bow_call_fail(call, BOW_RESOURCE_EXHAUSTED, "no memory for the call");
        return NULL;
    }
    pouring->call = call;
    return pouring;
}

static void pouring_end(struct pouring *pouring)
{
    if (pouring->waits) {
        bow_timer_stop(&pouring->timer);
    }
    free(pouring->wishes);
    free(pouring);
}

/* Returns false when the call is over, and with it `pouring`. */
static bool listen_or_end(struct pouring *pouring, const void *events)
{
    if (bow_call_listen(pouring->call, events, pouring) < 0) {
        pouring_end(pouring);
        return false;
    }
    return true;
}

/* StreamingOutputCall */

static void output_writable(struct METHOD(streaming_output_call__call) call, void *user)
{
    (void)call;
    pour(user);
}

static void output_closed(struct METHOD(streaming_output_call__call) call,
                          const struct bow_status *status, void *user)
{
    (void)call;
    (void)status;
    pouring_end(user);
}

void service_streaming_output(struct METHOD(streaming_output_call__call) call,
                              const Grpc__Testing__StreamingOutputCallRequest *request, void *user)
{
    static const struct METHOD(streaming_output_call__call_events) events = {
        .on_writable = output_writable,
        .on_closed = output_closed,
    };
    (void)user;
    if (!service_echo_metadata(call.call) ||
        service_fail_as_asked(call.call, request->response_status)) {
        return;
    }
    struct pouring *pouring = pouring_new(call.call);
    if (pouring == NULL) {
        return;
    }
    pouring->is_last = true;
    if (listen_or_end(pouring, &events) && wish(pouring, request)) {
        pour(pouring);
    }
}

/* FullDuplexCall, and HalfDuplexCall, which answers nothing before its client has said all */

static void duplex_message(struct pouring *pouring,
                           const Grpc__Testing__StreamingOutputCallRequest *request)
{
    if (!service_fail_as_asked(pouring->call, request->response_status) && wish(pouring, request)) {
        pour(pouring);
    }
}

static void duplex_half_close(struct pouring *pouring)
{
    pouring->is_last = true;
    pouring->holds = false;
    pour(pouring);
}

static void full_message(struct METHOD(full_duplex_call__call) call,
                         const Grpc__Testing__StreamingOutputCallRequest *request, void *user)
{
    (void)call;
    duplex_message(user, request);
}

static void full_half_close(struct METHOD(full_duplex_call__call) call, void *user)
{
    (void)call;
    duplex_half_close(user);
}

static void full_writable(struct METHOD(full_duplex_call__call) call, void *user)
{
    (void)call;
    pour(user);
}

static void full_closed(struct METHOD(full_duplex_call__call) call, const struct bow_status *status,
                        void *user)
{
    (void)call;
    (void)status;
    pouring_end(user);
}

void service_full_duplex(struct METHOD(full_duplex_call__call) call, void *user)
{
    static const struct METHOD(full_duplex_call__call_events) events = {
        .on_message = full_message,
        .on_half_close = full_half_close,
        .on_writable = full_writable,
        .on_closed = full_closed,
    };
    (void)user;
    struct pouring *pouring = service_echo_metadata(call.call) ? pouring_new(call.call) : NULL;
    if (pouring != NULL) {
        (void)listen_or_end(pouring, &events);
    }
}

static void half_message(struct METHOD(half_duplex_call__call) call,
                         const Grpc__Testing__StreamingOutputCallRequest *request, void *user)
{
    (void)call;
    duplex_message(user, request);
}

static void half_half_close(struct METHOD(half_duplex_call__call) call, void *user)
{
    (void)call;
    duplex_half_close(user);
}

static void half_writable(struct METHOD(half_duplex_call__call) call, void *user)
{
    (void)call;
    pour(user);
}

static void half_closed(struct METHOD(half_duplex_call__call) call, const struct bow_status *status,
                        void *user)
{
    (void)call;
    (void)status;
    pouring_end(user);
}

void service_half_duplex(struct METHOD(half_duplex_call__call) call, void *user)
{
    static const struct METHOD(half_duplex_call__call_events) events = {
        .on_message = half_message,
        .on_half_close = half_half_close,
        .on_writable = half_writable,
        .on_closed = half_closed,
    };
    (void)user;
    struct pouring *pouring = service_echo_metadata(call.call) ? pouring_new(call.call) : NULL;
    if (pouring != NULL) {
        pouring->holds = true;
        (void)listen_or_end(pouring, &events);
    }
}

/* StreamingInputCall */

struct adding {
    size_t n_bytes;
};

static void input_message(struct METHOD(streaming_input_call__call) call,
                          const Grpc__Testing__StreamingInputCallRequest *request, void *user)
{
    struct adding *adding = user;

    if (service_came_as_expected(call.call, request->expect_compressed) &&
        request->payload != NULL) {
        adding->n_bytes += request->payload->body.len;
    }
}

static void input_half_close(struct METHOD(streaming_input_call__call) call, void *user)
{
    Grpc__Testing__StreamingInputCallResponse response =
        GRPC__TESTING__STREAMING_INPUT_CALL_RESPONSE__INIT;

    response.aggregated_payload_size = (int32_t)((struct adding *)user)->n_bytes;
    METHOD(streaming_input_call__reply)(call, &response);
}

void service_streaming_input(struct METHOD(streaming_input_call__call) call, void *user)
{
    static const struct METHOD(streaming_input_call__call_events) events = {
        .on_message = input_message,
        .on_half_close = input_half_close,
    };
    struct adding *adding = bow_call_alloc(call.call, sizeof(*adding));

    (void)user;
    if (adding == NULL) {
        bow_call_fail(call.call, BOW_RESOURCE_EXHAUSTED, "no memory for the call");
        return;
    }
    *adding = (struct adding){0};
    if (service_echo_metadata(call.call)) {
        (void)bow_call_listen(call.call, &events, adding);
    }
}
