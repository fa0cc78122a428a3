/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Entering handlers, on the loop or an executor. While too much waits to be sent to a client
 * (backlog.h), or handlers have max_calls of its connection, its calls wait here, in the order in
 * which they came. One that waits is like one that an interceptor holds: its deadline and its peer
 * may end it, it counts as in flight, and what comes for it is kept undecoded, with no credit given
 * for it.
 */

#include "rpc/server/dispatch/dispatch_enter.h"
#include "base/hints.h"
#include "rpc/core/call/call_invoke.h"
#include "rpc/core/call/call_stream.h"
#include "rpc/core/call/call_stream_events.h"
#include "rpc/server/dispatch/dispatch_call.h"
#include "rpc/server/dispatch/executor_dispatch.h"
#include <bowline/limits.h>

#include <errno.h>

/* The handler */

static void refuse_executor(struct bow__server_call *server_call, int rc)
{
    const struct bow__handler_executor *executor = server_call->call.entry->executor;
    struct bow_status status = BOW_STATUS_OK_INIT;
    struct bow__text text;

    bow__text_clear(&text);
    bow__text_printf(&text, "%s: ", server_call->call.method->path);
    if (rc == -EAGAIN) {
        server_call->worker->counters.now.calls_refused_waiting++;
        bow__count(&server_call->counts->refused[BOW_REFUSED_WAITING], 1);
        bow__text_printf(&text, "%u calls wait for the executor of its handler (max_waiting_calls)",
                         executor->max_waiting);
        status.retry_after_ns = server_call->worker->limits->retry_after_ns;
    } else {
        bow__text_printf(&text, "the executor of its handler takes nothing: ");
        bow__text_errno(&text, rc);
    }
    status.code = rc == -EAGAIN ? BOW_RESOURCE_EXHAUSTED : BOW_UNAVAILABLE;
    status.message = text.bytes;
    status.not_processed = true;
    bow__dispatch_refuse_with(server_call, &status);
}

/* What counts how many handlers have, or runs elsewhere. Returns whether the call goes on. */
static bool invoke_counted(struct bow__server_call *server_call)
{
    struct bow__backlog_share *backlog = &server_call->conn->backlog;
    uint32_t is_stream = server_call->call.stream != NULL;
    uint32_t is_pending = !is_stream && server_call->outlives_batch;
    uint32_t is_held = is_stream && server_call->outlives_batch;
    int rc = 0;

    server_call->worker->n_streams += is_stream;
    backlog->n_calls += is_pending;
    backlog->n_streams += is_held;
    if (server_call->call.entry->executor != NULL) {
        rc = bow__executor_dispatch_enter(server_call);
    } else {
        bow__call_invoke(&server_call->call);
    }
    if (rc < 0) {
        server_call->worker->n_streams -= is_stream;
        backlog->n_calls -= is_pending;
        backlog->n_streams -= is_held;
        refuse_executor(server_call, rc);
        return false;
    }
    /* A unary call may be gone. */
    return is_stream && server_call->call.session != NULL;
}

/* Returns whether the call goes on. */
static inline bool invoke(struct bow__server_call *server_call)
{
    if (server_call->call.stream != NULL || server_call->outlives_batch ||
        server_call->call.entry->executor != NULL) {
        return invoke_counted(server_call);
    }
    /* It is counted at the end of the batch, if it is there then. */
    bow__call_invoke(&server_call->call);
    return false;
}

/* Waiting */

/* Sessions take more calls than that of a client that does not know of the limit. */
static bool has_max_calls(const struct bow__server_conn *conn)
{
    return conn->backlog.n_calls + conn->backlog.n_streams >= conn->worker->limits->max_calls;
}

static bool must_wait(struct bow__server_conn *conn)
{
    bow__dispatch_count_backlog(conn);
    return has_max_calls(conn) || bow__backlog_is_full(&conn->backlog);
}

static bool refuse_wait(struct bow__server_call *server_call)
{
    struct bow__server_conn *conn = server_call->conn;
    struct bow_status status = BOW_STATUS_OK_INIT;
    struct bow__text text;

    server_call->worker->counters.now.calls_refused_connection++;
    bow__count(&server_call->counts->refused[BOW_REFUSED_CONNECTION], 1);
    bow__text_clear(&text);
    bow__text_printf(&text, "%s: %zu bytes of calls wait on this connection, for ",
                     server_call->call.method->path, conn->backlog.n_waiting_bytes);
    if (has_max_calls(conn)) {
        bow__text_printf(&text, "handlers have max_calls (%u) of it",
                         (unsigned)conn->worker->limits->max_calls);
    } else {
        bow__text_printf(&text, "too much waits to be sent to its client (%zu bytes)",
                         conn->backlog.n_bytes);
    }
    bow__text_printf(&text, "; BOW_LIMIT_WAITING_REQUEST_BYTES (%zu)",
                     BOW_LIMIT_WAITING_REQUEST_BYTES);
    status.code = BOW_RESOURCE_EXHAUSTED;
    status.message = text.bytes;
    status.not_processed = true;
    status.retry_after_ns = BOW__CROWDED_RETRY_AFTER_NS;
    bow__dispatch_refuse_with(server_call, &status);
    return false;
}

/* Those that handlers have of the batch under way are worth counting now. */
static void count_batch(struct bow__server_call *server_call)
{
    bool is_new = !server_call->outlives_batch;

    if (is_new) {
        bow__list_remove(&server_call->link);
    }
    bow__dispatch_outlive_batch(server_call->conn);
    if (is_new) {
        bow__dispatch_enlist(server_call);
    }
}

/* Returns whether the call goes on. */
BOW__LONG_WAY static bool wait_or_enter(struct bow__server_call *server_call)
{
    struct bow__server_conn *conn = server_call->conn;

    count_batch(server_call);
    if (bow__list_is_empty(&conn->backlog.waiting) && !must_wait(conn)) {
        return invoke(server_call);
    }
    if (conn->backlog.n_waiting_bytes >= BOW_LIMIT_WAITING_REQUEST_BYTES) {
        return refuse_wait(server_call);
    }
    server_call->worker->counters.now.calls_delayed++;
    bow__dispatch_wait(server_call);
    return true;
}

bool bow__dispatch_enter(struct bow__server_call *server_call)
{
    const struct bow__server_conn *conn = server_call->conn;

    /* As good as always nothing waits. */
    if (conn->conn.session->n_waiting >= server_call->worker->backlog.look_bytes ||
        conn->conn.session->n_streams > server_call->worker->limits->max_calls ||
        !bow__list_is_empty(&conn->backlog.waiting)) {
        return wait_or_enter(server_call);
    }
    return invoke(server_call);
}

void bow__dispatch_keep_message(struct bow__server_call *server_call, struct bow__message *message,
                                bool end)
{
    struct bow__receive_queue *in = &server_call->call.stream->in;
    struct bow__text text;

    int rc = bow__receive_queue_push(in, server_call->worker->context, message);
    if (rc < 0) {
        struct bow_status status = BOW_STATUS_OK_INIT;
        bow__receive_queue_describe(in, rc, &text);
        status.code = BOW_RESOURCE_EXHAUSTED;
        status.message = text.bytes;
        status.retry_after_ns = server_call->worker->limits->retry_after_ns;
        bow__dispatch_refuse_with(server_call, &status);
        return;
    }
    if (end) {
        bow__call_stream_half_close(&server_call->call);
    }
}

static void start_first(struct bow__server_conn *conn)
{
    struct bow__server_call *first =
        BOW__CONTAINER(conn->backlog.waiting.next, struct bow__server_call, link);

    bow__dispatch_stop_waiting(first);
    bow__work_spend(&conn->conn.session->work, BOW__WORK_CALL_BYTES);
    if (bow__loop_has_passed(conn->worker->loop, first->call.deadline_ns)) {
        bow__dispatch_expire(first);
        return;
    }
    (void)invoke(first);
}

void bow__dispatch_go_on(struct bow__work_waiter *waiter)
{
    bow__conn_touch(&BOW__CONTAINER(waiter, struct bow__server_conn, waiter)->conn);
}

void bow__dispatch_settled(struct bow__conn *base)
{
    struct bow__server_conn *conn = BOW__CONTAINER(base, struct bow__server_conn, conn);

    bow__dispatch_count_backlog(conn);
    while (!bow__list_is_empty(&conn->backlog.waiting) && !base->closing && !must_wait(conn)) {
        if (!bow__session_has_turn(base->session)) {
            bow__work_wait(&base->session->work, &conn->waiter);
            return;
        }
        start_first(conn);
    }
}
