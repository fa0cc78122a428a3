/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A simulated server: what its handler does with a call is said by the call's number.
 */

#include "world.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* How much longer than a fault itself its effects may last: back-off, heartbeats, turns. */
#define AFTERMATH_NS (1500 * SIM_MS)
#define MAX_REPLY_BYTES 300000

static uint8_t payload[MAX_REPLY_BYTES];

uint8_t sim_payload_byte(uint64_t number)
{
    return (uint8_t)(number * 7 + 1);
}

/* The number is behaviour, size and identity; the reply has to be the caller's own. */
static void answer(struct bow_call *call, uint64_t number, uint32_t n_bytes)
{
    Calls__Reply reply = CALLS__REPLY__INIT;

    reply.number = number;
    memset(payload, sim_payload_byte(number), n_bytes);
    reply.payload.data = payload;
    reply.payload.len = n_bytes;
    (void)calls__echo__say__reply(call, &reply);
}

static void hold(struct sim_server *server, struct bow_call *call, uint64_t number,
                 uint64_t answer_ns)
{
    if (server->n_held == SIM_MAX_HELD) {
        (void)bow_call_fail(call, BOW_ABORTED, "no room");
        return;
    }
    server->held[server->n_held++] = (struct sim_held){call, number, answer_ns};
}

static void answer_or_fail(struct bow_call *call, uint64_t number)
{
    enum sim_behaviour behaviour = (enum sim_behaviour)(number % SIM_N_BEHAVIOURS);

    if (behaviour == SIM_FAIL || behaviour == SIM_FAIL_LATE) {
        (void)bow_call_fail(call, BOW_ABORTED, "as asked");
        return;
    }
    answer(call, number, (uint32_t)(number >> 40));
}

static void answer_cancelled(struct bow_call *call, enum bow_code why, void *user)
{
    struct sim_server *server = user;

    if (why == BOW_OK) {
        sim_violate(server->machine.world, "a call was cancelled with OK");
    }
    for (int i = 0; i < server->n_held; i++) {
        if (server->held[i].call == call) {
            server->held[i] = server->held[--server->n_held];
            break;
        }
    }
    answer(call, 0, 0);
}

static void say(struct bow_call *call, const Calls__Request *request, void *user)
{
    struct sim_server *server = user;
    struct sim_net *net = &server->machine.world->net;

    switch ((enum sim_behaviour)(request->number % SIM_N_BEHAVIOURS)) {
    case SIM_ANSWER_LATE:
    case SIM_FAIL_LATE:
        hold(server, call, request->number, net->now_ns + sim_below(net, 60 * SIM_MS));
        break;
    case SIM_ANSWER_ON_CANCEL:
        hold(server, call, request->number, BOW_NEVER);
        bow_call_on_cancel(call, answer_cancelled, server);
        break;
    case SIM_ANSWER:
    case SIM_FAIL:
    case SIM_N_BEHAVIOURS:
        answer_or_fail(call, request->number);
        break;
    }
}

void sim_server_start(struct sim_server *server)
{
    struct sim_net *net = &server->machine.world->net;
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    const struct calls__echo__handlers handlers = {.say = say, .stream = sim_server_stream};
    char address[32];

    snprintf(address, sizeof(address), "127.0.0.1:%u", server->port);
    options.context = server->machine.context;
    options.loop = server->machine.loop;
    options.listen = address;
    options.grace_ns = 20 * SIM_MS + sim_below(net, 200 * SIM_MS);
    options.heartbeat_ns = 300 * SIM_MS;
    options.heartbeat_timeout_ns = 200 * SIM_MS;
    options.first_frame_timeout_ns = 500 * SIM_MS;
    options.max_calls = server->takes_few ? 4 : 0;
    int rc = bow_server_new(&options, &server->server);
    if (rc == 0) {
        rc = calls__echo__serve(server->server, &handlers, server);
    }
    if (rc == 0) {
        rc = bow_server_start(server->server);
    }
    if (rc < 0) {
        sim_tell(net, "%s cannot start (%d), tries again", server->machine.name, rc);
        bow_server_free(server->server);
        server->server = NULL;
        server->state = SIM_SERVER_DOWN;
        server->restart_ns = net->now_ns + 20 * SIM_MS;
        sim_server_trouble(server, 20 * SIM_MS);
        return;
    }
    sim_tell(net, "%s is up", server->machine.name);
    server->state = SIM_SERVER_UP;
    sim_machine_wake(&server->machine);
}

void sim_server_trouble(struct sim_server *server, uint64_t for_ns)
{
    struct sim_world *world = server->machine.world;
    uint64_t until = world->net.now_ns + for_ns + AFTERMATH_NS;

    if (server->n_troubles == SIM_MAX_TROUBLES) {
        server->troubles[SIM_MAX_TROUBLES - 1].until_ns = until;
    } else {
        server->troubles[server->n_troubles++] = (struct sim_trouble){world->net.now_ns, until};
    }
    world->last_trouble_ns = until > world->last_trouble_ns ? until : world->last_trouble_ns;
}

bool sim_server_had_trouble(const struct sim_server *server, uint64_t from_ns, uint64_t until_ns)
{
    for (int i = 0; i < server->n_troubles; i++) {
        if (server->troubles[i].from_ns <= until_ns && server->troubles[i].until_ns >= from_ns) {
            return true;
        }
    }
    return false;
}

/* What is held is answered by the latest when the process would be gone. */
static void answer_held(struct sim_server *server, uint64_t until_ns)
{
    int i = 0;

    while (i < server->n_held) {
        struct sim_held held = server->held[i];
        if (held.answer_ns > until_ns) {
            i++;
            continue;
        }
        server->held[i] = server->held[--server->n_held];
        if (held.answer_ns == BOW_NEVER) {
            bow_call_on_cancel(held.call, NULL, NULL);
        }
        answer_or_fail(held.call, held.number);
        sim_machine_wake(&server->machine);
    }
}

void sim_server_stop(struct sim_server *server)
{
    if (server->state != SIM_SERVER_UP) {
        return;
    }
    server->state = SIM_SERVER_STOPPING;
    bow_server_stop(server->server);
    sim_machine_wake(&server->machine);
}

/* STOPPING, and the last connection may have gone. */
static void check_stopped(struct sim_server *server)
{
    struct sim_net *net = &server->machine.world->net;

    if (bow_server_join(server->server) != 0) {
        return;
    }
    answer_held(server, BOW_NEVER);
    bow_server_free(server->server);
    server->server = NULL;
    server->state = SIM_SERVER_DOWN;
    sim_tell(net, "%s is down", server->machine.name);
}

static void thaw(struct sim_server *server)
{
    server->machine.node.frozen = false;
    sim_tell(&server->machine.world->net, "%s %s", server->machine.name,
             server->is_killed ? "is buried" : "runs again");
    if (server->is_killed) {
        server->is_killed = false;
        answer_held(server, BOW_NEVER);
        sim_server_stop(server);
    }
}

void sim_server_on_time(struct sim_server *server)
{
    uint64_t now = server->machine.world->net.now_ns;

    if (server->machine.node.frozen) {
        if (server->thaw_ns > now) {
            return;
        }
        thaw(server);
    }
    answer_held(server, now);
    if (server->state == SIM_SERVER_STOPPING) {
        check_stopped(server);
    }
    if (server->state == SIM_SERVER_DOWN && server->restart_ns <= now &&
        !server->machine.world->is_ending) {
        sim_server_start(server);
    }
}

uint64_t sim_server_due(const struct sim_server *server)
{
    uint64_t due = BOW_NEVER;

    if (server->machine.node.frozen) {
        return server->thaw_ns;
    }
    if (server->state == SIM_SERVER_DOWN && !server->machine.world->is_ending) {
        due = server->restart_ns;
    }
    for (int i = 0; i < server->n_held; i++) {
        due = server->held[i].answer_ns < due ? server->held[i].answer_ns : due;
    }
    return due;
}

void sim_server_end(struct sim_server *server)
{
    server->machine.no_memory_until_ns = 0;
    server->machine.node.no_fds_until_ns = 0;
    if (server->machine.node.frozen) {
        thaw(server);
    }
    sim_server_stop(server);
}
