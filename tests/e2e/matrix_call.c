/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The client's call of the matrix test, of any kind; see matrix.h. */

#include "matrix.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void note_message(struct matrix *m, const Lab__Blob *message)
{
    bool is_empty = m->cell->kind == MATRIX_UNARY && m->cell->story == MATRIX_HALF_CLOSE;

    m->called.n_messages++;
    m->called.n_after_closed += m->called.n_closed > 0;
    m->called.n_disordered += !matrix_is_message(message, m->called.n_messages, is_empty);
}

static void note_end(struct matrix *m, const struct bow_result *result)
{
    if (result->reply != NULL) {
        note_message(m, (const Lab__Blob *)result->reply);
    }
    m->called.n_closed++;
    m->called.code = result->status.code;
    snprintf(m->called.message, sizeof(m->called.message), "%s", result->status.message);
}

/* Events */

static void on_headers(struct bow_stream *stream, const struct bow_metadata *initial,
                       const void *events, void *user)
{
    struct matrix *m = user;

    (void)stream;
    (void)initial;
    (void)events;
    m->called.n_after_closed += m->called.n_closed > 0;
}

static void on_message(struct bow_stream *stream, const void *message, const void *events,
                       void *user)
{
    (void)stream;
    (void)events;
    note_message(user, message);
}

static void on_writable(struct bow_stream *stream, const void *events, void *user)
{
    struct matrix *m = user;

    (void)stream;
    (void)events;
    m->called.n_after_closed += m->called.n_closed > 0;
}

static void on_closed(struct bow_stream *stream, struct bow_result *result, const void *events,
                      void *user)
{
    (void)stream;
    (void)events;
    note_end(user, result);
}

const struct bow_stream_thunks matrix_stream_thunks = {on_headers, on_message, on_writable,
                                                       on_closed};
const struct bow_stream_thunks matrix_gather_thunks = {on_headers, NULL, on_writable, on_closed};

static void on_done(struct bow_result *result, bow_any_fn fn, void *user)
{
    (void)fn;
    note_end(user, result);
}

/* The call */

/* Ends meanwhile are told by -ECANCELED, as the story wants it or the relay has cut. */
static int send_one(struct matrix *m)
{
    Lab__Blob message;

    matrix_message(&message, m->called.n_sent + 1, false);
    int rc = bow_stream_send(m->called.stream, &message.base);
    m->called.n_sent += rc == 0;
    return rc;
}

static void send_all(struct matrix *m)
{
    enum matrix_story story = m->cell->story;
    int n = story == MATRIX_EARLY ? 1 : story == MATRIX_HALF_CLOSE ? 0 : MATRIX_MANY;

    for (int i = 0; i < n; i++) {
        assert_int_equal(send_one(m), 0);
    }
    if (story == MATRIX_OK || story == MATRIX_ERROR || story == MATRIX_HALF_CLOSE ||
        story == MATRIX_LOSS) {
        assert_int_equal(bow_stream_half_close(m->called.stream), 0);
        assert_int_equal(send_one(m), -EPIPE);
    }
}

void matrix_call(struct matrix *m)
{
    static uint8_t large[1 << 20];
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    enum matrix_kind kind = m->cell->kind;
    enum matrix_story story = m->cell->story;
    const struct bow_method *method = matrix_method(kind, story);
    Lab__Blob request;

    options.timeout_ns = MATRIX_DEADLINE_NS;
    matrix_message(&request, 1, kind == MATRIX_UNARY && story == MATRIX_HALF_CLOSE);
    if (kind == MATRIX_UNARY && story == MATRIX_EARLY) {
        /* More than the windows: it is ended before all of it can be there. */
        request.body.data = large;
        request.body.len = sizeof(large);
    }
    if (kind == MATRIX_UNARY) {
        assert_int_equal(bow_client_start(m->client, method, &request.base, &options, on_done, NULL,
                                          m, &m->called.id),
                         0);
        return;
    }
    const ProtobufCMessage *first = matrix_client_streams(kind) ? NULL : &request.base;
    assert_int_equal(bow_client_open(m->client, method, first, &options, m, m, &m->called.stream),
                     0);
    if (matrix_client_streams(kind)) {
        send_all(m);
        return;
    }
    /* Its side was ended by its one message. */
    assert_true(bow_stream_half_close(m->called.stream) != 0);
}

void matrix_cancel(struct matrix *m)
{
    if (m->cell->kind == MATRIX_UNARY) {
        bow_client_cancel(m->client, m->called.id);
        return;
    }
    bow_stream_cancel(m->called.stream);
    assert_int_equal(m->called.n_closed, 0); /* later, not inside */
}

/* A call beside it */

struct echo {
    int n_done;
    enum bow_code code;
    char message[512];
};

static void on_echo(struct bow_result *result, bow_any_fn fn, void *user)
{
    struct echo *echo = user;

    (void)fn;
    echo->n_done++;
    echo->code = result->status.code;
    snprintf(echo->message, sizeof(echo->message), "%s", result->status.message);
}

void matrix_expect_echo(struct matrix *m)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct echo echo = {.n_done = 0};
    Lab__Blob request;

    options.wait_for_ready = true;
    matrix_message(&request, 1, false);
    assert_int_equal(bow_client_start(m->client, &matrix_service.methods[MATRIX_N_KINDS],
                                      &request.base, &options, on_echo, NULL, &echo, NULL),
                     0);
    matrix_until(m, &echo.n_done, 1);
    if (echo.code != BOW_OK) {
        fail_msg("a call beside it ended with %s: %s", bow_code_name(echo.code), echo.message);
    }
}
