/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A machine: its context, its memory, and turns of its loop.
 */

#include "world.h"

#include <stdio.h>
#include <stdlib.h>

/* What a machine of the simulation never has use for: no call is larger than 300 kB. */
#define MAX_BYTES ((size_t)64 << 20)

static bool fails(struct sim_machine *machine)
{
    struct sim_net *net = &machine->world->net;

    if (net->now_ns >= machine->no_memory_until_ns || !sim_chance(net, 10)) {
        return false;
    }
    machine->memory_failed_ns = net->now_ns;
    return true;
}

static void count(struct sim_machine *machine, size_t more, size_t less)
{
    machine->n_bytes += more - less;
    if (machine->n_bytes > MAX_BYTES) {
        sim_violate(machine->world, "%s uses %zu bytes", machine->name, machine->n_bytes);
    }
}

static void *machine_alloc(void *user, size_t size)
{
    struct sim_machine *machine = user;
    void *memory = fails(machine) ? NULL : malloc(size);

    count(machine, memory != NULL ? size : 0, 0);
    return memory;
}

static void *machine_resize(void *user, void *memory, size_t old_size, size_t new_size)
{
    struct sim_machine *machine = user;
    void *resized = new_size > old_size && fails(machine) ? NULL : realloc(memory, new_size);

    if (resized != NULL) {
        count(machine, new_size, old_size);
    }
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
    context_options.log_level = world->net.story ? BOW_LOG_DEBUG : BOW_LOG_ERROR;
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

void sim_machine_turn(struct sim_machine *machine)
{
    if (bow_loop_run_once(machine->loop, 0) < 0) {
        sim_violate(machine->world, "%s cannot run a turn", machine->name);
    }
    sim_node_rest(&machine->node);
}

uint64_t sim_machine_due(struct sim_machine *machine)
{
    return machine->node.frozen ? BOW_NEVER : sim_node_due(&machine->node);
}

void sim_machine_fini(struct sim_machine *machine)
{
    bow_loop_unref(machine->loop);
    if (bow_context_bytes(machine->context) != 0) {
        sim_violate(machine->world, "%s leaves %zu bytes", machine->name,
                    bow_context_bytes(machine->context));
    }
    bow_context_unref(machine->context);
    if (machine->n_bytes != 0) {
        sim_violate(machine->world, "%s leaves %zu bytes of memory", machine->name,
                    machine->n_bytes);
    }
}
