/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Talks between a server and its clients; see scale.h. */

#include "scale.h"

#include <bowline/call.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PATIENCE_NS (120000 * LAB_MS)
#define MAX_BODY_BYTES ((size_t)1 << 20)
#define N_BODIES 4096u

/* Bodies differ by where they begin in here. */
static uint8_t bodies[MAX_BODY_BYTES + N_BODIES];

static void fill_bodies(void)
{
    uint32_t x = 1;

    for (size_t i = 0; i < sizeof(bodies); i++) {
        x = x * 1664525u + 1013904223u;
        bodies[i] = (uint8_t)(x >> 24);
    }
}

static uint8_t *body_of(uint64_t id)
{
    return bodies + id % N_BODIES;
}

/* Memory */

static void grow(struct scale_memory *memory, size_t n)
{
    size_t now = atomic_fetch_add_explicit(&memory->n_bytes, n, memory_order_relaxed) + n;
    size_t peak = atomic_load_explicit(&memory->peak, memory_order_relaxed);

    while (now > peak && !atomic_compare_exchange_weak(&memory->peak, &peak, now)) {
    }
}

static void *count_alloc(void *user, size_t size)
{
    void *bytes = malloc(size);

    if (bytes != NULL) {
        grow(user, size);
    }
    return bytes;
}

static void count_free(void *user, void *bytes, size_t size)
{
    struct scale_memory *memory = user;

    free(bytes);
    atomic_fetch_sub_explicit(&memory->n_bytes, size, memory_order_relaxed);
}

static void *count_resize(void *user, void *bytes, size_t old_size, size_t new_size)
{
    struct scale_memory *memory = user;
    void *resized = realloc(bytes, new_size);

    if (resized != NULL) {
        grow(memory, new_size);
        atomic_fetch_sub_explicit(&memory->n_bytes, old_size, memory_order_relaxed);
    }
    return resized;
}

static struct bow_context *new_context(struct scale_memory *memory)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_context *context = NULL;

    memory->allocator = (struct bow_allocator){count_alloc, count_resize, count_free, memory};
    options.allocator = &memory->allocator;
    assert_int_equal(bow_context_new(&options, &context), 0);
    return context;
}

/* Both ends */

static void take(struct scale_end *end, const Lab__Blob *message, const struct scale_end *from)
{
    uint64_t id = atomic_fetch_add_explicit(&end->n_received, 1, memory_order_relaxed) + 1;

    if (message->id != id || message->body.len != from->body_bytes ||
        memcmp(message->body.data, body_of(id), message->body.len) != 0) {
        atomic_fetch_add(&end->n_bad, 1);
    }
}

static void fill_next(const struct scale_end *end, Lab__Blob *message)
{
    lab__blob__init(message);
    message->id = atomic_load_explicit(&end->n_sent, memory_order_relaxed) + 1;
    message->body.data = body_of(message->id);
    message->body.len = end->body_bytes;
}

/* Whether another one may be tried. */
static bool note_sent(struct scale_end *end, int rc)
{
    if (rc == 0) {
        atomic_fetch_add_explicit(&end->n_sent, 1, memory_order_relaxed);
        return true;
    }
    if (rc != -EAGAIN) {
        atomic_fetch_add(&end->n_refused, 1);
    }
    return false;
}

static bool has_more(const struct scale_end *end)
{
    return atomic_load_explicit(&end->n_sent, memory_order_relaxed) < end->n_to_send;
}

/* The server's end */

static void serve_on(struct lab__lab__chat__call call, void *user)
{
    struct scale_talk *talk = user;
    Lab__Blob message;
    bool goes_on = true;

    while (goes_on && has_more(&talk->server)) {
        fill_next(&talk->server, &message);
        goes_on = note_sent(&talk->server, lab__lab__chat__send(call, &message));
    }
    if (goes_on && talk->server.is_ended) {
        (void)lab__lab__chat__finish(call);
    }
}

static void on_server_message(struct lab__lab__chat__call call, const Lab__Blob *message,
                              void *user)
{
    struct scale_talk *talk = user;

    take(&talk->server, message, &talk->client);
    if (talk->server.reads_nothing) {
        bow_call_pause(call.call);
    }
}

static void on_server_half_close(struct lab__lab__chat__call call, void *user)
{
    struct scale_talk *talk = user;

    talk->server.is_ended = true;
    if (!has_more(&talk->server)) {
        (void)lab__lab__chat__finish(call);
    }
}

static void on_server_closed(struct lab__lab__chat__call call, const struct bow_status *status,
                             void *user)
{
    struct scale_talk *talk = user;

    (void)call;
    (void)status;
    atomic_fetch_add(&talk->n_served, 1);
}

static void serve(struct lab__lab__chat__call call, void *user)
{
    static const struct lab__lab__chat__call_events events = {
        .on_message = on_server_message,
        .on_half_close = on_server_half_close,
        .on_writable = serve_on,
        .on_closed = on_server_closed,
    };
    struct scale *t = user;
    struct scale_talk *talk = &t->talks[atomic_fetch_add(&t->n_entered, 1)];

    talk->call = bow_call_ref(call.call);
    (void)lab__lab__chat__listen(call, &events, talk);
    atomic_fetch_add(&talk->n_entered, 1);
    serve_on(call, talk);
}

/* The client's end */

static void say_on(struct lab__lab__chat__stream stream, void *user)
{
    struct scale_talk *talk = user;
    Lab__Blob message;
    bool goes_on = true;

    while (goes_on && has_more(&talk->client)) {
        fill_next(&talk->client, &message);
        goes_on = note_sent(&talk->client, lab__lab__chat__stream_send(stream, &message));
    }
    if (goes_on) {
        (void)bow_stream_half_close(stream.stream);
    }
}

static void on_client_message(struct lab__lab__chat__stream stream, const Lab__Blob *message,
                              void *user)
{
    struct scale_talk *talk = user;

    take(&talk->client, message, &talk->server);
    if (talk->client.reads_nothing) {
        bow_stream_pause(stream.stream);
    }
}

static void on_client_closed(struct lab__lab__chat__stream stream, struct bow_result *result,
                             void *user)
{
    struct scale_talk *talk = user;

    (void)stream;
    talk->code = result->status.code;
    snprintf(talk->message, sizeof(talk->message), "%s", result->status.message);
    atomic_fetch_add(&talk->n_closed, 1);
}

static int open_talk(void *user)
{
    static const struct lab__lab__chat__stream_events events = {
        .on_message = on_client_message,
        .on_writable = say_on,
        .on_closed = on_client_closed,
    };
    struct scale_talk *talk = user;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct lab__lab__chat__stream stream;
    size_t index = (size_t)(talk - talk->t->talks);

    options.timeout_ns = BOW_NEVER;
    int rc = lab__lab__chat__open(talk->t->client[index % 2], &options, &events, talk, &stream);
    if (rc < 0) {
        return rc;
    }
    talk->stream = stream.stream;
    say_on(stream, talk);
    return 0;
}

static int resume_client(void *user)
{
    struct scale_talk *talk = user;

    talk->client.reads_nothing = false;
    bow_stream_resume(talk->stream);
    return 0;
}

static int resume_server(void *user)
{
    struct scale_talk *talk = user;

    talk->server.reads_nothing = false;
    bow_call_resume(talk->call);
    return 0;
}

/* What tests call */

void scale_begin(struct scale *t, const char *prefix)
{
    struct bow_server_options server_options = BOW_SERVER_OPTIONS_INIT;
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    static const struct lab__lab__handlers handlers = {.chat = serve};
    char target[64];

    memset(t, 0, sizeof(*t));
    fill_bodies();
    t->server_context = new_context(&t->server_memory);
    t->client_context = new_context(&t->client_memory);
    server_options.context = t->server_context;
    server_options.listen = "127.0.0.1:0";
    server_options.workers = 1;
    assert_int_equal(bow_server_new(&server_options, &t->server), 0);
    assert_int_equal(lab__lab__serve(t->server, &handlers, t), 0);
    assert_int_equal(bow_server_start(t->server), 0);
    snprintf(target, sizeof(target), "%s127.0.0.1:%u", prefix, bow_server_port(t->server));
    assert_int_equal(bow_loop_new(t->client_context, NULL, &t->loop), 0);
    options.context = t->client_context;
    options.target = target;
    options.loop = t->loop;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(bow_client_new(&options, &t->client[i]), 0);
    }
}

void scale_end(struct scale *t)
{
    scale_forget(t, 0);
    bow_client_free(t->client[0]);
    bow_client_free(t->client[1]);
    bow_server_free(t->server);
    bow_loop_unref(t->loop);
    assert_int_equal(bow_context_bytes(t->client_context), 0);
    assert_int_equal(bow_context_bytes(t->server_context), 0);
    bow_context_unref(t->client_context);
    bow_context_unref(t->server_context);
}

struct scale_talk *scale_talk(struct scale *t, unsigned index, const struct scale_wish *wish)
{
    struct scale_talk *talk = &t->talks[index];

    assert_int_equal(atomic_load(&t->n_entered), index);
    talk->t = t;
    talk->client.n_to_send = wish->n_from_client;
    talk->server.n_to_send = wish->n_from_server;
    talk->client.body_bytes = wish->body_bytes;
    talk->server.body_bytes = wish->body_bytes;
    talk->client.reads_nothing = wish->client_stalls;
    talk->server.reads_nothing = wish->server_stalls;
    assert_int_equal(bow_loop_execute(t->loop, "open", open_talk, talk), 0);
    assert_true(lab_wait_count(&talk->n_entered, 1, PATIENCE_NS));
    return talk;
}

void scale_read_on(struct scale_talk *talk)
{
    assert_int_equal(bow_loop_execute(talk->t->loop, "resume", resume_client, talk), 0);
    assert_int_equal(bow_loop_execute(bow_call_loop(talk->call), "resume", resume_server, talk), 0);
}

static void expect_end(const struct scale_end *end, const struct scale_end *other)
{
    assert_int_equal(atomic_load(&end->n_refused), 0);
    assert_int_equal(atomic_load(&end->n_bad), 0);
    assert_int_equal(atomic_load(&end->n_sent), end->n_to_send);
    assert_int_equal(atomic_load(&end->n_received), other->n_to_send);
}

void scale_expect_all(struct scale_talk *talk)
{
    assert_true(lab_wait_count(&talk->n_closed, 1, PATIENCE_NS));
    assert_true(lab_wait_count(&talk->n_served, 1, PATIENCE_NS));
    if (talk->code != BOW_OK) {
        fail_msg("%s: %s", bow_code_name(talk->code), talk->message);
    }
    expect_end(&talk->client, &talk->server);
    expect_end(&talk->server, &talk->client);
    assert_int_equal(atomic_load(&talk->n_closed), 1);
    assert_int_equal(atomic_load(&talk->n_served), 1);
}

void scale_forget(struct scale *t, unsigned first)
{
    for (unsigned i = first; i < SCALE_MAX_TALKS; i++) {
        bow_stream_unref(t->talks[i].stream);
        if (t->talks[i].call != NULL) {
            bow_call_unref(t->talks[i].call);
        }
        memset(&t->talks[i], 0, sizeof(t->talks[i]));
    }
    atomic_store(&t->n_entered, first);
}
