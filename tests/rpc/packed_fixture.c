/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The service of packed.proto, its server and client, and what the server counted.
 */

#include "packed_fixture.h"

#include <bowline/payload.h>
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Messages: the size by the number, large ones of one byte, each fourth of noise. */

static size_t size_of(uint64_t number)
{
    static const size_t sizes[] = {LARGE, 0, SMALL, LARGE};

    return sizes[number % 4];
}

void packed_fill(struct packed *p, Packed__Blob *blob, uint64_t number)
{
    *blob = (Packed__Blob)PACKED__BLOB__INIT;
    blob->number = number;
    blob->body.len = size_of(number);
    blob->body.data = number % 4 == 3 ? p->noise : p->noise + LARGE;
}

void packed_expect(struct packed *p, const Packed__Blob *blob, uint64_t number)
{
    Packed__Blob expected;

    packed_fill(p, &expected, number);
    assert_non_null(blob);
    assert_int_equal(blob->number, number);
    assert_int_equal(blob->body.len, expected.body.len);
    if (blob->body.len > 0) {
        assert_memory_equal(blob->body.data, expected.body.data, blob->body.len);
    }
}

bool packed_asks(uint64_t number)
{
    return number % 16 < 8;
}

/* The others are empty, or noise. */
bool packed_is_mixed_in(uint64_t number)
{
    return packed_asks(number) && number % 2 == 0;
}

/* The service */

static void answer(struct bow_call *call, const Packed__Blob *request)
{
    Packed__Blob reply = PACKED__BLOB__INIT;

    reply.number = request->number;
    reply.body = request->body;
    reply.came_compressed = bow_call_request_was_compressed(call);
    if (request->reply_bytes > 0) {
        reply.body.data = bow_call_alloc(call, request->reply_bytes);
        reply.body.len = request->reply_bytes;
        memset(reply.body.data, 'r', reply.body.len);
    }
    if (request->wish != PACKED__WISH__NOTHING) {
        assert_int_equal(bow_call_compress(call, request->wish == PACKED__WISH__COMPRESS), 0);
    }
    (void)packed__packed__one__reply(call, &reply);
}

struct errand {
    struct bow_call *call;
    const Packed__Blob *request;
};

static void *answer_elsewhere(void *user)
{
    struct errand *errand = user;

    answer(errand->call, errand->request);
    return NULL;
}

static void one(struct bow_call *call, const Packed__Blob *request, void *user)
{
    struct errand errand = {call, request};
    pthread_t thread;

    (void)user;
    if (!request->elsewhere) {
        answer(call, request);
        return;
    }
    assert_int_equal(pthread_create(&thread, NULL, answer_elsewhere, &errand), 0);
    pthread_join(thread, NULL);
}

static void up_message(struct packed__packed__up__call call, const Packed__Blob *message,
                       void *user)
{
    struct packed *p = user;

    packed_expect(p, message, p->n_up);
    p->n_up_changed += bow_call_request_was_compressed(call.call) != packed_is_mixed_in(p->n_up);
    p->n_up++;
}

static void up_half_close(struct packed__packed__up__call call, void *user)
{
    struct packed *p = user;
    Packed__Blob reply;

    packed_fill(p, &reply, p->n_up);
    reply.came_compressed = p->n_up_changed > 0;
    (void)packed__packed__up__reply(call, &reply);
}

static void up(struct packed__packed__up__call call, void *user)
{
    static const struct packed__packed__up__call_events events = {.on_message = up_message,
                                                                  .on_half_close = up_half_close};

    ((struct packed *)user)->n_up = 0;
    ((struct packed *)user)->n_up_changed = 0;
    assert_int_equal(packed__packed__up__listen(call, &events, user), 0);
}

/* By turns as a message and as a payload. */
static int pour_one(struct packed *p, struct packed__packed__down__call call, uint64_t number,
                    bool mixed)
{
    struct bow_payload *payload = NULL;
    Packed__Blob blob;

    packed_fill(p, &blob, number);
    if (mixed) {
        assert_int_equal(bow_call_compress(call.call, packed_asks(number)), 0);
    }
    if (number / 4 % 2 == 0) {
        return packed__packed__down__send(call, &blob);
    }
    assert_int_equal(bow_payload_new(p->t->context, &blob.base, &payload), 0);
    int rc = bow_call_send_payload(call.call, payload);
    bow_payload_unref(payload);
    return rc;
}

struct pouring {
    struct packed *p;
    struct packed__packed__down__call call;
    uint32_t count;
    bool mixed;
};

static void *pour(void *user)
{
    struct pouring *pouring = user;

    for (uint32_t i = 0; i < pouring->count; i++) {
        while (pour_one(pouring->p, pouring->call, i, pouring->mixed) == -EAGAIN) {
            sched_yield();
        }
    }
    assert_int_equal(packed__packed__down__finish(pouring->call), 0);
    bow_call_unref(pouring->call.call);
    free(pouring);
    return NULL;
}

static void down(struct packed__packed__down__call call, const Packed__Blob *request, void *user)
{
    struct packed *p = user;
    struct pouring *pouring = NULL;

    if (request->elsewhere) {
        pouring = malloc(sizeof(*pouring));
        *pouring = (struct pouring){p, call, request->count, request->mixed};
        bow_call_ref(call.call);
        assert_int_equal(pthread_create(&p->t->helpers[p->t->n_helpers++], NULL, pour, pouring), 0);
        return;
    }
    for (uint32_t i = 0; i < request->count; i++) {
        assert_int_equal(pour_one(p, call, i, request->mixed), 0);
    }
    assert_int_equal(packed__packed__down__finish(call), 0);
}

static void both_message(struct packed__packed__both__call call, const Packed__Blob *message,
                         void *user)
{
    struct packed *p = user;
    Packed__Blob reply = *message;

    if (message->wish != PACKED__WISH__NOTHING) {
        int rc = bow_call_compress(call.call, message->wish == PACKED__WISH__COMPRESS);
        pthread_mutex_lock(&p->t->lock);
        p->compress_rc = rc;
        pthread_mutex_unlock(&p->t->lock);
    }
    reply.came_compressed = bow_call_request_was_compressed(call.call);
    assert_int_equal(packed__packed__both__send(call, &reply), 0);
}

static void both_half_close(struct packed__packed__both__call call, void *user)
{
    (void)user;
    assert_int_equal(packed__packed__both__finish(call), 0);
}

static void both(struct packed__packed__both__call call, void *user)
{
    static const struct packed__packed__both__call_events events = {
        .on_message = both_message, .on_half_close = both_half_close};

    assert_int_equal(packed__packed__both__listen(call, &events, user), 0);
}

/* Life */

int packed_setup(void **state)
{
    struct packed *p = calloc(1, sizeof(*p));
    void *calls = NULL;
    uint32_t seed = 1;

    calls_setup_bare(&calls);
    p->t = calls;
    p->noise = calloc(2, LARGE);
    for (size_t i = 0; i < LARGE; i++) {
        seed = seed * 1664525u + 1013904223u;
        p->noise[i] = (uint8_t)(seed >> 24);
    }
    calls_server_options(p->t, &p->server);
    calls_client_options(p->t, &p->options);
    p->options.loop = NULL;
    *state = p;
    return 0;
}

/* What is counted */

static void add_method(const struct bow_method_metrics *metrics, void *user)
{
    struct packed *p = user;

    p->bytes_in += metrics->bytes_in;
    p->bytes_out += metrics->bytes_out;
    p->total_ns += metrics->total_ns;
}

static void sum_up(struct packed *p)
{
    p->bytes_in = 0;
    p->bytes_out = 0;
    p->total_ns = 0;
    bow_server_each_method(p->t->server, add_method, p);
}

/* A call's time is shown last; so what is read after it is the whole. */
void packed_look(struct packed *p, uint64_t *ret_in, uint64_t *ret_out)
{
    uint64_t in = p->bytes_in;
    uint64_t out = p->bytes_out;
    uint64_t total_ns = p->total_ns;

    do {
        sum_up(p);
    } while (p->total_ns == total_ns);
    sum_up(p);
    *ret_in = p->bytes_in - in;
    *ret_out = p->bytes_out - out;
}

/* With the options as they are now. A first call brings what the sides can decode. */
void packed_start(struct packed *p)
{
    static const struct packed__packed__handlers handlers = {
        .one = one, .up = up, .down = down, .both = both};
    struct bow_result result = BOW_RESULT_INIT;
    Packed__Blob request = PACKED__BLOB__INIT;
    uint64_t in = 0;
    uint64_t out = 0;

    assert_int_equal(bow_server_new(&p->server, &p->t->server), 0);
    assert_int_equal(packed__packed__serve(p->t->server, &handlers, p), 0);
    if (p->before_start != NULL) {
        p->before_start(p);
    }
    assert_int_equal(bow_server_start(p->t->server), 0);
    if (calls_has_port()) {
        snprintf(p->t->address, sizeof(p->t->address), "127.0.0.1:%u",
                 bow_server_port(p->t->server));
    }
    snprintf(p->t->target, sizeof(p->t->target), "%s%s", calls_is_grpc() ? "grpc:" : "",
             p->t->address);
    p->options.target = p->t->target;
    assert_int_equal(bow_client_new(&p->options, &p->client), 0);
    assert_non_null(packed__packed__one__call(p->client, &request, NULL, &result));
    bow_result_fini(&result);
    packed_look(p, &in, &out);
}

int packed_setup_on(void **state)
{
    packed_setup(state);
    struct packed *p = *state;
    p->server.compression = BOW_COMPRESSION_AUTO;
    p->options.compression = BOW_COMPRESSION_AUTO;
    packed_start(p);
    return 0;
}

int packed_teardown(void **state)
{
    struct packed *p = *state;
    void *calls = p->t;

    bow_client_free(p->client);
    free(p->noise);
    free(p);
    return calls_teardown(&calls);
}
