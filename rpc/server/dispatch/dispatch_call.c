/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A call's time on its connection: the batch of events that brought it, its deadline, its end; and
 * what it asks of the connection, such as to get an answer that was made on another thread to its
 * loop. How it came, and what its messages do, is in dispatch.c.
 *
 * Most calls are answered in the batch that brought them: those need no timer, are not counted as
 * in flight, and the clock is read once for all of them.
 */

#include "rpc/server/dispatch/dispatch_call.h"
#include "base/clock.h"
#include "base/hints.h"
#include "rpc/core/call/call_stream.h"
#include "rpc/core/errors.h"
#include "rpc/core/intercept.h"
#include "rpc/server/dispatch/dispatch_stream.h"
#include "rpc/server/dispatch/executor_dispatch.h"
#include "rpc/server/dispatch/intercept_server.h"

#include <errno.h>

/* The batch */

/* A call's time ends when its answer can leave, which is at the end of the batch. */
static void count_times(struct bow__worker *worker)
{
    if (worker->n_answered == 0) {
        return;
    }
    uint64_t now = bow__loop_read_clock(worker->loop);
    for (uint32_t i = 0; i < worker->n_answered; i++) {
        const struct bow__answered *answered = &worker->answered[i];
        uint64_t ns = bow__time_left(now, answered->started_ns);
        bow__count(&answered->counts->total_ns, ns * answered->n);
        bow__method_counts_time(answered->counts, worker->context, BOW_TIME_CALL, answered->code,
                                ns, answered->n);
    }
    worker->n_answered = 0;
}

BOW__LONG_WAY static void begin_answered(struct bow__worker *worker,
                                         struct bow__method_counts *counts, uint64_t started_ns,
                                         enum bow_code code)
{
    if (worker->n_answered == BOW__ANSWERED_AT_ONCE) {
        count_times(worker);
    }
    worker->answered[worker->n_answered++] = (struct bow__answered){counts, started_ns, code, 1};
}

static inline void count_later(struct bow__worker *worker, struct bow__method_counts *counts,
                               uint64_t started_ns, enum bow_code code)
{
    if (worker->n_answered > 0) {
        struct bow__answered *last = &worker->answered[worker->n_answered - 1];
        if (last->counts == counts && last->started_ns == started_ns && last->code == code) {
            last->n++;
            return;
        }
    }
    begin_answered(worker, counts, started_ns, code);
}

/* Not before the call's end: its handler's thread has no memory of the loop's to count in. */
BOW__LONG_WAY static void count_executor(struct bow__server_call *server_call)
{
    struct bow__worker *worker = server_call->worker;
    uint64_t until_ns = atomic_load_explicit(&server_call->entered_at_ns, memory_order_relaxed);

    until_ns = until_ns > 0 ? until_ns : bow_loop_now(worker->loop);
    bow__method_counts_time(server_call->counts, worker->context, BOW_TIME_QUEUE, BOW_OK,
                            bow__time_left(until_ns, server_call->waits_since_ns), 1);
}

static void count_end(struct bow__server_call *server_call, enum bow_code code)
{
    struct bow__method_counts *counts = server_call->counts;
    enum bow_code known = (unsigned)code < BOW_N_CODES ? code : BOW_UNKNOWN;

    server_call->worker->counters.now.calls_ended++;
    bow__count(&counts->ended[known], 1);
    bow__sizes_record(&counts->received, server_call->n_received);
    bow__sizes_record(&counts->sent, server_call->n_sent);
    if (server_call->call.entry->executor != NULL && server_call->call.invoked) {
        count_executor(server_call);
    }
    count_later(server_call->worker, counts, server_call->started_ns, known);
}

void bow__dispatch_count_refused(struct bow__server_conn *conn, uint32_t index, enum bow_code code)
{
    struct bow__worker *worker = conn->worker;
    struct bow__method_counts *counts = &worker->counters.methods[index];

    worker->counters.now.calls_started++;
    worker->counters.now.calls_ended++;
    bow__count(&counts->started, 1);
    bow__count(&counts->ended[code], 1);
    bow__sizes_record(&counts->received, 0);
    bow__sizes_record(&counts->sent, 0);
    count_later(worker, counts, conn->conn.session->work.came_ns, code);
}

void bow__dispatch_count_cancelled(struct bow__server_call *server_call, enum bow_code code)
{
    bow__count(&server_call->counts->cancelled, code == BOW_CANCELLED);
}

void bow__dispatch_enlist(struct bow__server_call *server_call)
{
    server_call->outlives_batch = false;
    bow__list_push_back(&server_call->conn->batch_calls, &server_call->link);
}

/* What a call takes, without its request and the messages of a stream. */
static size_t bare_weight(const struct bow__server_call *server_call)
{
    size_t n_stream = server_call->call.stream != NULL ? sizeof(struct bow__call_stream) : 0;

    return BOW__SERVER_CALL_BYTES + server_call->n_session + n_stream;
}

void bow__dispatch_stop_waiting(struct bow__server_call *server_call)
{
    struct bow__worker *worker = server_call->worker;

    bow__method_counts_time(server_call->counts, worker->context, BOW_TIME_QUEUE, BOW_OK,
                            bow__time_left(bow_loop_now(worker->loop), server_call->waits_since_ns),
                            1);
    server_call->waits = false;
    server_call->conn->backlog.n_waiting_bytes -= server_call->n_in_flight;
    bow__list_remove(&server_call->link);
    bow__list_push_back(&server_call->conn->calls, &server_call->link);
}

/* Nobody's answer is waited for any more. */
static void end_outlived(struct bow__server_call *server_call)
{
    if (server_call->waits) {
        bow__dispatch_stop_waiting(server_call);
    }
    server_call->conn->backlog.n_calls -= bow__server_call_is_entered_unary(server_call);
    server_call->conn->backlog.n_streams -= bow__server_call_is_entered_stream(server_call);
    server_call->outlives_batch = false;
    bow_timer_stop(&server_call->timer);
    bow__in_flight_give_call(&server_call->conn->share, server_call->n_in_flight);
}

static void leave_batch(struct bow__server_call *server_call)
{
    struct bow__conn *conn = &server_call->conn->conn;

    if (server_call->outlives_batch) {
        end_outlived(server_call);
    }
    bow__list_remove(&server_call->link);
    if (conn->in_session) {
        bow__age_called(&conn->age, conn->batch_ns);
        return;
    }
    bow__age_called(&conn->age, bow_loop_now(server_call->worker->loop));
    count_times(server_call->worker);
}

/* Leaving */

/* Take the call out of its connection, which is not asked anything for it any more. */
static void detach(struct bow__server_call *server_call, const struct bow_status *status)
{
    enum bow_code code = status->code;

    if (server_call->call.intercepted != NULL) {
        bow__server_intercept_end(server_call, status);
    }
    count_end(server_call, code);
    leave_batch(server_call);
    bow__conn_touch(&server_call->conn->conn);
}

static bool was_entered(const struct bow__server_call *server_call)
{
    return server_call->call.invoked &&
           (server_call->call.entry->executor == NULL ||
            atomic_load_explicit(&server_call->entered_at_ns, memory_order_relaxed) > 0);
}

static void describe_deadline(const struct bow__server_call *server_call, struct bow__text *text)
{
    bow__text_clear(text);
    bow__text_printf(text, "deadline of ");
    bow__text_duration(text, server_call->timeout_ns);
    if (server_call->capped) {
        bow__text_printf(text, " (the server's max_deadline_ns)");
    }
    bow__text_printf(text, " passed %s %s",
                     was_entered(server_call) ? "in the handler of" : "before the handler of",
                     server_call->call.method->path);
    const char *holder = bow__intercepted_holder(server_call->call.intercepted);
    if (holder != NULL) {
        bow__text_printf(text, ", held by the interceptor \"%s\"", holder);
    }
}

/* Work that was never run. */
static void count_expired(struct bow__server_call *server_call)
{
    server_call->worker->counters.now.calls_expired_unrun += !was_entered(server_call);
}

/* What a call asks of its connection */

static bool in_loop(const struct bow_call *call)
{
    return bow_loop_in_loop(bow__server_call_of(call)->worker->loop);
}

static struct bow_loop *loop_of(const struct bow_call *call)
{
    return bow__server_call_of(call)->worker->loop;
}

static struct bow_channel *channel_of(const struct bow_call *call)
{
    const struct bow__server_conn *conn = bow__server_call_of(call)->conn;

    return conn != NULL ? conn->conn.channel : NULL;
}

static int peer_subject(const struct bow_call *call, char *text, size_t size)
{
    const struct bow__server_conn *conn = bow__server_call_of(call)->conn;

    if (conn == NULL || conn->conn.security == NULL) {
        return -ENODATA;
    }
    return conn->conn.security->ops->peer_subject(conn->conn.channel, text, size);
}

static int peer_credentials(const struct bow_call *call, struct bow_peer_credentials *credentials)
{
    return bow_channel_peer_credentials(bow__server_call_of(call)->channel, credentials);
}

static int run_task(void *user)
{
    struct bow__server_call *server_call = user;

    server_call->call.run(&server_call->call);
    return 0;
}

static int post(struct bow_call *call, void (*run)(struct bow_call *call))
{
    struct bow__server_call *server_call = bow__server_call_of(call);
    struct bow_loop *loop = server_call->worker->loop;

    call->run = run;
    bow_task_init(&server_call->task, "answer call", run_task, server_call);
    /* Once it is posted the call may go, and then the server with its loop, before this returns. */
    bow__loop_hold(loop);
    int rc = bow__loop_post_internal(loop, &server_call->task, 0);
    bow__loop_release(loop);
    return rc;
}

static bool is_late(struct bow_call *call, struct bow__text *reason)
{
    struct bow__server_call *server_call = bow__server_call_of(call);

    if (!bow__loop_has_passed(server_call->worker->loop, call->deadline_ns)) {
        return false;
    }
    count_expired(server_call);
    describe_deadline(server_call, reason);
    return true;
}

static void answered(struct bow_call *call, const struct bow_status *status, size_t n_bytes,
                     int error)
{
    struct bow__server_call *server_call = bow__server_call_of(call);
    struct bow__conn *conn = &server_call->conn->conn;

    bow__count(&server_call->counts->bytes_out, n_bytes);
    server_call->n_sent += n_bytes;
    if (server_call->outlives_batch && call->stream == NULL) {
        bow__backlog_note_reply(&server_call->conn->backlog, n_bytes);
    }
    detach(server_call, status);
    if (error == -ENOMEM) {
        bow_channel_close(conn->channel, error);
    }
}

static void hold(struct bow_call *call)
{
    struct bow__server_call *server_call = bow__server_call_of(call);

    const struct bow__call_stream *stream = call->stream;

    /* Its connection's share of it was given back, and with it the session's stream. */
    server_call->n_in_flight = BOW__SERVER_CALL_BYTES + server_call->n_request;
    if (stream != NULL) {
        server_call->n_in_flight += sizeof(*stream) + stream->n_in_flight;
    }
    bow__in_flight_keep(&server_call->worker->in_flight, server_call->n_in_flight);
    server_call->channel_ref = bow_channel_ref(server_call->conn->conn.channel);
    server_call->conn = NULL;
    /* The fallback's have paths of their own, which go with them. */
    bow__worker_note_unanswered(server_call->worker, server_call->call.entry->method->path);
    bow__worker_ref(server_call->worker);
    atomic_fetch_add_explicit(&server_call->worker->counters.n_unanswered, 1, memory_order_relaxed);
}

static void free_call(struct bow_call *call)
{
    struct bow__server_call *server_call = bow__server_call_of(call);
    struct bow__worker *worker = server_call->worker;
    struct bow_channel *channel_ref = server_call->channel_ref;

    if (worker->admission.is_on) {
        bow__admission_leave(&worker->admission, server_call->index, channel_ref != NULL);
    }
    if (channel_ref == NULL) {
        bow__worker_put(worker, server_call);
        return;
    }
    size_t n_in_flight = server_call->n_in_flight;
    bow__worker_put_apart(worker, server_call);
    bow_channel_unref(channel_ref);
    bow__worker_release_in_flight(worker, n_in_flight);
    atomic_fetch_sub_explicit(&worker->counters.n_unanswered, 1, memory_order_relaxed);
    bow__worker_unref(worker);
}

/* The stream has ended, or was ended, without the handler. */
void bow__dispatch_end(struct bow__server_call *server_call, const struct bow_status *why)
{
    detach(server_call, why);
    if (bow__server_call_is_entered_stream(server_call)) {
        bow__call_stream_cancelled(&server_call->call, why);
    } else {
        bow__call_end(&server_call->call, why->code);
    }
}

/* End the stream with an error of ours, then the call. */
void bow__dispatch_refuse_with(struct bow__server_call *server_call,
                               const struct bow_status *status)
{
    struct bow__session *session = server_call->call.session;
    struct bow_channel *channel = server_call->conn->conn.channel;

    int rc = session->ops->finish(session, server_call->call.key, status);
    bow__dispatch_end(server_call, status);
    if (rc == -ENOMEM) {
        bow_channel_close(channel, rc);
    }
}

void bow__dispatch_refuse(struct bow__server_call *server_call, enum bow_code code,
                          const char *message)
{
    struct bow_status status = BOW_STATUS_OK_INIT;

    status.code = code;
    status.message = message;
    bow__dispatch_refuse_with(server_call, &status);
}

/* Deadlines */

void bow__dispatch_expire(struct bow__server_call *server_call)
{
    struct bow__text text;

    count_expired(server_call);
    describe_deadline(server_call, &text);
    bow__dispatch_refuse(server_call, BOW_DEADLINE_EXCEEDED, text.bytes);
}

static void on_deadline(struct bow_timer *timer, void *user)
{
    (void)timer;
    bow__dispatch_expire(user);
}

/* Calls that outlive their batch */

static void outlive_batch(struct bow__server_call *server_call)
{
    bow__list_remove(&server_call->link);
    bow__list_push_back(&server_call->conn->calls, &server_call->link);
    server_call->outlives_batch = true;
    server_call->conn->backlog.n_calls += bow__server_call_is_entered_unary(server_call);
    server_call->conn->backlog.n_streams += bow__server_call_is_entered_stream(server_call);
    server_call->n_in_flight = bare_weight(server_call) + server_call->n_request;
    bow__in_flight_take_call(&server_call->conn->share, server_call->n_in_flight);
    bow_timer_init(&server_call->timer, server_call->worker->loop, on_deadline, server_call);
    if (server_call->call.deadline_ns != BOW_NEVER) {
        bow_timer_start_at(&server_call->timer, server_call->call.deadline_ns);
    }
}

bool bow__dispatch_count_request(struct bow__server_call *server_call)
{
    struct bow__in_flight_share *share = &server_call->conn->share;
    size_t n_counted =
        server_call->outlives_batch ? server_call->n_in_flight - bare_weight(server_call) : 0;
    size_t n = bow__in_flight_clip(share, server_call->n_request - n_counted);

    server_call->n_request = n_counted + n;
    if (!bow__in_flight_has_room(share, n)) {
        return false;
    }
    if (!server_call->outlives_batch) {
        outlive_batch(server_call);
        return true;
    }
    server_call->n_in_flight += n;
    bow__in_flight_take_call(share, n);
    return true;
}

void bow__dispatch_wait(struct bow__server_call *server_call)
{
    struct bow__backlog_share *backlog = &server_call->conn->backlog;

    if (!server_call->outlives_batch) {
        outlive_batch(server_call);
    }
    server_call->waits = true;
    server_call->waits_since_ns = bow_loop_now(server_call->worker->loop);
    backlog->n_waiting_bytes += server_call->n_in_flight;
    bow__list_remove(&server_call->link);
    bow__list_push_back(&backlog->waiting, &server_call->link);
}

void bow__dispatch_count_backlog(struct bow__server_conn *conn)
{
    const struct bow__session *session = conn->conn.session;

    bow__backlog_count(&conn->backlog, session->ops->unsent(session), session->n_dequeued,
                       bow_loop_now(conn->conn.loop));
}

void bow__dispatch_outlive_batch(struct bow__server_conn *conn)
{
    while (!bow__list_is_empty(&conn->batch_calls)) {
        outlive_batch(BOW__CONTAINER(conn->batch_calls.next, struct bow__server_call, link));
    }
}

void bow__dispatch_end_batch(struct bow__conn *conn)
{
    struct bow__server_conn *own = BOW__CONTAINER(conn, struct bow__server_conn, conn);

    if (conn->session->n_waiting > 0) {
        bow__dispatch_count_backlog(own);
    }
    count_times(own->worker);
    bow__dispatch_outlive_batch(own);
}

const struct bow__call_ops bow__dispatch_call_ops = {
    .in_loop = in_loop,
    .loop = loop_of,
    .channel = channel_of,
    .peer_subject = peer_subject,
    .peer_credentials = peer_credentials,
    .post = post,
    .is_late = is_late,
    .answered = answered,
    .hold = hold,
    .free = free_call,
    .sent = bow__dispatch_stream_sent,
    .undecodable = bow__dispatch_stream_undecodable,
    .defer = bow__dispatch_stream_defer,
    .post_event = bow__executor_dispatch_post_event,
    .closed = bow__dispatch_stream_closed,
};
