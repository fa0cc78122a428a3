/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_E2E_MATRIX_H
#define BOWLINE_TESTS_E2E_MATRIX_H

/*
 * One call of each kind, with each way to end, over each protocol, socket and encoding.
 * Client and server live in one thread, each on a loop that the test drives, under a
 * clock that moves when the test says so; the relay between them can cut.
 *
 *     matrix_test.c     the table: what each cell must come to
 *     matrix_loss.c     the cells in which the connection is lost, at each frame
 *     matrix_world.c    loops, clock, server, client, and that nothing is left
 *     matrix_service.c  the server's handlers, and what they saw
 *     matrix_call.c     the client's call, and what it saw
 *     matrix_relay.c    the relay
 */

#include "lab.pb-c.h"
#include "matrix_relay.h"
#include "tests/tls/certs.h"

#include <bowline/call_stream.h>
#include <bowline/client.h>
#include <bowline/context.h>
#include <bowline/loop.h>
#include <bowline/server.h>
#include <bowline/service.h>
#include <bowline/stream.h>
#include <bowline/system.h>
#include <bowline/tls.h>

#define MATRIX_MS UINT64_C(1000000)
#define MATRIX_DEADLINE_NS (1000 * MATRIX_MS)
/** Messages each way of a call that streams. */
#define MATRIX_MANY 3
/** Bytes of a message: enough to be compressed. */
#define MATRIX_BODY_BYTES 3000

enum matrix_kind {
    MATRIX_UNARY = 0,
    MATRIX_CLIENT = 1,
    MATRIX_SERVER = 2,
    MATRIX_BIDI = 3,
    MATRIX_N_KINDS = 4,
};

/** What becomes of the call. */
enum matrix_story {
    MATRIX_OK = 0,
    MATRIX_ERROR,      /* the handler says no, at the end */
    MATRIX_CANCEL,     /* the client does, when all that was sent has arrived */
    MATRIX_DEADLINE,   /* the handler never ends it */
    MATRIX_EARLY,      /* the server ends it while the client still sends */
    MATRIX_HALF_CLOSE, /* the client ends its side with nothing sent (or an empty message) */
    MATRIX_LOSS,       /* as OK, but the connection is cut */
    MATRIX_N_STORIES,
};

enum matrix_socket {
    MATRIX_TCP = 0,
    MATRIX_UNIX = 1,
    MATRIX_TLS = 2,
    MATRIX_N_SOCKETS = 3,
};

struct matrix_cell {
    char name[64];
    enum matrix_kind kind;
    enum matrix_story story;
    enum matrix_socket socket;
    bool is_grpc;
    bool is_packed;
};

/** What the server saw of the call (not of those that open and close a connection). */
struct matrix_served {
    int n_entered;
    int n_messages;
    int n_half_closes;
    int n_ended; /* on_closed, on_cancel or the answer */
    int n_sent;
    int n_disordered;
    enum bow_code code;
    struct bow_call *held;
};

/** What the client saw of it. */
struct matrix_called {
    int n_messages;
    int n_closed;
    int n_after_closed;
    int n_disordered;
    int n_sent;
    enum bow_code code;
    char message[512];
    struct bow_stream *stream; /* a reference */
    uint64_t id;               /* of a unary call */
};

struct matrix_side {
    struct bow_system system;
    struct bow_context *context;
    struct bow_loop *loop;
    struct bow_tls_context *tls;
};

struct matrix {
    const struct matrix_cell *cell;
    uint64_t now_ns;
    int n_fds; /* open before the cell began */
    struct matrix_side server_side;
    struct matrix_side client_side;
    struct bow_server *server;
    struct bow_client *client;
    struct relay relay;
    struct matrix_served served;
    struct matrix_called called;
};

/* matrix_world.c */

/** Start everything; the relay is not armed. `certs` for TLS. */
void matrix_begin(struct matrix *m, const struct matrix_cell *cell, const struct certs *certs);
/** Stop everything, and assert that no byte and no descriptor is left. */
void matrix_end(struct matrix *m);
/** A turn of both loops and of the relay. Returns whether anything happened that can be seen. */
bool matrix_turn(struct matrix *m);
/** Turn until `*counter` is at least `n`; fails the test when that does not come. */
void matrix_until(struct matrix *m, const int *counter, int n);
/** Turn until nothing happens any more. */
void matrix_settle(struct matrix *m);

/* matrix_service.c */

extern const struct bow_service matrix_service;
/** The client's view of the method of a kind, for a story. */
const struct bow_method *matrix_method(enum matrix_kind kind, enum matrix_story story);
bool matrix_client_streams(enum matrix_kind kind);
bool matrix_server_streams(enum matrix_kind kind);
/** Fill in a message of the call: number `n` from 1 on. */
void matrix_message(Lab__Blob *message, int n, bool is_empty);
/** Whether `message` is what matrix_message() makes. */
bool matrix_is_message(const Lab__Blob *message, int n, bool is_empty);
/** Answer what the handlers hold; its caller must have gone. */
void matrix_answer_held(struct matrix *m);

/* matrix_call.c */

extern const struct bow_stream_thunks matrix_stream_thunks;
/** The same for a method whose server sends one message. */
extern const struct bow_stream_thunks matrix_gather_thunks;
/** Begin the cell's call, and send what its story says. */
void matrix_call(struct matrix *m);
void matrix_cancel(struct matrix *m);
/** A unary call that must go well; for a warm connection, and to see that the client recovers. */
void matrix_expect_echo(struct matrix *m);

/* matrix_loss.c */

void matrix_run_losses(const struct matrix_cell *cell, const struct certs *certs);

#endif
