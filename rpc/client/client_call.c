/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One call of a client, on its loop: memory, sending, deadline, completion. When
 * it may be sent is the balancer's business.
 */

#include "base/alloc.h"
#include "base/clock.h"
#include "rpc/client/client_state.h"
#include "rpc/client/stream_state.h"
#include "rpc/core/errors.h"
#include "rpc/interceptors/intercept.h"

#include <errno.h>
#include <string.h>

#define MAX_IDLE_CALLS 256u

/* Memory */

static struct bow__client_call *take(struct bow__balancer *balancer, bool in_loop)
{
    struct bow__client_call *call = in_loop ? balancer->idle : NULL;

    if (call != NULL) {
        balancer->idle = call->next;
        balancer->n_idle--;
        return call;
    }
    call = bow__alloc(balancer->client->context, sizeof(*call));
    if (call != NULL) {
        call->memory = NULL;
    }
    return call;
}

static void on_timer(struct bow_timer *timer, void *user);

struct bow__client_call *bow__client_call_new(struct bow__balancer *balancer, bool in_loop)
{
    struct bow__client_call *call = take(balancer, in_loop);

    if (call == NULL) {
        return NULL;
    }
    struct bow_result_memory *memory = call->memory;
    memset(call, 0, offsetof(struct bow__client_call, request));
    call->memory = memory != NULL ? memory : bow__result_memory_new(balancer->client->context);
    call->balancer = balancer;
    bow__list_init(&call->at);
    bow__list_init(&call->child.link);
    bow_timer_init(&call->timer, balancer->loop, on_timer, call);
    bow_task_init(&call->cancel_task, "cancel call", bow__client_call_cancel_task, call);
    if (call->memory == NULL) {
        bow__client_call_free(call, in_loop);
        return NULL;
    }
    return call;
}

void bow__client_call_free(struct bow__client_call *call, bool in_loop)
{
    struct bow__balancer *balancer = call->balancer;

    call->block = bow__block_unref(call->block);
    if (in_loop && balancer->n_idle < MAX_IDLE_CALLS) {
        call->next = balancer->idle;
        balancer->idle = call;
        balancer->n_idle++;
        return;
    }
    bow__result_memory_free(call->memory);
    bow__free(balancer->client->context, call, sizeof(*call));
}

void bow__client_call_drop(struct bow__client_call *call)
{
    struct bow__balancer *balancer = call->balancer;

    bow__client_call_free(call, false);
    bow__client_link_unpost(balancer);
}

/* Sending */

static int send_block(struct bow__client_call *call, struct bow__session *session,
                      struct bow__block *block)
{
    int rc = session->ops->send(session, call->key, BOW__SEND_END, block, 0, call->n_request);

    if (rc < 0) {
        bow__block_unref(block);
    }
    return rc;
}

/* Returns 1 when the request is to go as it is. */
static int send_packed(struct bow__client_call *call, struct bow__session *session,
                       const uint8_t *bytes)
{
    size_t len = 0;

    if (call->encoding == BOW__ENCODING_IDENTITY) {
        return 1;
    }
    return bow__compression_send(&call->balancer->compression.compression, session, call->key,
                                 (enum bow__encoding)call->encoding, BOW__SEND_END,
                                 (struct bow_slice){bytes, call->n_request}, &len);
}

static int send_request(struct bow__client_call *call, struct bow__session *session)
{
    const uint8_t *bytes = call->block != NULL ? call->block->data : call->request;
    size_t cap = 0;

    int rc = send_packed(call, session, bytes);
    if (rc <= 0) {
        return rc;
    }
    uint8_t *room = call->n_request <= BOW__IN_PLACE_BYTES
                        ? session->ops->reserve(session, call->key, BOW__SEND_END, &cap)
                        : NULL;
    if (room != NULL && call->n_request <= cap) {
        memcpy(room, bytes, call->n_request);
        return session->ops->commit(session, call->key, BOW__SEND_END, call->n_request);
    }
    if (call->block != NULL) {
        return send_block(call, session, bow__block_ref(call->block));
    }
    struct bow__block *block =
        bow__block_new(call->balancer->client->context, BOW__INLINE_REQUEST_BYTES);
    if (block == NULL) {
        return -ENOMEM;
    }
    memcpy(block->data, bytes, call->n_request);
    return send_block(call, session, block);
}

/* What the peer takes is known once it has said so: until then, nothing is compressed. */
static enum bow__encoding choose_encoding(const struct bow__client_call *call,
                                          const struct bow__session *session)
{
    size_t threshold = call->balancer->compression.compression.threshold_bytes;

    if (!call->compresses ||
        (!bow__method_sends_many(call->method) && call->n_request < threshold)) {
        return BOW__ENCODING_IDENTITY;
    }
    return bow__compression_choose(session, 0);
}

/* Until a turn ends its loop's time stands still, which a handler that calls on may have long
 * used up. */
static uint64_t time_left(const struct bow__client_call *call)
{
    uint64_t now = bow_loop_now(call->balancer->loop);

    return bow__time_left(call->deadline_ns, now > call->started_ns ? now : call->started_ns);
}

int bow__client_call_send(struct bow__client_call *call)
{
    struct bow__balancer *balancer = call->balancer;
    struct bow__session *session = balancer->conn->conn.session;
    struct bow__request_head head = {
        .path = {(const uint8_t *)call->method->path, strlen(call->method->path)},
        .path_key = (uint64_t)(uintptr_t)call->method,
        .time_left_ns = time_left(call),
        .metadata = call->metadata,
    };

    head.encoding = choose_encoding(call, session);
    call->encoding = (uint8_t)head.encoding;
    int rc = session->ops->open(session, &head, call, &call->key);
    if (rc < 0) {
        return rc;
    }
    rc = bow__method_sends_many(call->method) ? bow__stream_begin(call->stream, session, call->key)
                                              : send_request(call, session);
    if (rc < 0) {
        session->ops->abandon(session, call->key);
        return rc;
    }
    call->conn = balancer->conn;
    call->state = BOW__CLIENT_CALL_OPEN;
    bow__list_push_back(&balancer->calls, &call->at);
    if (call->n_request > BOW__RETRY_REQUEST_BYTES) {
        call->block = bow__block_unref(call->block);
    }
    bow__conn_touch(&balancer->conn->conn);
    if (call->stream != NULL) {
        bow__stream_opened(call->stream);
    }
    return 0;
}

void bow__client_call_abandon(struct bow__client_call *call, enum bow_code code)
{
    struct bow__session *session = call->conn != NULL ? call->conn->conn.session : NULL;

    if (call->state == BOW__CLIENT_CALL_OPEN && session != NULL) {
        session->ops->cancel(session, call->key, code);
        bow__conn_touch(&call->conn->conn);
    }
}

/* Completion */

void bow__client_call_part(struct bow__client_call *call)
{
    if (call->conn != NULL) {
        bow__age_called(&call->conn->conn.age, bow_loop_now(call->balancer->loop));
    }
    call->conn = NULL;
}

/* Nobody finds the call any more; a cancellation that was posted before is the last to hold it. */
static void leave(struct bow__client_call *call)
{
    bow_timer_stop(&call->timer);
    bow__list_remove(&call->at);
    if (call->state == BOW__CLIENT_CALL_QUEUED) {
        bow__balancer_unqueue(call->balancer, call);
    } else if (call->state == BOW__CLIENT_CALL_HELD) {
        call->balancer->n_held--;
    }
    if (call->id != 0) {
        bow__call_ids_remove(&call->balancer->client->ids, call->id);
    }
    bow__child_calls_leave(&call->child);
    bow__client_call_part(call);
    call->state = BOW__CLIENT_CALL_DONE;
}

static void release(struct bow__client_call *call)
{
    struct bow__balancer *balancer = call->balancer;

    balancer->n_calls--;
    if (atomic_load(&call->cancel_posted)) {
        call->ended = true;
        balancer->n_calls++; /* until that task has run */
    } else {
        bow__client_call_free(call, true);
    }
    bow__balancer_check_closed(balancer);
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

void bow__client_call_complete(struct bow__client_call *call, const struct bow_status *status)
{
    struct bow__balancer *balancer = call->balancer;
    bool kept = status == &call->failure;

    struct bow_status final = kept ? *status : bow__result_keep_status(call->memory, status);
    if (call->intercepted != NULL) {
        bow__client_intercept_end(call, &final);
    }
    leave(call);
    balancer->counters.now.calls_ended++;
    bow__counters_touch(&balancer->counters);
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
    call->failure = bow__result_keep_status(call->memory, &status);
    call->state = BOW__CLIENT_CALL_FAILING;
    bow_timer_stop(&call->timer);
    bow_task_init(&call->task, "complete call", complete_task, call);
    return bow__loop_post_internal(call->balancer->loop, &call->task, 0);
}

/* Deadline */

static const char *stage_of(const struct bow__client_call *call)
{
    const struct bow__balancer *balancer = call->balancer;

    if (call->state == BOW__CLIENT_CALL_OPEN || call->state == BOW__CLIENT_CALL_EXPIRING) {
        return "waiting for the reply of";
    }
    if (call->state == BOW__CLIENT_CALL_HELD) {
        return "held by an interceptor, before the call went to";
    }
    if (balancer->state == BOW__CONNECTIVITY_READY) {
        return "waiting for a stream slot at";
    }
    return bow__balancer_stage(balancer);
}

/* Some server took the connection and says nothing, which no server of ours does. */
static bool is_peer_mute(const struct bow__client_call *call)
{
    const struct bow__client_conn *conn =
        call->conn != NULL ? call->conn : bow__balancer_mute(call->balancer);

    return call->state != BOW__CLIENT_CALL_EXPIRING && conn != NULL && !conn->conn.heard;
}

static void describe_deadline(const struct bow__client_call *call, struct bow__text *text)
{
    static const char *const origins[] = {
        [BOW__TIMEOUT_GIVEN] = "",
        [BOW__TIMEOUT_DEFAULT] = " (the client's default_timeout_ns, for the call named none)",
        [BOW__TIMEOUT_PARENT] = " (the parent call's)",
    };
    const struct bow__subchannel *failed =
        call->state == BOW__CLIENT_CALL_QUEUED ? bow__balancer_last_failed(call->balancer) : NULL;

    bow__text_clear(text);
    bow__text_printf(text, "deadline of ");
    bow__text_duration(text, call->timeout_ns);
    bow__text_printf(text, "%s passed while %s ", origins[call->timeout_origin], stage_of(call));
    if (call->conn != NULL) {
        bow__text_printf(text, "%s", call->conn->subchannel->address->text);
    } else {
        bow__target_describe(&call->balancer->client->target, text);
    }
    if (failed != NULL) {
        bow__text_printf(text, "; the last attempt: %s", failed->last_error.bytes);
    }
    if (is_peer_mute(call)) {
        bow__text_printf(text, "; nothing was ever received from it: is it a %s server?",
                         call->balancer->client->target.http2 ? "gRPC" : "Bowline");
    }
}

static void on_timer(struct bow_timer *timer, void *user)
{
    struct bow__client_call *call = user;
    struct bow__text text;

    (void)timer;
    describe_deadline(call, &text);
    bow__client_call_abandon(call, BOW_DEADLINE_EXCEEDED);
    bow__client_call_fail(call, BOW_DEADLINE_EXCEEDED, text.bytes);
}

void bow__client_call_arm(struct bow__client_call *call)
{
    bow_timer_start_at(&call->timer, call->deadline_ns);
}

/* Cancel */

/* Before it has come to the loop, if it ever does: see undo_elsewhere(). */
static void cancel_unstarted(struct bow__client_call *call)
{
    call->cancelled = true;
    if (!atomic_exchange(&call->cancel_posted, false)) {
        bow__client_call_drop(call);
    }
}

int bow__client_call_cancel_task(void *user)
{
    struct bow__client_call *call = user;
    struct bow__balancer *balancer = call->balancer;

    if (call->ended) {
        balancer->n_calls--;
        bow__client_call_free(call, true);
        bow__balancer_check_closed(balancer);
        return 0;
    }
    if (call->state == BOW__CLIENT_CALL_POSTED) {
        cancel_unstarted(call);
        return 0;
    }
    atomic_store(&call->cancel_posted, false);
    switch (call->state) {
    case BOW__CLIENT_CALL_HELD:
    case BOW__CLIENT_CALL_QUEUED:
    case BOW__CLIENT_CALL_OPEN:
    case BOW__CLIENT_CALL_EXPIRING:
    case BOW__CLIENT_CALL_LINGERING:
        bow__client_call_abandon(call, BOW_CANCELLED);
        bow__client_call_fail(call, BOW_CANCELLED, "the call was cancelled");
        break;
    case BOW__CLIENT_CALL_POSTED:
    case BOW__CLIENT_CALL_FAILING:
    case BOW__CLIENT_CALL_DONE:
        break;
    }
    return 0;
}
