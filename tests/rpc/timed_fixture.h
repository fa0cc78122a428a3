/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_RPC_TIMED_FIXTURE_H
#define BOWLINE_TESTS_RPC_TIMED_FIXTURE_H

/*
 * A server and a client of echo.proto on one loop whose clock the test moves, over an inproc
 * connection that the test can break:
 *
 *     some_test PROTOCOL       native | grpc
 *
 * Say answers at once, unless the test says otherwise; Hold keeps the last call.
 */

#include "protos/echo.bow.h"

#include <bowline/metrics.h>
#include <bowline/testing.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

struct timed {
    struct bow_test *test;
    struct bow_test_pair *pair;                                  /* NULL: the test has none yet */
    void (*enter)(struct timed *timed, struct bow_call *call);   /* of Say; NULL: it is answered */
    void (*in_hold)(struct timed *timed, struct bow_call *call); /* of Hold; may be NULL */
    struct bow_call *held;
    int n_said;
    int n_done;
    int n_failed; /* of them, those that were not OK */
    enum bow_code code;
    char text[512]; /* of the last status */
};

/** pair_secure() and pair_unsecure() of pair_security.h; NULL: connections are in plaintext. A test
 * that is linked with tests/tls/timed_tls.c has them. */
extern void (*timed_pair_secure)(struct bow_test *test, struct bow_server_options *server,
                                 struct bow_client_options *client);
extern void (*timed_pair_unsecure)(void);

/** Secure the options of a pair that the test makes by itself, if anything does. */
void timed_secure(struct timed *timed, struct bow_server_options *server,
                  struct bow_client_options *client);

/** Which protocol; from the arguments of main(). */
void timed_choose(int argc, char **argv);
bool timed_is_grpc(void);

/** cmocka's setup and teardown; without a pair. */
int timed_setup(void **state);
int timed_teardown(void **state);

/** Make the pair. NULL: the defaults. */
void timed_begin(struct timed *timed, const struct bow_server_options *server,
                 const struct bow_client_options *client);
/** Add the service: a bow_test_serve_fn. */
int timed_serve(struct bow_server *server, void *user);

/** Start a call of Say or Hold; its request has so many bytes, its reply as many. */
void timed_say(struct timed *timed, size_t n_bytes);
uint64_t timed_hold(struct timed *timed, uint64_t timeout_ns);
/** Answer a call with as many bytes as its request had. Returns as bow_call_reply(). */
int timed_reply(struct bow_call *call, const Calls__Request *request);
/** What calls end with. */
void timed_on_done(struct bow_result *result, const Calls__Reply *reply, void *user);

void timed_advance(struct timed *timed, uint64_t by_ns);
void timed_run(struct timed *timed);

#endif
