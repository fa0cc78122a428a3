/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Handlers that call on: a call of theirs has the call being served as its parent, and its end is
 * what they answer. The end of the parent ends it, and the smaller deadline counts.
 */

#include "world.h"

#include <errno.h>

void sim_relay_start(struct sim_server *server)
{
    struct sim_world *world = server->machine.world;
    struct sim_client *relay = &server->relay;
    int next = (int)(server - world->servers + 1) % world->n_servers;

    *relay = (struct sim_client){.machine = &server->machine, .of = server, .n_servers = 1};
    relay->servers[0] = &world->servers[next];
    relay->is_grpc = sim_chance(&world->net, 2);
    sim_client_start(relay);
}

bool sim_relay_stop(struct sim_server *server)
{
    sim_client_free(&server->relay);
    return server->relay.n_open == 0;
}

/* The call that is made on behalf of `of`; NULL when there are too many. */
static struct sim_call *make(struct sim_server *server, struct bow_call *parent,
                             struct sim_call *of)
{
    static const uint64_t timeouts[] = {500 * SIM_US, 20 * SIM_MS, SIM_S, 3 * SIM_S};
    struct sim_world *world = of->world;

    if (world->n_calls == SIM_MAX_CALLS || server->relay.is_freed) {
        return NULL;
    }
    struct sim_call *call = &world->calls[world->n_calls++];
    *call = (struct sim_call){.world = world, .client = &server->relay};
    call->parent = parent;
    call->parent_of = of;
    call->n_requests = call->n_replies = 1;
    call->pause_at = call->serving_pause_at = -1;
    call->behaviour = (enum sim_behaviour)sim_below(&world->net, SIM_RELAY);
    call->request_bytes = of->request_bytes;
    call->reply_bytes = of->reply_bytes;
    call->deadline_ns = timeouts[sim_below(&world->net, 4)];
    return call;
}

static void answer(struct bow_call *parent, struct sim_call *of, bool is_ok)
{
    if (is_ok) {
        sim_server_answer(parent, of);
        return;
    }
    sim_server_answered(of, BOW_ABORTED, sim_told_fail(parent, of));
}

void sim_relay_call(struct sim_server *server, struct bow_call *call, struct sim_call *of)
{
    struct sim_call *child = make(server, call, of);

    if (child == NULL) {
        answer(call, of, true);
        return;
    }
    sim_client_call(child);
    if (!child->is_started) {
        answer(call, of, false);
    }
}

void sim_relay_end(struct sim_call *call)
{
    answer(call->parent, call->parent_of, call->code == BOW_OK);
    sim_machine_wake(call->client->machine);
}
