/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_SIM_WORLD_H
#define BOWLINE_TESTS_SIM_WORLD_H

/*
 * A whole system under simulation: servers, clients, calls, and a plan of what goes
 * wrong when. A seed decides everything; sim_run() returns what was violated.
 *
 *     sim_test.c       which seeds
 *     world.c          the run: whose turn it is, time, the end
 *     machine.c        a context and a loop each, and memory that may run out
 *     plan.c           who is there, and what happens when
 *     fault.c          what goes wrong
 *     server.c         servers and their unary handler; stopped, killed, restarted
 *     server_stream.c  their streaming handlers
 *     client.c         clients and unary calls
 *     names.c          names whose addresses change
 *     client_stream.c  streaming calls
 *     call_set.c       sets of calls
 *     relay.c          handlers that call on
 *     told.c           what travels beside messages
 *     call.h           a call, and verdict.c: whether it may be served, and may end, so
 *     rest.c           what must hold at any time, and when all is at rest
 *     net*.c           the network and the system tables
 *
 * Every call knows both of its sides, so that what one side is told can be held against
 * what the other one did.
 */

#include "call.h"
#include "net.h"

#include <bowline/call_set.h>
#include <bowline/client.h>
#include <bowline/context.h>
#include <bowline/loop.h>
#include <bowline/resolver.h>
#include <bowline/server.h>
#include <bowline/stream.h>
#include <bowline/timer.h>

#define SIM_MAX_SERVERS 3
#define SIM_MAX_CLIENTS 4
#define SIM_MAX_CALLS 400
#define SIM_MAX_SETS 64
#define SIM_MAX_IN_SET 8
#define SIM_MAX_ACTIONS 1200
#define SIM_MAX_HELD 512
#define SIM_MAX_SLEEPERS 64
#define SIM_MAX_ENDS 8

struct sim_world;
struct sim_served;

/** A machine with a loop of its own and memory that may run out. */
struct sim_machine {
    struct sim_world *world;
    struct sim_node node;
    struct bow_allocator allocator;
    size_t n_bytes;
    uint64_t no_memory_until_ns; /* allocations fail by chance */
    uint64_t memory_failed_ns;   /* when one last did; 0: never */
    struct bow_context *context;
    struct bow_loop *loop;
    char name[16];
};

enum sim_server_state {
    SIM_SERVER_UP,
    SIM_SERVER_STOPPING,
    SIM_SERVER_DOWN,
};

struct sim_held {
    struct bow_call *call;
    struct sim_call *of;
    uint64_t answer_ns; /* BOW_NEVER: when it is cancelled */
};

/** The name of a client's servers, and which of them it has now. */
struct sim_names {
    struct bow_resolver table;
    const struct bow_resolver *tables[1];
    struct bow_resolver_watch *watch; /* NULL: none */
    struct bow_timer timer;           /* when something is said next */
    bool is_told;                     /* something was said */
    bool has[SIM_MAX_SERVERS];
    uint64_t changed_ns[SIM_MAX_SERVERS]; /* when that changed last; 0: never */
};

struct sim_client {
    struct sim_machine own;      /* of one that is not a server's */
    struct sim_machine *machine; /* its own, or the server's */
    struct sim_server *of;       /* whose handlers call with it, or NULL */
    struct bow_client *client;
    struct sim_server *servers[SIM_MAX_SERVERS]; /* that it calls: one, or a list */
    int n_servers;
    bool is_named; /* they are what a name has, which changes */
    struct sim_names names;
    bool is_grpc;
    bool compresses;
    bool asks_for_health;
    uint64_t idle_ns;
    uint32_t max_connections; /* to one address; 0: 1, of a server's own client */
    bool is_freed;
    int n_open;
    uint64_t n_started;
    uint64_t ends_ns[SIM_MAX_ENDS]; /* of its last calls */
    int next_end;
    uint64_t crowded_ns; /* when it last had more calls than a server takes that takes few */
};

struct sim_server {
    struct sim_machine machine;
    struct bow_server *server;
    enum sim_server_state state;
    uint16_t port;
    uint64_t restart_ns; /* DOWN: when it comes back */
    uint64_t thaw_ns;    /* frozen until then */
    uint64_t grace_ns;
    bool is_killed;
    bool takes_few; /* max_calls is so low that it refuses some */
    bool compresses;
    uint64_t max_age_ns; /* of connections, which costs no call; 0: none */
    uint64_t idle_ns;
    struct sim_client relay; /* of handlers that call on, while it is up */
    struct sim_held held[SIM_MAX_HELD];
    int n_held;
    uint64_t held_due_ns; /* no later than the first of them is answered; BOW_NEVER: none is */

    /* Until when calls may suffer from what has happened; one that began later may not. */
    uint64_t lost_until_ns;   /* lose their connection */
    uint64_t closed_until_ns; /* find none that takes them */
    uint64_t ill_until_ns;    /* of who asks, are not sent: or until that client has heard of it */
    uint64_t cut_from_ns;     /* STOPPING: when the grace ends */
    uint64_t cut_until_ns;    /* were cut off by the end of a grace */

    uint64_t ill_from_ns; /* since when it says that it does not serve; BOW_NEVER: it does */
    uint64_t well_ns;     /* when it says so again */

    /* Since it started. */
    uint64_t n_entered;
    uint64_t n_answered[17]; /* by code, where the answer was taken */
};

/** Calls of one client, one after the other in the plan, that are done together. */
struct sim_set {
    struct sim_client *client;
    struct sim_call *calls;
    int n_calls;
    bool cancels_rest;
    struct bow_call_set *set; /* NULL: not started, or done */
    struct sim_call *started[SIM_MAX_IN_SET];
    uint32_t n_started;
    uint64_t latest_ns; /* of their deadlines */
};

enum sim_action_kind {
    SIM_START_CALL,
    SIM_START_SET,
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
    SIM_ILL,
    SIM_N_ACTIONS,
};

struct sim_action {
    uint64_t at_ns;
    enum sim_action_kind kind;
    int which; /* call, client or server */
    uint64_t for_ns;
};

/** One side of a stream that does not want to read for a while. */
struct sim_sleeper {
    uint64_t until_ns;
    struct sim_call *call;
    bool is_server;
};

struct sim_world {
    struct sim_net net;
    struct sim_server servers[SIM_MAX_SERVERS];
    int n_servers;
    struct sim_client clients[SIM_MAX_CLIENTS];
    int n_clients;
    struct sim_call calls[SIM_MAX_CALLS];
    int n_calls;
    struct sim_set sets[SIM_MAX_SETS];
    int n_sets;
    int n_open;                                 /* started and not done */
    struct sim_action actions[SIM_MAX_ACTIONS]; /* by time */
    int n_actions;
    int next_action;
    struct sim_sleeper sleepers[SIM_MAX_SLEEPERS];
    int n_sleepers;
    uint64_t last_trouble_ns;
    uint64_t look_ns; /* when cancellations are looked after next */
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
/** Have one side of a stream resume later. Returns false when too many sleep. */
bool sim_sleep(struct sim_call *call, bool is_server, uint64_t for_ns);

/* machine.c */

void sim_machine_init(struct sim_world *world, struct sim_machine *machine, const char *name);
/** After acting on a machine's objects from outside its turns. */
void sim_machine_wake(struct sim_machine *machine);
/** One turn of its loop. */
void sim_machine_turn(struct sim_machine *machine);
/** When it next has something to do. */
uint64_t sim_machine_due(struct sim_machine *machine);
/** The end: nothing may be left. */
void sim_machine_fini(struct sim_machine *machine);

/* plan.c */

void sim_plan(struct sim_world *world);

/* fault.c */

/** Do what is planned for now. */
void sim_act(struct sim_world *world, const struct sim_action *action);

/* server.c */

void sim_server_start(struct sim_server *server);
/** What time asks of it: late answers, thawing, coming back. */
void sim_server_on_time(struct sim_server *server);
uint64_t sim_server_due(const struct sim_server *server);
/** Answer all that is held, stop. Drive its loop until it is down. */
void sim_server_end(struct sim_server *server);
void sim_server_stop(struct sim_server *server);
/** Say that it does not serve, for so long. */
void sim_server_fall_ill(struct sim_server *server, uint64_t for_ns);
/** The answer to a call was taken (0), or not. */
void sim_server_answered(struct sim_call *call, enum bow_code code, int rc);
/** The answer itself: with the reply, or as asked with an error. */
void sim_server_answer(struct bow_call *call, struct sim_call *of);

/* server_stream.c */

void sim_server_echo(struct sim__calls__echo__call call, void *user);
void sim_server_upload(struct sim__calls__upload__call call, void *user);
void sim_server_download(struct sim__calls__download__call call, const Sim__Request *request,
                         void *user);
void sim_server_resume(struct sim_call *call);

/* client.c */

void sim_client_start(struct sim_client *client);
/** Whether it calls that server. */
bool sim_client_has(const struct sim_client *client, const struct sim_server *server);
/** Start a call of any kind. */
void sim_client_call(struct sim_call *call);
void sim_client_cancel(struct sim_call *call);
void sim_client_free(struct sim_client *client);
/** Check a reply against what was asked. */
void sim_client_check_reply(const struct sim_call *call, const Sim__Reply *reply, int number);

/* names.c */

/** Have the client ask for its servers by a name. */
void sim_names_use(struct sim_client *client, struct bow_client_options *options);
/** Whether its name has had not that server since before then. */
bool sim_names_lack(const struct sim_client *client, const struct sim_server *server,
                    uint64_t since_ns);
/** Whether it has it not, or had it not at some time since then. */
bool sim_names_lacked(const struct sim_client *client, const struct sim_server *server,
                      uint64_t since_ns);

/* call_set.c */

void sim_set_start(struct sim_set *set);
/** Add a call of the set. Returns 0, or as bow_call_set_start(). */
int sim_set_add(struct sim_call *call, const Sim__Request *request,
                const struct bow_call_options *options);
/** Of a set that is not done. */
void sim_set_cancel(struct sim_set *set);

/* relay.c */

void sim_relay_start(struct sim_server *server);
/** Returns false while calls are open that were made with it. */
bool sim_relay_stop(struct sim_server *server);
/** A handler that calls on, and answers when it has heard. */
void sim_relay_call(struct sim_server *server, struct bow_call *call, struct sim_call *of);
/** The call of a handler has ended. */
void sim_relay_end(struct sim_call *call);

/* client_stream.c */

/** Returns 0 or as bow_client_open(). */
int sim_client_open(struct sim_call *call, const struct bow_call_options *options);
/** Send what can be. */
void sim_client_send(struct sim_call *call);
void sim_client_resume(struct sim_call *call);

/* rest.c */

/** What holds at any time: windows and bytes within their limits, no credit lost. */
void sim_check_limits(const struct sim_world *world);
/** Of the clients, all calls have ended. */
void sim_check_clients(struct sim_world *world);
/** The same of servers, whom nobody watches: nothing is under way. */
void sim_check_rest(struct sim_world *world);

#endif
