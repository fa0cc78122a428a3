/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What goes wrong, and until when calls may suffer from it. A connection that is harmed is
 * known to the network, as are descriptors and memory that were refused.
 */

#include "world.h"

/* Beyond the fault itself: a heartbeat that was on its way, an attempt to connect. */
#define AFTERMATH_NS (150 * SIM_MS)

static void extend(uint64_t *until_ns, uint64_t to_ns)
{
    *until_ns = *until_ns > to_ns ? *until_ns : to_ns;
}

static void lose(struct sim_server *server, uint64_t for_ns)
{
    extend(&server->lost_until_ns, server->machine.world->net.now_ns + for_ns + AFTERMATH_NS);
}

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
    lose(server, for_ns);
}

static void drain(struct sim_server *server, uint64_t for_ns)
{
    if (server->state != SIM_SERVER_UP || server->machine.node.frozen) {
        return;
    }
    server->restart_ns = server->machine.world->net.now_ns + for_ns;
    sim_server_stop(server);
}

/* Of a server, or of one of the clients that call it. */
static struct sim_machine *any_machine(struct sim_world *world, struct sim_server *server)
{
    struct sim_client *client = &world->clients[sim_below(&world->net, (uint64_t)world->n_clients)];

    if (sim_chance(&world->net, 2) || !sim_client_has(client, server)) {
        return &server->machine;
    }
    return client->machine;
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
        [SIM_ILL] = "does not serve",
    };
    struct sim_server *server = &world->servers[action->which];
    struct sim_net *net = &world->net;

    if (verbs[action->kind] != NULL) {
        sim_tell(net, "%s %s, for %.0f ms", server->machine.name, verbs[action->kind],
                 (double)action->for_ns / 1e6);
    }
    extend(&world->last_trouble_ns, net->now_ns + action->for_ns + SIM_S);
    switch (action->kind) {
    case SIM_RESET:
        sim_reset_one(net, server->port);
        break;
    case SIM_STALL:
        sim_stall(net, server->port, net->now_ns + action->for_ns);
        lose(server, action->for_ns);
        break;
    case SIM_CUT:
        sim_cut_one(net, server->port);
        break;
    case SIM_KILL:
    case SIM_FREEZE:
        freeze(server, action->for_ns, action->kind == SIM_KILL);
        break;
    case SIM_DRAIN:
        drain(server, action->for_ns);
        break;
    case SIM_ILL:
        sim_server_fall_ill(server, action->for_ns);
        break;
    case SIM_NO_FDS:
    case SIM_NO_MEMORY:
        run_short(world, server, action->for_ns, action->kind == SIM_NO_MEMORY);
        break;
    case SIM_START_CALL:
    case SIM_START_SET:
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
        sim_client_call(&world->calls[action->which]);
        break;
    case SIM_START_SET:
        sim_set_start(&world->sets[action->which]);
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
