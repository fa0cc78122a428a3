/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One payload on many compressed streams, of two loops of the client's and two of the server's:
 * the test's thread sends one to the server, whose loops answer each of its copies with another.
 */

#include "call_fixture.h"
#include "protos/packed.bow.h"
#include "rpc/core/compression/encodings.h"
#include "rpc/core/message/payload.h"

#include <bowline/stream.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N_CLIENTS = 2, N_EACH = 8, N_STREAMS = N_CLIENTS * N_EACH, N_ROUNDS = 30 };

#define BODY_BYTES ((size_t)64 << 10)

struct fanout {
    struct calls *t;
    struct bow_loop *loops[N_CLIENTS];
    struct bow_client *clients[N_CLIENTS];
    struct bow_stream *streams[N_STREAMS];
    struct bow_payload *_Atomic answer; /* of the server's, in this round */
    uint8_t *body;

    int n_served; /* under the lock of t, as all below */
    int n_received;
    int n_bad;
    int n_closed;
};

static void count(struct fanout *f, int *counter, bool is_good)
{
    pthread_mutex_lock(&f->t->lock);
    (*counter)++;
    f->n_bad += !is_good;
    pthread_cond_broadcast(&f->t->changed);
    pthread_mutex_unlock(&f->t->lock);
}

static bool is_whole(const struct fanout *f, const Packed__Blob *blob)
{
    return blob->body.len == BODY_BYTES && memcmp(blob->body.data, f->body, BODY_BYTES) == 0;
}

/* The server */

static void on_request(struct packed__packed__both__call call, const Packed__Blob *message,
                       void *user)
{
    struct fanout *f = user;
    bool is_good = is_whole(f, message);

    is_good = bow_call_send_payload(call.call, atomic_load(&f->answer)) == 0 && is_good;
    count(f, &f->n_served, is_good);
}

static void on_half_close(struct packed__packed__both__call call, void *user)
{
    (void)user;
    (void)packed__packed__both__finish(call);
}

static void both(struct packed__packed__both__call call, void *user)
{
    static const struct packed__packed__both__call_events events = {
        .on_message = on_request,
        .on_half_close = on_half_close,
    };

    (void)packed__packed__both__listen(call, &events, user);
}

static void one(struct bow_call *call, const Packed__Blob *request, void *user)
{
    (void)user;
    (void)packed__packed__one__reply(call, request);
}

static void serve(struct fanout *f)
{
    static const struct packed__packed__handlers handlers = {.one = one, .both = both};
    struct bow_server_options options;
    struct calls *t = f->t;

    calls_server_options(t, &options);
    options.workers = 2;
    options.compression = BOW_COMPRESSION_AUTO;
    assert_int_equal(bow_server_new(&options, &t->server), 0);
    assert_int_equal(packed__packed__serve(t->server, &handlers, f), 0);
    assert_int_equal(bow_server_start(t->server), 0);
    if (calls_has_port()) {
        snprintf(t->address, sizeof(t->address), "127.0.0.1:%u", bow_server_port(t->server));
    }
    snprintf(t->target, sizeof(t->target), "%s%s", calls_is_grpc() ? "grpc:" : "", t->address);
}

/* The clients */

static void on_answer(struct packed__packed__both__stream stream, const Packed__Blob *message,
                      void *user)
{
    struct fanout *f = user;

    (void)stream;
    count(f, &f->n_received, is_whole(f, message));
}

static void on_closed(struct packed__packed__both__stream stream, struct bow_result *result,
                      void *user)
{
    struct fanout *f = user;

    (void)stream;
    count(f, &f->n_closed, result->status.code == BOW_OK);
}

static void join(struct fanout *f, int i)
{
    static const struct packed__packed__both__stream_events events = {
        .on_message = on_answer,
        .on_closed = on_closed,
    };
    struct bow_client_options options;
    struct bow_result result = BOW_RESULT_INIT;
    Packed__Blob request = PACKED__BLOB__INIT;

    calls_client_options(f->t, &options);
    assert_int_equal(bow_loop_new(f->t->context, NULL, &f->loops[i]), 0);
    options.loop = f->loops[i];
    options.compression = BOW_COMPRESSION_AUTO;
    assert_int_equal(bow_client_new(&options, &f->clients[i]), 0);
    /* It learns what the server takes. */
    assert_non_null(packed__packed__one__call(f->clients[i], &request, NULL, &result));
    bow_result_fini(&result);
    for (int k = i * N_EACH; k < (i + 1) * N_EACH; k++) {
        struct packed__packed__both__stream stream;
        assert_int_equal(packed__packed__both__open(f->clients[i], NULL, &events, f, &stream), 0);
        f->streams[k] = stream.stream;
    }
}

static int setup(void **state)
{
    struct fanout *f = calloc(1, sizeof(*f));
    void *calls = NULL;

    assert_int_equal(calls_setup_bare(&calls), 0);
    f->t = calls;
    f->body = malloc(BODY_BYTES);
    memset(f->body, 'b', BODY_BYTES);
    serve(f);
    for (int i = 0; i < N_CLIENTS; i++) {
        join(f, i);
    }
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fanout *f = *state;
    void *calls = f->t;

    for (int i = 0; i < N_CLIENTS; i++) {
        bow_client_free(f->clients[i]);
        bow_loop_unref(f->loops[i]);
    }
    free(f->body);
    free(f);
    return calls_teardown(&calls);
}

static struct bow_payload *payload_of(struct fanout *f)
{
    Packed__Blob blob = PACKED__BLOB__INIT;
    struct bow_payload *payload = NULL;

    blob.body.data = f->body;
    blob.body.len = BODY_BYTES;
    assert_int_equal(bow_payload_new(f->t->context, &blob.base, &payload), 0);
    return payload;
}

static void expect_one_form(struct bow_payload *payload)
{
    const struct bow__form *form = atomic_load(&payload->forms);

    assert_non_null(form);
    assert_non_null(form->block);
    assert_null(form->next);
    bow_payload_unref(payload);
}

static void test_fanout_compresses_once_for_all_streams(void **state)
{
    struct fanout *f = *state;

    for (int round = 1; round <= N_ROUNDS; round++) {
        struct bow_payload *request = payload_of(f);
        atomic_store(&f->answer, payload_of(f));
        for (int i = 0; i < N_STREAMS; i++) {
            assert_int_equal(bow_stream_send_payload(f->streams[i], request), 0);
        }
        calls_wait(f->t, &f->n_received, round * N_STREAMS);
        calls_wait(f->t, &f->n_served, round * N_STREAMS);
        expect_one_form(request);
        expect_one_form(atomic_load(&f->answer));
    }
    for (int i = 0; i < N_STREAMS; i++) {
        assert_int_equal(bow_stream_half_close(f->streams[i]), 0);
        bow_stream_unref(f->streams[i]);
    }
    calls_wait(f->t, &f->n_closed, N_STREAMS);
    assert_int_equal(f->n_bad, 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_fanout_compresses_once_for_all_streams, setup,
                                        teardown),
    };

    calls_choose(argc, argv);
    if (bow__encodings_built() == 1u << BOW__ENCODING_IDENTITY) {
        puts("skipped: this build has no encoding");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
