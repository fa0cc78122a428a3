/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A server's connections: which are taken, what their sessions are told of the worker's limits, and
 * how they leave it. Their calls are dispatch's.
 */

#include "rpc/server/dispatch/server_conn.h"
#include "base/clock.h"
#include "base/log.h"
#include "rpc/core/compression/encodings.h"
#include "rpc/server/dispatch/dispatch.h"
#include "rpc/server/dispatch/dispatch_call.h"
#include "rpc/server/dispatch/dispatch_enter.h"
#include "rpc/server/dispatch/server_call.h"
#include "rpc/services/health.h"
#include "transport/channel/channel.h"

#include <errno.h>

static void configure(struct bow__conn *conn, struct bow__session_options *options)
{
    struct bow__server_conn *own = BOW__CONTAINER(conn, struct bow__server_conn, conn);
    const struct bow__worker *worker = own->worker;

    options->in_flight = &own->share;
    options->retry_after_ns = worker->limits->retry_after_ns;
    options->max_message_bytes = worker->limits->max_message_bytes;
    options->max_header_bytes = worker->limits->max_header_bytes;
    options->max_calls = worker->limits->max_calls;
    options->heartbeat_ns = worker->limits->heartbeat_ns;
    options->heartbeat_timeout_ns = worker->limits->heartbeat_timeout_ns;
    options->encodings = bow__encodings_built();
    if ((conn->protocols & (BOW_PROTOCOL_CONNECT | BOW_PROTOCOL_GRPC_WEB)) != 0) {
        options->web = &worker->web;
    }
}

static void on_up(struct bow__conn *conn)
{
    const struct bow__worker *worker = BOW__CONTAINER(conn, struct bow__server_conn, conn)->worker;

    if (worker->draining) {
        bow__conn_goaway(conn, "the server is shutting down");
    }
}

static void on_down(struct bow__conn *conn, const struct bow_status *why)
{
    (void)conn;
    (void)why;
}

/* Who watches has no reason to end. */
static void on_aged(struct bow__conn *conn, const char *why)
{
    const struct bow__worker *worker = BOW__CONTAINER(conn, struct bow__server_conn, conn)->worker;

    bow__conn_goaway(conn, why);
    if (worker->limits->health != NULL) {
        bow__health_leave(worker->limits->health, worker->loop, conn->channel);
    }
}

bool bow__server_conn_is_leaving(const struct bow_call *call)
{
    const struct bow__server_conn *conn = bow__server_call_of(call)->conn;

    return conn != NULL && conn->conn.age.is_leaving;
}

static void on_gone(struct bow__conn *conn)
{
    struct bow__server_conn *lost = BOW__CONTAINER(conn, struct bow__server_conn, conn);

    bow__list_remove(&lost->link);
    bow__in_flight_share_fini(&lost->share);
    bow__backlog_share_fini(&lost->backlog);
    bow__worker_conn_gone(lost->worker);
}

/* Said seldom, for who connects does it as often as he likes. It is closed here, for an error of
 * on_channel would be logged each time. */
static void refuse_connection(struct bow__worker *worker, struct bow_channel *channel)
{
    worker->counters.now.connections_refused++;
    bow__counters_touch(&worker->counters);
    bow__channel_close_now(channel, 0);
    if (!bow__log_is_due(&worker->tell_full_ns, bow_loop_now(worker->loop))) {
        return;
    }
    bow__log(worker->context, BOW_LOG_WARNING,
             "client %s was refused: as many connections are open as max_connections (%u) allows; "
             "connections_refused counts them all",
             bow_channel_peer(channel), worker->limits->max_connections);
}

int bow__server_conn_accept(struct bow__worker *worker, struct bow_channel *channel,
                            const struct bow_listen_options *listening)
{
    static const struct bow__conn_ops ops = {
        .events = &bow__dispatch_events,
        .configure = configure,
        .on_up = on_up,
        .on_down = on_down,
        .on_aged = on_aged,
        .on_settled = bow__dispatch_settled,
        .on_batch_end = bow__dispatch_end_batch,
        .on_gone = on_gone,
    };
    struct bow__server_conn *accepted = bow_channel_data(channel);

    if (worker->draining) {
        return -ESHUTDOWN;
    }
    if (atomic_fetch_add_explicit(worker->n_connections, 1, memory_order_relaxed) >=
        worker->limits->max_connections) {
        atomic_fetch_sub_explicit(worker->n_connections, 1, memory_order_relaxed);
        refuse_connection(worker, channel);
        return 0;
    }
    accepted->worker = worker;
    accepted->conn.security = listening->security;
    accepted->conn.protocols = listening->protocols;
    accepted->conn.listening = listening->address;
    accepted->conn.write_timeout_ns = worker->limits->write_timeout_ns;
    accepted->waiter.fn = bow__dispatch_go_on;
    bow__list_init(&accepted->waiter.link);
    bow__list_init(&accepted->batch_calls);
    bow__list_init(&accepted->calls);
    bow__in_flight_share_init(&accepted->share, &worker->in_flight);
    bow__backlog_share_init(&accepted->backlog, &worker->backlog);
    bow__list_push_back(&worker->conns, &accepted->link);
    bow__conn_init(&accepted->conn, channel, &ops, &worker->counters, true);
    uint64_t now = bow_loop_now(worker->loop);
    accepted->conn.first_frame_at = bow__time_add(now, worker->limits->first_frame_timeout_ns);
    bow__age_start(&accepted->conn.age, worker->context, now, worker->limits->idle_timeout_ns,
                   worker->limits->max_age_ns, worker->limits->max_age_grace_ns);
    return 0;
}
