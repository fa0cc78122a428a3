/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * See states_fixture.h. Whether a stream is over is read where the library has it, for asking
 * would be one of the things to be tested.
 */

#include "states_fixture.h"
#include "rpc/client/call/stream.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define PATIENCE_S 20
/* What one turn sends the next one receives; a few go back and forth for credit. */
#define N_TURNS_AT_REST 20

/* The server */

static void on_message(struct calls__echo__stream__call call, const Calls__Request *message,
                       void *user)
{
    (void)call;
    (void)message;
    (void)user;
}

static void on_half_close(struct calls__echo__stream__call call, void *user)
{
    struct states *s = user;

    (void)call;
    s->n_half_closes++;
}

static void on_call_writable(struct calls__echo__stream__call call, void *user)
{
    struct states *s = user;

    (void)call;
    s->n_writable++;
}

static void on_call_closed(struct calls__echo__stream__call call, const struct bow_status *status,
                           void *user)
{
    struct states *s = user;

    (void)call;
    (void)status;
    s->n_call_closed++;
}

int states_listen(struct states *s)
{
    static const struct calls__echo__stream__call_events events = {
        .on_message = on_message,
        .on_half_close = on_half_close,
        .on_writable = on_call_writable,
        .on_closed = on_call_closed,
    };

    return calls__echo__stream__listen((struct calls__echo__stream__call){s->call}, &events, s);
}

static void enter(struct calls__echo__stream__call call, void *user)
{
    struct states *s = user;

    s->call = bow_call_ref(call.call);
    if (!s->is_deaf) {
        assert_int_equal(states_listen(s), 0);
    }
    if (!s->reads) {
        bow_call_pause(call.call);
    }
}

/* The client */

static void on_reply(struct calls__echo__stream__stream stream, const Calls__Reply *message,
                     void *user)
{
    struct states *s = user;

    (void)message;
    if (s->n_messages++ == 0 && s->pauses) {
        bow_stream_pause(stream.stream);
    }
}

static void on_closed(struct calls__echo__stream__stream stream, struct bow_result *result,
                      void *user)
{
    struct states *s = user;

    (void)stream;
    s->n_closed++;
    s->code = result->status.code;
}

/* Life */

void states_prepare(struct states *s)
{
    static const struct calls__echo__handlers handlers = {.stream = enter};

    *s = (struct states){.code = BOW_OK};
    test_alloc_init(&s->alloc);
    s->context = test_context_new(&s->alloc);
    assert_int_equal(both_ends_open(&s->ends, s->context, &handlers, s), 0);
}

void states_begin(struct states *s, enum states_style style, uint64_t timeout_ns)
{
    static const struct calls__echo__stream__stream_events events = {
        .on_message = on_reply,
        .on_closed = on_closed,
    };
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct calls__echo__stream__stream stream;

    options.timeout_ns = timeout_ns;
    assert_int_equal(calls__echo__stream__open(s->ends.client, &options,
                                               style == CALLBACKS ? &events : NULL,
                                               style == CALLBACKS ? s : NULL, &stream),
                     0);
    s->stream = stream.stream;
}

static bool has_call(const struct states *s)
{
    return s->call != NULL;
}

void states_enter(struct states *s, enum states_style style, uint64_t timeout_ns)
{
    states_begin(s, style, timeout_ns);
    states_turn_until(s, has_call);
}

void states_close(struct states *s)
{
    bow_stream_unref(s->stream);
    if (s->call != NULL) {
        bow_call_unref(s->call);
    }
    both_ends_close(&s->ends);
    test_context_end(s->context, &s->alloc);
}

/* Turns */

void states_turn_until(struct states *s, bool (*is_true)(const struct states *s))
{
    time_t until = time(NULL) + PATIENCE_S;

    while (!is_true(s) && time(NULL) < until) {
        assert_int_equal(bow_loop_run_once(s->ends.loop, MS), 0);
    }
    assert_true(is_true(s));
}

void states_settle(struct states *s)
{
    for (int i = 0; i < N_TURNS_AT_REST; i++) {
        assert_int_equal(bow_loop_run_once(s->ends.loop, 0), 0);
    }
}

bool states_is_over(const struct states *s)
{
    return atomic_load(&s->stream->ended);
}

bool states_is_closed(const struct states *s)
{
    return bow__stream_is_blocking(s->stream) ? s->stream->closed : s->n_closed > 0;
}

/* Another thread */

struct errand {
    struct states *s;
    int (*fn)(struct states *s);
    int rc;
    atomic_bool is_done;
};

static void *run_errand(void *user)
{
    struct errand *errand = user;

    errand->rc = errand->fn(errand->s);
    atomic_store(&errand->is_done, true);
    return NULL;
}

int states_elsewhere(struct states *s, int (*fn)(struct states *s), bool turns)
{
    struct errand errand = {.s = s, .fn = fn};
    pthread_t thread;

    atomic_init(&errand.is_done, false);
    assert_int_equal(pthread_create(&thread, NULL, run_errand, &errand), 0);
    while (turns && !atomic_load(&errand.is_done)) {
        assert_int_equal(bow_loop_run_once(s->ends.loop, MS), 0);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    return errand.rc;
}

/* Messages */

int states_send(struct states *s, size_t n_payload)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    request.payload.data = calloc(1, n_payload + 1);
    request.payload.len = n_payload;
    int rc = bow_stream_send(s->stream, &request.base);
    free(request.payload.data);
    return rc;
}

int states_call_send(struct states *s, size_t n_payload)
{
    Calls__Reply reply = CALLS__REPLY__INIT;

    reply.payload.data = calloc(1, n_payload + 1);
    reply.payload.len = n_payload;
    int rc = bow_call_send(s->call, &reply.base);
    free(reply.payload.data);
    return rc;
}

int states_fill(struct states *s, int (*send)(struct states *s, size_t n_payload))
{
    int n_before = -1;
    int n = 0;
    int rc = 0;

    while (n > n_before) {
        n_before = n;
        while ((rc = send(s, 4000)) == 0) {
            n++;
            assert_true(n < 10000);
        }
        assert_int_equal(rc, -EAGAIN);
        states_settle(s);
    }
    return n;
}
