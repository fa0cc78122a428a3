/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A simulated server and its unary handler: what that does with a call stands in the plan.
 */

#include "world.h"

#include <bowline/health.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* For how long clients may find none after it is up: attempts under way, and their back-off. */
#define AFTERMATH_NS (80 * SIM_MS)

/* Calls */

void sim_server_answered(struct sim_call *call, enum bow_code code, int rc)
{
    struct sim_server *server = call->server;

    if (call->is_served) {
        sim_violate(call->world, "call %d was answered twice", (int)(call - call->world->calls));
    }
    call->is_served = true;
    if (rc == 0) {
        call->answered_ns = call->world->net.now_ns;
        server->n_answered[code]++;
    } else if (rc != -ECANCELED && !(rc == -ENOMEM && server->machine.memory_failed_ns > 0)) {
        sim_violate(call->world, "the answer to call %d failed with %d",
                    (int)(call - call->world->calls), rc);
    }
}

void sim_server_answer(struct bow_call *call, struct sim_call *of)
{
    Sim__Reply reply = SIM__REPLY__INIT;
    enum bow_code code = BOW_OK;

    if (of->behaviour == SIM_FAIL || of->behaviour == SIM_FAIL_LATE) {
        code = BOW_ABORTED;
        sim_server_answered(of, code, sim_told_fail(call, of));
        return;
    }
    reply.number = sim_number(of, 0);
    sim_fill(reply.number, of->reply_bytes, &reply.payload);
    sim_server_answered(of, code, bow_call_reply(call, &reply.base));
}

static void hold(struct sim_server *server, struct bow_call *call, struct sim_call *of,
                 uint64_t answer_ns)
{
    server->held[server->n_held++] = (struct sim_held){call, of, answer_ns};
    server->held_due_ns = answer_ns < server->held_due_ns ? answer_ns : server->held_due_ns;
}

static struct sim_held unhold(struct sim_server *server, int i)
{
    struct sim_held held = server->held[i];

    server->held[i] = server->held[--server->n_held];
    return held;
}

static void answer_cancelled(struct bow_call *call, enum bow_code why, void *user)
{
    struct sim_server *server = user;

    if (why == BOW_OK) {
        sim_violate(server->machine.world, "a call was cancelled with OK");
    }
    for (int i = 0; i < server->n_held; i++) {
        if (server->held[i].call == call) {
            sim_server_answer(call, unhold(server, i).of);
            return;
        }
    }
    sim_violate(server->machine.world, "a call is cancelled that nobody holds");
}

static void say(struct bow_call *call, const Sim__Request *request, void *user)
{
    struct sim_server *server = user;
    struct sim_net *net = &server->machine.world->net;
    struct sim_call *of = sim_call_of(server->machine.world, request->number);

    sim_verdict_enter(server, call, of);
    if (of == NULL) {
        (void)bow_call_fail(call, BOW_INTERNAL, "unknown");
        return;
    }
    sim_told_enter(call, of);
    if (!sim_is_filled(request->number, of->request_bytes, &request->payload)) {
        sim_violate(of->world, "the request of call %d is not its own",
                    (int)(of - of->world->calls));
    }
    switch (of->behaviour) {
    case SIM_ANSWER_LATE:
    case SIM_FAIL_LATE:
        hold(server, call, of, net->now_ns + sim_below(net, 60 * SIM_MS));
        break;
    case SIM_ANSWER_ON_CANCEL:
        hold(server, call, of, BOW_NEVER);
        bow_call_on_cancel(call, answer_cancelled, server);
        break;
    case SIM_RELAY:
        sim_relay_call(server, call, of);
        break;
    default:
        sim_server_answer(call, of);
        break;
    }
}

/* What is held is answered by the latest when the process would be gone. */
static void answer_held(struct sim_server *server, uint64_t until_ns)
{
    int i = 0;

    if (server->held_due_ns > until_ns) {
        return;
    }
    server->held_due_ns = BOW_NEVER;
    while (i < server->n_held) {
        uint64_t answer_ns = server->held[i].answer_ns;
        if (answer_ns > until_ns) {
            server->held_due_ns = answer_ns < server->held_due_ns ? answer_ns : server->held_due_ns;
            i++;
            continue;
        }
        struct sim_held held = unhold(server, i);
        if (held.answer_ns == BOW_NEVER) {
            bow_call_on_cancel(held.call, NULL, NULL);
        }
        sim_server_answer(held.call, held.of);
        sim_machine_wake(&server->machine);
    }
}

/* Life */

static int start(struct sim_server *server)
{
    static const struct sim__calls__handlers handlers = {
        .say = say,
        .echo = sim_server_echo,
        .upload = sim_server_upload,
        .download = sim_server_download,
    };
    struct sim_net *net = &server->machine.world->net;
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
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
    options.compression = server->compresses ? BOW_COMPRESSION_AUTO : BOW_COMPRESSION_DEFAULT;
    options.max_age_ns = server->max_age_ns;
    options.idle_timeout_ns = server->idle_ns;
    server->grace_ns = options.grace_ns;
    server->n_entered = 0;
    memset(server->n_answered, 0, sizeof(server->n_answered));
    int rc = bow_server_new(&options, &server->server);
    if (rc == 0) {
        rc = sim__calls__serve(server->server, &handlers, server);
    }
    if (rc == 0) {
        rc = bow_server_start(server->server);
    }
    return rc;
}

void sim_server_start(struct sim_server *server)
{
    struct sim_net *net = &server->machine.world->net;
    int rc = start(server);

    if (rc < 0) {
        sim_tell(net, "%s cannot start (%d), tries again", server->machine.name, rc);
        bow_server_free(server->server);
        server->server = NULL;
        server->state = SIM_SERVER_DOWN;
        server->restart_ns = net->now_ns + 20 * SIM_MS;
        return;
    }
    sim_tell(net, "%s is up%s, connections live %.0f ms", server->machine.name,
             server->takes_few ? ", and takes few" : "", (double)server->max_age_ns / 1e6);
    sim_relay_start(server);
    server->state = SIM_SERVER_UP;
    server->ill_from_ns = server->well_ns = BOW_NEVER;
    server->closed_until_ns = net->now_ns + AFTERMATH_NS;
    sim_machine_wake(&server->machine);
}

static void say_health(struct sim_server *server, enum bow_health_state state)
{
    int rc = bow_health_set(server->server, "sim.Calls", state);

    if (rc < 0 && server->machine.memory_failed_ns == 0) {
        sim_violate(server->machine.world, "the health of %s cannot be set: %d",
                    server->machine.name, rc);
    }
    sim_machine_wake(&server->machine);
}

void sim_server_fall_ill(struct sim_server *server, uint64_t for_ns)
{
    struct sim_net *net = &server->machine.world->net;

    if (server->state != SIM_SERVER_UP || server->machine.node.frozen ||
        server->ill_from_ns != BOW_NEVER) {
        return;
    }
    server->ill_from_ns = net->now_ns;
    server->well_ns = net->now_ns + for_ns;
    server->ill_until_ns = server->well_ns;
    say_health(server, BOW_HEALTH_NOT_SERVING);
}

static void get_well(struct sim_server *server)
{
    server->ill_from_ns = server->well_ns = BOW_NEVER;
    if (server->state == SIM_SERVER_UP) {
        server->ill_until_ns = server->machine.world->net.now_ns;
        say_health(server, BOW_HEALTH_SERVING);
    }
}

void sim_server_stop(struct sim_server *server)
{
    struct sim_net *net = &server->machine.world->net;

    if (server->state != SIM_SERVER_UP) {
        return;
    }
    server->state = SIM_SERVER_STOPPING;
    /* Its loop may be busy, and take it up later. */
    server->cut_from_ns = net->now_ns + server->grace_ns;
    bow_server_stop(server->server);
    sim_machine_wake(&server->machine);
}

/* STOPPING, and the last connection may have gone. */
static void check_stopped(struct sim_server *server)
{
    struct sim_net *net = &server->machine.world->net;

    if (bow_server_join(server->server) != 0 || !sim_relay_stop(server)) {
        return;
    }
    if (net->now_ns >= server->cut_from_ns) {
        server->cut_until_ns = net->now_ns + AFTERMATH_NS;
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
    if (server->well_ns <= now) {
        get_well(server);
    }
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
    due = server->well_ns < due ? server->well_ns : due;
    return server->held_due_ns < due ? server->held_due_ns : due;
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
