/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Names whose addresses change: a resolver of a simulated client, which says some of the servers
 * that it calls, others later, and now and then an error or nothing, which changes nothing.
 */

#include "world.h"

#include <bowline/resolver.h>
#include <bowline/timer.h>
#include <stdio.h>

/* So often something is said: what was lost for want of memory is said again soon. */
#define SAID_NS (20 * SIM_MS)
#define SAID_SPREAD_NS (60 * SIM_MS)

static struct sim_net *net_of(const struct sim_client *client)
{
    return &client->machine->world->net;
}

/* At least one. */
static void change(struct sim_client *client)
{
    struct sim_net *net = net_of(client);
    uint64_t keep = sim_below(net, (uint64_t)client->n_servers);

    for (int i = 0; i < client->n_servers; i++) {
        bool has = (uint64_t)i == keep || sim_chance(net, 2);
        if (has != client->names.has[i]) {
            client->names.has[i] = has;
            client->names.changed_ns[i] = net->now_ns;
            sim_tell(net, "%s: its name has %s %s", client->machine->name,
                     client->servers[i]->machine.name, has ? "from now on" : "no more");
        }
    }
}

static void say(struct sim_client *client)
{
    struct bow_resolver_update update = BOW_RESOLVER_UPDATE_INIT;
    struct bow_resolver_address addresses[SIM_MAX_SERVERS + 1];
    char texts[SIM_MAX_SERVERS][32];
    struct sim_net *net = net_of(client);
    size_t n = 0;

    for (int i = 0; i < client->n_servers; i++) {
        if (client->names.has[i]) {
            snprintf(texts[i], sizeof(texts[i]), "127.0.0.1:%u", client->servers[i]->port);
            addresses[n++] = (struct bow_resolver_address){.address = texts[i]};
        }
    }
    if (sim_chance(net, 3)) {
        addresses[n++] = addresses[0]; /* said twice */
    }
    update.addresses = addresses;
    update.n_addresses = n;
    client->names.is_told = true;
    bow_resolver_update(client->names.watch, &update);
}

/* Which changes nothing. */
static void say_nothing(struct sim_client *client)
{
    struct bow_resolver_update update = BOW_RESOLVER_UPDATE_INIT;

    update.error = sim_chance(net_of(client), 2) ? "the directory is out of order" : NULL;
    bow_resolver_update(client->names.watch, &update);
}

static void on_timer(struct bow_timer *timer, void *user)
{
    struct sim_client *client = user;

    if (client->names.is_told && sim_chance(net_of(client), 8)) {
        say_nothing(client);
    } else {
        if (client->names.is_told && sim_chance(net_of(client), 4)) {
            change(client);
        }
        say(client);
    }
    bow_timer_start(timer, SAID_NS + sim_below(net_of(client), SAID_SPREAD_NS));
}

static int start(const struct bow_resolver *resolver, struct bow_loop *loop, const char *name,
                 struct bow_resolver_watch *watch, void **ret_state)
{
    struct sim_client *client = resolver->user;

    (void)name;
    client->names.watch = watch;
    client->names.is_told = false;
    bow_timer_init(&client->names.timer, loop, on_timer, client);
    bow_timer_start(&client->names.timer, sim_below(net_of(client), 10 * SIM_MS));
    *ret_state = client;
    return 0;
}

static void refresh(void *state)
{
    struct sim_client *client = state;

    bow_timer_start(&client->names.timer, 0);
}

static void stop(void *state)
{
    struct sim_client *client = state;

    bow_timer_stop(&client->names.timer);
    client->names.watch = NULL;
}

void sim_names_use(struct sim_client *client, struct bow_client_options *options)
{
    struct sim_names *names = &client->names;

    names->table = (struct bow_resolver){
        .size = sizeof(names->table),
        .scheme = "sim",
        .start = start,
        .refresh = refresh,
        .stop = stop,
        .user = client,
    };
    names->tables[0] = &names->table;
    for (int i = 0; i < client->n_servers; i++) {
        names->has[i] = true;
        names->changed_ns[i] = 0;
    }
    options->resolvers = names->tables;
    options->n_resolvers = 1;
}

static int place_of(const struct sim_client *client, const struct sim_server *server)
{
    int i = 0;

    while (i < client->n_servers && client->servers[i] != server) {
        i++;
    }
    return i;
}

bool sim_names_lack(const struct sim_client *client, const struct sim_server *server,
                    uint64_t since_ns)
{
    int i = place_of(client, server);

    return client->is_named && !client->names.has[i] && client->names.changed_ns[i] < since_ns;
}

bool sim_names_lacked(const struct sim_client *client, const struct sim_server *server,
                      uint64_t since_ns)
{
    int i = place_of(client, server);

    return client->is_named && (!client->names.has[i] || (client->names.changed_ns[i] != 0 &&
                                                          client->names.changed_ns[i] >= since_ns));
}
