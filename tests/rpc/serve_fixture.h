/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_RPC_SERVE_FIXTURE_H
#define BOWLINE_TESTS_RPC_SERVE_FIXTURE_H

/*
 * A server with a method of each kind, and a client that the test plays (session_peer.h).
 * What a streaming call's events bring is counted; a hook may do something in them. The
 * methods are written by hand, so that nothing of a generator stands between.
 */

#include "call_fixture.h"
#include "tests/rpc/session_peer.h"

#include <bowline/call_stream.h>

#define SERVE_BOTH "/calls.Kinds/Both"     /* both sides send many */
#define SERVE_GATHER "/calls.Kinds/Gather" /* the client does */
#define SERVE_POUR "/calls.Kinds/Pour"     /* the server does */
#define SERVE_PLAIN "/calls.Kinds/Plain"   /* neither */

struct serving {
    struct calls *t;
    struct bow_context *peer_context; /* of its own: what the server holds can be told apart */
    struct session_peer peer;
    bool has_peer;

    /* Under the lock of t, as its own counters. */
    int n_entered;
    int n_messages;
    uint64_t last_number;
    int n_disordered; /* messages whose number is not the one before and one more */
    int n_half_closes;
    int n_writable;
    int n_closed;
    int n_after_closed;      /* events that came after on_closed */
    struct bow_call *call;   /* of the handler entered last */
    struct bow_loop *loop;   /* of the last call, which may be gone */
    enum bow_code code;      /* that on_closed brought */
    char text[512];          /* likewise */
    uint64_t request_number; /* of a method whose client sends one message */
    int n_steps;             /* what the test's hooks count */

    void (*before_start)(struct serving *s); /* in serve_start() */

    /* Hooks run on the loop, before the event is counted. Without enter() the handler
     * listens. */
    void (*enter)(struct serving *s, struct bow_call *call);
    void (*in_message)(struct serving *s, struct bow_call *call);
    void (*in_half_close)(struct serving *s, struct bow_call *call);
    void (*in_writable)(struct serving *s, struct bow_call *call);
    void (*in_closed)(struct serving *s, struct bow_call *call);
    uint64_t n_sent; /* of a hook that sends */
    int rc;          /* what a hook found */
};

/** cmocka's setup and teardown; the state is a struct serving. */
int serve_setup(void **state);
/** The same without a server: serve_start() does that. */
int serve_setup_bare(void **state);
int serve_teardown(void **state);

/** Start the server, and connect the peer. */
void serve_start(struct serving *s, const struct bow_server_options *options);
void serve_connect(struct serving *s);

/** Begin a call, and wait until its handler was entered. */
void serve_begin(struct serving *s, const char *path);

/** A Calls__Request with `number`, and so many bytes beside it, on the last call. */
void serve_peer_send(struct serving *s, uint32_t flags, uint64_t number);
void serve_peer_send_sized(struct serving *s, uint32_t flags, uint64_t number, size_t n_payload);

/** A Calls__Reply on `call`, as bow_call_send(). */
int serve_send(struct bow_call *call, uint64_t number);
int serve_send_sized(struct bow_call *call, uint64_t number, size_t n_payload);
int serve_reply(struct bow_call *call, uint64_t number);

/** Listen, as the fixture does without enter(). */
void serve_listen(struct serving *s, struct bow_call *call);
/** Count a step of the test's. */
void serve_step(struct serving *s);

/** Wait until `*counter` (of s) is at least `n`. */
void serve_wait(struct serving *s, const int *counter, int n);
/** The same while the peer goes on receiving. */
void serve_wait_serving(struct serving *s, const int *counter, int n);
/** The value of `*counter` now. */
int serve_count(struct serving *s, const int *counter);
/** Wait for on_closed and assert its code. */
void serve_expect_closed(struct serving *s, enum bow_code code, const char *words);
/** Wait for the status at the peer and assert its code. */
void serve_expect_status(struct serving *s, enum bow_code code, const char *words);
/** Run `fn` on the loop of s->call, after all that was posted to it before, and wait. */
void serve_on_loop(struct serving *s, void (*fn)(struct serving *s));

#endif
