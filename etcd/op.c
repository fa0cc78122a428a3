/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* One thing after the other, without giving up. See the header. */

#include "etcd/op.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/shared.h"
#include "base/text.h"
#include "etcd/core.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_busy(const struct bow__etcd_op *op)
{
    return op->call != 0 || op->stream != NULL;
}

static struct bow_status status_of(enum bow_code code, const char *message)
{
    return (struct bow_status){.code = code, .message = message};
}

/* Pauses */

static uint64_t jittered(const struct bow_etcd *etcd, uint64_t ns)
{
    const struct bow_system *system = bow__context_system(etcd->context);
    uint32_t random = 0;

    (void)system->random(system->user, &random, sizeof(random));
    return ns - ns / 5 + ns / 5 * 2 / 1024 * (random % 1024);
}

static void pause(struct bow__etcd_op *op)
{
    const struct bow_etcd *etcd = op->etcd;

    op->pause_ns = op->pause_ns == 0 ? etcd->backoff_min_ns
                                     : bow__time_min(2 * op->pause_ns, etcd->backoff_max_ns);
    bow_timer_start(&op->timer, jittered(etcd, op->pause_ns));
}

void bow__etcd_op_good(struct bow__etcd_op *op)
{
    op->pause_ns = 0;
    op->has_new_token = false;
    bow_timer_stop(&op->answer);
}

/* Failures */

static void fail(struct bow__etcd_op *op, const struct bow_status *status)
{
    pause(op);
    op->kind->on_error(op, status);
}

static void go_with_new_token(struct bow__etcd_op *op)
{
    op->has_new_token = true;
    bow__etcd_op_go(op, 0);
}

static void on_token(struct bow__etcd_waiter *waiter, const struct bow_status *status)
{
    struct bow__etcd_op *op = BOW__CONTAINER(waiter, struct bow__etcd_op, waiter);

    if (status->code == BOW_OK) {
        go_with_new_token(op);
    } else {
        fail(op, status);
    }
}

void bow__etcd_op_failed(struct bow__etcd_op *op, const struct bow_status *status)
{
    struct bow_etcd *etcd = op->etcd;
    bool wants_token = etcd->token.interceptor != NULL && !op->has_new_token &&
                       bow__etcd_wants_token(status->message);

    op->has_new_token = false;
    if (wants_token && op->generation != etcd->token.generation) {
        go_with_new_token(op); /* there is another one meanwhile */
    } else if (!wants_token || bow__etcd_token_want(etcd, &op->waiter) < 0) {
        fail(op, status);
    }
}

/* The end of what was under way; whether it is to be looked at. */
static bool is_wanted(struct bow__etcd_op *op)
{
    bool is_stale = op->is_stale;

    op->is_stale = false;
    if (op->is_halted) {
        op->kind->on_idle(op);
        return false;
    }
    if (is_stale) {
        bow__etcd_op_go(op, 0);
        return false;
    }
    return true;
}

bool bow__etcd_op_ended(struct bow__etcd_op *op, const struct bow_status *status)
{
    op->call = 0;
    if (!is_wanted(op)) {
        return false;
    }
    if (status->code != BOW_OK) {
        bow__etcd_op_failed(op, status);
        return false;
    }
    bow__etcd_op_good(op);
    return true;
}

void bow__etcd_op_closed(struct bow__etcd_op *op, const struct bow_status *status)
{
    struct bow_status ended = *status;
    int64_t compact_revision = op->compact_revision;

    if (op->is_cancelled) {
        ended = op->status;
    } else if (status->code == BOW_OK) {
        ended = status_of(BOW_UNAVAILABLE, "etcd has ended the stream");
    }
    bow_timer_stop(&op->answer);
    bow_stream_unref(op->stream);
    op->stream = NULL;
    op->is_cancelled = false;
    op->compact_revision = 0;
    if (!is_wanted(op)) {
        return;
    }
    if (compact_revision != 0) {
        op->kind->on_compacted(op, compact_revision);
    } else {
        bow__etcd_op_failed(op, &ended);
    }
}

void bow__etcd_op_cancel(struct bow__etcd_op *op, enum bow_code code, const char *reason)
{
    if (op->is_cancelled) {
        return; /* the first is the reason */
    }
    (void)snprintf(op->reason, sizeof(op->reason), "%s", reason);
    op->status = status_of(code, op->reason);
    op->is_cancelled = true;
    bow_stream_cancel(op->stream);
}

/* Going on */

static void on_timer(struct bow_timer *timer, void *user)
{
    struct bow__etcd_op *op = user;

    (void)timer;
    op->generation = op->etcd->token.generation;
    int rc = op->kind->begin(op);
    if (rc < 0) {
        struct bow__text text;
        bow__text_clear(&text);
        bow__text_printf(&text, "asking %s cannot begin: ", op->etcd->target);
        bow__text_errno(&text, rc);
        const struct bow_status status =
            status_of(rc == -ENOMEM ? BOW_RESOURCE_EXHAUSTED : BOW_UNAVAILABLE, text.bytes);
        fail(op, &status);
    }
}

static void on_no_answer(struct bow_timer *timer, void *user)
{
    struct bow__etcd_op *op = user;
    char reason[64];

    (void)timer;
    (void)snprintf(reason, sizeof(reason), "no answer within %" PRIu64 " ms",
                   op->etcd->timeout_ns / 1000000);
    bow__etcd_op_cancel(op, BOW_DEADLINE_EXCEEDED, reason);
}

void bow__etcd_op_init(struct bow__etcd_op *op, const struct bow__etcd_op_kind *kind,
                       struct bow_etcd *etcd)
{
    op->kind = kind;
    op->etcd = etcd;
    op->waiter.fn = on_token;
    bow__list_init(&op->waiter.link);
    bow_timer_init(&op->timer, etcd->loop, on_timer, op);
    bow_timer_init(&op->answer, etcd->loop, on_no_answer, op);
}

void bow__etcd_op_go(struct bow__etcd_op *op, uint64_t delay_ns)
{
    if (!op->is_halted && !is_busy(op)) {
        bow__etcd_token_leave(op->etcd, &op->waiter);
        bow_timer_start(&op->timer, delay_ns);
    }
}

static void cancel(struct bow__etcd_op *op)
{
    if (op->call != 0) {
        bow_client_cancel(op->etcd->client, op->call);
    } else if (op->stream != NULL) {
        bow_stream_cancel(op->stream);
    }
}

void bow__etcd_op_reset(struct bow__etcd_op *op)
{
    if (is_busy(op)) {
        op->is_stale = true;
        cancel(op);
    } else {
        bow__etcd_op_go(op, 0);
    }
}

void bow__etcd_op_halt(struct bow__etcd_op *op)
{
    op->is_halted = true;
    bow_timer_stop(&op->timer);
    bow_timer_stop(&op->answer);
    bow__etcd_token_leave(op->etcd, &op->waiter);
    if (is_busy(op)) {
        cancel(op);
    } else {
        op->kind->on_idle(op);
    }
}

/* A member that is cut off from the others ends a stream with this, instead of falling silent. */
static const struct bow_metadata_entry leader_entries[] = {
    {"hasleader", {(const uint8_t *)"true", 4}},
};
static const struct bow_metadata leader = {leader_entries, 1};

struct bow_call_options bow__etcd_op_options(const struct bow__etcd_op *op, bool is_stream)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;

    options.timeout_ns = is_stream ? BOW_NEVER : op->etcd->timeout_ns;
    options.metadata = is_stream ? &leader : NULL;
    return options;
}

void bow__etcd_op_await(struct bow__etcd_op *op)
{
    bow_timer_start(&op->answer, op->etcd->timeout_ns);
}
