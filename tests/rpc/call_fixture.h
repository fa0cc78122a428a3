/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_RPC_CALL_FIXTURE_H
#define BOWLINE_TESTS_RPC_CALL_FIXTURE_H

/*
 * A server with the service of echo.proto on a thread of its own, and a client on
 * another, over the protocol and the kind of socket that the test was started
 * with:
 *
 *     call_test PROTOCOL SOCKET       native | grpc, tcp | unix | inproc
 *
 * Hold keeps its calls until the test takes them; what becomes of them meanwhile
 * is counted. Waiting is for events, with a limit that only a broken test meets.
 */

#include "protos/echo.bow.h"
#include "tests/support/alloc.h"

#include <bowline/client.h>
#include <bowline/loop.h>
#include <bowline/metrics.h>
#include <bowline/server.h>
#include <bowline/system.h>
#include <pthread.h>

#define CALLS_MAX_HELD 256
#define MS UINT64_C(1000000)

struct calls {
    struct test_alloc alloc;
    struct bow_system system; /* of the context: a test may alter it before it is used */
    struct bow_context *context;
    char address[128]; /* the server's */
    char target[160];  /* the client's */
    struct bow_server *server;
    struct bow_loop *loop; /* the client's */
    struct bow_client *client;

    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct bow_call *held[CALLS_MAX_HELD]; /* oldest first */
    int n_held;
    int n_cancelled;          /* on_cancel of Hold has run */
    enum bow_code why;        /* the last of them */
    bool answers_cancel;      /* on_cancel answers the call itself */
    int cancel_reply_rc;      /* what that returned */
    int n_said;               /* calls of Say that ran */
    int say_rc;               /* what the last reply of Say returned */
    int n_let_go;             /* "wait" calls of Say end after that, and 20 ms */
    int n_done;               /* completions through calls_on_done */
    int n_failed;             /* of them, those that were not OK */
    struct bow_result result; /* the last one, moved */
    pthread_t helpers[CALLS_MAX_HELD];
    int n_helpers;
};

/** Which protocol and socket; from the arguments of main(). */
void calls_choose(int argc, char **argv);
bool calls_is_grpc(void);
bool calls_is_unix(void);
/** Where the server listens is told by its port. */
bool calls_has_port(void);
/** For a server to listen on, of that kind; no two servers' are the same. */
void calls_name_address(char *ret_address, size_t n_address);

/** cmocka's setup and teardown: everything up; nothing left. */
int calls_setup(void **state);
int calls_teardown(void **state);

/** Only the context, and addresses; server and client are the test's own. */
int calls_setup_bare(void **state);

void calls_server_options(struct calls *t, struct bow_server_options *ret_options);
/** A started server at t->address; sets t->target to where it listens. */
struct bow_server *calls_start_server(struct calls *t, const struct bow_server_options *options);
/** Made and its service added, not started; and started, which returns what that does and sets
 * t->address and t->target. */
struct bow_server *calls_make_server(struct calls *t, const struct bow_server_options *options);
int calls_open_server(struct calls *t, struct bow_server *server);
/** The same, but returns what start does; the server is the caller's in any case. */
int calls_try_server(struct calls *t, const struct bow_server_options *options,
                     struct bow_server **ret_server);
struct bow_client *calls_new_client(struct calls *t, const struct bow_client_options *options);
/** End t->client; there is none then. */
void calls_free_client(struct calls *t);
void calls_client_options(struct calls *t, struct bow_client_options *ret_options);
/** End the server: its connections close at once. */
void calls_kill_server(struct calls *t);

/** Wait until `*counter` (of t, under its lock) is at least `n`. */
void calls_wait(struct calls *t, const int *counter, int n);
/** The oldest held call, waiting for it. */
struct bow_call *calls_take_held(struct calls *t);
int calls_reply(struct bow_call *call, uint64_t number);

/** Keep the calling thread, a loop's, busy that long. */
void calls_hold_loop(uint64_t ns);
/** Let calls of Say go on that hold their loop. */
void calls_let_go(struct calls *t);

/** A completion that moves the result to t->result and counts it. */
void calls_on_done(struct bow_result *result, const Calls__Reply *reply, void *user);

/** Read the server's or the client's metrics until `counter` reaches `n`. */
void calls_wait_server_metric(struct calls *t, size_t offset, uint64_t n);
#define CALLS_WAIT_METRIC(t, name, n)                                                              \
    calls_wait_server_metric((t), offsetof(struct bow_metrics, name), (n))

/** Calls that were refused by that limit, of all methods together, as each is counted. */
uint64_t calls_n_refused(const struct bow_server *server, enum bow_refusal refusal);

/** Have every name mean these two addresses of IPv4, in this order. The texts are kept. */
void calls_resolve_to(struct calls *t, const char *first, const char *second);

/** A socket that listens, without Bowline; sets t->address and t->target to it. */
int calls_raw_listen(struct calls *t);
/** Set t->address and t->target to where nobody listens. */
void calls_choose_dead_address(struct calls *t);

/** A TCP or Unix stream connected to t->address, without Bowline. */
int calls_raw_connect(struct calls *t);

#endif
