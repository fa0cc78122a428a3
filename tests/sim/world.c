/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A run: machines take turns in an order of chance, time moves on when nobody has
 * anything to do, and at the end nothing may be left.
 */

#include "world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TURNS 2000000
#define MAX_NS (60 * SIM_S)

void sim_violate(struct sim_world *world, const char *format, ...)
{
    va_list args;

    if (world->violation[0] != '\0') {
        return;
    }
    va_start(args, format);
    vsnprintf(world->violation, sizeof(world->violation), format, args);
    va_end(args);
    sim_tell(&world->net, "VIOLATION: %s", world->violation);
}

/* Machines */

static bool fails(const struct sim_machine *machine)
{
    return machine->world->net.now_ns < machine->no_memory_until_ns &&
           sim_chance(&machine->world->net, 10);
}

static void *machine_alloc(void *user, size_t size)
{
    struct sim_machine *machine = user;
    void *memory = fails(machine) ? NULL : malloc(size);

    machine->n_bytes += memory != NULL ? size : 0;
    return memory;
}

static void *machine_resize(void *user, void *memory, size_t old_size, size_t new_size)
{
    struct sim_machine *machine = user;
    void *resized = new_size > old_size && fails(machine) ? NULL : realloc(memory, new_size);

    machine->n_bytes += resized != NULL ? new_size - old_size : 0;
    return resized;
}

static void machine_free(void *user, void *memory, size_t size)
{
    struct sim_machine *machine = user;

    machine->n_bytes -= memory != NULL ? size : 0;
    free(memory);
}

static void log_line(enum bow_log_level level, const char *line, void *user)
{
    struct sim_machine *machine = user;

    (void)level;
    sim_tell(&machine->world->net, "%s says: %s", machine->name, line);
}

void sim_machine_init(struct sim_world *world, struct sim_machine *machine, const char *name)
{
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;

    machine->world = world;
    snprintf(machine->name, sizeof(machine->name), "%s", name);
    sim_node_init(&machine->node, &world->net, machine->name);
    machine->allocator =
        (struct bow_allocator){machine_alloc, machine_resize, machine_free, machine};
    context_options.allocator = &machine->allocator;
    context_options.log = log_line;
    context_options.log_user = machine;
    context_options.log_level = BOW_LOG_DEBUG;
    context_options.system = &machine->node.system;
    loop_options.thread = BOW_LOOP_OWNER;
    if (bow_context_new(&context_options, &machine->context) < 0 ||
        bow_loop_new(machine->context, &loop_options, &machine->loop) < 0) {
        abort();
    }
    if (bow_loop_run_once(machine->loop, 0) < 0 || bow_loop_fd(machine->loop) < 0) {
        abort();
    }
}

void sim_machine_wake(struct sim_machine *machine)
{
    (void)bow_loop_wake(machine->loop);
}

static bool can_run(struct sim_machine *machine)
{
    return machine->loop != NULL && !machine->node.frozen && sim_poller_is_ready(&machine->node);
}

static struct sim_machine *machine_at(struct sim_world *world, int i)
{
    return i < world->n_servers ? &world->servers[i].machine
                                : &world->clients[i - world->n_servers].machine;
}

/* One of those that have something to do, by chance; NULL when none has. */
static struct sim_machine *choose(struct sim_world *world)
{
    struct sim_machine *chosen = NULL;
    uint64_t n = 0;

    for (int i = 0; i < world->n_servers + world->n_clients; i++) {
        struct sim_machine *machine = machine_at(world, i);
        if (can_run(machine) && sim_chance(&world->net, ++n)) {
            chosen = machine;
        }
    }
    return chosen;
}

/* Time */

static uint64_t min_time(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t next_time(const struct sim_world *world)
{
    uint64_t next = sim_net_next(&world->net);

    for (int i = 0; i < world->n_servers; i++) {
        const struct sim_server *server = &world->servers[i];
        next = min_time(next, sim_server_due(server));
        if (!server->machine.node.frozen) {
            next = min_time(next, sim_poller_due(&server->machine.node));
        }
    }
    for (int i = 0; i < world->n_clients; i++) {
        next = min_time(next, sim_poller_due(&world->clients[i].machine.node));
    }
    if (!world->is_ending && world->next_action < world->n_actions) {
        next = min_time(next, world->actions[world->next_action].at_ns);
    }
    return next;
}

static void act_what_is_due(struct sim_world *world)
{
    while (!world->is_ending && world->next_action < world->n_actions &&
           world->actions[world->next_action].at_ns <= world->net.now_ns) {
        sim_act(world, &world->actions[world->next_action++]);
    }
    for (int i = 0; i < world->n_servers; i++) {
        sim_server_on_time(&world->servers[i]);
    }
}

/* Returns false when nothing will ever happen any more. */
static bool step(struct sim_world *world)
{
    struct sim_net *net = &world->net;

    act_what_is_due(world);
    struct sim_machine *machine = choose(world);
    if (machine != NULL) {
        world->n_turns++;
        if (bow_loop_run_once(machine->loop, 0) < 0) {
            sim_violate(world, "%s cannot run a turn", machine->name);
        }
        net->now_ns += sim_below(net, 20 * SIM_US);
        return true;
    }
    uint64_t next = next_time(world);
    if (next == BOW_NEVER) {
        return false;
    }
    net->now_ns = next > net->now_ns ? next : net->now_ns + 1;
    return true;
}

static bool has_time(struct sim_world *world, uint64_t limit_ns, const char *what)
{
    if (world->violation[0] != '\0') {
        return false;
    }
    if (world->n_turns > MAX_TURNS || world->net.now_ns > limit_ns) {
        sim_violate(world, "%s: not after %" PRIu64 " turns and %.1f s; %d calls are open", what,
                    world->n_turns, (double)(world->net.now_ns - 1000 * SIM_S) / 1e9,
                    world->n_open);
        return false;
    }
    return true;
}

static void run_plan(struct sim_world *world)
{
    uint64_t limit = world->net.now_ns + MAX_NS;

    while ((world->next_action < world->n_actions || world->n_open > 0) &&
           has_time(world, limit, "all calls end")) {
        if (!step(world) && world->n_open > 0) {
            sim_violate(world, "nothing happens any more, and %d calls are open", world->n_open);
        }
    }
}

static void wait_for_calm(struct sim_world *world)
{
    struct sim_net *net = &world->net;
    uint64_t calm =
        (world->last_trouble_ns > net->now_ns ? world->last_trouble_ns : net->now_ns) + 2 * SIM_S;

    while (net->now_ns < calm && has_time(world, calm + MAX_NS, "calm comes")) {
        if (!step(world)) {
            net->now_ns = calm;
        }
    }
}

static void call_from_each(struct sim_world *world, bool may_find_dead)
{
    for (int i = 0; i < world->n_clients; i++) {
        struct sim_call *call = &world->calls[world->n_calls];
        if (world->clients[i].is_freed || world->n_calls == SIM_MAX_CALLS) {
            continue;
        }
        *call = (struct sim_call){.world = world, .client = &world->clients[i]};
        call->number = (uint64_t)(world->n_calls + 1) * SIM_N_BEHAVIOURS;
        call->deadline_ns = 2 * SIM_S;
        call->may_find_dead = may_find_dead;
        world->n_calls++;
        sim_client_call(call);
    }
    while (world->n_open > 0 && has_time(world, world->net.now_ns + MAX_NS, "the last calls end") &&
           step(world)) {
    }
}

/* When all is well again, everyone is served. */
static void run_recovery(struct sim_world *world)
{
    wait_for_calm(world);
    call_from_each(world, true);
    wait_for_calm(world);
    int first = world->n_calls;
    call_from_each(world, false);
    for (int i = first; i < world->n_calls; i++) {
        const struct sim_call *call = &world->calls[i];
        if (!call->is_done || call->code != BOW_OK) {
            sim_violate(world, "%s does not recover: %s", call->client->machine.name,
                        call->is_done ? bow_code_name(call->code) : "no end");
        }
    }
}

/* The end */

static bool are_down(const struct sim_world *world)
{
    for (int i = 0; i < world->n_servers; i++) {
        if (world->servers[i].state != SIM_SERVER_DOWN) {
            return false;
        }
    }
    return true;
}

static bool have_terminated(struct sim_world *world)
{
    for (int i = 0; i < world->n_servers + world->n_clients; i++) {
        if (bow_loop_get_state(machine_at(world, i)->loop) != BOW_LOOP_TERMINATED) {
            return false;
        }
    }
    return true;
}

static void check_nothing_left(struct sim_world *world)
{
    for (int i = 0; i < world->n_servers + world->n_clients; i++) {
        struct sim_machine *machine = machine_at(world, i);
        bow_loop_unref(machine->loop);
        if (bow_context_bytes(machine->context) != 0) {
            sim_violate(world, "%s leaves %zu bytes", machine->name,
                        bow_context_bytes(machine->context));
        }
        bow_context_unref(machine->context);
        if (machine->n_bytes != 0) {
            sim_violate(world, "%s leaves %zu bytes of memory", machine->name, machine->n_bytes);
        }
    }
    if (sim_n_fds(&world->net) != 0) {
        sim_violate(world, "%d descriptors are left open", sim_n_fds(&world->net));
    }
}

static void run_end(struct sim_world *world)
{
    struct sim_net *net = &world->net;

    world->is_ending = true;
    for (int i = 0; i < world->n_clients; i++) {
        world->clients[i].machine.no_memory_until_ns = 0;
        sim_client_free(&world->clients[i]);
    }
    for (int i = 0; i < world->n_servers; i++) {
        sim_server_end(&world->servers[i]);
    }
    while (!are_down(world) && has_time(world, net->now_ns + MAX_NS, "servers stop") &&
           step(world)) {
    }
    for (int i = 0; i < world->n_servers + world->n_clients; i++) {
        bow_loop_shutdown(machine_at(world, i)->loop, 0, SIM_S);
        sim_machine_wake(machine_at(world, i));
    }
    while (!have_terminated(world) && has_time(world, net->now_ns + MAX_NS, "loops end") &&
           step(world)) {
    }
    if (world->violation[0] == '\0' && (!are_down(world) || !have_terminated(world))) {
        sim_violate(world, "nothing happens any more, and not all has ended");
    }
    if (world->violation[0] == '\0') {
        check_nothing_left(world);
    }
}

const char *sim_run(struct sim_world *world, uint64_t seed, bool story)
{
    memset(world, 0, sizeof(*world));
    sim_net_init(&world->net, seed, story);
    sim_plan(world);
    run_plan(world);
    if (world->violation[0] == '\0') {
        run_recovery(world);
    }
    if (world->violation[0] == '\0') {
        run_end(world);
    }
    sim_net_fini(&world->net);
    return world->violation;
}
