/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Whether a call may be served now, and may end as it does. A handler runs once at most, not
 * after its deadline, and for no call whose client was told that it was not processed. A call
 * ends with an error only through what has happened to it: to its own connection, its own
 * server or its own machine, within its own life. Without that it is answered in time.
 */

#include "world.h"

#include <stdlib.h>
#include <string.h>

/* A turn takes a little virtual time, and a loop may have several before the timer's. */
#define LATE_NS (5 * SIM_MS)
/* So long handlers may work at a time, one after the other. */
#define BUSY_NS (40 * SIM_MS)
/* Beyond the fault itself: what is tried again after a pause, or fails on its way. */
#define AFTERMATH_NS (300 * SIM_MS)
/* After an attempt that failed calls fail at once for that long. */
#define BACK_OFF_NS (20 * SIM_MS)
/* What a call may take that nothing disturbs: a connection, four ways, a late answer; and the
 * slowest path carries that much, with all that its client has under way. */
#define SERVED_NS (400 * SIM_MS)
#define SLOW_BYTES_PER_MS 200
#define MAX_MESSAGE_BYTES 200000
#define PERIOD 4093
#define MAX_HELD_BYTES 60000
/* So many calls at a time a server that takes few does not refuse. */
#define N_FEW 4

static int index_of(const struct sim_call *call)
{
    return (int)(call - call->world->calls);
}

/* Numbers and bytes */

uint64_t sim_number(const struct sim_call *call, int message)
{
    return (uint64_t)(index_of(call) + 1) << 16 | (uint64_t)message;
}

struct sim_call *sim_call_of(struct sim_world *world, uint64_t number)
{
    uint64_t index = number >> 16;

    return index > 0 && index <= (uint64_t)world->n_calls ? &world->calls[index - 1] : NULL;
}

/* What messages are cut out of: each begins elsewhere in it, so that neither bytes of another one
 * nor its own at another place pass for what was sent. Mostly zeros, and again: it packs fast. */
static uint8_t *pattern(uint64_t number)
{
    static uint8_t bytes[MAX_MESSAGE_BYTES + PERIOD];

    if (bytes[0] == 0) {
        for (size_t i = 0; i < sizeof(bytes); i++) {
            bool is_mark = i % PERIOD % 61 == 0;
            bytes[i] =
                is_mark ? (uint8_t)((i % PERIOD + 1) * UINT64_C(0x9E3779B97F4A7C15) >> 56) : 0;
        }
    }
    return bytes + (number * 7 + (number >> 16) * 131) % PERIOD;
}

void sim_fill(uint64_t number, uint32_t n, ProtobufCBinaryData *payload)
{
    payload->data = pattern(number);
    payload->len = n;
}

bool sim_is_filled(uint64_t number, uint32_t n, const ProtobufCBinaryData *payload)
{
    return payload->len == n && (n == 0 || memcmp(payload->data, pattern(number), n) == 0);
}

/* What has happened */

static bool is_since(uint64_t at_ns, uint64_t after_ns, uint64_t since_ns)
{
    return at_ns != 0 && at_ns + after_ns >= since_ns;
}

static bool is_short(const struct sim_machine *machine, uint64_t since_ns)
{
    return is_since(machine->memory_failed_ns, AFTERMATH_NS, since_ns) ||
           is_since(machine->node.fds_failed_ns, AFTERMATH_NS, since_ns);
}

bool sim_is_short_of_memory(const struct sim_call *call)
{
    const struct sim_client *client = call->client;
    bool is_true = is_since(client->machine->memory_failed_ns, AFTERMATH_NS, call->started_ns);

    for (int i = 0; i < client->n_servers; i++) {
        is_true = is_true || is_since(client->servers[i]->machine.memory_failed_ns, AFTERMATH_NS,
                                      call->started_ns);
    }
    return is_true;
}

/* A connection that is not accepted for want of descriptors is lost, too, when nobody answers. */
static bool may_be_lost_by(const struct sim_server *server, const struct sim_call *call)
{
    uint64_t since = call->started_ns;

    return server->lost_until_ns >= since || server->cut_until_ns >= since ||
           (server->state == SIM_SERVER_STOPPING &&
            server->cut_from_ns <= call->world->net.now_ns) ||
           is_short(&server->machine, since);
}

/* Whether what had reached its server may have been lost since. */
static bool may_be_lost(const struct sim_call *call)
{
    const struct sim_client *client = call->client;
    const struct sim_node *node = &client->machine->node;
    bool is_true = node->n_faulty > 0 ||
                   is_since(node->faulty_until_ns, LATE_NS, call->started_ns) ||
                   is_short(client->machine, call->started_ns) || call->may_find_dead;

    is_true = is_true || (client->of != NULL && may_be_lost_by(client->of, call));
    for (int i = 0; i < client->n_servers && !is_true; i++) {
        bool is_its = call->server == NULL || call->server == client->servers[i];
        is_true = is_its && may_be_lost_by(client->servers[i], call);
    }
    return is_true;
}

static uint64_t bytes_of(const struct sim_call *call)
{
    return (uint64_t)call->n_requests * (call->request_bytes + 64u) +
           (uint64_t)call->n_replies * (call->reply_bytes + 64u);
}

/* With all that its client had under way meanwhile. */
static uint64_t service_ns(const struct sim_call *call)
{
    const struct sim_world *world = call->world;
    uint64_t n_bytes = 0;
    uint64_t paused_ns = 0;

    for (int i = 0; i < world->n_calls; i++) {
        const struct sim_call *other = &world->calls[i];
        bool is_beside = other->is_started && other->client == call->client &&
                         (!other->is_done || other->done_ns + SERVED_NS >= call->started_ns);
        n_bytes += is_beside ? bytes_of(other) : 0;
        paused_ns += other == call ? call->paused_ns + 60 * SIM_MS : 0;
    }
    return SERVED_NS + paused_ns + n_bytes / SLOW_BYTES_PER_MS * SIM_MS;
}

/* It is not sent once more: a stream of which messages were sent, or a large request. */
static bool is_sent_once(const struct sim_call *call)
{
    bool is_stream = call->kind == SIM_ECHO || call->kind == SIM_UPLOAD;

    return is_stream ? call->n_sent > 0 : call->request_bytes > MAX_HELD_BYTES;
}

/* Whether the server may have ended two connections for idleness or age while the call was on its
 * way to it, which a path does that is slower than that. */
static bool may_turn_away_twice(const struct sim_server *server, const struct sim_call *call)
{
    uint64_t idle = server->idle_ns > 0 ? server->idle_ns : BOW_NEVER;
    uint64_t age = server->max_age_ns > 0 ? server->max_age_ns / 10 * 9 : BOW_NEVER;

    return call->world->net.now_ns - call->started_ns >= (idle < age ? idle : age);
}

/* What changed a little earlier may still be on its way: an attempt to connect that is a new one's.
 */
static uint64_t before(const struct sim_call *call)
{
    return call->started_ns > AFTERMATH_NS ? call->started_ns - AFTERMATH_NS : 0;
}

/* Whether no server may have taken it. A call that was not run is sent once more: one that ends a
 * connection for its age takes it then, and of a list another one. */
static bool may_find_none(const struct sim_call *call)
{
    const struct sim_client *client = call->client;
    bool is_once = is_sent_once(call);
    int n = is_since(client->machine->node.faulty_until_ns, BACK_OFF_NS, call->started_ns);

    for (int i = 0; i < client->n_servers; i++) {
        const struct sim_server *server = client->servers[i];
        bool ends_some = server->max_age_ns > 0 || server->idle_ns > 0;
        n += sim_names_lacked(client, server, before(call)) || server->state != SIM_SERVER_UP ||
             server->closed_until_ns >= call->started_ns ||
             (client->asks_for_health &&
              is_since(server->ill_until_ns, service_ns(call), call->started_ns)) ||
             (is_once && ends_some) ||
             ((client->n_servers > 1 || client->asks_for_health) &&
              may_turn_away_twice(server, call));
    }
    return n >= (is_once || client->n_servers < 2 ? 1 : 2);
}

static bool is_any_few(const struct sim_client *client)
{
    for (int i = 0; i < client->n_servers; i++) {
        if (client->servers[i]->takes_few) {
            return true;
        }
    }
    return false;
}

static bool may_be_crowded(const struct sim_call *call)
{
    return is_any_few(call->client) && is_since(call->client->crowded_ns, 0, call->started_ns);
}

/* Whether its time-out was long enough, and nothing kept it from being answered. */
static bool is_neglected(const struct sim_call *call)
{
    bool is_answered = call->behaviour != SIM_ANSWER_ON_CANCEL && call->behaviour != SIM_RELAY;

    return is_answered && !may_be_lost(call) && !is_any_few(call->client) &&
           !(call->waits_for_ready && may_find_none(call)) &&
           call->deadline_ns > call->started_ns + service_ns(call);
}

/* The start */

static void count_crowd(struct sim_client *client, uint64_t now_ns)
{
    int n = client->n_open;

    for (int i = 0; i < SIM_MAX_ENDS; i++) {
        n += is_since(client->ends_ns[i], AFTERMATH_NS, now_ns);
    }
    client->crowded_ns = n > N_FEW ? now_ns : client->crowded_ns;
}

void sim_verdict_start(struct sim_call *call)
{
    struct sim_client *client = call->client;

    if (call->is_done) {
        sim_violate(call->world, "call %d completed inside its start", index_of(call));
    }
    call->is_started = true;
    call->world->n_open++;
    client->n_open++;
    client->n_started++;
    count_crowd(client, call->started_ns);
}

/* The handler */

static void check_deadline(const struct sim_server *server, const struct bow_call *call,
                           const struct sim_call *of)
{
    uint64_t now = sim_node_now(&server->machine.node);
    uint64_t deadline = bow_call_deadline(call);

    if (deadline <= now) {
        sim_violate(of->world, "call %d is run %.3f ms after its deadline", index_of(of),
                    (double)(now - deadline) / 1e6);
    }
    /* What is left was measured when it was sent, and is rounded up. */
    if (deadline + SIM_US < of->deadline_ns ||
        deadline > of->deadline_ns + (now - of->started_ns) + SIM_MS) {
        sim_violate(of->world, "call %d: its server keeps a deadline of %.3f ms more than it has",
                    index_of(of), (double)(int64_t)(deadline - of->deadline_ns) / 1e6);
    }
}

void sim_verdict_enter(struct sim_server *server, struct bow_call *call, struct sim_call *of)
{
    struct sim_world *world = server->machine.world;

    server->n_entered++;
    if (of == NULL || !of->is_started || !sim_client_has(of->client, server)) {
        sim_violate(world, "%s runs a call that nobody made", server->machine.name);
        return;
    }
    sim_tell(&world->net, "%s runs call %d", server->machine.name, index_of(of));
    of->server = server;
    of->entered_ns = world->net.now_ns;
    if (++of->n_runs > 1) {
        sim_violate(world, "call %d is run a second time", index_of(of));
    }
    if (of->is_refused) {
        sim_violate(world, "call %d is run, and its client was told that it is not", index_of(of));
    }
    if (bow_call_is_cancelled(call)) {
        sim_violate(world, "call %d is run, and it was cancelled before", index_of(of));
    }
    if (of->client->asks_for_health && server->ill_from_ns < BOW_NEVER - service_ns(of) &&
        server->ill_from_ns + service_ns(of) < of->started_ns && !may_be_lost(of)) {
        sim_violate(world, "call %d is sent to %s, which had said that it does not serve",
                    index_of(of), server->machine.name);
    }
    if (sim_names_lack(of->client, server, of->started_ns - LATE_NS) &&
        !sim_is_short_of_memory(of) && of->client->machine->memory_failed_ns == 0) {
        sim_violate(world, "call %d is sent to %s, which its name has no more", index_of(of),
                    server->machine.name);
    }
    check_deadline(server, call, of);
    /* Some handlers take their time. */
    if (sim_chance(&world->net, 16)) {
        sim_node_work(&server->machine.node, sim_below(&world->net, 3 * SIM_MS));
    }
}

/* The end */

static bool is_failed(const struct sim_call *call)
{
    return call->behaviour == SIM_FAIL || call->behaviour == SIM_FAIL_LATE;
}

/* Another one of its set has failed by itself, which ends the rest. */
static bool is_rest_of_set(const struct sim_call *call)
{
    const struct sim_set *set = call->set;
    bool is_true = false;

    for (uint32_t i = 0; set != NULL && set->cancels_rest && i < set->n_started; i++) {
        enum bow_code code = set->started[i]->code;
        is_true = is_true || (code != BOW_OK && code != BOW_CANCELLED);
    }
    return is_true;
}

static bool may_end_with(const struct sim_call *call, enum bow_code code)
{
    bool is_run = call->n_runs > 0;

    switch (code) {
    case BOW_OK:
        return is_run && !is_failed(call) && call->answered_ns != 0;
    case BOW_ABORTED:
        return is_run && (is_failed(call) || call->behaviour == SIM_RELAY) &&
               call->answered_ns != 0;
    case BOW_CANCELLED:
        return call->is_cancelled || call->client->is_freed || is_rest_of_set(call) ||
               (call->parent != NULL && bow_call_is_cancelled(call->parent));
    case BOW_DEADLINE_EXCEEDED:
        return sim_node_now(&call->client->machine->node) >= call->deadline_ns &&
               !is_neglected(call);
    case BOW_UNAVAILABLE:
        return may_be_lost(call) || (!is_run && (may_find_none(call) || may_be_crowded(call)));
    case BOW_RESOURCE_EXHAUSTED:
        return sim_is_short_of_memory(call) || (!is_run && may_be_crowded(call));
    default:
        return false;
    }
}

/* How long after its deadline it may end: later where handlers work meanwhile, and as long as it
 * takes when that server was stopped; one that its server has ended waits for its reader. */
static uint64_t late_ns(const struct sim_call *call)
{
    const struct sim_server *of = call->client->of;

    if (of == NULL) {
        return LATE_NS + call->paused_ns;
    }
    return of->lost_until_ns >= call->started_ns ? BOW_NEVER / 2 : BUSY_NS;
}

static void check_status(struct sim_call *call, const struct bow_status *status)
{
    struct sim_world *world = call->world;
    uint64_t now = world->net.now_ns;
    /* Of a set all end together. */
    uint64_t deadline_ns = call->set != NULL ? call->set->latest_ns : call->deadline_ns;

    if (!may_end_with(call, status->code)) {
        sim_violate(world, "call %d (behaviour %d, run %d times) cannot end with %s: %s",
                    index_of(call), (int)call->behaviour, call->n_runs, bow_code_name(status->code),
                    status->message);
    }
    if (status->not_processed && call->n_runs > 0) {
        sim_violate(world, "call %d was run and is said to be not processed", index_of(call));
    }
    if (now > deadline_ns + late_ns(call)) {
        sim_violate(world, "call %d ended %.3f ms after its deadline, with %s", index_of(call),
                    (double)(now - deadline_ns) / 1e6, bow_code_name(status->code));
    }
}

void sim_verdict_end(struct sim_call *call, const struct bow_status *status)
{
    struct sim_world *world = call->world;
    struct sim_client *client = call->client;

    sim_tell(&world->net, "%s: call %d ends with %s%s%s", client->machine->name, index_of(call),
             bow_code_name(status->code), status->message[0] != '\0' ? ": " : "", status->message);
    if (call->is_done) {
        sim_violate(world, "call %d completed twice", index_of(call));
        return;
    }
    call->done_ns = world->net.now_ns;
    call->code = status->code;
    call->is_refused = status->not_processed;
    world->n_open--;
    world->n_ended[call->code]++;
    check_status(call, status);
    call->is_done = true;
    client->n_open--;
    client->ends_ns[client->next_end++ % SIM_MAX_ENDS] = call->done_ns;
}

/* When its failure has come to the client at the latest; BOW_NEVER when it has not failed so. */
static uint64_t failed_by(const struct sim_call *call)
{
    bool is_sure = call->code == BOW_ABORTED && !may_be_lost(call);

    return is_sure ? call->answered_ns + service_ns(call) : BOW_NEVER;
}

void sim_verdict_set(const struct sim_set *set)
{
    uint64_t failed_ns = BOW_NEVER;

    for (uint32_t i = 0; set->cancels_rest && i < set->n_started; i++) {
        uint64_t by_ns = failed_by(set->started[i]);
        failed_ns = by_ns < failed_ns ? by_ns : failed_ns;
    }
    for (uint32_t i = 0; i < set->n_started; i++) {
        const struct sim_call *call = set->started[i];
        if (call->code == BOW_DEADLINE_EXCEEDED && call->deadline_ns > failed_ns) {
            sim_violate(call->world, "call %d went on when another of its set had failed",
                        index_of(call));
        }
    }
}

void sim_verdict_look(struct sim_world *world)
{
    for (int i = 0; i < world->n_calls; i++) {
        const struct sim_call *call = &world->calls[i];
        bool is_told = call->n_runs == 0 || call->is_served;
        /* That nobody waits any more travels behind all that its client has sent. */
        uint64_t since_ns = call->done_ns > call->entered_ns ? call->done_ns : call->entered_ns;
        if (call->is_done && !is_told && !may_be_lost(call) &&
            world->net.now_ns > since_ns + service_ns(call)) {
            sim_violate(world, "call %d ended with %s, and its handler has not heard of it", i,
                        bow_code_name(call->code));
        }
    }
}
