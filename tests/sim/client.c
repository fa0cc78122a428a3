/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Simulated clients: calls, and whether the way one ended is a way it may end.
 */

#include "world.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

/* A turn takes a little virtual time, and a loop may have several before the timer's. */
#define LATE_NS (5 * SIM_MS)

void sim_client_start(struct sim_client *client)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    char target[48];

    snprintf(target, sizeof(target), "%s127.0.0.1:%u", client->is_grpc ? "grpc:" : "",
             client->server->port);
    options.context = client->machine.context;
    options.target = target;
    options.loop = client->machine.loop;
    options.backoff_min_ns = 10 * SIM_MS;
    options.backoff_max_ns = 200 * SIM_MS;
    options.connect_timeout_ns = 300 * SIM_MS;
    options.heartbeat_ns = 300 * SIM_MS;
    options.heartbeat_timeout_ns = 200 * SIM_MS;
    if (bow_client_new(&options, &client->client) < 0) {
        sim_violate(client->machine.world, "a client cannot be made");
    }
    sim_tell(&client->machine.world->net, "%s calls %s", client->machine.name, target);
}

bool sim_call_is_short_of_memory(const struct sim_call *call)
{
    uint64_t since = call->started_ns - (call->started_ns > SIM_S ? SIM_S : 0);

    return call->client->machine.no_memory_until_ns > since ||
           call->client->server->machine.no_memory_until_ns > since;
}

static void check_reply(struct sim_call *call, const Calls__Reply *reply)
{
    struct sim_world *world = call->world;

    if (reply->number != call->number || reply->payload.len != call->reply_bytes) {
        sim_violate(world, "call %" PRIu64 " got the reply of %" PRIu64 " (%zu bytes)",
                    call->number, reply->number, reply->payload.len);
        return;
    }
    for (size_t i = 0; i < reply->payload.len; i += 97) {
        if (reply->payload.data[i] != sim_payload_byte(call->number)) {
            sim_violate(world, "call %" PRIu64 ": byte %zu of the reply is not its own",
                        call->number, i);
            return;
        }
    }
    if (call->behaviour == SIM_FAIL || call->behaviour == SIM_FAIL_LATE) {
        sim_violate(world, "call %" PRIu64 " was failed and succeeded", call->number);
    }
    if (call->behaviour == SIM_ANSWER_ON_CANCEL &&
        !sim_server_had_trouble(call->client->server, call->started_ns, world->net.now_ns)) {
        sim_violate(world, "call %" PRIu64 " was never answered and succeeded", call->number);
    }
}

static bool may_end_with(const struct sim_call *call, enum bow_code code)
{
    uint64_t now = call->world->net.now_ns;

    switch (code) {
    case BOW_OK:
        return true;
    case BOW_ABORTED:
        return call->behaviour == SIM_FAIL || call->behaviour == SIM_FAIL_LATE ||
               sim_server_had_trouble(call->client->server, call->started_ns, now);
    case BOW_CANCELLED:
        return call->is_cancelled || call->client->is_freed;
    case BOW_DEADLINE_EXCEEDED:
        return now >= call->deadline_ns;
    case BOW_UNAVAILABLE:
        return sim_server_had_trouble(call->client->server, call->started_ns, now) ||
               sim_call_is_short_of_memory(call) || call->client->server->takes_few ||
               call->may_find_dead;
    case BOW_RESOURCE_EXHAUSTED:
        return sim_call_is_short_of_memory(call) || call->client->server->takes_few;
    default:
        return false;
    }
}

static void check_status(struct sim_call *call, const struct bow_status *status)
{
    struct sim_world *world = call->world;
    uint64_t now = world->net.now_ns;

    if (!may_end_with(call, status->code)) {
        sim_violate(world, "call %" PRIu64 " (behaviour %d) cannot end with %s: %s", call->number,
                    (int)call->behaviour, bow_code_name(status->code), status->message);
    }
    if (now > call->deadline_ns && now - call->deadline_ns > LATE_NS) {
        sim_violate(world, "call %" PRIu64 " ended %.3f ms after its deadline, with %s",
                    call->number, (double)(now - call->deadline_ns) / 1e6,
                    bow_code_name(status->code));
    }
}

void sim_call_end(struct sim_call *call, const struct bow_status *status)
{
    struct sim_world *world = call->world;

    sim_tell(&world->net, "%s: call %d ends with %s%s%s", call->client->machine.name,
             (int)(call - world->calls), bow_code_name(status->code),
             status->message[0] != '\0' ? ": " : "", status->message);
    if (call->is_done) {
        sim_violate(world, "call %" PRIu64 " completed twice", call->number);
        return;
    }
    call->is_done = true;
    call->code = status->code;
    world->n_open--;
    world->n_ended[call->code]++;
    check_status(call, status);
}

static void on_done(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    struct sim_call *call = user;
    struct sim_world *world = call->world;

    sim_call_end(call, &result->status);
    if ((reply != NULL) != (result->status.code == BOW_OK)) {
        sim_violate(world, "call %" PRIu64 ": a reply means OK", call->number);
    } else if (reply != NULL) {
        check_reply(call, reply);
    }
}

void sim_client_call(struct sim_call *call)
{
    struct sim_world *world = call->world;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;
    static uint8_t bytes[100000];

    if (call->client->is_freed) {
        return;
    }
    options.timeout_ns = call->deadline_ns;
    call->started_ns = world->net.now_ns;
    call->deadline_ns += world->net.now_ns;
    request.number = call->number;
    request.payload.data = bytes;
    request.payload.len = call->reply_bytes % sizeof(bytes);
    sim_tell(&world->net, "%s: call %d of %zu bytes, %u back, behaviour %d, within %.3f ms",
             call->client->machine.name, (int)(call - world->calls), request.payload.len,
             call->reply_bytes, (int)call->behaviour, (double)options.timeout_ns / 1e6);
    int rc =
        calls__echo__say__start(call->client->client, &request, &options, on_done, call, &call->id);
    if (rc < 0) {
        if (rc != -ENOMEM || !sim_call_is_short_of_memory(call)) {
            sim_violate(world, "call %" PRIu64 " was refused: %d", call->number, rc);
        }
        return;
    }
    if (call->is_done) {
        sim_violate(world, "call %" PRIu64 " completed inside its start", call->number);
    }
    call->is_started = true;
    world->n_open++;
    sim_machine_wake(&call->client->machine);
}

void sim_client_cancel(struct sim_call *call)
{
    if (!call->is_started || call->client->is_freed || (call->is_stream && call->is_done)) {
        return;
    }
    sim_tell(&call->world->net, "%s: call %d is cancelled", call->client->machine.name,
             (int)(call - call->world->calls));
    call->is_cancelled = true;
    if (call->is_stream) {
        sim_client_cancel_stream(call);
    } else {
        bow_client_cancel(call->client->client, call->id);
    }
    sim_machine_wake(&call->client->machine);
}

void sim_client_free(struct sim_client *client)
{
    if (client->is_freed) {
        return;
    }
    sim_tell(&client->machine.world->net, "%s is freed", client->machine.name);
    client->is_freed = true;
    bow_client_free(client->client);
    sim_machine_wake(&client->machine);
}
