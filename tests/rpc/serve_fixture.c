/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The methods of serve_fixture.h, their events, and ways to wait.
 */

#include "serve_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* Counting */

static void count(struct serving *s, int *counter)
{
    pthread_mutex_lock(&s->t->lock);
    (*counter)++;
    bool is_event = counter == &s->n_messages || counter == &s->n_half_closes ||
                    counter == &s->n_writable || counter == &s->n_closed;
    s->n_after_closed += is_event && s->n_closed > (counter == &s->n_closed);
    pthread_cond_broadcast(&s->t->changed);
    pthread_mutex_unlock(&s->t->lock);
}

void serve_step(struct serving *s)
{
    count(s, &s->n_steps);
}

int serve_count(struct serving *s, const int *counter)
{
    pthread_mutex_lock(&s->t->lock);
    int n = *counter;
    pthread_mutex_unlock(&s->t->lock);
    return n;
}

void serve_wait(struct serving *s, const int *counter, int n)
{
    calls_wait(s->t, counter, n);
}

void serve_wait_serving(struct serving *s, const int *counter, int n)
{
    struct timespec begin;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        (void)session_peer_serve(&s->peer, 1);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (serve_count(s, counter) < n && now.tv_sec - begin.tv_sec < 20);
    assert_true(serve_count(s, counter) >= n);
}

/* Events. What they are given for `events` and `user` is checked here once for all tests. */

static const int events_of_mine;

static struct serving *serving_of(const void *events, void *user)
{
    assert_ptr_equal(events, &events_of_mine);
    return user;
}

static void on_message(struct bow_call *call, const void *message, const void *events, void *user)
{
    struct serving *s = serving_of(events, user);
    const Calls__Request *request = message;

    if (s->in_message != NULL) {
        s->in_message(s, call);
    }
    pthread_mutex_lock(&s->t->lock);
    s->n_disordered += s->n_messages > 0 && request->number != s->last_number + 1;
    s->last_number = request->number;
    pthread_mutex_unlock(&s->t->lock);
    count(s, &s->n_messages);
}

static void on_half_close(struct bow_call *call, const void *events, void *user)
{
    struct serving *s = serving_of(events, user);

    if (s->in_half_close != NULL) {
        s->in_half_close(s, call);
    }
    count(s, &s->n_half_closes);
}

static void on_writable(struct bow_call *call, const void *events, void *user)
{
    struct serving *s = serving_of(events, user);

    if (s->in_writable != NULL) {
        s->in_writable(s, call);
    }
    count(s, &s->n_writable);
}

static void on_closed(struct bow_call *call, const struct bow_status *status, const void *events,
                      void *user)
{
    struct serving *s = serving_of(events, user);

    if (s->in_closed != NULL) {
        s->in_closed(s, call);
    }
    pthread_mutex_lock(&s->t->lock);
    s->code = status->code;
    snprintf(s->text, sizeof(s->text), "%s", status->message);
    pthread_mutex_unlock(&s->t->lock);
    count(s, &s->n_closed);
}

/* The service */

struct handlers {
    int unused;
};

void serve_listen(struct serving *s, struct bow_call *call)
{
    assert_int_equal(bow_call_listen(call, &events_of_mine, s), 0);
}

static bool invoke(struct bow_call *call, const void *request, const void *handlers, void *user)
{
    struct serving *s = user;

    (void)handlers;
    pthread_mutex_lock(&s->t->lock);
    s->call = call;
    s->loop = bow_call_loop(call);
    s->request_number = request != NULL ? ((const Calls__Request *)request)->number : 0;
    pthread_mutex_unlock(&s->t->lock);
    if (s->enter != NULL) {
        s->enter(s, call);
    } else {
        serve_listen(s, call);
    }
    count(s, &s->n_entered);
    return true;
}

static const struct bow_call_thunks thunks_in = {
    .on_message = on_message,
    .on_half_close = on_half_close,
    .on_writable = on_writable,
    .on_closed = on_closed,
};
static const struct bow_call_thunks thunks_out = {.on_writable = on_writable,
                                                  .on_closed = on_closed};

static const struct bow_method methods[] = {
    {
        .path = SERVE_BOTH,
        .name = "Both",
        .input = &calls__request__descriptor,
        .output = &calls__reply__descriptor,
        .invoke = invoke,
        .call_thunks = &thunks_in,
        .flags = BOW_METHOD_CLIENT_STREAMING | BOW_METHOD_SERVER_STREAMING,
    },
    {
        .path = SERVE_GATHER,
        .name = "Gather",
        .input = &calls__request__descriptor,
        .output = &calls__reply__descriptor,
        .invoke = invoke,
        .call_thunks = &thunks_in,
        .flags = BOW_METHOD_CLIENT_STREAMING,
    },
    {
        .path = SERVE_POUR,
        .name = "Pour",
        .input = &calls__request__descriptor,
        .output = &calls__reply__descriptor,
        .invoke = invoke,
        .call_thunks = &thunks_out,
        .flags = BOW_METHOD_SERVER_STREAMING,
    },
    {
        .path = SERVE_PLAIN,
        .name = "Plain",
        .input = &calls__request__descriptor,
        .output = &calls__reply__descriptor,
        .invoke = invoke,
    },
};

static const struct bow_service service = {
    .abi = BOW_SERVICE_ABI,
    .name = "calls.Kinds",
    .methods = methods,
    .n_methods = sizeof(methods) / sizeof(methods[0]),
    .hash = 1,
    .handlers_size = sizeof(struct handlers),
};

/* Life */

int serve_setup_bare(void **state)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct serving *s = calloc(1, sizeof(*s));
    void *calls = NULL;

    assert_non_null(s);
    assert_int_equal(calls_setup_bare(&calls), 0);
    assert_int_equal(bow_context_new(&options, &s->peer_context), 0);
    s->t = calls;
    *state = s;
    return 0;
}

void serve_start(struct serving *s, const struct bow_server_options *options)
{
    struct calls *t = s->t;
    const struct handlers handlers = {0};

    assert_int_equal(bow_server_new(options, &t->server), 0);
    assert_int_equal(bow_server_add_service(t->server, &service, &handlers, sizeof(handlers), 1, s),
                     0);
    if (s->before_start != NULL) {
        s->before_start(s);
    }
    assert_int_equal(bow_server_start(t->server), 0);
    if (calls_has_port()) {
        snprintf(t->address, sizeof(t->address), "127.0.0.1:%u", bow_server_port(t->server));
    }
}

void serve_connect(struct serving *s)
{
    session_peer_begin(&s->peer, s->peer_context, calls_raw_connect(s->t), false, calls_is_grpc());
    s->has_peer = true;
    session_peer_wait(&s->peer, &s->peer.n_readies, 1);
}

int serve_setup(void **state)
{
    struct bow_server_options options;

    assert_int_equal(serve_setup_bare(state), 0);
    struct serving *s = *state;
    calls_server_options(s->t, &options);
    serve_start(s, &options);
    serve_connect(s);
    return 0;
}

int serve_teardown(void **state)
{
    struct serving *s = *state;
    void *calls = s->t;

    if (s->has_peer) {
        session_peer_end(&s->peer);
    }
    assert_int_equal(bow_context_bytes(s->peer_context), 0);
    bow_context_unref(s->peer_context);
    bow_server_free(s->t->server);
    s->t->server = NULL;
    assert_true(s->n_closed <= s->n_entered);
    assert_int_equal(s->n_after_closed, 0);
    assert_int_equal(calls_teardown(&calls), 0);
    free(s);
    return 0;
}

void serve_begin(struct serving *s, const char *path)
{
    session_peer_begin_stream(&s->peer, path, BOW_NEVER, NULL);
    if (strcmp(path, SERVE_POUR) == 0 || strcmp(path, SERVE_PLAIN) == 0) {
        serve_peer_send(s, BOW__SEND_END, 1);
    }
    serve_wait(s, &s->n_entered, 1);
}

/* Messages */

void serve_peer_send_sized(struct serving *s, uint32_t flags, uint64_t number, size_t n_payload)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    request.number = number;
    request.payload.len = n_payload;
    request.payload.data = calloc(1, n_payload + 1);
    size_t n = calls__request__get_packed_size(&request);
    uint8_t *bytes = malloc(n + 1);
    assert_non_null(bytes);
    (void)calls__request__pack(&request, bytes);
    session_peer_send(&s->peer, flags, bytes, n);
    free(bytes);
    free(request.payload.data);
}

void serve_peer_send(struct serving *s, uint32_t flags, uint64_t number)
{
    serve_peer_send_sized(s, flags, number, 0);
}

int serve_send_sized(struct bow_call *call, uint64_t number, size_t n_payload)
{
    Calls__Reply reply = CALLS__REPLY__INIT;

    reply.number = number;
    reply.payload.len = n_payload;
    reply.payload.data = calloc(1, n_payload + 1);
    int rc = bow_call_send(call, &reply.base);
    free(reply.payload.data);
    return rc;
}

int serve_send(struct bow_call *call, uint64_t number)
{
    return serve_send_sized(call, number, 0);
}

int serve_reply(struct bow_call *call, uint64_t number)
{
    Calls__Reply reply = CALLS__REPLY__INIT;

    reply.number = number;
    return bow_call_reply(call, &reply.base);
}

/* What is expected */

void serve_expect_closed(struct serving *s, enum bow_code code, const char *words)
{
    serve_wait(s, &s->n_closed, 1);
    assert_int_equal(s->n_closed, 1);
    if (s->code != code || strstr(s->text, words) == NULL) {
        fail_msg("%s: %s", bow_code_name(s->code), s->text);
    }
}

void serve_expect_status(struct serving *s, enum bow_code code, const char *words)
{
    session_peer_wait(&s->peer, &s->peer.n_ends, 1);
    if (s->peer.code != code || strstr(s->peer.text, words) == NULL) {
        fail_msg("%s: %s", bow_code_name(s->peer.code), s->peer.text);
    }
}

struct errand {
    struct serving *s;
    void (*fn)(struct serving *s);
    int n_done;
};

static int run_errand(void *user)
{
    struct errand *errand = user;

    errand->fn(errand->s);
    count(errand->s, &errand->n_done);
    return 0;
}

void serve_on_loop(struct serving *s, void (*fn)(struct serving *s))
{
    struct errand errand = {.s = s, .fn = fn};

    assert_int_equal(bow_loop_execute(s->loop, "errand", run_errand, &errand), 0);
    serve_wait(s, &errand.n_done, 1);
}
