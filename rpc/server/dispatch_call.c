/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a served call asks of its connection, its deadline, and how it ends. How it
 * came, and what its messages do, is in dispatch.c.
 */

#include "base/alloc.h"
#include "rpc/core/call/call_stream.h"
#include "rpc/core/errors.h"
#include "rpc/interceptors/intercept.h"
#include "rpc/server/dispatch_internal.h"
#include "rpc/server/executor_dispatch.h"

#include <errno.h>

/* Take the call out of its connection, which is not asked anything for it any more. */
static void detach(struct bow__served *served, const struct bow_status *status)
{
    enum bow_code code = status->code;

    if (served->call.intercepted != NULL) {
        bow__served_intercept_end(served, status);
    }
    bow__dispatch_delist(served);
    served->worker->counters.now.calls_ended++;
    bow__served_counts(served)->ended[(unsigned)code < BOW_N_CODES ? code : BOW_UNKNOWN]++;
    bow__conn_touch(&served->conn->conn);
}

static bool was_entered(const struct bow__served *served)
{
    return served->call.invoked && (served->call.entry->executor_dispatch == NULL ||
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
    served->n_in_flight = bow__dispatch_weight(served);
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

void bow__dispatch_on_deadline(struct bow_timer *timer, void *user)
{
    (void)timer;
    bow__dispatch_expire(user);
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
