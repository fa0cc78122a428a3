/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A server with a ceiling, in a process that a container holds to about as much: whatever kinds of
 * load come one after the other, what is resident stays near the ceiling, and goes when they end.
 *
 *     ceiling_test PROTOCOL
 */

#include "hostile.h"
#include <bowline/call.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MIB ((size_t)1 << 20)
#define MAX_BYTES (96 * MIB)
#define SLACK_BYTES (16 * MIB)
#define N_PEERS 40u
#define N_STREAMS 64u
#define N_SMALL 900u
#define N_CONNECTIONS 1500u
#define STALL_MS 2000
#define PATIENCE_NS (10000 * LAB_MS)

static bool http2;
static struct hostile_bytes unit;
static struct hostile peers[N_CONNECTIONS];

struct world {
    struct lab lab;
    size_t start;    /* resident bytes, before */
    size_t most;     /* of them, under this load */
    size_t most_use; /* of the context's */
};

static void look(struct world *world)
{
    size_t resident = lab_rss_bytes();
    size_t use = bow_context_bytes(world->lab.context);

    world->most = resident > world->most ? resident : world->most;
    world->most_use = use > world->most_use ? use : world->most_use;
}

static void echo(struct bow_call *call, const Lab__Blob *request, void *user)
{
    Lab__Blob reply = LAB__BLOB__INIT;

    (void)user;
    reply.body.data = bow_call_alloc(call, request->reply_bytes + 1);
    if (reply.body.data == NULL) {
        (void)bow_call_fail(call, BOW_RESOURCE_EXHAUSTED, "no memory for the reply");
        return;
    }
    reply.id = request->id;
    reply.body.len = request->reply_bytes;
    memset(reply.body.data, 'x', reply.body.len);
    lab__lab__echo__reply(call, &reply);
}

/* What is said waits to be read. */
static void chat(struct lab__lab__chat__call call, void *user)
{
    static const struct lab__lab__chat__call_events events = {0};

    (void)lab__lab__chat__listen(call, &events, user);
    bow_call_pause(call.call);
}

static void begin(struct world *world)
{
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_server_options options = BOW_SERVER_OPTIONS_INIT;
    struct lab__lab__handlers handlers = {.echo = echo, .chat = chat};

    memset(world, 0, sizeof(*world));
    context_options.max_bytes = MAX_BYTES;
    assert_int_equal(bow_context_new(&context_options, &world->lab.context), 0);
    options.context = world->lab.context;
    options.listen = "127.0.0.1:0";
    options.workers = 1;
    options.grace_ns = LAB_MS;
    options.max_bytes_in_flight = 2 * MAX_BYTES;
    assert_int_equal(bow_server_new(&options, &world->lab.server), 0);
    assert_int_equal(lab__lab__serve(world->lab.server, &handlers, world), 0);
    assert_int_equal(bow_server_start(world->lab.server), 0);
    world->lab.port = bow_server_port(world->lab.server);
    snprintf(world->lab.target, sizeof(world->lab.target), "%s127.0.0.1:%u", http2 ? "grpc:" : "",
             world->lab.port);
}

static void put_varint(struct hostile_bytes *to, uint32_t value)
{
    for (; value > 0x7f; value >>= 7) {
        hostile_put_u8(to, (uint8_t)(value | 0x80));
    }
    hostile_put_u8(to, (uint8_t)value);
}

static void put_message(struct hostile_bytes *to, uint32_t stream, const struct hostile_bytes *text,
                        bool is_last)
{
    if (!http2) {
        hostile_native_header(to, (uint32_t)text->n, 3, is_last ? 9 : 8, stream);
    } else {
        hostile_http2_header(to, (uint32_t)(5 + text->n), 0, is_last, stream);
        hostile_put_u8(to, 0);
        hostile_put_u32(to, (uint32_t)text->n);
    }
    hostile_put(to, text->data, text->n);
}

static void put_open(struct hostile_bytes *to, uint32_t stream, const char *path)
{
    size_t len = strlen(path);

    if (http2) {
        hostile_http2_request(to, stream, path);
        return;
    }
    hostile_native_header(to, (uint32_t)(3 + len), 1, 0, stream);
    hostile_put_u8(to, (uint8_t)(len + 2));
    hostile_put_u8(to, 0x12);
    hostile_put_u8(to, (uint8_t)len);
    hostile_put_text(to, path);
}

static void open_peer(struct world *world, struct hostile *peer)
{
    hostile_connect(peer, world->lab.port);
    peer->never_reads = true;
    free(peer->answer); /* this process has the server's memory */
    peer->answer = NULL;
    unit.n = 0;
    http2 ? hostile_http2_opening(&unit) : hostile_native_opening(&unit);
}

static void send_unit(struct world *world, struct hostile *peer)
{
    (void)hostile_send(peer, &unit, STALL_MS);
    unit.n = 0;
    look(world);
}

static void say_small(struct world *world)
{
    static struct hostile_bytes text;

    text.n = 0;
    hostile_put_u8(&text, 0x08);
    hostile_put_u8(&text, 1);
    for (unsigned i = 0; i < N_PEERS; i++) {
        open_peer(world, &peers[i]);
        for (uint32_t k = 0; k < N_STREAMS && !peers[i].closed; k++) {
            put_open(&unit, 2 * k + 1, "/lab.Lab/Chat");
            for (unsigned n = 0; n < N_SMALL; n++) {
                put_message(&unit, 2 * k + 1, &text, false);
            }
            send_unit(world, &peers[i]);
        }
    }
}

static void ask(struct world *world, unsigned n_peers, uint32_t n_calls, uint32_t reply_bytes)
{
    static struct hostile_bytes text;

    text.n = 0;
    hostile_put_u8(&text, 0x18);
    put_varint(&text, reply_bytes);
    for (unsigned i = 0; i < n_peers; i++) {
        open_peer(world, &peers[i]);
        for (uint32_t k = 0; k < n_calls; k++) {
            put_open(&unit, 2 * k + 1, "/lab.Lab/Echo");
            put_message(&unit, 2 * k + 1, &text, true);
        }
        send_unit(world, &peers[i]);
    }
}

static void ask_for_middle(struct world *world)
{
    ask(world, N_PEERS, N_STREAMS, 30000);
}

static void ask_for_large(struct world *world)
{
    ask(world, N_PEERS, 2, 3 * MIB);
}

static void connect_many(struct world *world)
{
    ask(world, N_CONNECTIONS, 1, 10);
}

/* Until so much is in use, and for a moment more, for what is still under way. */
static void settle(struct world *world, size_t least_use)
{
    uint64_t end_ns = lab_now_ns() + PATIENCE_NS;

    while (world->most_use < least_use && lab_now_ns() < end_ns) {
        look(world);
        sched_yield();
    }
    for (end_ns = lab_now_ns() + 300 * LAB_MS; lab_now_ns() < end_ns; sched_yield()) {
        look(world);
    }
}

static void hold(struct world *world, const char *name, void (*load)(struct world *world),
                 unsigned n_peers, size_t least_use)
{
    size_t before = bow_context_bytes(world->lab.context);

    world->most = 0;
    world->most_use = 0;
    load(world);
    settle(world, least_use);
    for (unsigned i = 0; i < n_peers; i++) {
        hostile_close(&peers[i]);
    }
    uint64_t end_ns = lab_now_ns() + PATIENCE_NS;
    while (bow_context_bytes(world->lab.context) > before + 4 * MIB && lab_now_ns() < end_ns) {
        look(world);
        sched_yield();
    }
    print_message("%s: %zu KiB in use, %zu KiB resident, %zu KiB at the start\n", name,
                  world->most_use >> 10, world->most >> 10, world->start >> 10);
    assert_true(world->most_use >= least_use);
    if (!lab_is_instrumented()) {
        assert_in_range(world->most, 0, world->start + MAX_BYTES / 10 * 13 + SLACK_BYTES);
    }
}

static void wait_until_small(struct world *world)
{
    uint64_t began_ns = lab_now_ns();

    if (lab_is_instrumented()) {
        return;
    }
    while (lab_rss_bytes() > world->start + SLACK_BYTES) {
        assert_true(lab_now_ns() < began_ns + PATIENCE_NS);
        sched_yield();
    }
    print_message("idle after %llu ms: %zu KiB resident, %zu KiB in use\n",
                  (unsigned long long)((lab_now_ns() - began_ns) / LAB_MS), lab_rss_bytes() >> 10,
                  bow_context_bytes(world->lab.context) >> 10);
}

static void test_ceiling_f45_f43_holds_for_the_process_whatever_comes(void **state)
{
    static struct world world;
    (void)state;

    begin(&world);
    struct bow_client *neighbour = hostile_neighbour(&world.lab, http2 ? "grpc:" : "");
    hostile_neighbour_works(neighbour, "before");
    world.start = lab_rss_bytes();
    hold(&world, "small messages", say_small, N_PEERS, MAX_BYTES / 2);
    hold(&world, "unread replies", ask_for_middle, N_PEERS, MAX_BYTES / 4);
    hold(&world, "large messages", ask_for_large, N_PEERS, MAX_BYTES / 2);
    hold(&world, "connections", connect_many, N_CONNECTIONS, MIB);
    wait_until_small(&world);
    hostile_neighbour_works(neighbour, "after");
    bow_client_free(neighbour);
    lab_stop(&world.lab);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ceiling_f45_f43_holds_for_the_process_whatever_comes),
    };

    http2 = argc > 1 && strcmp(argv[1], "grpc") == 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
