/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a worker has in flight, copied for who asks: connections, and the stage of each call. */
#include "rpc/server/dispatch/dispatch_inspect.h"
#include "rpc/connection/conn_inspect.h"
#include "rpc/core/call/call_stream.h"
#include "rpc/core/call/generic.h"
#include "rpc/core/intercept.h"
#include "rpc/server/dispatch/server_call.h"
#include "transport/channel/channel_core.h"

#include <stdio.h>

static bool is_blocked(const struct bow__conn *conn)
{
    return bow__channel_stalled_since(conn->channel) != 0;
}

static enum bow__call_stage waiting_stage(const struct bow__server_call *server_call, char *detail)
{
    const struct bow__server_conn *conn = server_call->conn;
    uint32_t n_calls = conn->backlog.n_calls + conn->backlog.n_streams;

    if (n_calls >= conn->worker->limits->max_calls) {
        snprintf(detail, BOW__SNAPSHOT_TEXT_BYTES, "handlers have max_calls (%u) of its connection",
                 conn->worker->limits->max_calls);
    } else {
        snprintf(detail, BOW__SNAPSHOT_TEXT_BYTES,
                 "too much waits to be sent to its client: %zu bytes", conn->backlog.n_bytes);
    }
    return BOW__STAGE_BEFORE_HANDLER;
}

static bool waits_for_thread(const struct bow__server_call *server_call)
{
    return server_call->call.entry->executor != NULL &&
           atomic_load_explicit(&server_call->entered_at_ns, memory_order_relaxed) == 0;
}

static enum bow__call_stage stage_of(const struct bow__server_call *server_call, size_t n_queued,
                                     char *detail)
{
    const struct bow_call *call = &server_call->call;
    const char *holder = bow__intercepted_holder(call->intercepted);

    if (server_call->waits) {
        return waiting_stage(server_call, detail);
    }
    if (holder != NULL) {
        bow__snapshot_copy(detail, holder);
        return BOW__STAGE_INTERCEPTED;
    }
    if (!call->invoked) {
        return BOW__STAGE_RECEIVING;
    }
    if (waits_for_thread(server_call)) {
        return BOW__STAGE_THREAD;
    }
    if (n_queued > 0) {
        return is_blocked(&server_call->conn->conn) ? BOW__STAGE_SOCKET : BOW__STAGE_CREDIT;
    }
    bool is_answered = call->stream != NULL ? atomic_load(&call->stream->answered)
                                            : atomic_load(&call->state) != BOW__CALL_HELD;
    return is_answered ? BOW__STAGE_REPLY : BOW__STAGE_HANDLER;
}

static const char *protocol_of(const struct bow__session *session, uint64_t key)
{
    return session->ops->protocol != NULL ? session->ops->protocol(session, key)
                                          : session->ops->name;
}

static void add_call(const struct bow__server_call *server_call, struct bow__snapshot *snapshot)
{
    const struct bow_call *call = &server_call->call;
    const struct bow__session *session = server_call->conn->conn.session;
    struct bow__call_entry *entry = bow__snapshot_add_call(snapshot, server_call->started_ns);

    if (entry == NULL) {
        return;
    }
    size_t n_queued = call->stream != NULL ? session->ops->queued(session, call->key) : 0;
    if (bow__method_is_generic(call->method)) {
        bow__snapshot_copy(entry->path, call->method->path);
    } else {
        entry->method = call->method->path;
    }
    entry->protocol = protocol_of(session, call->key);
    entry->deadline_ns = call->deadline_ns;
    entry->n_waiting = n_queued;
    if (call->stream != NULL && bow__call_stream_waiting(call->stream) > n_queued) {
        entry->n_waiting = bow__call_stream_waiting(call->stream);
    }
    bow__snapshot_copy(entry->peer, call->peer);
    entry->stage = stage_of(server_call, n_queued, entry->detail);
}

static uint32_t add_calls(struct bow__link *calls, struct bow__snapshot *snapshot)
{
    uint32_t n = 0;

    for (struct bow__link *at = calls->next; at != calls; at = at->next) {
        add_call(BOW__CONTAINER(at, struct bow__server_call, link), snapshot);
        n++;
    }
    return n;
}

/* A stream ends when its answer has left. HTTP/1.1 has none: of its answers, that leave one behind
 * the other, it knows what is left. */
static uint32_t sending_of(const struct bow__session *session, uint32_t n_calls)
{
    if (session->n_streams > n_calls) {
        return session->n_streams - n_calls;
    }
    return n_calls == 0 && session->ops->rest(session).n_bytes > 0;
}

static void add_connection(struct bow__server_conn *own, struct bow__snapshot *snapshot)
{
    const struct bow__session *session = own->conn.session;
    uint32_t n_calls = 0;

    if (session != NULL) {
        n_calls += add_calls(&own->calls, snapshot);
        n_calls += add_calls(&own->backlog.waiting, snapshot);
        n_calls += add_calls(&own->batch_calls, snapshot);
    }
    struct bow__connection_entry *entry = bow__conn_inspect(&own->conn, n_calls, snapshot);
    if (entry != NULL && session != NULL) {
        entry->n_sending = sending_of(session, n_calls);
    }
}

static void fill(void *source, struct bow__snapshot *snapshot)
{
    struct bow__worker *worker = source;

    for (struct bow__link *at = worker->conns.next; at != &worker->conns; at = at->next) {
        add_connection(BOW__CONTAINER(at, struct bow__server_conn, link), snapshot);
    }
    snapshot->n_abandoned =
        atomic_load_explicit(&worker->counters.n_unanswered, memory_order_relaxed);
}

static void hold(void *source)
{
    bow__worker_ref(source);
}

static void release(void *source)
{
    bow__worker_unref(source);
}

const struct bow__gather_ops bow__dispatch_gather_ops = {
    .hold = hold,
    .fill = fill,
    .release = release,
};
