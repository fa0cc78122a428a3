/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A call's time on its connection: the batch of events that brought it, its deadline, its end; and
 * what it asks of the connection. How it came, and what its messages do, is in dispatch.c.
 *
 * Most calls are answered in the batch that brought them: those need no timer, are not counted as
 * in flight, and the clock is read once for all of them.
 */

#include "rpc/server/dispatch/dispatch_call.h"
#include "base/alloc.h"
#include "rpc/core/call/call_stream.h"
#include "rpc/core/errors.h"
#include "rpc/core/intercept.h"
#include "rpc/server/dispatch/dispatch_stream.h"
#include "rpc/server/dispatch/executor_dispatch.h"
#include "rpc/server/dispatch/intercept_server.h"

#include <errno.h>

/* The batch */

static void count_times(struct bow__worker *worker)
{
    struct bow__answered *answered = &worker->answered;

    if (answered->counts != NULL) {
        answered->counts->total_ns +=
            answered->n * bow__loop_read_clock(worker->loop) - answered->started_ns;
        *answered = (struct bow__answered){0};
    }
}

/* A call's time ends when its answer can leave, which is at the end of the batch. */
static void count_later(struct bow__served *served)
{
    struct bow__answered *answered = &served->worker->answered;
    struct bow__method_counts *counts = bow__served_counts(served);

    if (answered->counts != counts) {
        count_times(served->worker);
        answered->counts = counts;
    }
    answered->n++;
    answered->started_ns += served->started_ns;
}

void bow__dispatch_enlist(struct bow__served *served)
{
    served->lasting = false;
    bow__list_push_back(&served->conn->fresh, &served->link);
}

static size_t weight(const struct bow__served *served)
{
    const struct bow__call_stream *stream = served->call.stream;
    size_t n = BOW__SERVED_BYTES + served->n_request;

    return stream != NULL ? n + sizeof(*stream) + stream->n_lent : n;
}

static void leave_batch(struct bow__served *served)
{
    if (served->lasting) {
        served->lasting = false;
        bow_timer_stop(&served->timer);
        bow__in_flight_give_call(&served->conn->part, served->n_in_flight);
    }
    bow__list_remove(&served->link);
    count_later(served);
    if (served->conn->conn.in_session) {
        bow__age_called(&served->conn->conn.age, served->conn->conn.batch_ns);
        return;
    }
    bow__age_called(&served->conn->conn.age, bow_loop_now(served->worker->loop));
    count_times(served->worker);
}

/* Leaving */

/* Take the call out of its connection, which is not asked anything for it any more. */
static void detach(struct bow__served *served, const struct bow_status *status)
{
    enum bow_code code = status->code;

    if (served->call.intercepted != NULL) {
        bow__served_intercept_end(served, status);
    }
    leave_batch(served);
    served->worker->counters.now.calls_ended++;
    bow__served_counts(served)->ended[(unsigned)code < BOW_N_CODES ? code : BOW_UNKNOWN]++;
    bow__conn_touch(&served->conn->conn);
}

static bool was_entered(const struct bow__served *served)
{
    return served->call.invoked && (served->call.entry->executor == NULL ||
                                    atomic_load_explicit(&served->entered, memory_order_relaxed));
}

static void describe_deadline(const struct bow__served *served, struct bow__text *text)
{
    bow__text_clear(text);
    bow__text_printf(text, "deadline of ");
    bow__text_duration(text, served->timeout_ns);
    if (served->capped) {
        bow__text_printf(text, " (the server's max_deadline_ns)");
    }
    bow__text_printf(text, " passed %s %s",
                     was_entered(served) ? "in the handler of" : "before the handler of",
                     served->call.method->path);
    const char *holder = bow__intercepted_holder(served->call.intercepted);
    if (holder != NULL) {
        bow__text_printf(text, ", held by the interceptor \"%s\"", holder);
    }
}

/* Work that was never run. */
static void count_expired(struct bow__served *served)
{
    served->worker->counters.now.calls_expired_unrun += !was_entered(served);
}

/* What a call asks of its connection */

static bool in_loop(const struct bow_call *call)
{
    return bow_loop_in_loop(bow__served_of(call)->worker->loop);
}

static struct bow_loop *loop_of(const struct bow_call *call)
{
    return bow__served_of(call)->worker->loop;
}

static struct bow_channel *channel_of(const struct bow_call *call)
{
    const struct bow__server_conn *conn = bow__served_of(call)->conn;

    return conn != NULL ? conn->conn.channel : NULL;
}

static int peer_subject(const struct bow_call *call, char *text, size_t size)
{
    const struct bow__server_conn *conn = bow__served_of(call)->conn;

    if (conn == NULL || conn->conn.security == NULL) {
        return -ENODATA;
    }
    return conn->conn.security->ops->peer_subject(conn->conn.channel, text, size);
}

static int peer_credentials(const struct bow_call *call, struct bow_peer_credentials *credentials)
{
    return bow_channel_peer_credentials(bow__served_of(call)->channel, credentials);
}

static int run_task(void *user)
{
    struct bow__served *served = user;

    served->call.run(&served->call);
    return 0;
}

static int post(struct bow_call *call, void (*run)(struct bow_call *call))
{
    struct bow__served *served = bow__served_of(call);
    struct bow_loop *loop = served->worker->loop;

    call->run = run;
    bow_task_init(&served->task, "answer call", run_task, served);
    /* Once it is posted the call may go, and then the server with its loop, before this returns. */
    bow__loop_hold(loop);
    int rc = bow__loop_post_internal(loop, &served->task, 0);
    bow__loop_release(loop);
    return rc;
}

static bool is_late(struct bow_call *call, struct bow__text *reason)
{
    struct bow__served *served = bow__served_of(call);

    if (!bow__loop_has_passed(served->worker->loop, call->deadline_ns)) {
        return false;
    }
    count_expired(served);
    describe_deadline(served, reason);
    return true;
}

static void answered(struct bow_call *call, const struct bow_status *status, size_t n_bytes,
                     int error)
{
    struct bow__served *served = bow__served_of(call);
    struct bow__conn *conn = &served->conn->conn;

    bow__served_counts(served)->bytes_out += n_bytes;
    detach(served, status);
    if (error == -ENOMEM) {
        bow_channel_close(conn->channel, error);
    }
}

static void hold(struct bow_call *call)
{
    struct bow__served *served = bow__served_of(call);

    /* Its connection's part of it was given back. */
    served->n_in_flight = weight(served);
    bow__in_flight_keep(&served->worker->in_flight, served->n_in_flight);
    served->held = bow_channel_ref(served->conn->conn.channel);
    served->conn = NULL;
    bow__worker_ref(served->worker);
    atomic_fetch_add_explicit(&served->worker->counters.n_unanswered, 1, memory_order_relaxed);
}

static void free_served(struct bow_call *call)
{
    struct bow__served *served = bow__served_of(call);
    struct bow__worker *worker = served->worker;
    struct bow_channel *held = served->held;

    if (worker->admission.is_on) {
        bow__admission_leave(&worker->admission, served->index, held != NULL);
    }
    if (held == NULL) {
        bow__worker_put(worker, served);
        return;
    }
    size_t n_in_flight = served->n_in_flight;
    bow__free(worker->context, served, BOW__SERVED_BYTES);
    bow_channel_unref(held);
    bow__worker_let_go(worker, n_in_flight);
    atomic_fetch_sub_explicit(&worker->counters.n_unanswered, 1, memory_order_relaxed);
    bow__worker_unref(worker);
}

/* The stream has ended, or was ended, without the handler. */
void bow__dispatch_end(struct bow__served *served, const struct bow_status *why)
{
    detach(served, why);
    if (bow__served_is_entered_stream(served)) {
        bow__call_stream_lost(&served->call, why);
    } else {
        bow__call_end(&served->call, why->code);
    }
}

/* End the stream with an error of ours, then the call. */
void bow__dispatch_refuse_with(struct bow__served *served, const struct bow_status *status)
{
    struct bow__session *session = served->call.session;
    struct bow_channel *channel = served->conn->conn.channel;

    int rc = session->ops->finish(session, served->call.key, status);
    bow__dispatch_end(served, status);
    if (rc == -ENOMEM) {
        bow_channel_close(channel, rc);
    }
}

void bow__dispatch_refuse(struct bow__served *served, enum bow_code code, const char *message)
{
    struct bow_status status = BOW_STATUS_OK_INIT;

    status.code = code;
    status.message = message;
    bow__dispatch_refuse_with(served, &status);
}

/* Deadlines */

void bow__dispatch_expire(struct bow__served *served)
{
    struct bow__text text;

    count_expired(served);
    describe_deadline(served, &text);
    bow__dispatch_refuse(served, BOW_DEADLINE_EXCEEDED, text.bytes);
}

static void on_deadline(struct bow_timer *timer, void *user)
{
    (void)timer;
    bow__dispatch_expire(user);
}

/* Calls that outlive their batch */

static void let_last(struct bow__served *served)
{
    bow__list_remove(&served->link);
    served->lasting = true;
    served->n_in_flight = BOW__SERVED_BYTES + served->n_request;
    bow__in_flight_take_call(&served->conn->part, served->n_in_flight);
    bow_timer_init(&served->timer, served->worker->loop, on_deadline, served);
    if (served->call.deadline_ns != BOW_NEVER) {
        bow_timer_start_at(&served->timer, served->call.deadline_ns);
    }
}

bool bow__dispatch_count_request(struct bow__served *served)
{
    struct bow__in_flight_share *part = &served->conn->part;
    size_t n_counted = served->lasting ? served->n_in_flight - BOW__SERVED_BYTES : 0;
    size_t n = bow__in_flight_clip(part, served->n_request - n_counted);

    served->n_request = n_counted + n;
    if (!bow__in_flight_has_room(part, n)) {
        return false;
    }
    if (!served->lasting) {
        let_last(served);
        return true;
    }
    served->n_in_flight += n;
    bow__in_flight_take_call(part, n);
    return true;
}

void bow__dispatch_end_batch(struct bow__conn *conn)
{
    struct bow__server_conn *own = BOW__CONTAINER(conn, struct bow__server_conn, conn);

    count_times(own->worker);
    while (!bow__list_is_empty(&own->fresh)) {
        let_last(BOW__CONTAINER(own->fresh.next, struct bow__served, link));
    }
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
    .free = free_served,
    .sent = bow__dispatch_stream_sent,
    .undecodable = bow__dispatch_stream_undecodable,
    .defer = bow__dispatch_stream_defer,
    .give = bow__executor_dispatch_give,
    .closed = bow__dispatch_stream_closed,
};
