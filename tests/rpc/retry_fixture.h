/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_RPC_RETRY_FIXTURE_H
#define BOWLINE_TESTS_RPC_RETRY_FIXTURE_H

/*
 * A client with a policy, and a server that the test itself is: it answers each attempt of Say as
 * the test likes. Over both protocols, see call_fixture.h; the client's own loop is another thread.
 *
 *     trial_begin(t, &trial);
 *     trial.policy.max_attempts = 2;
 *     trial_make_client(&trial, NULL);
 *     trial_start_say(&trial, 0);
 *     trial_accept(&trial);
 *     trial_answer_code(&trial, 1, BOW_UNAVAILABLE);
 *     trial_answer_code(&trial, 2, BOW_OK);
 *     trial_expect_end(&trial, BOW_OK, "");
 *     trial_end(&trial);
 */

#include "call_fixture.h"
#include "session_peer.h"

#define TRIAL_MAX_PEERS 3
#define TRIAL_HOUR (UINT64_C(3600) * 1000 * MS)

struct trial {
    struct calls *t;
    int listening;
    struct session_peer *peer; /* the last of them */
    struct session_peer peers[TRIAL_MAX_PEERS];
    int n_peers;
    struct bow_method method; /* Say, declared as the test likes */
    struct bow_retry_policy policy;
    const struct bow_retry_policy *policies[1];
    struct bow_retry_options retry;

    bool is_watched; /* an interceptor of the client counts, on its loop: */
    int n_starts;
    int n_messages; /* both ways */
    int n_retries;
    int n_ends;
};

/** The policy, the options and the method may be altered before the client is made. */
void trial_begin(struct calls *t, struct trial *trial);
void trial_make_client(struct trial *trial, const char *service_config);
void trial_end(struct trial *trial);

/** Returns the call's id. `timeout_ns` 0: the default. */
uint64_t trial_start_say(struct trial *trial, uint64_t timeout_ns);
/** The client's next connection. */
void trial_accept(struct trial *trial);
/** End a connection so that the client loses what it has sent. */
void trial_reset(struct session_peer *peer);
/** The server's answer to attempt `n` of the connection, which is the last one there. */
void trial_answer(struct trial *trial, int n, const struct bow_status *status);
void trial_answer_code(struct trial *trial, int n, enum bow_code code);
/** After that, of a watched client: an interceptor saw one call, its request and its reply. */
void trial_expect_seen(const struct trial *trial, int n_retries);
/** The one completion of the call: with that code, and words in its message. */
void trial_expect_end(struct trial *trial, enum bow_code code, const char *words);
/** To the program and in its counters it is one call. */
void trial_expect_counts(struct trial *trial, uint64_t n_attempts);

#endif
