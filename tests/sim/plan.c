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
    static const uint32_t sizes[] = {0, 10, 100, 1000, 5000, 20000, 70000, 200000};
    uint64_t i = sim_below(net, 8);

    /* Most calls are small. */
    return sim_chance(net, 6) ? sizes[i] : sizes[i % 3];
}

static uint64_t any_timeout(struct sim_net *net)
{
    static const uint64_t timeouts[] = {SIM_US,       500 * SIM_US, 2 * SIM_MS, 20 * SIM_MS,
                                        200 * SIM_MS, SIM_S,        3 * SIM_S};

    return timeouts[sim_chance(net, 3) ? sim_below(net, 7) : 4 + sim_below(net, 3)];
}

/* Some streams stop reading for a while, on one side. */
static int any_pause(struct sim_net *net, int n)
{
    return n > 0 && sim_chance(net, 6) ? (int)sim_below(net, (uint64_t)n) : -1;
}

static void make_stream(struct sim_net *net, struct sim_call *call)
{
    static const uint32_t sizes[] = {0, 10, 1000, 8000, 30000};
    static const enum sim_behaviour behaviours[] = {SIM_ANSWER, SIM_ANSWER, SIM_ANSWER, SIM_FAIL,
                                                    SIM_END_EARLY};

    call->kind = (enum sim_kind)(SIM_ECHO + sim_below(net, 3));
    call->behaviour = behaviours[sim_below(net, 5)];
    uint32_t n_bytes = sizes[sim_below(net, 5)];
    int n = (int)sim_below(net, n_bytes < 8000 ? 30 : 10);
    call->n_requests = call->kind == SIM_DOWNLOAD ? 1 : n;
    call->n_replies = call->kind == SIM_UPLOAD ? 1 : n;
    call->request_bytes = call->reply_bytes = n_bytes;
    call->pause_at = any_pause(net, call->kind == SIM_UPLOAD ? 0 : n);
    call->serving_pause_at = any_pause(net, call->kind == SIM_DOWNLOAD ? 0 : n);
}

static void plan_call(struct sim_world *world, int index, uint64_t at_ns, struct sim_set *set)
{
    struct sim_net *net = &world->net;
    struct sim_call *call = &world->calls[index];

    *call = (struct sim_call){.world = world, .n_requests = 1, .n_replies = 1};
    call->set = set;
    call->client =
        set != NULL ? set->client : &world->clients[sim_below(net, (uint64_t)world->n_clients)];
    call->behaviour =
        (enum sim_behaviour)(sim_chance(net, 2) ? SIM_ANSWER : sim_below(net, SIM_N_BEHAVIOURS));
    call->request_bytes = any_size(net);
    call->reply_bytes = any_size(net);
    call->deadline_ns = any_timeout(net);
    call->has_metadata = sim_chance(net, 4);
    call->waits_for_ready = sim_chance(net, 8);
    call->pause_at = call->serving_pause_at = -1;
    if (set == NULL && sim_chance(net, 8)) {
        make_stream(net, call);
    }
    if (set == NULL) {
        add(world, SIM_START_CALL, index, at_ns, 0);
    }
    if (sim_chance(net, 6)) {
        add(world, SIM_CANCEL_CALL, index, at_ns + sim_below(net, 50 * SIM_MS), 0);
    }
}

/* Some bursts are one set. */
static struct sim_set *any_set(struct sim_world *world, int first, int n, uint64_t at_ns)
{
    struct sim_net *net = &world->net;

    if (!sim_chance(net, 6) || n > SIM_MAX_IN_SET || world->n_sets == SIM_MAX_SETS) {
        return NULL;
    }
    struct sim_set *set = &world->sets[world->n_sets];
    set->client = &world->clients[sim_below(net, (uint64_t)world->n_clients)];
    set->calls = &world->calls[first];
    set->n_calls = n;
    set->cancels_rest = sim_chance(net, 2);
    add(world, SIM_START_SET, world->n_sets++, at_ns, 0);
    return set;
}

static void plan_calls(struct sim_world *world)
{
    struct sim_net *net = &world->net;

    world->n_calls = 200 + (int)sim_below(net, 60);
    for (int i = 0; i < world->n_calls;) {
        /* They come in bursts. */
        uint64_t at = any_time(net);
        int n = 1 + (int)sim_below(net, 12);
        n = n < world->n_calls - i ? n : world->n_calls - i;
        struct sim_set *set = any_set(world, i, n, at);
        for (; n > 0; n--) {
            plan_call(world, i++, at, set);
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

/* Whether connections to its servers live long enough, over the slowest path, to be asked something
 * and called then. */
static bool are_lasting(const struct sim_client *client)
{
    for (int i = 0; i < client->n_servers; i++) {
        const struct sim_server *server = client->servers[i];
        if ((server->max_age_ns > 0 && server->max_age_ns < 200 * SIM_MS) ||
            (server->idle_ns > 0 && server->idle_ns < 150 * SIM_MS)) {
            return false;
        }
    }
    return true;
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
        char name[24];
        snprintf(name, sizeof(name), "server %d", i);
        server->port = (uint16_t)(5000 + i);
        server->held_due_ns = BOW_NEVER;
        server->ill_from_ns = server->well_ns = BOW_NEVER;
        server->takes_few = sim_chance(net, 4);
        server->compresses = sim_chance(net, 4);
        server->max_age_ns = sim_chance(net, 3) ? 50 * SIM_MS + sim_below(net, 400 * SIM_MS) : 0;
        server->idle_ns = sim_chance(net, 4) ? 20 * SIM_MS + sim_below(net, 200 * SIM_MS) : 0;
        sim_machine_init(world, &server->machine, name);
    }
    for (int i = 0; i < world->n_servers; i++) {
        sim_server_start(&world->servers[i]);
    }
    for (int i = 0; i < world->n_clients; i++) {
        struct sim_client *client = &world->clients[i];
        char name[24];
        snprintf(name, sizeof(name), "client %d", i);
        int first = (int)sim_below(net, (uint64_t)world->n_servers);
        client->n_servers = sim_chance(net, 3) ? world->n_servers : 1;
        for (int k = 0; k < client->n_servers; k++) {
            client->servers[k] = &world->servers[(first + k) % world->n_servers];
        }
        client->is_named = client->n_servers > 1 && sim_chance(net, 2);
        client->is_grpc = sim_chance(net, 2);
        client->compresses = sim_chance(net, 4);
        client->idle_ns = sim_chance(net, 4) ? 20 * SIM_MS + sim_below(net, 200 * SIM_MS) : 0;
        client->asks_for_health = sim_chance(net, 2) && are_lasting(client);
        client->max_connections = sim_chance(net, 2) ? 1 + (uint32_t)sim_below(net, 4) : 1;
        client->machine = &client->own;
        sim_machine_init(world, client->machine, name);
        sim_client_start(client);
    }
    plan_calls(world);
    plan_faults(world);
    qsort(world->actions, (size_t)world->n_actions, sizeof(world->actions[0]), compare);
}
