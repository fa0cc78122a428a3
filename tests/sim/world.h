/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_SIM_WORLD_H
#define BOWLINE_TESTS_SIM_WORLD_H

/*
 * A whole system under simulation: servers, clients, calls, and a plan of what goes
 * wrong when. A seed decides everything; sim_run() returns what was violated.
 *
 *     sim_test.c   which seeds
 *     world.c      the run: whose turn it is, time, the end
 *     plan.c       what happens when: calls, cancels, faults
 *     server.c     servers that answer, late, never, or fail; stopped, killed, restarted
 *     client.c     clients, and what a call may end with
 *     stream.c     streaming calls, both sides
 *     net*.c       the network and the system tables
 */

#include "net.h"
#include "protos/echo.bow.h"

#include <bowline/client.h>
#include <bowline/context.h>
#include <bowline/loop.h>
#include <bowline/server.h>

#define SIM_MAX_SERVERS 3
#define SIM_MAX_CLIENTS 4
#define SIM_MAX_CALLS 400
#define SIM_MAX_TROUBLES 32
#define SIM_MAX_ACTIONS 1200
#define SIM_MAX_HELD 512

struct sim_world;

/** A machine with a loop of its own and memory that may run out. */
struct sim_machine {
    struct sim_world *world;
    struct sim_node node;
    struct bow_allocator allocator;
    size_t n_bytes;
    uint64_t no_memory_until_ns; /* allocations fail by chance */
    struct bow_context *context;
    struct bow_loop *loop;
    char name[16];
};

/** From when until when calls to a server may fail through no fault of its own. */
struct sim_trouble {
    uint64_t from_ns;
    uint64_t until_ns;
};

enum sim_server_state {
    SIM_SERVER_UP,
    SIM_SERVER_STOPPING,
    SIM_SERVER_DOWN,
};

struct sim_held {
    struct bow_call *call;
    uint64_t number;
    uint64_t answer_ns; /* BOW_NEVER: when it is cancelled */
};

struct sim_server {
    struct sim_machine machine;
    struct bow_server *server;
    enum sim_server_state state;
    uint16_t port;
    uint64_t restart_ns; /* DOWN: when it comes back */
    uint64_t thaw_ns;    /* frozen until then */
    bool is_killed;
    bool takes_few; /* max_calls is so low that it refuses some */
    struct sim_held held[SIM_MAX_HELD];
    int n_held;
    struct sim_trouble troubles[SIM_MAX_TROUBLES];
    int n_troubles;
};

struct sim_client {
    struct sim_machine machine;
    struct bow_client *client;
    struct sim_server *server; /* that it calls */
    bool is_grpc;
    bool is_freed;
    uint64_t freed_ns;
};

/** What the server does with a call; part of its number. */
enum sim_behaviour {
    SIM_ANSWER = 0,
    SIM_ANSWER_LATE,
    SIM_FAIL,
    SIM_FAIL_LATE,
    SIM_ANSWER_ON_CANCEL,
    SIM_N_BEHAVIOURS,
};

struct sim_call {
    struct sim_world *world;
    struct sim_client *client;
    uint64_t number;
    enum sim_behaviour behaviour;
    uint32_t reply_bytes;
    bool is_started;
    bool is_done;
    bool is_cancelled;
    bool may_find_dead; /* the first call after trouble may find a connection that has died */
    uint64_t id;
    uint64_t started_ns;
    uint64_t deadline_ns;
    enum bow_code code;

    /* Of a stream. */
    bool is_stream;
    bool has_half_closed;
    struct calls__echo__stream__stream stream;
    int n_messages;
    int n_sent;
    int n_received;
};

enum sim_action_kind {
    SIM_START_CALL,
    SIM_CANCEL_CALL,
    SIM_FREE_CLIENT,
    SIM_RESET,
    SIM_STALL,
    SIM_CUT,
    SIM_KILL,
    SIM_FREEZE,
    SIM_DRAIN,
    SIM_NO_FDS,
    SIM_NO_MEMORY,
    SIM_N_ACTIONS,
};

struct sim_action {
    uint64_t at_ns;
    enum sim_action_kind kind;
    int which; /* call, client or server */
    uint64_t for_ns;
};

struct sim_world {
    struct sim_net net;
    struct sim_server servers[SIM_MAX_SERVERS];
    int n_servers;
    struct sim_client clients[SIM_MAX_CLIENTS];
    int n_clients;
    struct sim_call calls[SIM_MAX_CALLS];
    int n_calls;
    int n_open;                                 /* started and not done */
    struct sim_action actions[SIM_MAX_ACTIONS]; /* by time */
    int n_actions;
    int next_action;
    uint64_t last_trouble_ns;
    bool is_ending;
    char violation[256]; /* "" for none */
    uint64_t n_ended[17];
    uint64_t n_turns;
};

/** Run one seed. Returns "" or what was violated, which lives in `world`. */
const char *sim_run(struct sim_world *world, uint64_t seed, bool story);

/* world.c */

void sim_violate(struct sim_world *world, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void sim_machine_init(struct sim_world *world, struct sim_machine *machine, const char *name);
/** After acting on a machine's objects from outside its turns. */
void sim_machine_wake(struct sim_machine *machine);

/* plan.c */

void sim_plan(struct sim_world *world);
void sim_act(struct sim_world *world, const struct sim_action *action);

/* server.c */

void sim_server_start(struct sim_server *server);
/** What time asks of it: late answers, thawing, coming back. */
void sim_server_on_time(struct sim_server *server);
uint64_t sim_server_due(const struct sim_server *server);
void sim_server_trouble(struct sim_server *server, uint64_t for_ns);
bool sim_server_had_trouble(const struct sim_server *server, uint64_t from_ns, uint64_t until_ns);
/** Answer all that is held, stop. Drive its loop until it is down. */
void sim_server_end(struct sim_server *server);
void sim_server_stop(struct sim_server *server);
uint8_t sim_payload_byte(uint64_t number);

/* client.c */

void sim_client_start(struct sim_client *client);
void sim_client_call(struct sim_call *call);
void sim_client_cancel(struct sim_call *call);
void sim_client_free(struct sim_client *client);
/** The call has ended: may it, and so? */
void sim_call_end(struct sim_call *call, const struct bow_status *status);
bool sim_call_is_short_of_memory(const struct sim_call *call);

/* stream.c */

void sim_server_stream(struct calls__echo__stream__call call, void *user);
void sim_client_stream(struct sim_call *call);
void sim_client_cancel_stream(struct sim_call *call);

#endif
