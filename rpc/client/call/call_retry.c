/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Attempts of a call that follow one another.
 */

#include "rpc/client/call/call_retry.h"
#include "base/clock.h"
#include "rpc/client/call/call_attempt.h"
#include "rpc/client/call/call_hedge.h"
#include "rpc/client/call/stream_send.h"
#include "rpc/connection/jitter.h"
#include "rpc/core/errors.h"

#include <bowline/limits.h>
#include <errno.h>
#include <stdio.h>

static uint64_t now_of(const struct bow__client_call *call)
{
    return bow_loop_now(call->calls->loop);
}

/* The beginning */

static void on_timer(struct bow_timer *timer, void *user);

static struct bow__call_retry *make(struct bow__client_call *call,
                                    const struct bow__method_policy *policy)
{
    struct bow__call_retry *retry = bow__arena_alloc(&call->memory->arena, sizeof(*retry));

    if (retry == NULL) {
        return NULL;
    }
    *retry = (struct bow__call_retry){.call = call, .policy = *policy};
    bow_timer_init(&retry->timer, call->calls->loop, on_timer, retry);
    bow__list_init(&retry->hedges);
    if (policy->hedges && call->stream != NULL) {
        retry->policy.max_attempts = 1;
    } else if (policy->hedges) {
        bow__call_hedge_init(retry);
    }
    call->retry = retry;
    return retry;
}

static int check_request(const struct bow__client_call *call,
                         const struct bow__method_policy *policy, struct bow__text *reason)
{
    if (call->n_request <= policy->max_request_bytes) {
        return 0;
    }
    bow__text_printf(reason,
                     "the request of %s has %zu bytes, and its service config allows %zu "
                     "(maxRequestMessageBytes)",
                     call->method->path, call->n_request, policy->max_request_bytes);
    return -EMSGSIZE;
}

/* Its own deadline, if that is earlier, stays. */
static void take_timeout(struct bow__client_call *call, const struct bow__method_policy *policy)
{
    uint64_t deadline_ns = bow__time_add(call->started_ns, policy->timeout_ns);

    if (policy->timeout_ns != BOW_NEVER && deadline_ns < call->deadline_ns) {
        call->deadline_ns = deadline_ns;
        call->timeout_ns = policy->timeout_ns;
        call->timeout_origin = BOW__TIMEOUT_CONFIG;
    }
}

int bow__call_retry_begin(struct bow__client_call *call, struct bow__text *reason)
{
    struct bow__method_policy policy;

    if (!bow__retries_find(&call->calls->retries, call->method->path, call->method->flags,
                           &policy)) {
        return 0;
    }
    int rc = check_request(call, &policy, reason);
    if (rc < 0) {
        return rc;
    }
    take_timeout(call, &policy);
    call->waits_for_ready |= policy.waits_for_ready;
    if (make(call, &policy) == NULL) {
        return -ENOMEM;
    }
    if (call->stream != NULL) {
        bow__stream_hold(call->stream, policy.max_attempts > 1);
    }
    return 0;
}

/* Attempts */

void bow__call_retry_sent(struct bow__client_call *call)
{
    struct bow__call_retry *retry = call->retry;

    if (retry->hedge_ops != NULL) {
        bow__call_hedge_sent(retry);
    } else if (retry->policy.attempt_timeout_ns != BOW_NEVER) {
        bow_timer_start(&retry->timer, retry->policy.attempt_timeout_ns);
    }
}

void bow__call_retry_stop(struct bow__client_call *call)
{
    bow_timer_stop(&call->retry->timer);
}

void bow__call_retry_commit(struct bow__client_call *call)
{
    bow__call_retry_stop(call);
    if (call->stream != NULL) {
        bow__stream_hold(call->stream, false);
    }
}

/* The decision */

/* Of a method that is declared idempotent, and has no policy beside that. */
static struct bow__call_retry *retry_of(struct bow__client_call *call)
{
    struct bow__method_policy policy;

    if (call->retry != NULL || call->hedge_of != NULL) {
        return call->retry;
    }
    return bow__retries_find(&call->calls->retries, call->method->path, call->method->flags,
                             &policy)
               ? make(call, &policy)
               : NULL;
}

static bool take_from_budget(struct bow__client_call *call, bool takes)
{
    bow__call_budget_fail(call);
    return takes && bow__call_budget_take(call);
}

/* A server that asks to wait is obeyed, and its client's own pauses begin anew. */
static uint64_t pause_after(struct bow__call_retry *retry, const struct bow_status *status)
{
    if (status->retry_after_ns > 0) {
        retry->pause_ns = 0;
        return status->retry_after_ns;
    }
    retry->pause_ns = bow__policy_next_pause(&retry->policy, retry->pause_ns);
    return bow__jittered(retry->call->calls->context, retry->pause_ns, retry->pause_ns / 5);
}

/* Why there is no other attempt; NULL: there is one, in `*ret_pause_ns`. */
static const char *refusal_of(struct bow__call_retry *retry, const struct bow_status *status,
                              uint64_t *ret_pause_ns)
{
    struct bow__client_call *call = retry->call;
    bool has_attempts = call->n_failed + 1u < retry->policy.max_attempts;

    if (!take_from_budget(call, has_attempts && status->retry_after_ns != BOW_NEVER)) {
        return !has_attempts                         ? "no other is allowed"
               : status->retry_after_ns == BOW_NEVER ? "the server asks for no other"
                                                     : "the retry budget is spent";
    }
    if (call->calls->n_resting >= call->calls->max_resting) {
        return "max_queued_calls wait for another already";
    }
    *ret_pause_ns = pause_after(retry, status);
    if (bow__time_add(now_of(call), *ret_pause_ns) >= call->deadline_ns) {
        return "the next would be after the deadline";
    }
    return NULL;
}

/* So that who reads of a failure knows that it was not the only one. */
static void explain(const struct bow__client_call *call, struct bow_status *status,
                    const char *refusal, struct bow__text *text)
{
    if (text == NULL) {
        return;
    }
    bow__text_clear(text);
    bow__text_printf(text, "%s%s(attempt %u: %s)", status->message,
                     *status->message != '\0' ? " " : "", call->n_failed + 1u, refusal);
    status->message = text->bytes;
}

static void leave_attempt(struct bow__client_call *call)
{
    if (call->state == BOW__CLIENT_CALL_QUEUED) {
        bow__client_call_unqueue(call);
        return;
    }
    bow__list_remove(&call->at);
    bow__client_call_part(call);
}

static void remember(struct bow__call_retry *retry, const struct bow_status *status)
{
    retry->last_code = status->code;
    snprintf(retry->last_reason, sizeof(retry->last_reason), "%s", status->message);
}

/* The first of several attempts beside each other: the others may do better. */
static bool fail_hedged(struct bow__call_retry *retry, const struct bow_status *status)
{
    struct bow__client_call *call = retry->call;

    if (!bow__call_may_be_resent(call) || !bow__call_hedge_goes_on(retry, status)) {
        return false;
    }
    bow__client_call_count_attempt_end(call, status->code);
    leave_attempt(call);
    call->n_failed++;
    remember(retry, status);
    bow__client_call_rest(call);
    bow__call_hedge_hurry(retry, status);
    return true;
}

static void rest(struct bow__call_retry *retry, const struct bow_status *status, uint64_t pause_ns)
{
    struct bow__client_call *call = retry->call;

    if (call->intercepted != NULL) {
        bow__intercepted_retries(call->intercepted, status);
    }
    bow__client_call_count_attempt_end(call, status->code);
    bow__count(&call->counts->retries, 1);
    call->calls->counters.now.calls_retried++;
    bow__counters_touch(&call->calls->counters);
    leave_attempt(call);
    call->n_failed++;
    if (call->stream != NULL) {
        bow__stream_rewind(call->stream);
    }
    remember(retry, status);
    bow__client_call_rest(call);
    bow_timer_start(&retry->timer, pause_ns);
}

/* The server keeps an attempt's time, too, and may be the first. */
static bool is_out_of_its_time(const struct bow__call_retry *retry, const struct bow_status *status)
{
    return status->code == BOW_DEADLINE_EXCEEDED && retry->policy.attempt_timeout_ns != BOW_NEVER;
}

/* `forced`: whatever its code. */
static bool fail_attempt(struct bow__client_call *call, struct bow_status *status, bool forced,
                         struct bow__text *text)
{
    struct bow__call_retry *retry = retry_of(call);
    uint64_t pause_ns = 0;

    if (retry == NULL) {
        return false;
    }
    bow_timer_stop(&retry->timer);
    retry->may_have_run |= call->state == BOW__CLIENT_CALL_OPEN && !status->not_processed;
    if (retry->hedge_ops != NULL) {
        return fail_hedged(retry, status);
    }
    forced |= is_out_of_its_time(retry, status) || bow__policy_takes(&retry->policy, status->code);
    if (!forced || retry->policy.max_attempts < 2 || !bow__call_may_be_resent(call)) {
        return false;
    }
    const char *refusal = refusal_of(retry, status, &pause_ns);
    if (refusal != NULL) {
        explain(call, status, refusal, text);
        return false;
    }
    rest(retry, status, pause_ns);
    return true;
}

bool bow__call_retry_failed(struct bow__client_call *call, struct bow_status *status,
                            struct bow__text *text)
{
    return fail_attempt(call, status, false, text);
}

/* Time */

static void end_attempt(struct bow__call_retry *retry)
{
    struct bow__client_call *call = retry->call;
    struct bow_status status = BOW_STATUS_OK_INIT;
    struct bow__text reason;
    struct bow__text text;

    bow__text_clear(&reason);
    bow__text_printf(&reason, "an attempt brought nothing for ");
    bow__text_duration(&reason, retry->policy.attempt_timeout_ns);
    status.code = BOW_DEADLINE_EXCEEDED;
    status.message = reason.bytes;
    bow__client_call_abandon(call, BOW_CANCELLED);
    if (!fail_attempt(call, &status, true, &text)) {
        bow__client_call_fail(call, status.code, status.message);
    }
}

static void on_timer(struct bow_timer *timer, void *user)
{
    struct bow__call_retry *retry = user;
    struct bow__client_call *call = retry->call;

    (void)timer;
    if (retry->hedge_ops != NULL) {
        bow__call_hedge_due(retry);
    } else if (call->state == BOW__CLIENT_CALL_RESTING) {
        bow__client_call_rise(call);
        call->calls->ops->resubmit(call);
    } else if (call->state == BOW__CLIENT_CALL_OPEN) {
        end_attempt(retry);
    }
}
