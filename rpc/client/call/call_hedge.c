/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Attempts of a call beside each other: when the next is sent, which of them ends the call, and
 * what becomes of the others.
 */

#include "rpc/client/call/call_hedge.h"
#include "rpc/client/call/call_attempt.h"

#include <bowline/system.h>
#include <stdio.h>
#include <string.h>

static struct bow__client_call *first_of(const struct bow__call_retry *retry)
{
    return BOW__CONTAINER(retry->hedges.next, struct bow__client_call, hedge_link);
}

/* One ends */

static void let_go(struct bow__client_call *hedge)
{
    bow__list_remove(&hedge->hedge_link);
    bow__arena_reset(&hedge->memory->arena);
    bow__client_call_free(hedge, true);
}

/* The program hears nothing of it, the server does. */
static void drop(struct bow__client_call *hedge)
{
    if (hedge->state == BOW__CLIENT_CALL_QUEUED) {
        bow__client_call_unqueue(hedge);
    }
    bow__client_call_abandon(hedge, BOW_CANCELLED);
    bow__client_call_count_attempt_end(hedge, BOW_CANCELLED);
    bow__list_remove(&hedge->at);
    bow__client_call_part(hedge);
    let_go(hedge);
}

static void drop_all(struct bow__call_retry *retry)
{
    while (!bow__list_is_empty(&retry->hedges)) {
        drop(first_of(retry));
    }
}

/* What the hedge was told becomes the call's. Of the call's own memory, which the hedge has then,
 * some is in use until the call has ended; and with the call all may end that it stands on. */
static void end_call_by(struct bow__client_call *hedge)
{
    struct bow__client_call *call = hedge->hedge_of;
    struct bow__client_calls *calls = call->calls;
    struct bow_result_memory *memory = call->memory;

    bow__list_remove(&hedge->hedge_link);
    bow__client_call_abandon(call, BOW_CANCELLED);
    call->memory = hedge->memory;
    call->reply = hedge->reply;
    call->initial = hedge->initial;
    hedge->memory = memory;
    calls->n_calls++;
    bow__client_call_complete(call, &hedge->failure);
    calls->n_calls--;
    let_go(hedge);
    if (calls->closing) {
        calls->ops->check_closed(calls);
    }
}

/* What nobody has processed is none, whatever it is told. */
static bool is_answer(const struct bow__call_retry *retry, const struct bow_status *status)
{
    return status->code == BOW_OK ||
           (!status->not_processed && !bow__policy_takes(&retry->policy, status->code));
}

static void on_end(struct bow__client_call *hedge)
{
    struct bow__client_call *call = hedge->hedge_of;
    struct bow__call_retry *retry = call->retry;
    struct bow_status status = hedge->failure;

    if (is_answer(retry, &status)) {
        end_call_by(hedge);
        return;
    }
    retry->may_have_run |= !status.not_processed;
    bow__list_remove(&hedge->hedge_link);
    bool goes_on =
        bow__call_hedge_goes_on(retry, &status) || call->state != BOW__CLIENT_CALL_RESTING;
    bow__list_push_back(&retry->hedges, &hedge->hedge_link);
    if (!goes_on) {
        end_call_by(hedge);
        return;
    }
    retry->last_code = status.code;
    snprintf(retry->last_reason, sizeof(retry->last_reason), "%s", status.message);
    let_go(hedge);
    bow__call_hedge_hurry(retry, &status);
}

/* One begins */

static bool may_send(const struct bow__call_retry *retry)
{
    return retry->n_hedges + 1u < retry->policy.max_attempts && !retry->hedges_no_more &&
           bow__call_may_be_resent(retry->call);
}

static struct bow__client_call *make(struct bow__call_retry *retry)
{
    struct bow__client_call *call = retry->call;
    struct bow__client_call *hedge = bow__client_call_new(call->calls, true);

    if (hedge == NULL) {
        return NULL;
    }
    hedge->hedge_of = call;
    hedge->method = call->method;
    bow_timer_init(&hedge->timer, call->calls->loop, NULL, NULL);
    hedge->started_ns = call->started_ns;
    hedge->deadline_ns = call->deadline_ns;
    hedge->timeout_ns = call->timeout_ns;
    hedge->counts = call->counts;
    hedge->compresses = call->compresses;
    hedge->waits_for_ready = call->waits_for_ready;
    hedge->metadata = call->metadata;
    hedge->n_failed = (uint8_t)(retry->n_hedges + 1);
    hedge->n_request = call->n_request;
    if (call->block != NULL) {
        hedge->block = bow__block_ref(call->block);
    } else {
        memcpy(hedge->request, call->request, call->n_request);
    }
    bow__list_push_back(&retry->hedges, &hedge->hedge_link);
    return hedge;
}

/* No other attempt can be sent. Where none is under way, and none is to come, that is the end. */
static void give_up(struct bow__call_retry *retry, const char *why)
{
    struct bow__client_call *call = retry->call;
    struct bow__text text;

    if (call->state != BOW__CLIENT_CALL_RESTING || !bow__list_is_empty(&retry->hedges) ||
        bow_timer_is_armed(&retry->timer)) {
        return;
    }
    bow__text_clear(&text);
    bow__text_printf(&text, "%s (attempt %u: %s)", retry->last_reason, retry->n_hedges + 1u, why);
    bow__client_call_fail(call, retry->last_code, text.bytes);
}

static void send_next(struct bow__call_retry *retry)
{
    struct bow__client_call *call = retry->call;
    struct bow_status none = BOW_STATUS_OK_INIT;
    struct bow__client_call *hedge = make(retry);

    if (hedge == NULL) {
        give_up(retry, "there is no memory for another");
        return;
    }
    retry->n_hedges++;
    if (call->intercepted != NULL) {
        bow__intercepted_retries(call->intercepted, &none);
    }
    bow__count(&call->counts->retries, 1);
    call->calls->counters.now.calls_retried++;
    bow__counters_touch(&call->calls->counters);
    call->calls->ops->resubmit(hedge);
}

/* What is told */

static const struct bow__hedge_ops ops = {.on_end = on_end, .drop_all = drop_all};

void bow__call_hedge_init(struct bow__call_retry *retry)
{
    retry->hedge_ops = &ops;
}

void bow__call_hedge_sent(struct bow__call_retry *retry)
{
    if (may_send(retry) && !bow_timer_is_armed(&retry->timer)) {
        bow_timer_start(&retry->timer, retry->policy.hedging_delay_ns);
    }
}

/* Nothing of the call may be touched behind send_next(), which may end it: so the next is armed
 * before. */
void bow__call_hedge_due(struct bow__call_retry *retry)
{
    if (!may_send(retry) || !bow__call_budget_take(retry->call)) {
        give_up(retry, "the retry budget is spent");
        return;
    }
    if (retry->n_hedges + 2u < retry->policy.max_attempts) {
        bow_timer_start(&retry->timer, retry->policy.hedging_delay_ns);
    }
    send_next(retry);
}

bool bow__call_hedge_goes_on(struct bow__call_retry *retry, const struct bow_status *status)
{
    if (is_answer(retry, status)) {
        return false;
    }
    bow__call_budget_fail(retry->call);
    retry->hedges_no_more |= status->retry_after_ns == BOW_NEVER;
    return !bow__list_is_empty(&retry->hedges) || may_send(retry);
}

void bow__call_hedge_hurry(struct bow__call_retry *retry, const struct bow_status *status)
{
    if (may_send(retry)) {
        bow_timer_start(&retry->timer, status->retry_after_ns);
    }
}
