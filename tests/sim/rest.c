/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What must hold of connections at any time, and when all calls have ended: counters add up, no
 * connection holds a call, and the credit that each side of it believes in is the same.
 */

#include "world.h"

#include "rpc/client/client.h"
#include "rpc/http2/state.h"
#include "rpc/native/state.h"
#include "rpc/server/server_state.h"
#include <bowline/limits.h>
#include <bowline/metrics.h>

#include <inttypes.h>
#include <string.h>

/* The largest that may lie unread, one of a stream, with what is around it. */
#define MAX_UNREAD_BYTES ((size_t)32 << 10)

/** What a session has counted of its calls. */
struct counted {
    size_t n_buffered;
    size_t n_grown;
    size_t n_queued;
    uint64_t n_lost; /* credit that neither lies with the peer nor is about to be given to it */
};

static bool is_http2(const struct bow__session *session)
{
    return strcmp(session->ops->name, "native") != 0;
}

/* What the peer was granted, and what of it lies unread. */
static void check_http2_windows(const struct sim_machine *machine,
                                const struct bow__http2_session *session)
{
    size_t n_grown = 0;

    for (const struct bow__link *at = session->streams.next; at != &session->streams;
         at = at->next) {
        const struct bow__http2_stream *stream = BOW__CONTAINER(at, struct bow__http2_stream, link);
        int32_t window =
            stream->id == 0 ? -1
                            : nghttp2_session_get_stream_local_window_size(session->ng, stream->id);
        size_t credit = window > 0 ? (size_t)window : 0;
        n_grown += stream->window.size - (uint32_t)BOW__HTTP2_STREAM_WINDOW;
        if (stream->window.size > BOW_LIMIT_STREAM_WINDOW_BYTES ||
            credit + stream->n_unreturned > stream->window.size ||
            credit + stream->n_unread > stream->window.size + MAX_UNREAD_BYTES) {
            sim_violate(machine->world,
                        "%s has a stream with a window of %u bytes, of which the peer has %zu, "
                        "%zu are withheld, and %zu unread",
                        machine->name, stream->window.size, credit, stream->n_unreturned,
                        stream->n_unread);
        }
    }
    int32_t credit = nghttp2_session_get_local_window_size(session->ng);
    if (n_grown != session->n_grown || session->window.size > BOW_LIMIT_CONNECTION_WINDOW_BYTES ||
        (uint32_t)credit > session->window.size) {
        sim_violate(machine->world,
                    "%s has a connection with a window of %u bytes, of which the peer has %d, and "
                    "its streams' windows have grown by %zu, not %zu",
                    machine->name, session->window.size, credit, n_grown, session->n_grown);
    }
}

/* What has come is granted anew before half a window of it has; by a broken session it is not. */
static bool has_lost_credit(const struct bow__http2_session *session)
{
    return !session->broken &&
           2 * nghttp2_session_get_local_window_size(session->ng) < (int32_t)session->window.size;
}

static struct counted count(const struct bow__session *session)
{
    if (is_http2(session)) {
        const struct bow__http2_session *http2 = (const struct bow__http2_session *)session;
        return (struct counted){
            .n_grown = http2->n_grown,
            .n_queued = http2->n_queued,
            .n_lost = has_lost_credit(http2),
        };
    }
    const struct bow__native *native = (const struct bow__native *)session;
    return (struct counted){
        .n_buffered = native->n_buffered,
        .n_grown = native->n_grown,
        .n_queued = native->n_queued,
        .n_lost = (uint64_t)native->window.size - native->receive_credit - native->n_unreturned,
    };
}

/* At any time: a client's own requests are bounded by what it calls, not by the session. */
static void check_limits(const struct sim_machine *machine, const struct bow__conn *conn)
{
    const struct bow__session *session = conn->session;
    struct counted counted = count(session);

    if (is_http2(session)) {
        check_http2_windows(machine, (const struct bow__http2_session *)session);
    }
    if (counted.n_buffered > BOW_LIMIT_BYTES_IN_FLIGHT + BOW_LIMIT_FRAME_BYTES ||
        counted.n_grown > BOW_LIMIT_GROWN_WINDOWS_BYTES || counted.n_lost > 0 ||
        (session->server && counted.n_queued > BOW_LIMIT_QUEUED_REPLY_BYTES)) {
        sim_violate(machine->world,
                    "%s has a connection with %zu bytes held, %zu queued, windows grown by %zu, "
                    "and credit of %" PRIu64 " lost",
                    machine->name, counted.n_buffered, counted.n_queued, counted.n_grown,
                    counted.n_lost);
    }
}

static void check_idle(const struct sim_machine *machine, const struct bow__conn *conn)
{
    const struct bow__session *session = conn->session;
    struct counted counted = count(session);

    if (bow__conn_n_calls(conn) > 0 || counted.n_buffered > 0 || counted.n_grown > 0 ||
        counted.n_queued > 0) {
        sim_violate(machine->world,
                    "%s has a connection at rest with %u streams, %zu bytes held, %zu queued and "
                    "windows grown by %zu",
                    machine->name, session->n_streams, counted.n_buffered, counted.n_queued,
                    counted.n_grown);
    }
}

typedef void check_fn(const struct sim_machine *machine, const struct bow__conn *conn);

static void check_client_sessions(const struct sim_client *client, check_fn *check)
{
    const struct bow__balancer *balancer = &client->client->balancers[0];

    for (const struct bow__link *at = balancer->subchannels.conns.next;
         at != &balancer->subchannels.conns; at = at->next) {
        const struct bow__conn *conn = &BOW__CONTAINER(at, struct bow__client_conn, at)->conn;
        if (conn->session != NULL) {
            check(client->machine, conn);
        }
    }
}

static void check_server_sessions(const struct sim_server *server, check_fn *check)
{
    const struct bow__worker *worker = server->server->workers[0];

    for (const struct bow__link *at = worker->conns.next; at != &worker->conns; at = at->next) {
        const struct bow__conn *conn = &BOW__CONTAINER(at, struct bow__server_conn, link)->conn;
        if (conn->session != NULL) {
            check(&server->machine, conn);
        }
    }
}

static void check_client_limits(const struct sim_client *client)
{
    if (!client->is_freed) {
        check_client_sessions(client, check_limits);
    }
}

void sim_check_limits(const struct sim_world *world)
{
    for (int i = 0; i < world->n_clients; i++) {
        check_client_limits(&world->clients[i]);
    }
    for (int i = 0; i < world->n_servers; i++) {
        if (world->servers[i].state == SIM_SERVER_UP) {
            check_server_sessions(&world->servers[i], check_limits);
            check_client_limits(&world->servers[i].relay);
        }
    }
}

static void check_client(struct sim_client *client)
{
    struct sim_world *world = client->machine->world;
    struct bow_metrics metrics = BOW_METRICS_INIT;

    if (client->is_freed) {
        return;
    }
    if (bow_client_metrics(client->client, &metrics) < 0 ||
        metrics.calls_started != metrics.calls_ended ||
        metrics.calls_started != client->n_started) {
        sim_violate(world,
                    "%s made %" PRIu64 " calls; its counters say %" PRIu64 ", of which %" PRIu64
                    " have ended",
                    client->machine->name, client->n_started, metrics.calls_started,
                    metrics.calls_ended);
    }
    if (client->machine->memory_failed_ns == 0 &&
        (metrics.protocol_errors > 0 || metrics.undecodable_messages > 0)) {
        sim_violate(world, "%s had errors of the protocol", client->machine->name);
    }
    const struct bow__balancer *balancer = &client->client->balancers[0];
    if (balancer->calls.n_calls > 0 || balancer->calls.n_queued > 0 ||
        !bow__list_is_empty(&balancer->calls.open)) {
        sim_violate(world, "%s holds calls that have ended", client->machine->name);
    }
    check_client_sessions(client, check_idle);
}

struct sums {
    uint64_t started;
    uint64_t ended[BOW_N_CODES];
    uint64_t n_ended;
};

static void add_method(const struct bow_method_metrics *metrics, void *user)
{
    struct sums *sums = user;

    sums->started += metrics->started;
    for (int code = 0; code < BOW_N_CODES; code++) {
        sums->ended[code] += metrics->ended[code];
        sums->n_ended += metrics->ended[code];
    }
}

static void check_server(struct sim_server *server)
{
    struct sim_world *world = server->machine.world;
    struct bow_metrics metrics = BOW_METRICS_INIT;
    struct sums sums = {0};

    if (bow_server_metrics(server->server, &metrics) < 0) {
        return;
    }
    bow_server_each_method(server->server, add_method, &sums);
    if (metrics.calls_started != metrics.calls_ended || sums.started != metrics.calls_started ||
        sums.n_ended != sums.started || server->n_entered > sums.started) {
        sim_violate(world,
                    "%s entered %" PRIu64 " calls; its counters say %" PRIu64 " and %" PRIu64
                    ", of which %" PRIu64 " and %" PRIu64 " have ended",
                    server->machine.name, server->n_entered, metrics.calls_started, sums.started,
                    metrics.calls_ended, sums.n_ended);
    }
    for (int code = 0; code < BOW_N_CODES; code++) {
        if (code == BOW_OK ? sums.ended[code] != server->n_answered[code]
                           : sums.ended[code] < server->n_answered[code]) {
            sim_violate(world, "%s answered %" PRIu64 " calls with %s, its counters say %" PRIu64,
                        server->machine.name, server->n_answered[code],
                        bow_code_name((enum bow_code)code), sums.ended[code]);
        }
    }
    check_server_sessions(server, check_idle);
    if (metrics.calls_unanswered > 0) {
        sim_violate(world, "%s has %" PRIu64 " calls unanswered", server->machine.name,
                    metrics.calls_unanswered);
    }
    if (metrics.bad_prefaces > 0 || metrics.unknown_methods > 0 ||
        (server->machine.memory_failed_ns == 0 &&
         (metrics.protocol_errors > 0 || metrics.undecodable_messages > 0))) {
        sim_violate(world, "%s had errors of the protocol", server->machine.name);
    }
}

void sim_check_clients(struct sim_world *world)
{
    for (int i = 0; i < world->n_clients; i++) {
        check_client(&world->clients[i]);
    }
}

void sim_check_rest(struct sim_world *world)
{
    sim_check_clients(world);
    for (int i = 0; i < world->n_servers; i++) {
        if (world->servers[i].state == SIM_SERVER_UP) {
            check_server(&world->servers[i]);
            check_client(&world->servers[i].relay);
        }
    }
    for (int i = 0; i < world->n_calls; i++) {
        const struct sim_call *call = &world->calls[i];
        if (call->n_runs > 0 && !call->is_served) {
            sim_violate(world, "call %d was run, and its handler has not heard of its end", i);
        }
    }
}
