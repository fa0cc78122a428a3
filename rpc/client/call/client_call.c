/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls of a client, on their loop: memory, lists, completion. Knows nothing of how they are sent,
 * and when: there is a connection, or none.
 */

#include "rpc/client/call/client_call.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "base/misuse.h"
#include "base/poison.h"

#include <string.h>

#define MAX_IDLE_CALLS 256u

/* Memory */

static struct bow__client_call *take(struct bow__client_calls *calls, bool in_loop)
{
    struct bow__client_call *call = in_loop ? calls->idle : NULL;

    if (call != NULL) {
        calls->idle = call->next;
        calls->n_idle--;
        return call;
    }
    call = bow__alloc(calls->context, sizeof(*call));
    if (call != NULL) {
        call->memory = NULL;
    }
    return call;
}

struct bow__client_call *bow__client_call_new(struct bow__client_calls *calls, bool in_loop)
{
    struct bow__client_call *call = take(calls, in_loop);

    if (call == NULL) {
        return NULL;
    }
    struct bow_result_memory *memory = call->memory;
    memset(call, 0, offsetof(struct bow__client_call, request));
    call->memory = memory != NULL ? memory : bow__result_memory_new(calls->context);
    call->calls = calls;
    bow__list_init(&call->at);
    bow__list_init(&call->child.link);
    if (call->memory == NULL) {
        bow__client_call_free(call, in_loop);
        return NULL;
    }
    return call;
}

void bow__client_call_free(struct bow__client_call *call, bool in_loop)
{
    struct bow__client_calls *calls = call->calls;

    call->block = bow__block_unref(call->block);
    if (in_loop && calls->n_idle < calls->max_idle) {
        call->next = calls->idle;
        calls->idle = call;
        calls->n_idle++;
        return;
    }
    bow__result_memory_free(call->memory);
    bow__free(calls->context, call, sizeof(*call));
}

/* The queue */

size_t bow__client_call_bytes(const struct bow__client_call *call)
{
    return sizeof(*call) + call->n_request + bow__metadata_bytes(&call->metadata);
}

struct bow__client_call *bow__client_calls_first_queued(const struct bow__client_calls *calls)
{
    struct bow__link *at = calls->queue.next;

    return at != &calls->queue ? BOW__CONTAINER(at, struct bow__client_call, at) : NULL;
}

static void count_queued(struct bow__client_call *call)
{
    call->state = BOW__CLIENT_CALL_QUEUED;
    call->queued_bytes = bow__client_call_bytes(call);
    if (!call->is_counted_as_queued) {
        call->is_counted_as_queued = true;
        call->queued_since_ns = bow_loop_now(call->calls->loop);
    }
    call->calls->queued_bytes += call->queued_bytes;
    call->calls->n_queued_fast += !call->waits_for_ready;
    atomic_fetch_add_explicit(&call->calls->n_queued, 1, memory_order_relaxed);
}

void bow__client_call_queue_back(struct bow__client_call *call)
{
    bow__list_push_back(&call->calls->queue, &call->at);
    count_queued(call);
}

void bow__client_call_queue_front(struct bow__client_call *call)
{
    bow__list_push_front(&call->calls->queue, &call->at);
    count_queued(call);
}

void bow__client_call_unqueue(struct bow__client_call *call)
{
    bow__list_remove(&call->at);
    call->calls->queued_bytes -= call->queued_bytes;
    call->calls->n_queued_fast -= !call->waits_for_ready;
    atomic_fetch_sub_explicit(&call->calls->n_queued, 1, memory_order_relaxed);
}

/* Between attempts */

void bow__client_call_rest(struct bow__client_call *call)
{
    call->state = BOW__CLIENT_CALL_RESTING;
    bow__list_push_back(&call->calls->resting, &call->at);
    call->calls->n_resting++;
}

void bow__client_call_rise(struct bow__client_call *call)
{
    bow__list_remove(&call->at);
    call->calls->n_resting--;
    call->state = BOW__CLIENT_CALL_POSTED;
}

/* Counting. Times are those of the turns in which things happened, so that no call reads the clock
 * for them. */

static uint64_t since(const struct bow__client_call *call, uint64_t since_ns)
{
    return bow__time_left(bow_loop_now(call->calls->loop), since_ns);
}

void bow__client_call_find_counts(struct bow__client_call *call)
{
    call->counts = bow__client_methods_find(&call->calls->methods, call->method);
}

void bow__client_call_count_start(struct bow__client_call *call)
{
    struct bow__client_calls *calls = call->calls;

    bow__count(&call->counts->started, 1);
    calls->counters.now.calls_started++;
    bow__counters_touch(&calls->counters);
}

/* Of one that was sent, or has ended where it waited. */
static void count_queue_end(struct bow__client_call *call)
{
    if (call->is_counted_as_queued) {
        bow__method_counts_time(call->counts, call->calls->context, BOW_TIME_QUEUE, BOW_OK,
                                since(call, call->queued_since_ns), 1);
        call->is_counted_as_queued = false;
    }
}

void bow__client_call_count_attempt(struct bow__client_call *call)
{
    uint64_t now = bow_loop_now(call->calls->loop);

    count_queue_end(call);
    call->is_attempted = true;
    call->sent_at_ns = now > call->started_ns ? now : call->started_ns;
    bow__count(&call->counts->attempts, 1);
}

void bow__client_call_count_attempt_end(struct bow__client_call *call, enum bow_code code)
{
    if (!call->is_attempted) {
        return;
    }
    bow__sizes_record(&call->counts->received, call->n_received);
    bow__sizes_record(&call->counts->sent, call->n_sent);
    bow__method_counts_time(call->counts, call->calls->context, BOW_TIME_ATTEMPT, code,
                            since(call, call->sent_at_ns), 1);
    call->n_received = 0;
    call->n_sent = 0;
    call->is_attempted = false;
}

void bow__client_call_count_refused(struct bow__client_call *call)
{
    struct bow__method_counts *counts =
        call->counts != NULL ? call->counts
                             : bow__client_methods_look(&call->calls->methods, call->method->path);

    /* Off the loop, too: the one thing here that is added to by several threads. */
    atomic_fetch_add_explicit(&counts->refused[BOW_REFUSED_QUEUE], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&call->calls->n_refused, 1, memory_order_relaxed);
}

static void count_end(struct bow__client_call *call, enum bow_code code)
{
    struct bow__client_calls *calls = call->calls;
    enum bow_code known = (unsigned)code < BOW_N_CODES ? code : BOW_UNKNOWN;
    uint64_t ns = since(call, call->started_ns);

    count_queue_end(call);
    bow__client_call_count_attempt_end(call, known);
    bow__count(&call->counts->ended[known], 1);
    bow__count(&call->counts->total_ns, ns);
    bow__method_counts_time(call->counts, calls->context, BOW_TIME_CALL, known, ns, 1);
    calls->counters.now.calls_ended++;
    calls->retries.n_failed += known != BOW_OK;
    bow__counters_touch(&calls->counters);
}

/* Completion */

void bow__client_call_abandon(struct bow__client_call *call, enum bow_code code)
{
    struct bow__session *session = call->conn != NULL ? call->conn->session : NULL;

    if (call->state == BOW__CLIENT_CALL_OPEN && session != NULL) {
        session->ops->cancel(session, call->key, code);
        bow__conn_touch(call->conn);
    }
}

void bow__client_call_part(struct bow__client_call *call)
{
    if (call->conn != NULL) {
        bow__age_called(&call->conn->age, bow_loop_now(call->calls->loop));
    }
    call->conn = NULL;
}

/* Nobody finds the call any more; a cancellation that was posted before is the last to hold it. */
static void leave(struct bow__client_call *call)
{
    bow_timer_stop(&call->timer);
    bow__list_remove(&call->at);
    if (call->state == BOW__CLIENT_CALL_QUEUED) {
        bow__client_call_unqueue(call);
    } else if (call->state == BOW__CLIENT_CALL_HELD) {
        call->calls->n_held--;
    } else if (call->state == BOW__CLIENT_CALL_RESTING) {
        call->calls->n_resting--;
    }
    if (call->retry != NULL) {
        bow_timer_stop(&call->retry->timer);
        if (call->retry->hedge_ops != NULL) {
            call->retry->hedge_ops->drop_all(call->retry);
        }
    }
    if (call->id != 0) {
        bow__call_ids_remove(call->calls->ids, call->id);
    }
    bow__child_calls_leave(&call->child);
    bow__client_call_part(call);
    call->state = BOW__CLIENT_CALL_DONE;
}

static void release(struct bow__client_call *call)
{
    struct bow__client_calls *calls = call->calls;

    calls->n_calls--;
    if (atomic_load(&call->cancel_posted)) {
        call->ended = true;
        calls->n_calls++; /* until that task has run */
    } else {
        bow__client_call_free(call, true);
    }
    if (calls->closing) {
        calls->ops->check_closed(calls);
    }
}

static void run_done(struct bow__client_call *call, const struct bow_status *status)
{
    struct bow_result result = BOW_RESULT_INIT;

    result.status = *status;
    result.reply = status->code == BOW_OK ? call->reply : NULL;
    result.initial = call->initial;
    result.memory = call->memory;
    call->memory = NULL;
    call->done(&result, call->fn, call->user);
    /* Moved away, it is another's now. */
    call->memory = result.memory;
    if (call->memory != NULL) {
        bow__arena_reset(&call->memory->arena);
    }
}

void bow__client_call_end_interceptors(struct bow__client_call *call,
                                       const struct bow_status *status)
{
    struct bow__intercepted *it = call->intercepted;

    bow__list_remove(&BOW__CONTAINER(it, struct bow__client_interception, it)->deferred.link);
    bow__intercepted_end(it, status, bow__loop_read_clock(call->calls->loop));
    call->intercepted = NULL;
}

static bool may_have_run(const struct bow__client_call *call)
{
    return call->retry != NULL && call->retry->may_have_run;
}

/* What is sent again without a policy comes back to the queue only when no handler has seen it. */
static bool is_unsent(const struct bow__client_call *call)
{
    return call->state < BOW__CLIENT_CALL_OPEN;
}

/* It counts as an attempt, and as no call. */
static void complete_hedge(struct bow__client_call *call, const struct bow_status *status)
{
    call->failure = bow__result_keep_status(call->memory, status);
    call->failure.not_processed |= is_unsent(call);
    count_queue_end(call);
    bow__client_call_count_attempt_end(call, status->code);
    leave(call);
    call->hedge_of->retry->hedge_ops->on_end(call);
}

void bow__client_call_complete(struct bow__client_call *call, const struct bow_status *status)
{
    bool kept = status == &call->failure;

    if (call->hedge_of != NULL) {
        complete_hedge(call, status);
        return;
    }

    struct bow_status final = kept ? *status : bow__result_keep_status(call->memory, status);
    final.not_processed = (final.not_processed || is_unsent(call)) && !may_have_run(call);
    if (call->intercepted != NULL) {
        bow__client_call_end_interceptors(call, &final);
    }
    count_end(call, final.code);
    leave(call);
    run_done(call, &final);
    release(call);
}

void bow__client_call_fail(struct bow__client_call *call, enum bow_code code, const char *message)
{
    struct bow_status status = BOW_STATUS_OK_INIT;

    status.code = code;
    status.message = message;
    bow__client_call_complete(call, &status);
}

void bow__client_call_linger(struct bow__client_call *call, const struct bow_status *status)
{
    call->failure = bow__result_keep_status(call->memory, status);
    call->state = BOW__CLIENT_CALL_LINGERING;
    bow__client_call_part(call);
    bow_timer_stop(&call->timer);
}

static int complete_task(void *user)
{
    struct bow__client_call *call = user;

    bow__client_call_complete(call, &call->failure);
    return 0;
}

int bow__client_call_fail_later(struct bow__client_call *call, enum bow_code code,
                                const char *message)
{
    struct bow_status status = BOW_STATUS_OK_INIT;

    status.code = code;
    status.message = message;
    status.not_processed = is_unsent(call) && !may_have_run(call);
    call->failure = bow__result_keep_status(call->memory, &status);
    call->state = BOW__CLIENT_CALL_FAILING;
    bow_timer_stop(&call->timer);
    bow_task_init(&call->task, "complete call", complete_task, call);
    return bow__loop_post_internal(call->calls->loop, &call->task, 0);
}

/* The table */

static void on_published(void *owner)
{
    struct bow__client_calls *calls = owner;

    calls->ops->check_closed(calls);
}

void bow__client_calls_init(struct bow__client_calls *calls,
                            const struct bow__compression_options *compression,
                            const struct bow__retry_config *retry)
{
    /* Where faults of programs are looked for, what a callback was lent is to be gone after it. */
    calls->max_idle = BOW__POISONS || bow__quarantines(calls->context) ? 0 : MAX_IDLE_CALLS;
    bow__list_init(&calls->held);
    bow__list_init(&calls->queue);
    bow__list_init(&calls->open);
    bow__list_init(&calls->resting);
    bow__retries_init(&calls->retries, retry);
    /* Without methods it allocates nothing, so it cannot fail. */
    (void)bow__counters_init(&calls->counters, calls->context, calls->loop, 0, on_published, calls);
    bow__client_methods_init(&calls->methods, calls->context);
    bow__loop_compression_init(&calls->compression, calls->context, calls->loop, compression);
}

void bow__client_calls_fini(struct bow__client_calls *calls)
{
    while (calls->idle != NULL) {
        struct bow__client_call *call = calls->idle;
        calls->idle = call->next;
        bow__result_memory_free(call->memory);
        bow__free(calls->context, call, sizeof(*call));
    }
    bow__retries_fini(&calls->retries);
    bow__client_methods_fini(&calls->methods);
    bow__counters_fini(&calls->counters);
}
