/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The service of the matrix test: one method a kind, and for each kind one that the server does not
 * have. What a handler does is said by the cell's story. See matrix.h.
 */

#include "matrix.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

bool matrix_client_streams(enum matrix_kind kind)
{
    return kind == MATRIX_CLIENT || kind == MATRIX_BIDI;
}

bool matrix_server_streams(enum matrix_kind kind)
{
    return kind == MATRIX_SERVER || kind == MATRIX_BIDI;
}

void matrix_message(Lab__Blob *message, int n, bool is_empty)
{
    static uint8_t body[MATRIX_BODY_BYTES];

    lab__blob__init(message);
    if (is_empty) {
        return;
    }
    memset(body, 'a' + n, sizeof(body));
    message->id = (uint64_t)n;
    message->body.data = body;
    message->body.len = sizeof(body);
}

bool matrix_is_message(const Lab__Blob *message, int n, bool is_empty)
{
    if (is_empty) {
        return message->id == 0 && message->body.len == 0;
    }
    return message->id == (uint64_t)n && message->body.len == MATRIX_BODY_BYTES &&
           message->body.data[0] == 'a' + n && message->body.data[MATRIX_BODY_BYTES - 1] == 'a' + n;
}

static bool is_empty_story(const struct matrix *m)
{
    return m->cell->kind == MATRIX_UNARY && m->cell->story == MATRIX_HALF_CLOSE;
}

static bool is_left_open(const struct matrix *m)
{
    return m->cell->story == MATRIX_CANCEL || m->cell->story == MATRIX_DEADLINE;
}

/* What a handler does */

static void send_one(struct matrix *m, struct bow_call *call)
{
    Lab__Blob message;

    matrix_message(&message, ++m->served.n_sent, false);
    int rc = bow_call_send(call, &message.base);
    /* A connection that was lost meanwhile is no fault of the call's. */
    assert_true(rc == 0 || (rc == -ECANCELED && m->cell->story == MATRIX_LOSS));
}

static void say_no(struct bow_call *call)
{
    assert_int_equal(bow_call_fail(call, BOW_FAILED_PRECONDITION, "the handler says no"), 0);
}

/* The one reply of a method whose server sends one. */
static void answer(struct matrix *m, struct bow_call *call)
{
    Lab__Blob message;

    if (m->cell->story == MATRIX_ERROR) {
        say_no(call);
        return;
    }
    matrix_message(&message, ++m->served.n_sent, is_empty_story(m));
    int rc = bow_call_reply(call, &message.base);
    assert_true(rc == 0 || (rc == -ECANCELED && m->cell->story == MATRIX_LOSS));
}

static void finish(struct matrix *m, struct bow_call *call)
{
    if (m->cell->story == MATRIX_ERROR) {
        say_no(call);
        return;
    }
    int rc = bow_call_finish(call);
    assert_true(rc == 0 || (rc == -ECANCELED && m->cell->story == MATRIX_LOSS));
}

static void note_message(struct matrix *m, const Lab__Blob *message)
{
    m->served.n_messages++;
    m->served.n_disordered += !matrix_is_message(message, m->served.n_messages, is_empty_story(m));
}

/* Events of a streaming call */

static void on_message(struct bow_call *call, const void *message, const void *events, void *user)
{
    struct matrix *m = user;

    (void)events;
    note_message(m, message);
    if (m->cell->kind == MATRIX_BIDI) {
        send_one(m, call);
    }
    if (m->cell->story == MATRIX_EARLY) {
        m->cell->kind == MATRIX_BIDI ? finish(m, call) : answer(m, call);
    }
}

static void on_half_close(struct bow_call *call, const void *events, void *user)
{
    struct matrix *m = user;

    (void)events;
    m->served.n_half_closes++;
    if (is_left_open(m)) {
        return;
    }
    if (m->cell->kind == MATRIX_CLIENT) {
        answer(m, call);
        return;
    }
    for (int i = 0; m->cell->story == MATRIX_HALF_CLOSE && i < MATRIX_MANY; i++) {
        send_one(m, call);
    }
    finish(m, call);
}

static void on_closed(struct bow_call *call, const struct bow_status *status, const void *events,
                      void *user)
{
    struct matrix *m = user;

    (void)call;
    (void)events;
    m->served.n_ended++;
    m->served.code = status->code;
}

/* Handlers */

static void on_cancel(struct bow_call *call, enum bow_code why, void *user)
{
    struct matrix *m = user;

    (void)call;
    m->served.n_ended++;
    m->served.code = why;
}

static bool serve_unary(struct bow_call *call, const void *request, const void *handlers,
                        void *user)
{
    struct matrix *m = user;

    (void)handlers;
    m->served.n_entered++;
    note_message(m, request);
    if (is_left_open(m)) {
        m->served.held = call;
        bow_call_on_cancel(call, on_cancel, m);
        return true;
    }
    answer(m, call);
    m->served.n_ended++;
    return true;
}

static bool serve_client_streaming(struct bow_call *call, const void *request, const void *handlers,
                                   void *user)
{
    struct matrix *m = user;

    (void)request;
    (void)handlers;
    m->served.n_entered++;
    assert_int_equal(bow_call_listen(call, m, m), 0);
    return true;
}

static bool serve_server_streaming(struct bow_call *call, const void *request, const void *handlers,
                                   void *user)
{
    struct matrix *m = user;

    (void)handlers;
    m->served.n_entered++;
    note_message(m, request);
    assert_int_equal(bow_call_listen(call, m, m), 0);
    for (int i = 0; m->cell->story != MATRIX_EARLY && i < MATRIX_MANY; i++) {
        send_one(m, call);
    }
    if (!is_left_open(m)) {
        finish(m, call);
    }
    return true;
}

/* A call beside the cell's: not counted. */
static bool serve_echo(struct bow_call *call, const void *request, const void *handlers, void *user)
{
    (void)handlers;
    (void)user;
    (void)bow_call_reply(call, request);
    return true;
}

void matrix_answer_held(struct matrix *m)
{
    if (m->served.held != NULL) {
        assert_int_equal(bow_call_fail(m->served.held, BOW_ABORTED, "too late"), -ECANCELED);
        m->served.held = NULL;
    }
}

/* Methods */

static void on_room(struct bow_call *call, const void *events, void *user)
{
    (void)call;
    (void)events;
    (void)user;
}

static const struct bow_call_thunks thunks = {on_message, on_half_close, on_room, on_closed};
static const struct bow_call_thunks pour_thunks = {NULL, NULL, on_room, on_closed};

#define METHOD(path_, name_, invoke_, call_thunks_, stream_thunks_, flags_)                        \
    {                                                                                              \
        .path = path_, .name = name_, .input = &lab__blob__descriptor,                             \
        .output = &lab__blob__descriptor, .invoke = invoke_, .call_thunks = call_thunks_,          \
        .stream_thunks = stream_thunks_, .flags = flags_,                                          \
    }

static const struct bow_method methods[] = {
    METHOD("/matrix.Matrix/Unary", "Unary", serve_unary, NULL, NULL, 0),
    METHOD("/matrix.Matrix/Client", "Client", serve_client_streaming, &thunks,
           &matrix_gather_thunks, BOW_METHOD_CLIENT_STREAMING),
    METHOD("/matrix.Matrix/Server", "Server", serve_server_streaming, &pour_thunks,
           &matrix_stream_thunks, BOW_METHOD_SERVER_STREAMING),
    METHOD("/matrix.Matrix/Bidi", "Bidi", serve_client_streaming, &thunks, &matrix_stream_thunks,
           BOW_METHOD_CLIENT_STREAMING | BOW_METHOD_SERVER_STREAMING),
    METHOD("/matrix.Matrix/Echo", "Echo", serve_echo, NULL, NULL, 0),
};

/* One the server lacks. */
static const struct bow_method missing =
    METHOD("/matrix.Matrix/Missing", "Missing", NULL, NULL, NULL, 0);

const struct bow_service matrix_service = {
    .abi = BOW_SERVICE_ABI,
    .name = "matrix.Matrix",
    .methods = methods,
    .n_methods = sizeof(methods) / sizeof(methods[0]),
};

const struct bow_method *matrix_method(enum matrix_kind kind, enum matrix_story story)
{
    if (kind == MATRIX_UNARY && story == MATRIX_EARLY) {
        return &missing;
    }
    return &methods[kind];
}
