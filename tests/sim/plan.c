/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a seed means: who is there, which calls are made when, and what goes wrong.
 */

#include "world.h"

#include <stdio.h>
#include <stdlib.h>

#define SPAN_NS (1500 * SIM_MS)

static uint64_t any_time(struct sim_net *net)
{
    return net->now_ns + sim_below(net, SPAN_NS);
}

static void add(struct sim_world *world, enum sim_action_kind kind, int which, uint64_t at_ns,
                uint64_t for_ns)
{
    if (world->n_actions < SIM_MAX_ACTIONS) {
        world->actions[world->n_actions++] = (struct sim_action){at_ns, kind, which, for_ns};
    }
}

static uint32_t any_size(struct sim_net *net)
{
    static const uint32_t sizes[] = {0, 10, 100, 1000, 5000, 20000, 70000, 300000};
    uint64_t i = sim_below(net, 8);

    /* Most calls are small. */
    return sim_chance(net, 3) ? sizes[i] : sizes[i % 3];
}

static uint64_t any_timeout(struct sim_net *net)
{
    static const uint64_t timeouts[] = {SIM_US,       500 * SIM_US, 2 * SIM_MS, 20 * SIM_MS,
                                        200 * SIM_MS, SIM_S,        3 * SIM_S};

    return timeouts[sim_chance(net, 3) ? sim_below(net, 7) : 4 + sim_below(net, 3)];
}

static void make_stream(struct sim_net *net, struct sim_call *call)
{
    static const uint32_t sizes[] = {0, 10, 1000, 10000, 40000};

    call->is_stream = true;
    call->behaviour = call->behaviour == SIM_FAIL ? SIM_FAIL : SIM_ANSWER;
    call->n_messages = (int)sim_below(net, 30);
    call->reply_bytes = sizes[sim_below(net, 5)];
    /* So that numbers of its messages are nobody else's. */
    call->number = (call->number & 0xFFFFFFFF) << 16;
}

static void plan_call(struct sim_world *world, int index, uint64_t at_ns)
{
    struct sim_net *net = &world->net;
    struct sim_call *call = &world->calls[index];
    uint64_t behaviour = sim_chance(net, 2) ? SIM_ANSWER : sim_below(net, SIM_N_BEHAVIOURS);
    uint64_t bytes = any_size(net);

    *call = (struct sim_call){.world = world};
    call->client = &world->clients[sim_below(net, (uint64_t)world->n_clients)];
    call->behaviour = (enum sim_behaviour)behaviour;
    call->reply_bytes = (uint32_t)bytes;
    call->number = bytes << 40 | (uint64_t)(index + 1) * SIM_N_BEHAVIOURS;
    call->number +=
        (behaviour + SIM_N_BEHAVIOURS - call->number % SIM_N_BEHAVIOURS) % SIM_N_BEHAVIOURS;
    call->deadline_ns = any_timeout(net);
    if (sim_chance(net, 10)) {
        make_stream(net, call);
    }
    add(world, SIM_START_CALL, index, at_ns, 0);
    if (sim_chance(net, 6)) {
        add(world, SIM_CANCEL_CALL, index, at_ns + sim_below(net, 50 * SIM_MS), 0);
    }
}

static void plan_calls(struct sim_world *world)
{
    struct sim_net *net = &world->net;

    world->n_calls = 200 + (int)sim_below(net, 60);
    for (int i = 0; i < world->n_calls;) {
        /* They come in bursts. */
        uint64_t at = any_time(net);
        for (uint64_t n = 1 + sim_below(net, 12); n > 0 && i < world->n_calls; n--) {
            plan_call(world, i++, at);
        }
    }
}

static void plan_faults(struct sim_world *world)
{
    static const uint64_t durations[] = {SIM_MS, 10 * SIM_MS, 100 * SIM_MS, 700 * SIM_MS};
    struct sim_net *net = &world->net;
    uint64_t n = 5 + sim_below(net, 6);

    for (; n > 0; n--) {
        enum sim_action_kind kind =
            (enum sim_action_kind)(SIM_RESET + sim_below(net, SIM_N_ACTIONS - SIM_RESET));
        int which = (int)sim_below(net, (uint64_t)world->n_servers);
        add(world, kind, which, any_time(net), durations[sim_below(net, 4)]);
    }
    if (sim_chance(net, 4)) {
        add(world, SIM_FREE_CLIENT, (int)sim_below(net, (uint64_t)world->n_clients), any_time(net),
            0);
    }
}

static int compare(const void *a, const void *b)
{
    const struct sim_action *x = a;
    const struct sim_action *y = b;

    if (x->at_ns != y->at_ns) {
        return x->at_ns < y->at_ns ? -1 : 1;
    }
    return x->kind != y->kind ? (x->kind < y->kind ? -1 : 1) : x->which - y->which;
}

void sim_plan(struct sim_world *world)
{
    struct sim_net *net = &world->net;

    world->n_servers = 2 + (int)sim_below(net, SIM_MAX_SERVERS - 1);
    world->n_clients = 3 + (int)sim_below(net, SIM_MAX_CLIENTS - 2);
    for (int i = 0; i < world->n_servers; i++) {
        struct sim_server *server = &world->servers[i];
        char name[16];
        snprintf(name, sizeof(name), "server %d", i);
        server->port = (uint16_t)(5000 + i);
        server->takes_few = sim_chance(net, 4);
        sim_machine_init(world, &server->machine, name);
        sim_server_start(server);
    }
    for (int i = 0; i < world->n_clients; i++) {
        struct sim_client *client = &world->clients[i];
        char name[16];
        snprintf(name, sizeof(name), "client %d", i);
        client->server = &world->servers[sim_below(net, (uint64_t)world->n_servers)];
        client->is_grpc = sim_chance(net, 2);
        sim_machine_init(world, &client->machine, name);
        sim_client_start(client);
    }
    plan_calls(world);
    plan_faults(world);
    qsort(world->actions, (size_t)world->n_actions, sizeof(world->actions[0]), compare);
}

/* Faults */

static void freeze(struct sim_server *server, uint64_t for_ns, bool killed)
{
    struct sim_net *net = &server->machine.world->net;

    if (server->state != SIM_SERVER_UP || server->machine.node.frozen) {
        return;
    }
    if (killed) {
        sim_kill(net, &server->machine.node);
        server->is_killed = true;
    }
    server->machine.node.frozen = true;
    server->thaw_ns = net->now_ns + for_ns;
    server->restart_ns = server->thaw_ns;
    sim_server_trouble(server, for_ns + 300 * SIM_MS);
}

static void drain(struct sim_server *server, uint64_t for_ns)
{
    if (server->state != SIM_SERVER_UP || server->machine.node.frozen) {
        return;
    }
    sim_server_trouble(server, for_ns + 500 * SIM_MS);
    server->restart_ns = server->machine.world->net.now_ns + for_ns;
    sim_server_stop(server);
}

/* Of a server, or of one of the clients that call it. */
static struct sim_machine *any_machine(struct sim_world *world, struct sim_server *server)
{
    struct sim_client *client = &world->clients[sim_below(&world->net, (uint64_t)world->n_clients)];

    if (sim_chance(&world->net, 2) || client->server != server) {
        return &server->machine;
    }
    return &client->machine;
}

static void run_short(struct sim_world *world, struct sim_server *server, uint64_t for_ns,
                      bool of_memory)
{
    struct sim_machine *machine = any_machine(world, server);
    uint64_t until = world->net.now_ns + for_ns;

    sim_tell(&world->net, "%s runs out of %s", machine->name, of_memory ? "memory" : "descriptors");
    if (of_memory) {
        machine->no_memory_until_ns = until;
    } else {
        machine->node.no_fds_until_ns = until;
    }
    sim_server_trouble(server, for_ns + SIM_S);
}

static void act_on_server(struct sim_world *world, const struct sim_action *action)
{
    static const char *const verbs[SIM_N_ACTIONS] = {
        [SIM_RESET] = "has a connection reset",
        [SIM_STALL] = "is not reached",
        [SIM_CUT] = "has a connection cut",
        [SIM_KILL] = "is killed",
        [SIM_FREEZE] = "is stopped",
        [SIM_DRAIN] = "drains",
    };
    struct sim_server *server = &world->servers[action->which];
    struct sim_net *net = &world->net;

    if (verbs[action->kind] != NULL) {
        sim_tell(net, "%s %s, for %.0f ms", server->machine.name, verbs[action->kind],
                 (double)action->for_ns / 1e6);
    }
    switch (action->kind) {
    case SIM_RESET:
        sim_reset_one(net, server->port);
        sim_server_trouble(server, SIM_S);
        break;
    case SIM_STALL:
        sim_stall(net, server->port, net->now_ns + action->for_ns);
        sim_server_trouble(server, action->for_ns);
        break;
    case SIM_CUT:
        sim_cut_one(net, server->port);
        sim_server_trouble(server, SIM_S);
        break;
    case SIM_KILL:
    case SIM_FREEZE:
        freeze(server, action->for_ns, action->kind == SIM_KILL);
        break;
    case SIM_DRAIN:
        drain(server, action->for_ns);
        break;
    case SIM_NO_FDS:
    case SIM_NO_MEMORY:
        run_short(world, server, action->for_ns, action->kind == SIM_NO_MEMORY);
        break;
    case SIM_START_CALL:
    case SIM_CANCEL_CALL:
    case SIM_FREE_CLIENT:
    case SIM_N_ACTIONS:
        break;
    }
}

void sim_act(struct sim_world *world, const struct sim_action *action)
{
    switch (action->kind) {
    case SIM_START_CALL:
        if (world->calls[action->which].is_stream) {
            sim_client_stream(&world->calls[action->which]);
        } else {
            sim_client_call(&world->calls[action->which]);
        }
        break;
    case SIM_CANCEL_CALL:
        sim_client_cancel(&world->calls[action->which]);
        break;
    case SIM_FREE_CLIENT:
        sim_client_free(&world->clients[action->which]);
        break;
    default:
        act_on_server(world, action);
        break;
    }
}
