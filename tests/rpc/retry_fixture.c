/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A client with a policy and the server that a test is; see the header.
 */

#include "retry_fixture.h"

#include <bowline/interceptor.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static void on_done(struct bow_result *result, bow_any_fn fn, void *user)
{
    (void)fn;
    calls_on_done(result, NULL, user);
}

/* What an interceptor sees */

static void on_start(struct bow_interception *at, void *user)
{
    struct trial *trial = user;

    (void)at;
    trial->n_starts++;
}

static void on_message(struct bow_interception *at, const struct bow_intercepted_message *message,
                       void *user)
{
    struct trial *trial = user;

    (void)at;
    (void)message;
    trial->n_messages++;
}

static void on_retry(struct bow_interception *at, const struct bow_status *status, void *user)
{
    struct trial *trial = user;

    (void)at;
    (void)status;
    trial->n_retries++;
}

static void on_end(struct bow_interception *at, const struct bow_intercepted_end *end, void *user)
{
    struct trial *trial = user;

    (void)at;
    (void)end;
    trial->n_ends++;
}

void trial_expect_seen(const struct trial *trial, int n_retries)
{
    assert_int_equal(trial->n_starts, 1);
    assert_int_equal(trial->n_messages, 2);
    assert_int_equal(trial->n_retries, n_retries);
    assert_int_equal(trial->n_ends, 1);
}

void trial_begin(struct calls *t, struct trial *trial)
{
    *trial = (struct trial){.t = t, .listening = calls_raw_listen(t)};
    trial->policy = (struct bow_retry_policy)BOW_RETRY_POLICY_INIT;
    trial->policy.backoff_min_ns = MS;
    trial->policy.backoff_max_ns = 2 * MS;
    trial->policies[0] = &trial->policy;
    trial->retry = (struct bow_retry_options)BOW_RETRY_OPTIONS_INIT;
    trial->retry.policies = trial->policies;
    trial->retry.n_policies = 1;
    trial->method = *calls__echo__say__method();
}

void trial_make_client(struct trial *trial, const char *service_config)
{
    struct bow_interceptor watcher = BOW_INTERCEPTOR_INIT;
    const struct bow_interceptor *interceptors[] = {&watcher};
    struct bow_client_options options;

    watcher.name = "watcher";
    watcher.on_start = on_start;
    watcher.on_message = on_message;
    watcher.on_end = on_end;
    watcher.on_retry = on_retry;
    watcher.user = trial;
    calls_client_options(trial->t, &options);
    options.interceptors = interceptors;
    options.n_interceptors = trial->is_watched ? 1 : 0;
    options.retry = &trial->retry;
    options.service_config = service_config;
    trial->t->client = calls_new_client(trial->t, &options);
}

void trial_end(struct trial *trial)
{
    for (int i = 0; i < trial->n_peers; i++) {
        if (trial->peers[i].session != NULL) {
            session_peer_end(&trial->peers[i]);
        }
    }
    bow_client_free(trial->t->client);
    trial->t->client = NULL;
    close(trial->listening);
}

uint64_t trial_start_say(struct trial *trial, uint64_t timeout_ns)
{
    struct calls *t = trial->t;
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    uint64_t id = 0;

    request.number = 7;
    options.timeout_ns = timeout_ns;
    assert_int_equal(
        bow_client_start(t->client, &trial->method, &request.base, &options, on_done, NULL, t, &id),
        0);
    return id;
}

void trial_accept(struct trial *trial)
{
    int fd = accept(trial->listening, NULL, NULL);

    assert_true(fd >= 0);
    assert_true(trial->n_peers < TRIAL_MAX_PEERS);
    trial->peer = &trial->peers[trial->n_peers++];
    session_peer_begin(trial->peer, trial->t->context, fd, true, calls_is_grpc());
}

void trial_reset(struct session_peer *peer)
{
    struct linger linger = {.l_onoff = 1};

    assert_int_equal(setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
    session_peer_end(peer);
    peer->session = NULL;
}

void trial_answer(struct trial *trial, int n, const struct bow_status *status)
{
    struct session_peer *peer = trial->peer;

    session_peer_wait(peer, &peer->n_messages, n);
    if (status->code == BOW_OK) {
        session_peer_send(peer, BOW__SEND_END, "", 0);
        return;
    }
    assert_int_equal(peer->session->ops->finish(peer->session, peer->key, status), 0);
    session_peer_flush(peer);
}

void trial_answer_code(struct trial *trial, int n, enum bow_code code)
{
    trial_answer(trial, n, &(struct bow_status){.code = code, .message = "not now"});
}

void trial_expect_end(struct trial *trial, enum bow_code code, const char *words)
{
    struct calls *t = trial->t;

    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->n_done, 1);
    if (t->result.status.code != code || strstr(t->result.status.message, words) == NULL) {
        fail_msg("%s: %s", bow_code_name(t->result.status.code), t->result.status.message);
    }
}

void trial_expect_counts(struct trial *trial, uint64_t n_attempts)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;

    /* They are shown as a turn ends, one after the other. */
    while (metrics.calls_ended == 0 || metrics.calls_started == 0 ||
           metrics.calls_retried < n_attempts - 1) {
        assert_int_equal(bow_client_metrics(trial->t->client, &metrics), 0);
    }
    assert_int_equal(metrics.calls_started, 1);
    assert_int_equal(metrics.calls_ended, 1);
    assert_int_equal(metrics.calls_retried, n_attempts - 1);
}
