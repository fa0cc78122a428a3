/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Simulated clients, and their unary calls.
 */

#include "world.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

static int index_of(const struct sim_call *call)
{
    return (int)(call - call->world->calls);
}

bool sim_client_has(const struct sim_client *client, const struct sim_server *server)
{
    for (int i = 0; i < client->n_servers; i++) {
        if (client->servers[i] == server) {
            return true;
        }
    }
    return false;
}

void sim_client_start(struct sim_client *client)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    char target[96];
    int n = snprintf(target, sizeof(target), "%s%s", client->is_grpc ? "grpc:" : "",
                     client->n_servers > 1 ? "list:" : "");

    if (client->is_named) {
        snprintf(target, sizeof(target), "%ssim:///shop", client->is_grpc ? "grpc:" : "");
        sim_names_use(client, &options);
    }
    for (int i = 0; i < client->n_servers && !client->is_named; i++) {
        n += snprintf(target + n, sizeof(target) - (size_t)n, "%s127.0.0.1:%u", i > 0 ? "," : "",
                      client->servers[i]->port);
    }
    options.context = client->machine->context;
    options.target = target;
    options.loop = client->machine->loop;
    options.backoff_min_ns = 10 * SIM_MS;
    options.backoff_max_ns = 200 * SIM_MS;
    options.connect_timeout_ns = 300 * SIM_MS;
    options.heartbeat_ns = 300 * SIM_MS;
    options.heartbeat_timeout_ns = 200 * SIM_MS;
    options.compression = client->compresses ? BOW_COMPRESSION_AUTO : BOW_COMPRESSION_DEFAULT;
    options.idle_timeout_ns = client->idle_ns;
    options.max_connections_per_address = client->max_connections;
    options.health_service = client->asks_for_health ? "sim.Calls" : NULL;
    int rc = bow_client_new(&options, &client->client);
    client->is_freed = rc < 0;
    if (rc < 0 && (rc != -ENOMEM || client->machine->memory_failed_ns == 0)) {
        sim_violate(client->machine->world, "a client cannot be made: %d", rc);
    }
    sim_tell(&client->machine->world->net, "%s calls %s%s", client->machine->name, target,
             client->asks_for_health ? ", and asks for its health" : "");
}

void sim_client_check_reply(const struct sim_call *call, const Sim__Reply *reply, int number)
{
    if (reply->number != sim_number(call, number)) {
        sim_violate(call->world, "call %d: message %d of call %d instead of %d", index_of(call),
                    (int)(reply->number & 0xFFFF), (int)(reply->number >> 16) - 1, number);
    } else if (!sim_is_filled(reply->number, call->reply_bytes, &reply->payload)) {
        sim_violate(call->world, "call %d: message %d (%zu bytes) is not its own", index_of(call),
                    number, reply->payload.len);
    }
}

static void on_done(struct bow_result *result, const Sim__Reply *reply, void *user)
{
    struct sim_call *call = user;

    if ((reply != NULL) != (result->status.code == BOW_OK)) {
        sim_violate(call->world, "call %d: a reply means OK", index_of(call));
    } else if (reply != NULL) {
        sim_client_check_reply(call, reply, 0);
    }
    sim_told_check(call, result);
    sim_verdict_end(call, &result->status);
    if (call->parent != NULL) {
        sim_relay_end(call);
    }
}

static int start_unary(struct sim_call *call, const struct bow_call_options *options)
{
    Sim__Request request = SIM__REQUEST__INIT;

    request.number = sim_number(call, 0);
    sim_fill(request.number, call->request_bytes, &request.payload);
    if (call->set != NULL) {
        return sim_set_add(call, &request, options);
    }
    return sim__calls__say__start(call->client->client, &request, options, on_done, call,
                                  &call->id);
}

static void tell_start(const struct sim_call *call)
{
    static const char *const kinds[] = {"say", "echo", "upload", "download"};

    sim_tell(&call->world->net,
             "%s: call %d, %s, %d of %u bytes, %d of %u back, behaviour %d, within %.3f ms",
             call->client->machine->name, index_of(call), kinds[call->kind], call->n_requests,
             call->request_bytes, call->n_replies, call->reply_bytes, (int)call->behaviour,
             (double)call->deadline_ns / 1e6);
}

void sim_client_call(struct sim_call *call)
{
    struct sim_world *world = call->world;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    uint8_t bytes[8];
    struct bow_metadata_entry entry = {"number-bin", sim_told_number(call, bytes)};
    struct bow_metadata metadata = {&entry, 1};

    if (call->client->is_freed) {
        return;
    }
    options.timeout_ns = call->deadline_ns;
    options.wait_for_ready = call->waits_for_ready;
    options.metadata = call->kind != SIM_SAY || call->has_metadata ? &metadata : NULL;
    tell_start(call);
    call->started_ns = sim_node_now(&call->client->machine->node);
    call->deadline_ns += call->started_ns;
    options.parent = call->parent;
    if (call->parent != NULL && bow_call_deadline(call->parent) < call->deadline_ns) {
        call->deadline_ns = bow_call_deadline(call->parent);
    }
    int rc = call->kind == SIM_SAY ? start_unary(call, &options) : sim_client_open(call, &options);
    if (rc < 0) {
        if (rc != -ENOMEM || !sim_is_short_of_memory(call)) {
            sim_violate(world, "call %d was refused: %d", index_of(call), rc);
        }
        return;
    }
    sim_verdict_start(call);
    if (call->kind != SIM_SAY) {
        sim_client_send(call);
    }
    sim_machine_wake(call->client->machine);
}

void sim_client_cancel(struct sim_call *call)
{
    if (!call->is_started || call->client->is_freed || (call->kind != SIM_SAY && call->is_done) ||
        (call->set != NULL && call->set->set == NULL)) {
        return;
    }
    sim_tell(&call->world->net, "%s: call %d is cancelled", call->client->machine->name,
             index_of(call));
    call->is_cancelled = true;
    if (call->kind != SIM_SAY) {
        bow_stream_cancel(call->stream);
    } else if (call->set != NULL) {
        sim_set_cancel(call->set);
    } else {
        bow_client_cancel(call->client->client, call->id);
    }
    sim_machine_wake(call->client->machine);
}

void sim_client_free(struct sim_client *client)
{
    if (client->is_freed) {
        return;
    }
    sim_tell(&client->machine->world->net, "%s is freed", client->machine->name);
    client->is_freed = true;
    bow_client_free(client->client);
    sim_machine_wake(client->machine);
}
