/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The matrix: each kind of method, with each way to end, over both protocols, TCP, a Unix socket
 * and TLS, plain and compressed. Each cell has a name; `matrix_test NAME`, with * for any
 * part of it, runs those alone.
 */

#include "matrix.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define N_CELLS (MATRIX_N_KINDS * MATRIX_N_STORIES * MATRIX_N_SOCKETS * 2 * 2)

static struct certs certs;

/* What a cell comes to. */
struct outcome {
    enum bow_code code;
    int n_served; /* messages that the handler gets */
    int n_called; /* and the client */
};

#define MANY MATRIX_MANY

static const struct outcome outcomes[MATRIX_N_KINDS][MATRIX_N_STORIES] =
    {
        [MATRIX_UNARY] =
            {
                [MATRIX_OK] = {BOW_OK, 1, 1},
                [MATRIX_ERROR] = {BOW_FAILED_PRECONDITION, 1, 0},
                [MATRIX_CANCEL] = {BOW_CANCELLED, 1, 0},
                [MATRIX_DEADLINE] = {BOW_DEADLINE_EXCEEDED, 1, 0},
                [MATRIX_EARLY] = {BOW_UNIMPLEMENTED, 0, 0},
                [MATRIX_HALF_CLOSE] = {BOW_OK, 1, 1},
            },
        [MATRIX_CLIENT] =
            {
                [MATRIX_OK] = {BOW_OK, MANY, 1},
                [MATRIX_ERROR] = {BOW_FAILED_PRECONDITION, MANY, 0},
                [MATRIX_CANCEL] = {BOW_CANCELLED, MANY, 0},
                [MATRIX_DEADLINE] = {BOW_DEADLINE_EXCEEDED, MANY, 0},
                [MATRIX_EARLY] = {BOW_OK, 1, 1},
                [MATRIX_HALF_CLOSE] = {BOW_OK, 0, 1},
            },
        [MATRIX_SERVER] =
            {
                [MATRIX_OK] = {BOW_OK, 1, MANY},
                [MATRIX_ERROR] = {BOW_FAILED_PRECONDITION, 1, MANY},
                [MATRIX_CANCEL] = {BOW_CANCELLED, 1, MANY},
                [MATRIX_DEADLINE] = {BOW_DEADLINE_EXCEEDED, 1, MANY},
                [MATRIX_EARLY] = {BOW_OK, 1, 0},
                [MATRIX_HALF_CLOSE] = {BOW_OK, 1, MANY},
            },
        [MATRIX_BIDI] =
            {
                [MATRIX_OK] = {BOW_OK, MANY, MANY},
                [MATRIX_ERROR] = {BOW_FAILED_PRECONDITION, MANY, MANY},
                [MATRIX_CANCEL] = {BOW_CANCELLED, MANY, MANY},
                [MATRIX_DEADLINE] = {BOW_DEADLINE_EXCEEDED, MANY, MANY},
                [MATRIX_EARLY] = {BOW_OK, 1, 1},
                [MATRIX_HALF_CLOSE] = {BOW_OK, 0, MANY},
            },
};

/* Never a nanosecond early, and at once when it has passed. */
static void pass_deadline(struct matrix *m)
{
    m->now_ns += MATRIX_DEADLINE_NS - 1;
    matrix_settle(m);
    assert_int_equal(m->called.n_closed, 0);
    assert_int_equal(m->served.n_ended, 0);
    m->now_ns += 1;
}

static void expect_ended(struct matrix *m, const struct outcome *outcome)
{
    const struct matrix_cell *cell = m->cell;

    matrix_until(m, &m->called.n_closed, 1);
    matrix_until(m, &m->served.n_ended, m->served.n_entered);
    matrix_settle(m);
    if (m->called.code != outcome->code) {
        fail_msg("%s: %s", bow_code_name(m->called.code), m->called.message);
    }
    assert_int_equal(m->called.n_closed, 1);
    assert_int_equal(m->called.n_messages, outcome->n_called);
    assert_int_equal(m->called.n_after_closed, 0);
    assert_int_equal(m->called.n_disordered, 0);
    assert_int_equal(m->served.n_entered, outcome->code != BOW_UNIMPLEMENTED);
    assert_int_equal(m->served.n_ended, m->served.n_entered);
    assert_int_equal(m->served.n_messages, outcome->n_served);
    assert_int_equal(m->served.n_disordered, 0);
    if (cell->story == MATRIX_CANCEL) {
        assert_int_equal(m->served.code, BOW_CANCELLED);
    }
    if (cell->story == MATRIX_DEADLINE) {
        assert_true(m->served.code == BOW_DEADLINE_EXCEEDED || m->served.code == BOW_CANCELLED);
    }
    bool ends = matrix_client_streams(cell->kind) &&
                (cell->story == MATRIX_OK || cell->story == MATRIX_ERROR ||
                 cell->story == MATRIX_HALF_CLOSE);
    assert_int_equal(m->served.n_half_closes, ends);
}

/* That messages were compressed, or not, is seen on the wire. */
static void expect_bytes(struct matrix *m, uint64_t before[2])
{
    const int n[2] = {m->served.n_messages, m->called.n_messages};

    if (m->cell->kind == MATRIX_UNARY && m->cell->story == MATRIX_HALF_CLOSE) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        uint64_t bytes = relay_bytes(&m->relay, (enum relay_direction)i) - before[i];
        uint64_t plain = (uint64_t)n[i] * MATRIX_BODY_BYTES;
        assert_true(n[i] == 0 || (m->cell->is_packed ? bytes < plain / 2 : bytes > plain));
    }
}

/* A stream whose call has ended takes no more, and says so. */
static void expect_over(struct matrix *m)
{
    struct bow_stream *stream = m->called.stream;
    Lab__Blob message;

    if (stream == NULL) {
        return;
    }
    matrix_message(&message, 1, false);
    int rc = bow_stream_send(stream, &message.base);
    assert_int_equal(rc, matrix_client_streams(m->cell->kind) ? -ECANCELED : -EINVAL);
    bow_stream_cancel(stream);
    matrix_settle(m);
    assert_int_equal(m->called.n_closed, 1);
}

static void run(const struct matrix_cell *cell)
{
    const struct outcome *outcome = &outcomes[cell->kind][cell->story];
    struct matrix m;

    matrix_begin(&m, cell, &certs);
    matrix_expect_echo(&m);
    matrix_settle(&m);
    uint64_t before[2] = {relay_bytes(&m.relay, RELAY_UP), relay_bytes(&m.relay, RELAY_DOWN)};
    matrix_call(&m);
    if (cell->story == MATRIX_CANCEL || cell->story == MATRIX_DEADLINE) {
        matrix_until(&m, &m.served.n_messages, outcome->n_served);
        matrix_until(&m, &m.called.n_messages, outcome->n_called);
        matrix_settle(&m);
        cell->story == MATRIX_CANCEL ? matrix_cancel(&m) : pass_deadline(&m);
    }
    expect_ended(&m, outcome);
    expect_bytes(&m, before);
    expect_over(&m);
    matrix_expect_echo(&m); /* the connection is as good as before */
    assert_int_equal(m.relay.n_links, 1);
    matrix_end(&m);
}

static void test_cell(void **state)
{
    const struct matrix_cell *cell = *state;

    if (cell->story == MATRIX_LOSS) {
        matrix_run_losses(cell, &certs);
        return;
    }
    run(cell);
}

/* The table */

static const char *const kinds[] = {"unary", "client", "server", "bidi"};
static const char *const stories[] = {"ok",    "error",      "cancel", "deadline",
                                      "early", "half_close", "loss"};
static const char *const sockets[] = {"tcp", "unix", "tls"};

static struct matrix_cell cells[N_CELLS];
static struct CMUnitTest tests[N_CELLS];

static void make_cell(size_t i, struct matrix_cell *cell)
{
    cell->is_packed = i % 2 != 0;
    cell->is_grpc = i / 2 % 2 != 0;
    cell->socket = (enum matrix_socket)(i / 4 % MATRIX_N_SOCKETS);
    cell->story = (enum matrix_story)(i / 4 / MATRIX_N_SOCKETS % MATRIX_N_STORIES);
    cell->kind = (enum matrix_kind)(i / 4 / MATRIX_N_SOCKETS / MATRIX_N_STORIES);
    snprintf(cell->name, sizeof(cell->name), "%s_%s_%s_%s_%s", kinds[cell->kind],
             stories[cell->story], cell->is_grpc ? "grpc" : "native", sockets[cell->socket],
             cell->is_packed ? "packed" : "plain");
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    for (size_t i = 0; i < N_CELLS; i++) {
        make_cell(i, &cells[i]);
        tests[i] = (struct CMUnitTest){cells[i].name, test_cell, NULL, NULL, &cells[i]};
    }
    certs_make(&certs);
    int failed = cmocka_run_group_tests_name("matrix", tests, NULL, NULL);
    certs_remove(&certs);
    return failed;
}
