/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_SIM_CALL_H
#define BOWLINE_TESTS_SIM_CALL_H

/*
 * A call under simulation: what is planned for it, what its client has seen of it, and what its
 * server has. The verdict holds the one against the other.
 */

#include "protos/sim.bow.h"

#include <bowline/call.h>
#include <bowline/result.h>
#include <bowline/stream.h>

struct sim_client;
struct sim_served;
struct sim_server;
struct sim_set;
struct sim_world;

enum sim_kind {
    SIM_SAY,
    SIM_ECHO,
    SIM_UPLOAD,
    SIM_DOWNLOAD,
};

/** What the server does with a call. */
enum sim_behaviour {
    SIM_ANSWER = 0,
    SIM_ANSWER_LATE,
    SIM_FAIL,
    SIM_FAIL_LATE,
    SIM_ANSWER_ON_CANCEL,
    SIM_RELAY, /* as a call ends that it makes */
    SIM_N_BEHAVIOURS,
    SIM_END_EARLY, /* a stream: with OK, after half of its messages */
};

struct sim_call {
    struct sim_world *world;
    struct sim_client *client;
    enum sim_kind kind;
    enum sim_behaviour behaviour;
    uint32_t request_bytes; /* of each message */
    uint32_t reply_bytes;
    int n_requests; /* messages in all */
    int n_replies;
    bool has_metadata;
    struct bow_call *parent; /* of a handler that calls on, or NULL */
    struct sim_call *parent_of;
    struct sim_set *set; /* that it belongs to, or NULL */
    bool waits_for_ready;
    bool may_find_dead; /* the first call after trouble may find a connection that has died */

    /* What its client sees. */
    bool is_started;
    bool is_done;
    bool is_refused; /* its client was told that it was not processed */
    bool is_cancelled;
    uint64_t id;
    uint64_t started_ns;
    uint64_t deadline_ns; /* before the start: the time-out */
    uint64_t done_ns;
    enum bow_code code;
    struct bow_stream *stream;
    bool has_half_closed;
    bool is_paused;
    int pause_at;       /* after that many messages; -1: never */
    uint64_t paused_ns; /* in all */
    int n_sent;
    int n_received;

    /* What its server sees. */
    struct sim_server *server; /* that runs it */
    int n_runs;                /* of its handler */
    bool is_served;            /* the handler is through with it */
    bool has_said;             /* metadata of its own */
    uint64_t entered_ns;       /* when its handler ran last */
    uint64_t answered_ns;      /* when its answer was taken; 0: not */
    struct sim_served *served; /* a stream between listen and on_closed */
    bool has_ended;            /* half-closed */
    bool is_serving_paused;
    int serving_pause_at;
    int n_heard;
    int n_said;
};

/* told.c */

/** The call's number as metadata carries it. */
struct bow_slice sim_told_number(const struct sim_call *call, uint8_t bytes[8]);
/** A handler has been entered: what came with the call, and what goes with its answer. */
void sim_told_enter(struct bow_call *call, struct sim_call *of);
/** Answer with the error that was asked for. Returns 0 or as bow_call_fail_status(). */
int sim_told_fail(struct bow_call *call, const struct sim_call *of);
/** What came to the client beside messages. */
void sim_told_check(const struct sim_call *call, const struct bow_result *result);

/* verdict.c */

/** The number of a call's message, and back; the call is NULL when there is no such one. */
uint64_t sim_number(const struct sim_call *call, int message);
struct sim_call *sim_call_of(struct sim_world *world, uint64_t number);
/** The bytes of a message, which nobody changes. */
void sim_fill(uint64_t number, uint32_t n, ProtobufCBinaryData *payload);
bool sim_is_filled(uint64_t number, uint32_t n, const ProtobufCBinaryData *payload);

/** The client has started a call. */
void sim_verdict_start(struct sim_call *call);
/** A handler of `server` is entered for `call`. */
void sim_verdict_enter(struct sim_server *server, struct bow_call *call, struct sim_call *of);
/** The call has ended: may it, and so? */
void sim_verdict_end(struct sim_call *call, const struct bow_status *status);
/** A set is done, and so are its calls. */
void sim_verdict_set(const struct sim_set *set);
/** What failed for want of memory had reason to. */
bool sim_is_short_of_memory(const struct sim_call *call);
/** Whether handlers whose calls have ended have heard of it. */
void sim_verdict_look(struct sim_world *world);

#endif
