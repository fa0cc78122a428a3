/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* One signal's batches on their way. See the header. */

#include "otel/sender.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/text.h"
#include <bowline/system.h>

#include <bowline/loop.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* Of one request's structs. */
#define MAX_ARENA_BYTES ((size_t)64 << 20)
#define MAX_TEXT_BYTES 200u

/* What the log is told: of the first batch that fails, and of the first that goes again. */

static void log_failure(struct bow__otel_sender *sender, const struct bow_status *status,
                        uint64_t pause_ns)
{
    struct bow__text text;

    if (sender->is_failing) {
        return;
    }
    sender->is_failing = true;
    bow__text_clear(&text);
    bow__text_escape(&text,
                     (struct bow_slice){(const uint8_t *)status->message, strlen(status->message)},
                     MAX_TEXT_BYTES);
    if (pause_ns == BOW_NEVER) {
        bow__log(sender->context, BOW_LOG_WARNING,
                 "exporting %s to %s: %" PRIu64 " are lost: %s: %s", sender->signal->items,
                 sender->target, sender->n_items, bow_code_name(status->code), text.bytes);
        return;
    }
    bow__log(sender->context, BOW_LOG_WARNING,
             "exporting %s to %s: %s: %s; again in %" PRIu64 " ms", sender->signal->items,
             sender->target, bow_code_name(status->code), text.bytes, pause_ns / 1000000);
}

static void log_rejected(struct bow__otel_sender *sender, int64_t n_rejected, const char *words)
{
    struct bow__text text;

    bow__text_clear(&text);
    bow__text_escape(&text, (struct bow_slice){(const uint8_t *)words, strlen(words)},
                     MAX_TEXT_BYTES);
    bow__log(sender->context, BOW_LOG_WARNING,
             "exporting %s to %s: of %" PRIu64 " it has rejected %" PRId64 ": %s",
             sender->signal->items, sender->target, sender->n_items, n_rejected, text.bytes);
}

static void log_success(struct bow__otel_sender *sender)
{
    if (sender->is_failing) {
        sender->is_failing = false;
        bow__log(sender->context, BOW_LOG_INFO, "exporting %s to %s goes again",
                 sender->signal->items, sender->target);
    }
}

/* The end of a batch */

static void end_batch(struct bow__otel_sender *sender, enum bow__otel_fate fate,
                      uint64_t n_rejected)
{
    struct bow_arena *arena = sender->arena;

    sender->arena = NULL;
    sender->request = NULL;
    sender->state = BOW__OTEL_IDLE;
    sender->signal->ended(sender, fate, sender->n_items, n_rejected);
    bow_arena_free(arena);
    sender->signal->on_idle(sender);
}

static void take_reply(struct bow__otel_sender *sender, const ProtobufCMessage *reply)
{
    const char *text = "";
    int64_t n_rejected = sender->signal->rejected(reply, &text);
    bool is_number = n_rejected > 0 && (uint64_t)n_rejected <= sender->n_items;

    log_success(sender);
    if (n_rejected != 0 || *text != '\0') {
        log_rejected(sender, n_rejected, text);
    }
    end_batch(sender, BOW__OTEL_TAKEN, is_number ? (uint64_t)n_rejected : 0);
}

/* Sending again */

/* OTLP's table. */
static bool may_retry(const struct bow_status *status)
{
    if (status->retry_after_ns == BOW_NEVER) {
        return false; /* as the collector asks for */
    }
    switch (status->code) {
    case BOW_CANCELLED:
    case BOW_DEADLINE_EXCEEDED:
    case BOW_ABORTED:
    case BOW_OUT_OF_RANGE:
    case BOW_UNAVAILABLE:
    case BOW_DATA_LOSS:
        return true;
    case BOW_RESOURCE_EXHAUSTED:
        return status->retry_after_ns > 0;
    default:
        return false;
    }
}

static uint64_t jittered(struct bow__otel_sender *sender, uint64_t ns)
{
    const struct bow_system *system = bow__context_system(sender->context);
    uint32_t random = 0;

    (void)system->random(system->user, &random, sizeof(random));
    return ns - ns / 5 + ns / 5 * 2 / 1024 * (random % 1024);
}

static uint64_t next_pause(struct bow__otel_sender *sender, const struct bow_status *status)
{
    const struct bow__otel_sender_options *options = &sender->options;

    if (status->retry_after_ns > 0) {
        return status->retry_after_ns;
    }
    sender->pause_ns = sender->pause_ns == 0
                           ? options->backoff_min_ns
                           : bow__time_min(bow__time_add(sender->pause_ns, sender->pause_ns),
                                           options->backoff_max_ns);
    return jittered(sender, sender->pause_ns);
}

static void fail(struct bow__otel_sender *sender, const struct bow_status *status)
{
    uint64_t now_ns = bow_loop_now(sender->timer.loop);
    uint64_t end_ns = bow__time_add(sender->first_try_ns, sender->options.give_up_ns);
    uint64_t pause_ns = BOW_NEVER;

    if (may_retry(status) && !sender->is_ending) {
        pause_ns = next_pause(sender, status);
    }
    if (pause_ns == BOW_NEVER || bow__time_add(now_ns, pause_ns) > end_ns) {
        log_failure(sender, status, BOW_NEVER);
        end_batch(sender, BOW__OTEL_LOST, 0);
        return;
    }
    log_failure(sender, status, pause_ns);
    sender->state = BOW__OTEL_PAUSING;
    bow_timer_start(&sender->timer, pause_ns);
}

/* Sending */

static void on_done(struct bow_result *result, bow_any_fn fn, void *user)
{
    struct bow__otel_sender *sender = user;

    (void)fn;
    if (result->status.code == BOW_OK) {
        take_reply(sender, result->reply);
    } else {
        fail(sender, &result->status);
    }
}

static void try_it(struct bow__otel_sender *sender)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;

    options.timeout_ns = sender->options.timeout_ns;
    sender->state = BOW__OTEL_SENDING;
    int rc = bow_client_start(sender->client, sender->method, sender->request, &options, on_done,
                              NULL, sender, &sender->call_id);
    if (rc < 0) {
        struct bow_status status = BOW_STATUS_OK_INIT;
        status.code = rc == -ENOMEM || rc == -EAGAIN ? BOW_UNAVAILABLE : BOW_INTERNAL;
        status.message = "the export cannot be started";
        fail(sender, &status);
    }
}

static void on_timer(struct bow_timer *timer, void *user)
{
    struct bow__otel_sender *sender = user;

    (void)timer;
    atomic_fetch_add_explicit(&sender->n_retries, 1, memory_order_relaxed);
    try_it(sender);
}

void bow__otel_sender_go(struct bow__otel_sender *sender)
{
    if (sender->state != BOW__OTEL_IDLE || sender->is_ending) {
        return;
    }
    struct bow_arena *arena = bow_arena_new(sender->context, MAX_ARENA_BYTES);
    uint64_t n = sender->signal->take(sender, arena, &sender->request);
    if (n == 0) {
        bow_arena_free(arena);
        return;
    }
    sender->arena = arena;
    sender->n_items = n;
    sender->first_try_ns = bow_loop_now(sender->timer.loop);
    sender->pause_ns = 0;
    atomic_fetch_add_explicit(&sender->n_batches, 1, memory_order_relaxed);
    try_it(sender);
}

void bow__otel_sender_end(struct bow__otel_sender *sender)
{
    sender->is_ending = true;
    bow_timer_stop(&sender->timer);
    if (sender->state == BOW__OTEL_PAUSING) {
        end_batch(sender, BOW__OTEL_LOST, 0);
    } else if (sender->state == BOW__OTEL_SENDING) {
        bow_client_cancel(sender->client, sender->call_id);
    }
}

void bow__otel_sender_init(struct bow__otel_sender *sender, const struct bow__otel_signal *signal,
                           const struct bow_method *method, struct bow_context *context,
                           struct bow_client *client, struct bow_loop *loop, const char *target,
                           const struct bow__otel_sender_options *options)
{
    *sender = (struct bow__otel_sender){
        .signal = signal,
        .method = method,
        .context = context,
        .client = client,
        .target = target,
        .options = *options,
    };
    bow_timer_init(&sender->timer, loop, on_timer, sender);
}
