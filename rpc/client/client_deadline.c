/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Deadlines of a client's calls: an end that had come by then counts. When one has passed, the
 * text says what the call waited for, and
 * what else is known of why.
 */

#include "rpc/client/client_deadline.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "rpc/client/balancer_stage.h"
#include "rpc/core/errors.h"
#include <bowline/call.h>

static const char *stage_of(const struct bow__client_call *call)
{
    const struct bow__balancer *balancer = bow__balancer_of(call);

    if (call->state == BOW__CLIENT_CALL_OPEN || call->state == BOW__CLIENT_CALL_EXPIRING) {
        return "waiting for the reply of";
    }
    if (call->state == BOW__CLIENT_CALL_RESTING) {
        return "resting before another attempt at";
    }
    if (call->state == BOW__CLIENT_CALL_HELD) {
        return "held by an interceptor, before the call went to";
    }
    if (bow__balancer_lacks_streams(balancer)) {
        return "waiting for a stream slot at";
    }
    if (balancer->state == BOW__CONNECTIVITY_READY) {
        return "waiting for the first answer of";
    }
    return bow__balancer_stage(balancer);
}

/* Some server took the connection and says nothing, which no server of ours does. */
static bool is_peer_silent(const struct bow__client_call *call)
{
    const struct bow__client_conn *unheard = bow__balancer_silent(bow__balancer_of(call));
    const struct bow__conn *conn = call->conn != NULL ? call->conn
                                   : unheard != NULL  ? &unheard->conn
                                                      : NULL;

    return call->state != BOW__CLIENT_CALL_EXPIRING && conn != NULL && !conn->heard;
}

static void describe_deadline(const struct bow__client_call *call, struct bow__text *text)
{
    static const char *const origins[] = {
        [BOW__TIMEOUT_GIVEN] = "",
        [BOW__TIMEOUT_DEFAULT] = " (the client's default_timeout_ns, for the call named none)",
        [BOW__TIMEOUT_PARENT] = " (the parent call's)",
        [BOW__TIMEOUT_CONFIG] = " (the service config's, for its method)",
    };
    const struct bow__balancer *balancer = bow__balancer_of(call);
    const struct bow__target *target = &balancer->subchannels.config->target;
    const struct bow__subchannel *failed =
        call->state == BOW__CLIENT_CALL_QUEUED ? bow__balancer_last_failed(balancer) : NULL;

    bow__text_clear(text);
    bow__text_printf(text, "deadline of ");
    bow__text_duration(text, call->timeout_ns);
    bow__text_printf(text, "%s passed while %s ", origins[call->timeout_origin], stage_of(call));
    if (call->conn != NULL) {
        bow__text_printf(text, "%s", bow__client_conn_of(call->conn)->subchannel->address->text);
    } else {
        bow__target_describe(target, text);
    }
    if (failed != NULL) {
        bow__text_printf(text, "; the last attempt: %s", failed->last_error.bytes);
    }
    if (call->state == BOW__CLIENT_CALL_QUEUED && balancer->names != NULL &&
        balancer->names->error.len > 0) {
        bow__text_printf(text, "; of its resolver: %s", balancer->names->error.bytes);
    }
    if (call->n_failed > 0) {
        bow__text_printf(text, "; %u of its attempts failed, the last with %s: %s", call->n_failed,
                         bow_code_name(call->retry->last_code), call->retry->last_reason);
    }
    if (call->state == BOW__CLIENT_CALL_QUEUED && bow__balancer_lacks_streams(balancer)) {
        bow__text_printf(text,
                         "; it takes no more calls at once on a connection, and options."
                         "max_connections_per_address is %u",
                         balancer->subchannels.config->options.max_connections_per_address);
    }
    if (is_peer_silent(call)) {
        bow__text_printf(text, "; nothing was ever received from it: is it a %s server?",
                         target->http2 ? "gRPC" : "Bowline");
    }
}

/* The loop of a confined client runs inside its functions only. Less is a busy machine's. */
#define UNDRIVEN_NS (UINT64_C(100) * 1000000u)

static void describe_undriven(const struct bow__client_call *call, struct bow__text *text)
{
    uint64_t late_ns = bow_loop_now(call->calls->loop) - call->deadline_ns;

    if (bow__balancer_of(call)->subchannels.config->confined && late_ns >= UNDRIVEN_NS) {
        bow__text_printf(text, "; that was ");
        bow__text_duration(text, late_ns);
        bow__text_printf(text, " ago, and nobody has driven this confined client since: until its "
                               "calls are done, call bow_client_poll() in a loop, or give the "
                               "client options.loop or options.group");
    }
}

/* What had come by then is in time, though it waits for its connection's turn. */
static bool may_have_come(const struct bow__client_call *call)
{
    return call->state == BOW__CLIENT_CALL_OPEN &&
           bow__conn_may_hold(call->conn, call->deadline_ns);
}

static void on_timer(struct bow_timer *timer, void *user)
{
    struct bow__client_call *call = user;
    struct bow__text text;

    if (may_have_come(call)) {
        bow_timer_start(timer, 0); /* the next turn */
        return;
    }
    describe_deadline(call, &text);
    describe_undriven(call, &text);
    bow__client_call_abandon(call, BOW_DEADLINE_EXCEEDED);
    bow__client_call_fail(call, BOW_DEADLINE_EXCEEDED, text.bytes);
}

void bow__client_deadline_arm(struct bow__client_call *call)
{
    bow_timer_start_at(&call->timer, call->deadline_ns);
}

void bow__client_deadline_set(struct bow__client_call *call, const struct bow_call_options *options)
{
    const struct bow_client_options *defaults =
        &bow__balancer_of(call)->subchannels.config->options;
    const struct bow_system *system = bow__context_system(call->calls->context);

    bow_timer_init(&call->timer, call->calls->loop, on_timer, call);
    /* The clock itself: a loop that is not being driven has an old notion of it. */
    call->started_ns = system->now_ns(system->user);
    call->timeout_ns = options->timeout_ns;
    if (call->timeout_ns == 0) {
        call->timeout_ns = call->stream == NULL ? defaults->default_timeout_ns : BOW_NEVER;
        call->timeout_origin = BOW__TIMEOUT_DEFAULT;
    }
    call->deadline_ns = bow__time_add(call->started_ns, call->timeout_ns);
    if (options->parent != NULL && bow_call_deadline(options->parent) < call->deadline_ns) {
        call->deadline_ns = bow_call_deadline(options->parent);
        call->timeout_ns = bow__time_left(call->deadline_ns, call->started_ns);
        call->timeout_origin = BOW__TIMEOUT_PARENT;
    }
}
