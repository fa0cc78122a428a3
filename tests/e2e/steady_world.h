/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_E2E_STEADY_WORLD_H
#define BOWLINE_TESTS_E2E_STEADY_WORLD_H

/*
 * A server and its clients in one process, calls of each kind that go on alike, and what a round of
 * them takes of the system's memory. The clients' loop is driven by the test, and so is the
 * server's where it has no workers: then what is counted is exact but for an executor's threads.
 * The clock of both sides is the system's and what the test adds to it.
 *
 *     steady_begin(&w, &setting, &certs);
 *     w.kind = STEADY_UNARY;
 *     w.n_bytes = 1024;
 *     n_wrong += steady_measure(&w, 1);
 *     steady_end(&w);
 */

#include "lab.h"
#include "tests/tls/certs.h"

#include <bowline/client.h>
#include <bowline/executor.h>
#include <bowline/system.h>
#include <bowline/tls.h>
#include <stdatomic.h>

#define STEADY_MAX_IN_FLIGHT 100u

enum steady_kind {
    STEADY_UNARY,
    STEADY_UNARY_UP,
    STEADY_UNARY_DOWN,
    STEADY_STREAM_UP,
    STEADY_STREAM_DOWN,
    STEADY_STREAM_BOTH,
    STEADY_N_KINDS
};

enum steady_link { STEADY_TCP, STEADY_UNIX, STEADY_TLS };

enum steady_packing { STEADY_PLAIN, STEADY_ZSTD, STEADY_GZIP };

struct steady_setting {
    const char *name;
    enum steady_link link;
    enum steady_packing packing;
    uint32_t n_workers;       /* with a client each; 0: the test drives the server */
    bool is_on_executor;      /* handlers are */
    size_t max_message_bytes; /* 0: the default */
};

/* What a handler is still to send. */
struct steady_served {
    struct steady_world *world;
    atomic_bool is_used;
    bool ended;
    unsigned n_owed;
    size_t n_bytes;
};

struct steady_called {
    struct steady_world *world;
    struct bow_client *client;
    unsigned n_sent;
};

struct steady_world {
    const struct steady_setting *setting;
    struct bow_system system[2]; /* of the server, of the clients, and so on */
    struct bow_context *context[2];
    struct bow_loop *loop[2];
    struct bow_tls_context *tls[2];
    struct bow_executor *executor;
    struct bow_server *server;
    struct bow_client *clients[2];
    unsigned n_clients;
    struct steady_served served[STEADY_MAX_IN_FLIGHT + 1];
    struct steady_called called[STEADY_MAX_IN_FLIGHT];
    enum steady_kind kind;
    size_t n_bytes; /* of a message */
    unsigned n_to_start;
    unsigned n_running;
};

/** "" or "grpc:", of all targets; messages are of at most so many bytes. */
void steady_choose(const char *prefix, size_t max_bytes);

void steady_begin(struct steady_world *w, const struct steady_setting *setting,
                  const struct certs *certs);
/** Asserts that nothing is left. */
void steady_end(struct steady_world *w);

/** So many calls, so many of them at once. */
void steady_run(struct steady_world *w, unsigned n_calls, unsigned n_in_flight);
/** Both sides have a turn. */
void steady_turn(struct steady_world *w);
/** It is so much later on both sides. */
void steady_pass(struct steady_world *w, uint64_t ns);

/** Rounds of calls, until one takes no memory. Returns 0; 1, having said what the last one took. */
unsigned steady_measure(struct steady_world *w, unsigned n_in_flight);

#endif
