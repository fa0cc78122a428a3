/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The server's side of a call: what a session's events do to it. Decodes requests, and tells the
 * client when one cannot be, or comes too late. Which bytes they came in is the session's business;
 * how long the call lasts on its connection is in dispatch_call.c.
 */

#include "rpc/server/dispatch/dispatch.h"
#include "base/ceiling.h"
#include "base/clock.h"
#include "base/hints.h"
#include "rpc/core/call/call_invoke.h"
#include "rpc/core/call/call_metadata.h"
#include "rpc/core/call/call_stream_events.h"
#include "rpc/core/call/generic.h"
#include "rpc/core/errors.h"
#include "rpc/server/dispatch/dispatch_call.h"
#include "rpc/server/dispatch/dispatch_enter.h"
#include "rpc/server/dispatch/dispatch_stream.h"
#include "rpc/server/dispatch/intercept_server.h"
#include <bowline/limits.h>

#include <errno.h>
#include <string.h>

#define ESCAPED_PATH_BYTES 200u
/* One that takes more is not left to the end of its batch: a few bytes may inflate to many such. */
#define LARGE_REQUEST_BYTES ((size_t)64 << 10)

/* Handlers before it may have taken their time; its timer has had no turn since. */
static bool has_expired(const struct bow__server_call *server_call)
{
    return bow__loop_has_passed(server_call->worker->loop, server_call->call.deadline_ns);
}

/* Opening */

/* `limit` as on_refused of an interceptor has it. */
static void refuse_open_with(struct bow__server_conn *conn, uint64_t key,
                             const struct bow__request_head *head, const struct bow_status *status,
                             const char *limit)
{
    struct bow__session *session = conn->conn.session;

    bow__server_intercept_refused(conn, head, status, limit);
    bow__age_called(&conn->conn.age, bow_loop_now(conn->conn.loop));
    if (session->ops->finish(session, key, status) == -ENOMEM) {
        bow_channel_close(conn->conn.channel, -ENOMEM);
    }
}

static void refuse_open(struct bow__server_conn *conn, uint64_t key,
                        const struct bow__request_head *head, enum bow_code code,
                        const char *message, const char *limit)
{
    struct bow_status status = BOW_STATUS_OK_INIT;

    status.code = code;
    status.message = message;
    if (code == BOW_RESOURCE_EXHAUSTED) {
        status.not_processed = true;
        status.retry_after_ns = conn->worker->limits->retry_after_ns;
    }
    refuse_open_with(conn, key, head, &status, limit);
}

static const struct bow__registered_method *find_method(const struct bow__worker *worker,
                                                        const struct bow__request_head *head)
{
    const struct bow__registered_method *entry =
        head->path_cache != NULL ? *head->path_cache : NULL;

    if (entry == NULL) {
        entry = bow__registry_find(worker->registry, head->path);
        if (head->path_cache != NULL) {
            /* The cache's word is not const; what it points to is, and is only read. */
            *head->path_cache = (void *)(uintptr_t)entry;
        }
    }
    return entry;
}

static void refuse_unknown(struct bow__server_conn *conn, uint64_t key,
                           const struct bow__request_head *head)
{
    struct bow__text text;

    conn->worker->counters.now.unknown_methods++;
    bow__dispatch_count_refused(conn, conn->worker->registry->n_methods, BOW_UNIMPLEMENTED);
    bow__text_clear(&text);
    bow__text_printf(&text, "unknown method ");
    bow__text_escape(&text, head->path, ESCAPED_PATH_BYTES);
    bow__text_printf(&text, ": %s",
                     bow__registry_has_service(conn->worker->registry, head->path)
                         ? "its service is here without it; is the server older than the client?"
                         : "its service is not here; is it the right server?");
    refuse_open(conn, key, head, BOW_UNIMPLEMENTED, text.bytes, "unknown_method");
}

static void refuse_expired(struct bow__server_conn *conn, uint64_t key,
                           const struct bow__request_head *head,
                           const struct bow__registered_method *entry)
{
    struct bow__text text;

    conn->worker->counters.now.calls_expired_unrun++;
    bow__dispatch_count_refused(conn, entry->index, BOW_DEADLINE_EXCEEDED);
    bow__text_clear(&text);
    bow__text_printf(&text, "the deadline had passed when %s arrived", entry->method->path);
    refuse_open(conn, key, head, BOW_DEADLINE_EXCEEDED, text.bytes, "expired");
}

static bool admit(struct bow__server_conn *conn, uint64_t key, const struct bow__request_head *head,
                  const struct bow__registered_method *entry)
{
    struct bow__worker *worker = conn->worker;
    struct bow_status status = BOW_STATUS_OK_INIT;
    struct bow__text text;
    const char *limit;

    /* What is only kept for later must not keep calls out. */
    if (bow__is_near_ceiling(worker->context)) {
        bow__worker_trim(worker);
    }
    limit = bow__admission_admit(&worker->admission, entry, &conn->share, &worker->counters.now,
                                 worker->counters.methods[entry->index].refused, &text, &status);
    if (limit == NULL) {
        return true;
    }
    bow__dispatch_count_refused(conn, entry->index, status.code);
    refuse_open_with(conn, key, head, &status, limit);
    return false;
}

static void refuse_for_memory(struct bow__server_conn *conn, uint64_t key,
                              const struct bow__request_head *head,
                              const struct bow__registered_method *entry)
{
    conn->worker->counters.now.calls_refused_memory++;
    bow__count(&conn->worker->counters.methods[entry->index].refused[BOW_REFUSED_MEMORY], 1);
    bow__dispatch_count_refused(conn, entry->index, BOW_RESOURCE_EXHAUSTED);
    refuse_open(conn, key, head, BOW_RESOURCE_EXHAUSTED, "the server has no memory for a call",
                "memory");
}

/* A stream may go on for ever unless its client says otherwise. */
static void set_deadline(struct bow__server_call *server_call, uint64_t time_left_ns)
{
    struct bow__worker *worker = server_call->worker;
    bool is_stream = server_call->call.method->call_thunks != NULL;
    uint64_t cap = is_stream ? BOW_NEVER : worker->limits->max_deadline_ns;

    server_call->capped = time_left_ns > cap;
    server_call->timeout_ns = bow__time_min(time_left_ns, cap);
    server_call->started_ns = server_call->conn->conn.session->work.came_ns;
    server_call->call.deadline_ns = bow__time_add(server_call->started_ns, server_call->timeout_ns);
}

/* What a call has beside itself, which most have not. */
static int equip(struct bow__server_call *server_call, const struct bow_metadata *metadata)
{
    if (metadata->n > 0 && bow__call_receive_metadata(&server_call->call, metadata) < 0) {
        return -ENOMEM;
    }
    return server_call->call.method->call_thunks != NULL ? bow__dispatch_stream_begin(server_call)
                                                         : 0;
}

static struct bow__server_call *begin(struct bow__server_conn *conn, uint64_t key,
                                      const struct bow__registered_method *entry,
                                      const struct bow__request_head *head)
{
    struct bow__worker *worker = conn->worker;
    struct bow__server_call *server_call = bow__worker_get(worker);

    if (server_call == NULL) {
        bow__admission_leave(&worker->admission, entry->index, false);
        return NULL;
    }
    bow__call_init(&server_call->call, &bow__dispatch_call_ops, worker->context, server_call->slab,
                   BOW__SERVER_CALL_BYTES - sizeof(*server_call));
    server_call->call.session = conn->conn.session;
    server_call->call.key = key;
    server_call->call.method = entry->method;
    server_call->call.entry = entry;
    server_call->call.peer = bow_channel_peer(conn->conn.channel);
    server_call->call.compression = &worker->compression.compression;
    atomic_init(&server_call->call.compresses, (uint8_t)worker->compression.compression.mode);
    server_call->worker = worker;
    server_call->conn = conn;
    server_call->channel_ref = NULL;
    server_call->channel = conn->conn.channel;
    server_call->index = entry->index;
    server_call->counts = &worker->counters.methods[entry->index];
    server_call->complete = false;
    server_call->waits = false;
    server_call->n_session = conn->conn.session->n_stream_bytes + head->n_beside;
    server_call->n_request = 0;
    server_call->n_received = 0;
    server_call->n_sent = 0;
    if (equip(server_call, &head->metadata) < 0) {
        bow__call_free(&server_call->call);
        return NULL;
    }
    server_call->n_request = server_call->call.arena.used;
    set_deadline(server_call, head->time_left_ns);
    bow__dispatch_enlist(server_call);
    worker->counters.now.calls_started++;
    bow__count(&server_call->counts->started, 1);
    return server_call;
}

static bool go_on(struct bow__server_call *server_call)
{
    if ((server_call->call.method->flags & BOW_METHOD_CLIENT_STREAMING) == 0) {
        return true;
    }
    if (has_expired(server_call)) {
        bow__dispatch_expire(server_call);
        return false;
    }
    return bow__dispatch_enter(server_call);
}

/* The request */

static void run(struct bow__server_call *server_call)
{
    server_call->complete = true;
    if (has_expired(server_call)) {
        bow__dispatch_expire(server_call);
        return;
    }
    (void)bow__dispatch_enter(server_call);
}

static void refuse_undecodable(struct bow__server_call *server_call, int rc,
                               const struct bow__text *reason)
{
    struct bow__text text;

    if (bow__intercepted_refused(server_call->call.intercepted)) {
        bow__dispatch_refuse(server_call, server_call->call.intercepted->refusal.code,
                             reason->bytes);
        return;
    }
    server_call->worker->counters.now.undecodable_messages++;
    bow__text_clear(&text);
    bow__text_printf(&text, "the request of %s cannot be decoded: %s",
                     server_call->call.method->path, reason->bytes);
    bow__dispatch_refuse(server_call, bow__code_from_errno(rc), text.bytes);
}

static bool takes_many(const struct bow__server_call *server_call)
{
    return (server_call->call.method->flags & BOW_METHOD_CLIENT_STREAMING) != 0;
}

static void refuse_second(struct bow__server_call *server_call)
{
    struct bow__text text;

    bow__text_clear(&text);
    bow__text_printf(&text, "%s takes one message, and a second one came",
                     server_call->call.method->path);
    bow__dispatch_refuse(server_call, BOW_INTERNAL, text.bytes);
}

static void refuse_none(struct bow__server_call *server_call)
{
    struct bow__text text;

    bow__text_clear(&text);
    bow__text_printf(&text, "%s takes one message, and none came", server_call->call.method->path);
    bow__dispatch_refuse(server_call, BOW_INTERNAL, text.bytes);
}

/* While the server is short of it, for a call that lasts, and for a large one. Returns whether the
 * call goes on. */
static bool find_room(struct bow__server_call *server_call)
{
    struct bow_status status = BOW_STATUS_OK_INIT;
    struct bow__text text;

    if (bow__dispatch_count_request(server_call)) {
        return true;
    }
    bow__count(&server_call->counts->refused[BOW_REFUSED_BYTES], 1);
    bow__text_clear(&text);
    bow__text_printf(&text,
                     "%s: no room for a request of %zu bytes: ", server_call->call.method->path,
                     server_call->n_request);
    bow__in_flight_describe(&server_call->worker->in_flight, &text);
    status.code = BOW_RESOURCE_EXHAUSTED;
    status.message = text.bytes;
    status.not_processed = true;
    status.retry_after_ns = server_call->worker->limits->retry_after_ns;
    bow__dispatch_refuse_with(server_call, &status);
    return false;
}

static void dispatch_message(struct bow__server_call *server_call, struct bow__message *message,
                             bool last)
{
    struct bow__session *session = server_call->call.session;
    uint64_t key = server_call->call.key;
    size_t n_bytes = message->bytes.len;
    struct bow__text reason;

    if (takes_many(server_call) && server_call->waits) {
        bow__dispatch_keep_message(server_call, message, last);
        return;
    }
    if (takes_many(server_call)) {
        bow__dispatch_stream_message(server_call, message, last);
        return;
    }
    if (server_call->call.request != NULL) {
        refuse_second(server_call);
        return;
    }
    bow__text_clear(&reason);
    bow__count(&server_call->counts->bytes_in, n_bytes);
    server_call->n_received = n_bytes;
    int rc = bow__call_decode(&server_call->call, message, &reason);
    bow__session_worked(session, message, n_bytes, rc);
    session->ops->consumed(session, key, bow__consumed_bytes(n_bytes));
    if (rc < 0) {
        refuse_undecodable(server_call, rc, &reason);
        return;
    }
    server_call->n_request = bow__decoded_bytes(&server_call->call.arena);
    bool counts_now = server_call->outlives_batch || server_call->worker->in_flight.is_short ||
                      server_call->n_request > LARGE_REQUEST_BYTES;
    if (counts_now && !find_room(server_call)) {
        return;
    }
    if (last) {
        run(server_call);
    }
}

static void dispatch_half_close(struct bow__server_call *server_call)
{
    if (takes_many(server_call)) {
        bow__call_stream_half_close(&server_call->call);
        return;
    }
    if (server_call->call.request == NULL) {
        refuse_none(server_call);
        return;
    }
    if (!server_call->complete) {
        run(server_call);
    }
}

/* The session's events */

/* Where a call that an interceptor holds goes back to. */
static const struct bow__server_intercept_ops intercept_ops = {
    .go_on = go_on,
    .message = dispatch_message,
    .half_close = dispatch_half_close,
    .refuse = bow__dispatch_refuse_with,
};

/* A call of the fallback has a method of its own, with the path it came by. */
BOW__LONG_WAY static bool name_generic(struct bow__server_call *server_call, struct bow_slice path)
{
    struct bow_method *method = bow__generic_method_new(&server_call->call.arena, path);

    if (method == NULL) {
        bow__dispatch_refuse(server_call, BOW_RESOURCE_EXHAUSTED,
                             "the server has no memory for a call");
        return false;
    }
    server_call->call.method = method;
    return true;
}

static void *on_open(void *owner, uint64_t key, const struct bow__request_head *head)
{
    struct bow__server_conn *conn = owner;
    const struct bow__registry *registry = conn->worker->registry;
    const struct bow__registered_method *entry = find_method(conn->worker, head);

    bow__conn_seen(&conn->conn);
    if (entry == NULL) {
        entry = bow__registry_fallback(registry, head->path);
        if (entry == NULL) {
            refuse_unknown(conn, key, head);
            return NULL;
        }
    }
    if (head->time_left_ns == 0) {
        refuse_expired(conn, key, head, entry);
        return NULL;
    }
    if (conn->worker->admission.is_on && !admit(conn, key, head, entry)) {
        return NULL;
    }
    struct bow__server_call *server_call = begin(conn, key, entry, head);
    if (server_call == NULL) {
        refuse_for_memory(conn, key, head, entry);
        return NULL;
    }
    if (bow__unlikely(entry == &registry->fallback) && !name_generic(server_call, head->path)) {
        return NULL;
    }
    void *stream = NULL;
    if (conn->worker->limits->interceptors != NULL &&
        !bow__server_intercept(server_call, &intercept_ops, head->protocol, &stream)) {
        return stream;
    }
    return go_on(server_call) ? server_call : NULL;
}

static void on_message(void *owner, uint64_t key, void *stream, struct bow__message *message,
                       bool last)
{
    struct bow__server_call *server_call = stream;

    (void)owner;
    (void)key;
    if (bow__intercepted_waits(server_call->call.intercepted)) {
        bow__server_intercept_queue(server_call, message, last);
        return;
    }
    dispatch_message(server_call, message, last);
}

static void on_half_close(void *owner, uint64_t key, void *stream)
{
    struct bow__server_call *server_call = stream;

    (void)owner;
    (void)key;
    if (bow__intercepted_waits(server_call->call.intercepted)) {
        bow__server_intercept_queue(server_call, NULL, true);
        return;
    }
    dispatch_half_close(server_call);
}

static void on_reset(void *owner, uint64_t key, void *stream, const struct bow_status *why)
{
    struct bow_status status = *why;

    (void)owner;
    (void)key;
    status.code = why->code == BOW_OK ? BOW_CANCELLED : why->code;
    bow__dispatch_count_cancelled(stream, status.code);
    bow__dispatch_end(stream, &status);
}

static void on_writable(void *owner, uint64_t key, void *stream)
{
    struct bow__server_call *server_call = stream;

    (void)owner;
    (void)key;
    if (bow__server_call_is_entered_stream(server_call)) {
        bow__call_stream_writable(&server_call->call);
    }
}

static void on_ready(void *owner)
{
    struct bow__server_conn *conn = owner;

    bow__conn_seen(&conn->conn);
}

static void on_goaway(void *owner, const struct bow_status *reason)
{
    (void)owner;
    (void)reason;
}

/* By the session, which makes no call of it. A path that was not read counts for the unknown. */
static void count_crowded(struct bow__worker *worker, struct bow_slice path)
{
    const struct bow__registered_method *entry = bow__registry_find(worker->registry, path);
    uint32_t index = entry != NULL ? entry->index : worker->registry->n_methods;

    bow__count(&worker->counters.methods[index].refused[BOW_REFUSED_CONNECTION], 1);
}

static void on_refused(void *owner, struct bow_slice path, const struct bow_status *status,
                       const char *limit)
{
    struct bow__server_conn *conn = owner;
    struct bow__request_head head = {.path = path};

    if (strcmp(limit, bow_refusal_name(BOW_REFUSED_CONNECTION)) == 0) {
        count_crowded(conn->worker, path);
    }
    bow__server_intercept_refused(conn, &head, status, limit);
}

const struct bow__session_events bow__dispatch_events = {
    .on_open = on_open,
    .on_message = on_message,
    .on_half_close = on_half_close,
    .on_reset = on_reset,
    .on_writable = on_writable,
    .on_ready = on_ready,
    .on_goaway = on_goaway,
    .on_refused = on_refused,
};
