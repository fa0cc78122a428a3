/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A pair on virtual time with the service of echo.proto; see the header. */

#include "timed_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void (*timed_pair_secure)(struct bow_test *test, struct bow_server_options *server,
                          struct bow_client_options *client);
void (*timed_pair_unsecure)(void);
static bool is_grpc;

void timed_choose(int argc, char **argv)
{
    is_grpc = argc > 1 && strcmp(argv[1], "grpc") == 0;
}

bool timed_is_grpc(void)
{
    return is_grpc;
}

int timed_reply(struct bow_call *call, const Calls__Request *request)
{
    Calls__Reply reply = CALLS__REPLY__INIT;

    if (request != NULL) {
        reply.number = request->number;
        reply.payload = request->payload;
    }
    return calls__echo__say__reply(call, &reply);
}

static void say(struct bow_call *call, const Calls__Request *request, void *user)
{
    struct timed *timed = user;

    timed->n_said++;
    if (timed->enter != NULL) {
        timed->enter(timed, call);
    }
    (void)timed_reply(call, request);
}

static void hold(struct bow_call *call, const Calls__Request *request, void *user)
{
    struct timed *timed = user;

    (void)request;
    timed->held = call;
    if (timed->in_hold != NULL) {
        timed->in_hold(timed, call);
    }
}

int timed_serve(struct bow_server *server, void *user)
{
    const struct calls__echo__handlers handlers = {.say = say, .hold = hold};

    return calls__echo__serve(server, &handlers, user);
}

int timed_setup(void **state)
{
    struct timed *timed = calloc(1, sizeof(*timed));

    assert_non_null(timed);
    assert_int_equal(bow_test_new(NULL, &timed->test), 0);
    *state = timed;
    return 0;
}

int timed_teardown(void **state)
{
    struct timed *timed = *state;

    if (timed_pair_unsecure != NULL) {
        timed_pair_unsecure();
    }
    assert_int_equal(bow_test_end(timed->test), 0);
    free(timed);
    return 0;
}

void timed_secure(struct timed *timed, struct bow_server_options *server,
                  struct bow_client_options *client)
{
    if (timed_pair_secure != NULL) {
        timed_pair_secure(timed->test, server, client);
    }
}

void timed_begin(struct timed *timed, const struct bow_server_options *server,
                 const struct bow_client_options *client)
{
    struct bow_test_pair_options options = BOW_TEST_PAIR_OPTIONS_INIT;
    struct bow_server_options of_server = BOW_SERVER_OPTIONS_INIT;
    struct bow_client_options of_client = BOW_CLIENT_OPTIONS_INIT;

    of_server = server != NULL ? *server : of_server;
    of_client = client != NULL ? *client : of_client;
    timed_secure(timed, &of_server, &of_client);
    options.serve = timed_serve;
    options.user = timed;
    options.grpc = is_grpc;
    options.server = server != NULL || timed_pair_secure != NULL ? &of_server : NULL;
    options.client = client != NULL || timed_pair_secure != NULL ? &of_client : NULL;
    assert_int_equal(bow_test_pair_new(timed->test, &options, &timed->pair), 0);
}

void timed_on_done(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    struct timed *timed = user;

    (void)reply;
    timed->n_done++;
    timed->n_failed += result->status.code != BOW_OK;
    timed->code = result->status.code;
    snprintf(timed->text, sizeof(timed->text), "%s", result->status.message);
}

void timed_say(struct timed *timed, size_t n_bytes)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    options.timeout_ns = BOW_NEVER;
    request.payload.len = n_bytes;
    request.payload.data = calloc(1, n_bytes + 1);
    assert_non_null(request.payload.data);
    assert_int_equal(calls__echo__say__start(timed->pair->client, &request, &options, timed_on_done,
                                             timed, NULL),
                     0);
    free(request.payload.data);
}

uint64_t timed_hold(struct timed *timed, uint64_t timeout_ns)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;
    uint64_t id = 0;

    options.timeout_ns = timeout_ns;
    timed->held = NULL;
    assert_int_equal(calls__echo__hold__start(timed->pair->client, &request, &options,
                                              timed_on_done, timed, &id),
                     0);
    timed_run(timed);
    assert_non_null(timed->held);
    return id;
}

void timed_run(struct timed *timed)
{
    assert_int_equal(bow_test_run(timed->test), 0);
}

void timed_advance(struct timed *timed, uint64_t by_ns)
{
    assert_int_equal(bow_test_advance(timed->test, by_ns), 0);
}
