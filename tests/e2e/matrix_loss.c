/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The cells of the matrix in which the connection is lost. The exchange is run once whole, to see
 * its frames; then once for each frame of each direction with the cut behind it, and once with the
 * cut in its middle. A plain cell is cut from the connection's first byte on, a packed one once it
 * is warm. See matrix.h.
 */

#include "matrix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

/* Of the whole exchange. */
struct whole {
    unsigned n_frames[2];
    unsigned n_until_closed; /* of the server's: with the one that ends the call */
};

static const struct relay_cut no_cut = {.direction = RELAY_UP, .n_frames = ~0u};

static void begin(struct matrix *m, const struct matrix_cell *cell, const struct certs *certs,
                  const struct relay_cut *cut)
{
    matrix_begin(m, cell, certs);
    if (cell->is_packed) {
        matrix_expect_echo(m);
        matrix_settle(m);
    }
    relay_arm(&m->relay, cut);
    matrix_call(m);
}

static void run_whole(const struct matrix_cell *cell, const struct certs *certs,
                      struct whole *ret_whole)
{
    struct matrix m;

    begin(&m, cell, certs, &no_cut);
    matrix_until(&m, &m.called.n_closed, 1);
    assert_int_equal(m.called.code, BOW_OK);
    ret_whole->n_until_closed = relay_frames(&m.relay, RELAY_DOWN);
    matrix_settle(&m);
    ret_whole->n_frames[RELAY_UP] = relay_frames(&m.relay, RELAY_UP);
    ret_whole->n_frames[RELAY_DOWN] = relay_frames(&m.relay, RELAY_DOWN);
    matrix_end(&m);
}

static void fail_cut(const struct matrix *m, const char *what)
{
    const struct relay_cut *cut = &m->relay.cut;

    fail_msg("%s, with the connection %s after %u frames%s of the %s; %s: %s; %d messages there, "
             "%d back, %d entered, %d ended",
             what, cut->is_reset ? "reset" : "ended", cut->n_frames,
             cut->is_half ? " and a half" : "", cut->direction == RELAY_UP ? "client" : "server",
             bow_code_name(m->called.code), m->called.message, m->served.n_messages,
             m->called.n_messages, m->served.n_entered, m->served.n_ended);
}

static void check(const struct matrix *m)
{
    bool ok = m->called.code == BOW_OK;
    int n_back = matrix_server_streams(m->cell->kind) ? MATRIX_MANY : 1;
    int n_there = matrix_client_streams(m->cell->kind) ? MATRIX_MANY : 1;

    if (m->called.n_closed != 1 || m->called.n_after_closed != 0) {
        fail_cut(m, "not one end");
    }
    if (!ok && m->called.code != BOW_UNAVAILABLE) {
        fail_cut(m, "another status");
    }
    if (m->called.n_messages > m->served.n_sent || m->served.n_messages > n_there ||
        m->called.n_disordered + m->served.n_disordered != 0) {
        fail_cut(m, "messages that nobody sent");
    }
    if (ok && (m->called.n_messages != n_back || m->served.n_messages != n_there)) {
        fail_cut(m, "OK without all messages");
    }
    if (m->served.n_entered > 1 || m->served.n_ended != m->served.n_entered) {
        fail_cut(m, "a handler that ran twice, or was not told of the end");
    }
}

/* With the end of the call under way to the client it is OK; before that it cannot be. */
static void check_status(const struct matrix *m, const struct whole *whole)
{
    bool could_end = relay_frames(&m->relay, RELAY_DOWN) >= whole->n_until_closed;

    if ((m->called.code == BOW_OK) != could_end) {
        fail_cut(m, could_end ? "the end that had come was lost" : "an end that had not come");
    }
}

static void run_cut(const struct matrix_cell *cell, const struct certs *certs,
                    const struct whole *whole, const struct relay_cut *cut)
{
    struct matrix m;

    begin(&m, cell, certs, cut);
    matrix_until(&m, &m.called.n_closed, 1);
    matrix_settle(&m);
    check(&m);
    check_status(&m, whole);
    m.now_ns += MATRIX_DEADLINE_NS; /* past the pause between two attempts */
    matrix_expect_echo(&m);
    if (m.called.n_closed != 1 || m.served.n_ended != m.served.n_entered) {
        fail_cut(&m, "not one end");
    }
    matrix_end(&m);
}

void matrix_run_losses(const struct matrix_cell *cell, const struct certs *certs)
{
    struct whole whole;
    unsigned n_cuts = 0;

    run_whole(cell, certs, &whole);
    for (int direction = 0; direction < 2; direction++) {
        for (unsigned i = 0; i < 2 * whole.n_frames[direction]; i++) {
            struct relay_cut cut = {
                .direction = (enum relay_direction)direction,
                .n_frames = (i + 1) / 2,
                .is_half = i % 2 == 0,
                .is_reset = (i / 2 + (unsigned)direction) % 2 != 0,
            };
            run_cut(cell, certs, &whole, &cut);
            n_cuts++;
        }
    }
    assert_true(n_cuts > 0);
    print_message("%s: cut in %u places\n", cell->name, n_cuts);
}
