/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The client's side of stream tests; see stream_fixture.h.
 */

#include "stream_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

const struct streams_events streams_events;

/* Events */

static void note(struct streams *s, int *counter)
{
    pthread_mutex_lock(&s->t->lock);
    s->n_after_closed += s->n_closed > 0;
    (*counter)++;
    pthread_cond_broadcast(&s->t->changed);
    pthread_mutex_unlock(&s->t->lock);
}

static void on_headers(struct bow_stream *stream, const struct bow_metadata *initial,
                       const void *events, void *user)
{
    struct streams *s = user;

    assert_ptr_equal(events, &streams_events);
    assert_ptr_equal(bow_stream_loop(stream), s->t->loop);
    if (initial->n > 0) {
        snprintf(s->initial, sizeof(s->initial), "%s=%s", initial->entries[0].key,
                 (const char *)initial->entries[0].value.data);
    }
    note(s, &s->n_headers);
}

static void on_message(struct bow_stream *stream, const void *message, const void *events,
                       void *user)
{
    const Calls__Reply *reply = message;
    struct streams *s = user;

    (void)events;
    if (s->in_message != NULL) {
        s->in_message(s, stream);
    }
    pthread_mutex_lock(&s->t->lock);
    s->n_disordered += s->n_messages > 0 && reply->number != s->last_number + 1;
    s->last_number = reply->number;
    pthread_mutex_unlock(&s->t->lock);
    note(s, &s->n_messages);
}

static void on_writable(struct bow_stream *stream, const void *events, void *user)
{
    struct streams *s = user;

    (void)events;
    if (s->in_writable != NULL) {
        s->in_writable(s, stream);
    }
    note(s, &s->n_writable);
}

static void on_closed(struct bow_stream *stream, struct bow_result *result, const void *events,
                      void *user)
{
    struct streams *s = user;

    (void)events;
    if (s->in_closed != NULL) {
        s->in_closed(s, stream);
    }
    bow_stream_unref(stream); /* the opener's; who uses it longer has another */
    pthread_mutex_lock(&s->t->lock);
    bow_result_fini(&s->result);
    bow_result_move(&s->result, result);
    pthread_mutex_unlock(&s->t->lock);
    note(s, &s->n_closed);
}

/* Methods */

static const struct bow_stream_thunks thunks = {on_headers, on_message, on_writable, on_closed};
static const struct bow_stream_thunks gather_thunks = {on_headers, NULL, on_writable, on_closed};

const struct bow_method streams_both = {
    .path = "/calls.Echo/Both",
    .name = "Both",
    .input = &calls__request__descriptor,
    .output = &calls__reply__descriptor,
    .stream_thunks = &thunks,
    .flags = BOW_METHOD_CLIENT_STREAMING | BOW_METHOD_SERVER_STREAMING,
};

const struct bow_method streams_pour = {
    .path = "/calls.Echo/Pour",
    .name = "Pour",
    .input = &calls__request__descriptor,
    .output = &calls__reply__descriptor,
    .stream_thunks = &thunks,
    .flags = BOW_METHOD_SERVER_STREAMING,
};

const struct bow_method streams_gather = {
    .path = "/calls.Echo/Gather",
    .name = "Gather",
    .input = &calls__request__descriptor,
    .output = &calls__reply__descriptor,
    .stream_thunks = &gather_thunks,
    .flags = BOW_METHOD_CLIENT_STREAMING,
};

/* Life */

static struct streams *setup(void **state)
{
    struct streams *s = calloc(1, sizeof(*s));
    void *calls = NULL;

    assert_non_null(s);
    calls_setup_bare(&calls);
    s->t = calls;
    s->result = (struct bow_result)BOW_RESULT_INIT;
    s->listening = calls_raw_listen(s->t);
    *state = s;
    return s;
}

int streams_setup(void **state)
{
    struct streams *s = setup(state);
    struct bow_client_options options;

    calls_client_options(s->t, &options);
    s->t->client = calls_new_client(s->t, &options);
    return 0;
}

int streams_setup_confined(void **state)
{
    struct streams *s = setup(state);
    struct bow_client_options options;

    calls_client_options(s->t, &options);
    options.loop = NULL;
    s->t->client = calls_new_client(s->t, &options);
    return 0;
}

int streams_teardown(void **state)
{
    struct streams *s = *state;
    void *calls = s->t;

    bow_client_free(s->t->client);
    s->t->client = NULL;
    assert_int_equal(s->n_after_closed, 0);
    if (s->peer.session != NULL) {
        stream_peer_end(&s->peer);
    }
    close(s->listening);
    bow_result_fini(&s->result);
    free(s);
    return calls_teardown(&calls);
}

/* Steps */

static void open(struct streams *s, const struct bow_method *method,
                 const struct bow_call_options *options, const void *events)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    bool has_request = (method->flags & BOW_METHOD_CLIENT_STREAMING) == 0;

    assert_int_equal(bow_client_open(s->t->client, method, has_request ? &request.base : NULL,
                                     options, events, s, &s->stream),
                     0);
    assert_non_null(s->stream);
}

void streams_open(struct streams *s, const struct bow_method *method,
                  const struct bow_call_options *options)
{
    open(s, method, options, &streams_events);
}

void streams_open_blocking(struct streams *s, const struct bow_method *method,
                           const struct bow_call_options *options)
{
    open(s, method, options, NULL);
}

void streams_accept(struct streams *s)
{
    stream_peer_accept(&s->peer, s->t->context, s->listening, calls_is_grpc());
    stream_peer_wait(&s->peer, &s->peer.n_opens, 1);
}

void streams_begin(struct streams *s, const struct bow_method *method)
{
    streams_open(s, method, NULL);
    streams_accept(s);
}

int streams_send(struct bow_stream *stream, uint64_t number)
{
    return streams_send_sized(stream, number, 0);
}

int streams_send_sized(struct bow_stream *stream, uint64_t number, size_t n_payload)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    request.number = number;
    request.payload.len = n_payload;
    request.payload.data = calloc(1, n_payload + 1);
    int rc = bow_stream_send(stream, &request.base);
    free(request.payload.data);
    return rc;
}

/* Waiting */

void streams_wait(struct streams *s, const int *counter, int n)
{
    calls_wait(s->t, counter, n);
}

static int value_of(struct streams *s, const int *counter)
{
    pthread_mutex_lock(&s->t->lock);
    int value = *counter;
    pthread_mutex_unlock(&s->t->lock);
    return value;
}

void streams_wait_serving(struct streams *s, const int *counter, int n)
{
    while (value_of(s, counter) < n) {
        stream_peer_serve(&s->peer, 10);
    }
}

void streams_expect_closed(struct streams *s, enum bow_code code, const char *words)
{
    streams_wait(s, &s->n_closed, 1);
    assert_int_equal(s->n_closed, 1);
    if (s->result.status.code != code ||
        (words != NULL && strstr(s->result.status.message, words) == NULL)) {
        fail_msg("%s: %s", bow_code_name(s->result.status.code), s->result.status.message);
    }
}

struct step {
    struct streams *s;
    void (*fn)(struct streams *s);
    int n_done;
};

static int run_step(void *user)
{
    struct step *step = user;

    step->fn(step->s);
    pthread_mutex_lock(&step->s->t->lock);
    step->n_done++;
    pthread_cond_broadcast(&step->s->t->changed);
    pthread_mutex_unlock(&step->s->t->lock);
    return 0;
}

void streams_on_loop(struct streams *s, void (*fn)(struct streams *s))
{
    struct step step = {.s = s, .fn = fn};

    assert_int_equal(bow_loop_execute(s->t->loop, "test", run_step, &step), 0);
    streams_wait(s, &step.n_done, 1);
}
