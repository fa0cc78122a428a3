/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_RPC_INTERCEPT_SPY_H
#define BOWLINE_TESTS_RPC_INTERCEPT_SPY_H

/*
 * Interceptors that write down what they see, and do what a test's hook says:
 *
 *     "a+ b+ a<3 b<3 b>2 a>2 b-OK a-OK "
 *
 * is two of them started, a message of three bytes received, one of two sent, and the end.
 * What they see comes on the call's loop; the test's thread waits for the counters.
 */

#include "call_fixture.h"

#include <bowline/interceptor.h>

#define SPIES 3
#define SPY_STATE_BYTES 40

struct spy {
    struct spies *all;
    char name[2];
    void (*in_start)(struct spy *spy, struct bow_interception *at);
    void (*in_message)(struct spy *spy, struct bow_interception *at,
                       const struct bow_intercepted_message *message);
    void (*in_end)(struct spy *spy, struct bow_interception *at);
    struct bow_interception *at; /* of the call started last */
    struct bow_loop *loop;       /* likewise */
    int n_starts;
    int n_ends;
    int n_after_end; /* events of a call that had ended */
    int n_released;
    struct bow_intercepted_end end; /* the last one; its texts are below */
    enum bow_code code;
    char text[512];
    char trailing[64]; /* "key=value" of the first entry */
    char initial[64];
    int rc; /* what a hook found */
};

struct spies {
    struct calls *t; /* whose lock guards all of this */
    struct spy spies[SPIES];
    struct bow_interceptor interceptors[SPIES];
    const struct bow_interceptor *pointers[SPIES]; /* for the options of a client */
    char log[4096];
};

struct spies *spies_new(struct calls *t);
/** Asserts that every start had one end, and that each was released `n_released` times. */
void spies_free(struct spies *spies, int n_released);

/** Register the first `n` with a server. */
void spies_watch_server(struct spies *spies, struct bow_server *server, size_t n);

/** Wait until spy `i` has seen so many ends. */
void spies_wait_ends(struct spies *spies, size_t i, int n);
/** Wait until spy `i` has seen so many starts. */
void spies_wait_starts(struct spies *spies, size_t i, int n);
/** What was written down so far has to be this. */
void spies_expect_log(struct spies *spies, const char *expected);
/** Run `fn` on the loop of the call that spy `i` saw last, and wait. */
void spies_on_loop(struct spies *spies, size_t i, void (*fn)(struct spy *spy));

/* Hooks */

void spy_hold(struct spy *spy, struct bow_interception *at);
void spy_refuse(struct spy *spy, struct bow_interception *at);
void spy_refuse_message(struct spy *spy, struct bow_interception *at,
                        const struct bow_intercepted_message *message);
/* For spies_on_loop(). */
void spy_proceed(struct spy *spy);
void spy_refuse_held(struct spy *spy);

#endif
