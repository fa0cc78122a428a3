/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A run: machines take turns in an order of chance, time moves on when nobody has
 * anything to do, and at the end nothing may be left.
 */

#include "world.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
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

static struct sim_machine *machine_at(struct sim_world *world, int i)
{
    return i < world->n_servers ? &world->servers[i].machine
                                : &world->clients[i - world->n_servers].own;
}

static uint64_t min_time(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* One of those that have something to do, by chance; NULL when none has, and when one will. */
static struct sim_machine *choose(struct sim_world *world, uint64_t *ret_next_ns)
{
    struct sim_machine *chosen = NULL;
    uint64_t n = 0;

    *ret_next_ns = BOW_NEVER;
    for (int i = 0; i < world->n_servers + world->n_clients; i++) {
        struct sim_machine *machine = machine_at(world, i);
        uint64_t due = sim_machine_due(machine);
        if (due <= world->net.now_ns && sim_chance(&world->net, ++n)) {
            chosen = machine;
        }
        *ret_next_ns = min_time(*ret_next_ns, due);
    }
    return chosen;
}

/* Streams that do not want to read for a while */

bool sim_sleep(struct sim_call *call, bool is_server, uint64_t for_ns)
{
    struct sim_world *world = call->world;

    if (world->n_sleepers == SIM_MAX_SLEEPERS) {
        return false;
    }
    world->sleepers[world->n_sleepers++] =
        (struct sim_sleeper){world->net.now_ns + for_ns, call, is_server};
    return true;
}

static void wake_sleepers(struct sim_world *world)
{
    for (int i = 0; i < world->n_sleepers;) {
        struct sim_sleeper sleeper = world->sleepers[i];
        if (sleeper.until_ns > world->net.now_ns) {
            i++;
            continue;
        }
        world->sleepers[i] = world->sleepers[--world->n_sleepers];
        if (sleeper.is_server) {
            sim_server_resume(sleeper.call);
        } else {
            sim_client_resume(sleeper.call);
        }
    }
}

/* Time */

/* Beside what machines have to do. */
static uint64_t next_time(const struct sim_world *world)
{
    uint64_t next = BOW_NEVER;

    for (int i = 0; i < world->n_servers; i++) {
        next = min_time(next, sim_server_due(&world->servers[i]));
    }
    for (int i = 0; i < world->n_sleepers; i++) {
        next = min_time(next, world->sleepers[i].until_ns);
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
    wake_sleepers(world);
    if (world->look_ns <= world->net.now_ns) {
        world->look_ns = world->net.now_ns + 20 * SIM_MS;
        sim_verdict_look(world);
        sim_check_limits(world);
    }
}

/* Returns false when nothing will ever happen any more. */
static bool step(struct sim_world *world)
{
    struct sim_net *net = &world->net;

    act_what_is_due(world);
    uint64_t next = 0;
    struct sim_machine *machine = choose(world, &next);
    if (machine != NULL) {
        world->n_turns++;
        sim_machine_turn(machine);
        net->now_ns += sim_below(net, 20 * SIM_US);
        return true;
    }
    next = min_time(next, next_time(world));
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

static void wait_until(struct sim_world *world, uint64_t calm)
{
    struct sim_net *net = &world->net;

    while (net->now_ns < calm && has_time(world, calm + MAX_NS, "calm comes")) {
        if (!step(world)) {
            net->now_ns = calm;
        }
    }
}

static void wait_for_calm(struct sim_world *world)
{
    uint64_t now = world->net.now_ns;

    wait_until(world, (world->last_trouble_ns > now ? world->last_trouble_ns : now) + 2 * SIM_S);
}

static void call_from(struct sim_client *client, bool may_find_dead)
{
    struct sim_world *world = client->machine->world;
    struct sim_call *call = &world->calls[world->n_calls];

    if (client->is_freed || world->n_calls == SIM_MAX_CALLS) {
        return;
    }
    *call = (struct sim_call){.world = world, .client = client};
    call->n_requests = call->n_replies = 1;
    call->deadline_ns = 2 * SIM_S;
    call->pause_at = call->serving_pause_at = -1;
    call->may_find_dead = may_find_dead;
    world->n_calls++;
    sim_client_call(call);
}

static void call_from_each(struct sim_world *world, bool may_find_dead)
{
    for (int i = 0; i < world->n_clients; i++) {
        /* One for each address, which has its own connections. */
        for (int k = 0; k < world->clients[i].n_servers; k++) {
            call_from(&world->clients[i], may_find_dead);
        }
    }
    while (world->n_open > 0 && has_time(world, world->net.now_ns + MAX_NS, "the last calls end") &&
           step(world)) {
    }
}

/* Who watches a server goes, and what is left then is a call that was forgotten. */
static void stop_watching(struct sim_world *world)
{
    for (int i = 0; i < world->n_clients; i++) {
        if (world->clients[i].asks_for_health) {
            sim_client_free(&world->clients[i]);
        }
    }
    wait_until(world, world->net.now_ns + 500 * SIM_MS);
}

static uint32_t most_connections(const struct sim_world *world)
{
    uint32_t most = 1;

    for (int i = 0; i < world->n_clients; i++) {
        if (world->clients[i].max_connections > most) {
            most = world->clients[i].max_connections;
        }
    }
    return most;
}

/* When all is well again, everyone is served. Of several connections to an address each may have
 * died unseen, and a call finds out about one. */
static void run_recovery(struct sim_world *world)
{
    wait_for_calm(world);
    for (uint32_t i = 0; i < most_connections(world); i++) {
        call_from_each(world, true);
        wait_for_calm(world);
    }
    int first = world->n_calls;
    call_from_each(world, false);
    for (int i = first; i < world->n_calls; i++) {
        const struct sim_call *call = &world->calls[i];
        if (!call->is_done || call->code != BOW_OK) {
            sim_violate(world, "%s does not recover: %s", call->client->machine->name,
                        call->is_done ? bow_code_name(call->code) : "no end");
        }
    }
    wait_until(world, world->net.now_ns + 500 * SIM_MS);
    if (world->violation[0] == '\0') {
        sim_check_clients(world);
        stop_watching(world);
        sim_check_rest(world);
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
        sim_machine_fini(machine_at(world, i));
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
        world->clients[i].own.no_memory_until_ns = 0;
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
