/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_RPC_CHAOS_H
#define BOWLINE_TESTS_RPC_CHAOS_H

/*
 * One round of chaos: a server whose handlers answer at once, from other threads, in
 * on_cancel, through a child call, or only at the very end; a client on a loop or a group;
 * and probes that count how often each call completed.
 */

#include "protos/echo.bow.h"
#include "tests/support/alloc.h"

#include <bowline/client.h>
#include <bowline/group.h>
#include <bowline/loop.h>
#include <bowline/server.h>
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#define CHAOS_OPS 24u
#define CHAOS_MAX_CALLS 512u
#define CHAOS_HELPERS 2u
#define CHAOS_MAX_BYTES 300000u

struct chaos_probe {
    struct chaos *t;
    atomic_int n_done;
    bool refused;
};

struct chaos_held {
    struct bow_call *call;
    uint64_t number;
};

struct chaos {
    uint64_t seed;
    uint64_t random; /* of the thread that runs the round */
    struct test_alloc alloc;
    bool is_short; /* allocations may fail */
    struct bow_context *context;
    struct bow_server *server;
    struct bow_loop *loop;   /* the client's, or */
    struct bow_group *group; /* this */
    struct bow_loop *child_loop;
    struct bow_client *client;
    struct bow_client *children; /* that handlers call with */
    char target[128];

    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct chaos_held waiting[CHAOS_MAX_CALLS]; /* for a helper */
    uint32_t n_waiting;
    struct chaos_held late[CHAOS_MAX_CALLS]; /* answered when all is over */
    uint32_t n_late;
    bool over;
    pthread_t helpers[CHAOS_HELPERS];

    struct chaos_probe probes[CHAOS_MAX_CALLS];
    atomic_uint n_probes;
};

void chaos_choose(bool grpc, bool unix_socket);

/** Set everything up and start it. */
void chaos_begin(struct chaos *t, uint64_t seed);
/** From some allocation on, memory fails: once, or for the rest of the round. */
void chaos_run_short(struct chaos *t);
/** After client and server are gone: answer what is left, check every probe and the memory. */
void chaos_end(struct chaos *t);

/** From any thread: abort with the seed unless `holds`. */
void chaos_must(const struct chaos *t, bool holds, const char *what);

uint64_t chaos_random(uint64_t *state);
uint64_t chaos_now(void);
/** Keep busy for `ns`. */
void chaos_spin(uint64_t ns);
/** A time-out of any order of magnitude; without an end only where something else ends the call. */
uint64_t chaos_timeout(uint64_t *random, bool may_be_endless);

/** The size that a request or reply has by some bits of its number: mostly none, at times more than
 * a window. */
size_t chaos_size(uint64_t random);
extern uint8_t chaos_payload[CHAOS_MAX_BYTES];

struct chaos_probe *chaos_probe_new(struct chaos *t);
void chaos_probe_refused(struct chaos_probe *probe);
void chaos_on_done(struct bow_result *result, const Calls__Reply *reply, void *user);

/** NULL when memory is short. */
struct bow_client *chaos_new_confined(struct chaos *t);
void chaos_shut_loops(struct chaos *t);

#endif
