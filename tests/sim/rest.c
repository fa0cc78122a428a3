/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What must hold when all calls have ended and nothing is under way: counters add up, no
 * connection holds a call, and the credit that each side of it believes in is the same.
 */

#include "world.h"

#include "rpc/client_state.h"
#include "rpc/http2/state.h"
#include "rpc/native/native.h"
#include "rpc/server_state.h"
#include <bowline/metrics.h>

#include <inttypes.h>
#include <string.h>

/* A connection without calls: what was counted for them is back, and all credit either lies with
 * the peer or is about to be given to it. */
static void check_session(const struct sim_machine *machine, const struct bow__session *session)
{
    size_t n_held = 0;
    size_t n_grown = 0;
    size_t n_queued = 0;
    uint64_t n_lost = 0;

    if (session == NULL) {
        return;
    }
    if (strcmp(session->ops->name, "native") == 0) {
        const struct bow__native *native = (const struct bow__native *)session;
        n_held = native->n_held;
        n_grown = native->n_grown;
        n_queued = native->n_queued;
        n_lost = (uint64_t)native->window.size - native->receive_credit - native->n_unreturned;
    } else {
        const struct bow__http2_session *http2 = (const struct bow__http2_session *)session;
        n_grown = http2->n_grown;
        n_queued = http2->n_queued;
    }
    if (session->n_streams > 0 || n_held > 0 || n_grown > 0 || n_queued > 0 || n_lost > 0) {
        sim_violate(machine->world,
                    "%s has a connection at rest with %u streams, %zu bytes held, %zu queued, "
                    "windows grown by %zu, and credit of %" PRIu64 " lost",
                    machine->name, session->n_streams, n_held, n_queued, n_grown, n_lost);
    }
}

static void check_client(struct sim_client *client)
{
    struct sim_world *world = client->machine.world;
    struct bow_metrics metrics = BOW_METRICS_INIT;

    if (bow_client_metrics(client->client, &metrics) < 0 ||
        metrics.calls_started != metrics.calls_ended ||
        metrics.calls_started != client->n_started) {
        sim_violate(world,
                    "%s made %" PRIu64 " calls; its counters say %" PRIu64 ", of which %" PRIu64
                    " have ended",
                    client->machine.name, client->n_started, metrics.calls_started,
                    metrics.calls_ended);
    }
    if (client->machine.memory_failed_ns == 0 &&
        (metrics.protocol_errors > 0 || metrics.undecodable_messages > 0)) {
        sim_violate(world, "%s had errors of the protocol", client->machine.name);
    }
    const struct bow__client_link *link = &client->client->links[0];
    if (link->n_calls > 0 || link->n_queued > 0 || !bow__list_is_empty(&link->calls)) {
        sim_violate(world, "%s holds calls that have ended", client->machine.name);
    }
    for (const struct bow__link *at = link->conns.next; at != &link->conns; at = at->next) {
        check_session(&client->machine,
                      BOW__CONTAINER(at, struct bow__client_conn, at)->conn.session);
    }
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
    struct bow__worker *worker = server->server->workers[0];
    for (const struct bow__link *at = worker->conns.next; at != &worker->conns; at = at->next) {
        check_session(&server->machine,
                      BOW__CONTAINER(at, struct bow__server_conn, link)->conn.session);
    }
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

void sim_check_rest(struct sim_world *world)
{
    for (int i = 0; i < world->n_clients; i++) {
        if (!world->clients[i].is_freed) {
            check_client(&world->clients[i]);
        }
    }
    for (int i = 0; i < world->n_servers; i++) {
        if (world->servers[i].state == SIM_SERVER_UP) {
            check_server(&world->servers[i]);
        }
    }
    for (int i = 0; i < world->n_calls; i++) {
        const struct sim_call *call = &world->calls[i];
        if (call->n_runs > 0 && !call->is_served) {
            sim_violate(world, "call %d was run, and its handler has not heard of its end", i);
        }
    }
}
