/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls over TLS with each allocation of ours failing in turn, on virtual time: they end with
 * an error that says so, not by a time-out; nothing is left; and when memory is back, the same
 * server and client speak again.
 */

#include "certs.h"
#include "protos/echo.bow.h"

#include <bowline/security.h>
#include <bowline/testing.h>
#include <bowline/tls.h>
#include <errno.h>
#include <openssl/err.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)
#define PATIENCE_NS (9 * SECOND) /* less than the handshake's own time-out */

static bool is_grpc;
static size_t step = 1;

struct sweep {
    struct bow_test *test;
    const struct certs *certs;
    struct bow_tls_context *tls[2]; /* server, client */
    struct bow_test_pair *pair;
    int n_started;
    int n_done;
    int n_ok;
    int n_strange;
    char strange[160];
};

static void say(struct bow_call *call, const Calls__Request *request, void *user)
{
    Calls__Reply reply = CALLS__REPLY__INIT;
    (void)user;

    reply.number = request->number;
    (void)calls__echo__say__reply(call, &reply);
}

static int serve(struct bow_server *server, void *user)
{
    const struct calls__echo__handlers handlers = {.say = say};

    return calls__echo__serve(server, &handlers, user);
}

static void note(struct sweep *s, const struct bow_status *status)
{
    s->n_ok += status->code == BOW_OK;
    if (status->code != BOW_OK && status->code != BOW_UNAVAILABLE &&
        status->code != BOW_RESOURCE_EXHAUSTED) {
        s->n_strange++;
        snprintf(s->strange, sizeof(s->strange), "%s: %s", bow_code_name(status->code),
                 status->message);
    }
}

static void on_done(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    struct sweep *s = user;
    (void)reply;

    s->n_done++;
    note(s, &result->status);
}

static void call_both_ways(struct sweep *s)
{
    struct bow_result result = BOW_RESULT_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    s->n_started += calls__echo__say__start(s->pair->client, &request, NULL, on_done, s, NULL) == 0;
    s->n_strange += bow_test_run(s->test) < 0;
    (void)calls__echo__say__call(s->pair->blocking, &request, NULL, &result);
    note(s, &result.status);
    bow_result_fini(&result);
}

static int make_tls(struct sweep *s)
{
    struct bow_tls_context_options server = BOW_TLS_CONTEXT_OPTIONS_INIT;
    struct bow_tls_context_options client = BOW_TLS_CONTEXT_OPTIONS_INIT;
    struct bow_context *context = bow_test_context(s->test);
    char paths[3][128];

    server.certificate.certificate_file =
        certs_path(s->certs, "server.pem", paths[0], sizeof(paths[0]));
    server.certificate.key_file = certs_path(s->certs, "server.key", paths[1], sizeof(paths[1]));
    client.side = BOW_TLS_CLIENT;
    client.ca_file = certs_path(s->certs, "ca.pem", paths[2], sizeof(paths[2]));
    int rc = bow_tls_context_new(context, &server, &s->tls[0], NULL);
    return rc < 0 ? rc : bow_tls_context_new(context, &client, &s->tls[1], NULL);
}

static int make_pair(struct sweep *s)
{
    struct bow_test_pair_options options = BOW_TEST_PAIR_OPTIONS_INIT;
    struct bow_server_options server = BOW_SERVER_OPTIONS_INIT;
    struct bow_client_options client = BOW_CLIENT_OPTIONS_INIT;

    server.security = bow_tls_security(s->tls[0]);
    client.security = bow_tls_security(s->tls[1]);
    client.server_name = "server.test";
    options.serve = serve;
    options.grpc = is_grpc;
    options.server = &server;
    options.client = &client;
    return bow_test_pair_new(s->test, &options, &s->pair);
}

/* NULL, or what is wrong. */
static const char *check(struct sweep *s)
{
    uint64_t began = bow_test_now(s->test);

    call_both_ways(s);
    if (s->n_strange > 0) {
        return s->strange;
    }
    if (s->n_done != s->n_started) {
        return "a call does not end";
    }
    if (bow_test_now(s->test) - began >= PATIENCE_NS) {
        return "it took a time-out";
    }
    if (s->n_ok < 2 && bow_test_failed_allocations(s->test) == 0) {
        return "fails without a cause";
    }
    bow_test_fail_allocation(s->test, 0);
    if (bow_test_advance(s->test, 120 * SECOND) < 0) {
        return "does not come to rest";
    }
    s->n_ok = 0;
    call_both_ways(s);
    return s->n_ok == 2 ? NULL : "does not serve again";
}

static bool is_of_memory(const struct sweep *s, int rc)
{
    return rc == -ENOMEM && bow_test_failed_allocations(s->test) > 0;
}

/* Returns false when the run met no failure. */
static bool run_failing(const struct certs *certs, size_t at, bool and_after)
{
    struct sweep s = {.certs = certs};
    const char *wrong = NULL;

    assert_int_equal(bow_test_new(NULL, &s.test), 0);
    (and_after ? bow_test_fail_allocations : bow_test_fail_allocation)(s.test, at);
    int rc = make_tls(&s);
    if (rc == 0) {
        rc = make_pair(&s);
    }
    if (rc == 0) {
        wrong = check(&s);
        bow_test_pair_free(s.test, s.pair);
    } else if (!is_of_memory(&s, rc)) {
        wrong = "no error of memory";
    }
    bow_tls_context_unref(s.tls[0]);
    bow_tls_context_unref(s.tls[1]);
    bool met_one = bow_test_failed_allocations(s.test) > 0;
    bow_test_fail_allocation(s.test, 0);
    if (bow_test_end(s.test) > 0 || wrong != NULL) {
        fail_msg("allocation %zu failing%s: %d: %s", at, and_after ? " and all after it" : "", rc,
                 wrong != NULL ? wrong : "something is left");
    }
    assert_int_equal(ERR_peek_error(), 0); /* nothing for others to stumble over */
    return met_one;
}

static void test_tls_sweep_with_each_allocation_failing_is_survived(void **state)
{
    struct certs certs;
    size_t at = 1;
    (void)state;

    certs_make(&certs);
    while (run_failing(&certs, at, false)) {
        (void)run_failing(&certs, at, true);
        at += step;
    }
    certs_remove(&certs);
    assert_true(at > 20);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tls_sweep_with_each_allocation_failing_is_survived),
    };

    is_grpc = argc > 1 && strcmp(argv[1], "grpc") == 0;
    step = argc > 2 ? (size_t)atoi(argv[2]) : step;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
