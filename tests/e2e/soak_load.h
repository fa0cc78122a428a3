/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_E2E_SOAK_LOAD_H
#define BOWLINE_TESTS_E2E_SOAK_LOAD_H

/*
 * Clients that mean no harm, each of its own kind of target, with users that do one thing over and
 * over: call, call and cancel, call with a deadline that passes, chat, read a long answer slowly.
 * What comes back is looked at byte for byte. Beside them a thread makes a client, calls once, and
 * frees it.
 *
 *     soak_load_start ──► [soak_load_take_stock]* ──► soak_load_stop
 */

#include "lab.bow.h"
#include <bowline/client.h>
#include <bowline/context.h>
#include <bowline/loop.h>
#include <bowline/timer.h>
#include <bowline/tls.h>
#include <pthread.h>
#include <stdatomic.h>

#define SOAK_MAX_CLIENTS 10
#define SOAK_USERS 9 /* of a client */

enum soak_deed { SOAK_CALL, SOAK_CANCEL, SOAK_DEADLINE, SOAK_CHAT, SOAK_SLOW_READ, SOAK_DEEDS };

struct soak_client;
struct soak_load;

struct soak_user {
    struct soak_client *client;
    enum soak_deed deed;
    struct bow_timer timer;
    struct lab__lab__chat__stream stream;
    uint64_t id;
    uint64_t call_id; /* to cancel it by */
    uint32_t n_bytes; /* of the answer */
    unsigned n_heard; /* messages of a stream */
};

struct soak_client {
    struct soak_load *load;
    const char *target;
    struct bow_client *client;
    struct soak_user users[SOAK_USERS];
    atomic_ulong n_done[SOAK_DEEDS];
};

struct soak_load {
    struct bow_context *context;
    struct bow_loop *loop;
    struct bow_tls_context *tls;
    struct soak_client clients[SOAK_MAX_CLIENTS];
    int n_clients;
    pthread_t thread; /* of the clients that call once */
    atomic_ulong n_once;

    atomic_bool stopping;
    atomic_uint n_running; /* users */
    atomic_ulong n_failed;
    pthread_mutex_t lock;
    char failure[600]; /* the first; under the lock */
};

/** Begin to call all `targets`; those that name TLS ("tls:" in front) trust `ca_file`. */
void soak_load_start(struct soak_load *load, const char *const *targets, int n_targets,
                     const char *ca_file);
/** How often each deed was done since the load was started; fails the test when a call was lost or
 * wrong. */
void soak_load_take_stock(struct soak_load *load, unsigned long n_done[SOAK_DEEDS]);
/** The client that has done `deed` least, and how often. */
unsigned long soak_load_least(const struct soak_load *load, enum soak_deed deed,
                              const char **ret_target);
/** Let what is under way end, and no more begin; then free the clients. */
void soak_load_stop(struct soak_load *load);

#endif
