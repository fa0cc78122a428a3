/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a client's stream says to whatever is asked of it, in each state that it can be in: on its
 * loop's thread and on another one, with callbacks and in the blocking style. And that
 * from each of them it ends once, with the code that it ought to have.
 */

#include "states_fixture.h"

#include <bowline/channel.h>
#include <bowline/payload.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* The states */

static void reach_queued(struct states *s, enum states_style style)
{
    states_begin(s, style, BOW_NEVER);
}

static void reach_refused(struct states *s, enum states_style style)
{
    bow_server_free(s->ends.server);
    s->ends.server = NULL;
    states_settle(s);
    states_begin(s, style, BOW_NEVER);
    states_turn_until(s, states_is_closed);
}

static void reach_open(struct states *s, enum states_style style)
{
    states_enter(s, style, BOW_NEVER);
}

static void reach_half_closed(struct states *s, enum states_style style)
{
    states_enter(s, style, BOW_NEVER);
    assert_int_equal(bow_stream_half_close(s->stream), 0);
    states_settle(s);
}

static void reach_blocked(struct states *s, enum states_style style)
{
    states_enter(s, style, BOW_NEVER);
    assert_true(states_fill(s, states_send) > 0);
}

static void reach_blocked_half_closed(struct states *s, enum states_style style)
{
    reach_blocked(s, style);
    assert_int_equal(bow_stream_half_close(s->stream), 0);
    states_settle(s);
}

static void reach_cancelling(struct states *s, enum states_style style)
{
    states_enter(s, style, BOW_NEVER);
    bow_stream_cancel(s->stream);
}

static void reach_cancelled(struct states *s, enum states_style style)
{
    reach_cancelling(s, style);
    states_turn_until(s, states_is_closed);
}

static void reach_cancelled_half_closed(struct states *s, enum states_style style)
{
    reach_half_closed(s, style);
    bow_stream_cancel(s->stream);
    states_turn_until(s, states_is_closed);
}

static void reach_expired(struct states *s, enum states_style style)
{
    states_begin(s, style, 20 * MS);
    states_turn_until(s, states_is_closed);
}

static void reach_finished(struct states *s, enum states_style style)
{
    states_enter(s, style, BOW_NEVER);
    assert_int_equal(bow_call_finish(s->call), 0);
    states_turn_until(s, states_is_closed);
}

static void reach_finished_half_closed(struct states *s, enum states_style style)
{
    reach_half_closed(s, style);
    assert_int_equal(bow_call_finish(s->call), 0);
    states_turn_until(s, states_is_closed);
}

static void reach_finished_blocked(struct states *s, enum states_style style)
{
    reach_blocked(s, style);
    assert_int_equal(bow_call_finish(s->call), 0);
    states_turn_until(s, states_is_closed);
}

static void reach_failed(struct states *s, enum states_style style)
{
    states_enter(s, style, BOW_NEVER);
    assert_int_equal(bow_call_fail(s->call, STATES_FAILURE, "it is to fail"), 0);
    states_turn_until(s, states_is_closed);
}

/* Two messages that nobody has taken: with callbacks the first has been, and the other waits. */
static void pour(struct states *s, enum states_style style)
{
    s->pauses = true;
    states_enter(s, style, BOW_NEVER);
    for (int i = 0; i < 2 + (style == CALLBACKS); i++) {
        assert_int_equal(states_call_send(s, 10), 0);
    }
    states_settle(s);
}

static void reach_unread(struct states *s, enum states_style style)
{
    pour(s, style);
}

static void reach_unread_finished(struct states *s, enum states_style style)
{
    pour(s, style);
    assert_int_equal(bow_call_finish(s->call), 0);
    states_turn_until(s, states_is_over);
}

static void reach_unread_failed(struct states *s, enum states_style style)
{
    pour(s, style);
    assert_int_equal(bow_call_fail(s->call, STATES_FAILURE, "it is to fail"), 0);
    states_turn_until(s, states_is_over);
}

static void reach_lost(struct states *s, enum states_style style)
{
    states_enter(s, style, BOW_NEVER);
    bow_channel_close(bow_call_channel(s->call), 0);
    states_turn_until(s, states_is_closed);
}

static void reach_unread_lost(struct states *s, enum states_style style)
{
    pour(s, style);
    bow_channel_close(bow_call_channel(s->call), 0);
    states_turn_until(s, states_is_over);
}

static void reach_stopped(struct states *s, enum states_style style)
{
    states_enter(s, style, BOW_NEVER);
    bow_server_stop(s->ends.server);
    states_turn_until(s, states_is_closed);
}

static void reach_shut(struct states *s, enum states_style style)
{
    states_enter(s, style, BOW_NEVER);
    assert_int_equal(bow_loop_shutdown(s->ends.loop, 0, 0), 0);
    assert_int_equal(bow_loop_run(s->ends.loop), 0);
}

static void reach_freed(struct states *s, enum states_style style)
{
    states_enter(s, style, BOW_NEVER);
    bow_client_free(s->ends.client);
    s->ends.client = NULL;
    states_turn_until(s, states_is_closed);
}

static const struct row {
    const char *name;
    void (*reach)(struct states *s, enum states_style style);
    int send; /* what sending says; -ECANCELED: the call is over */
    int half_close;
    int n_unread;
    enum bow_code code; /* it ends so; CANCELLED by the test where nothing else ends it */
} rows[] = {
    {"queued", reach_queued, 0, 0, 0, BOW_CANCELLED},
    {"not connected", reach_refused, -ECANCELED, -ECANCELED, 0, BOW_UNAVAILABLE},
    {"open", reach_open, 0, 0, 0, BOW_CANCELLED},
    {"half-closed", reach_half_closed, -EPIPE, -EPIPE, 0, BOW_CANCELLED},
    {"blocked", reach_blocked, -EAGAIN, 0, 0, BOW_CANCELLED},
    {"blocked and half-closed", reach_blocked_half_closed, -EPIPE, -EPIPE, 0, BOW_CANCELLED},
    {"being cancelled", reach_cancelling, 0, 0, 0, BOW_CANCELLED},
    {"cancelled", reach_cancelled, -ECANCELED, -ECANCELED, 0, BOW_CANCELLED},
    {"half-closed, cancelled", reach_cancelled_half_closed, -ECANCELED, -ECANCELED, 0,
     BOW_CANCELLED},
    {"expired", reach_expired, -ECANCELED, -ECANCELED, 0, BOW_DEADLINE_EXCEEDED},
    {"finished", reach_finished, -ECANCELED, -ECANCELED, 0, BOW_OK},
    {"both sides closed", reach_finished_half_closed, -ECANCELED, -ECANCELED, 0, BOW_OK},
    {"blocked, finished", reach_finished_blocked, -ECANCELED, -ECANCELED, 0, BOW_OK},
    {"failed", reach_failed, -ECANCELED, -ECANCELED, 0, STATES_FAILURE},
    {"unread", reach_unread, 0, 0, 2, BOW_CANCELLED},
    {"unread, finished", reach_unread_finished, -ECANCELED, -ECANCELED, 2, BOW_OK},
    {"unread, failed", reach_unread_failed, -ECANCELED, -ECANCELED, 2, STATES_FAILURE},
    {"lost", reach_lost, -ECANCELED, -ECANCELED, 0, BOW_UNAVAILABLE},
    {"unread, lost", reach_unread_lost, -ECANCELED, -ECANCELED, 2, BOW_UNAVAILABLE},
    {"server stopped", reach_stopped, -ECANCELED, -ECANCELED, 0, BOW_UNAVAILABLE},
    {"loop shut down", reach_shut, -ECANCELED, -ECANCELED, 0, BOW_UNAVAILABLE},
    {"client freed", reach_freed, -ECANCELED, -ECANCELED, 0, BOW_CANCELLED},
};

/* The verbs */

static int say_send(struct states *s)
{
    return states_send(s, 10);
}

static int say_payload(struct states *s)
{
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_payload *payload = NULL;

    assert_int_equal(bow_payload_new(s->context, &request.base, &payload), 0);
    int rc = bow_stream_send_payload(s->stream, payload);
    bow_payload_unref(payload);
    return rc;
}

static int say_writable(struct states *s)
{
    return bow_stream_is_writable(s->stream);
}

static int say_half_close(struct states *s)
{
    return bow_stream_half_close(s->stream);
}

static int say_write(struct states *s)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    return bow_stream_write(s->stream, &request.base, 0);
}

/* Takes all that waits, and says what comes behind it. */
static int say_receive(struct states *s)
{
    const ProtobufCMessage *message = NULL;
    int rc = 0;

    while ((rc = bow_stream_receive(s->stream, 0, &message)) == 1) {
        s->n_messages++;
    }
    return rc;
}

static int say_finish(struct states *s)
{
    struct bow_result result = BOW_RESULT_INIT;

    int rc = bow_stream_finish(s->stream, &result);
    if (rc == 0) {
        s->stream = NULL;
        s->n_closed++;
        s->code = result.status.code;
        bow_result_fini(&result);
    }
    return rc;
}

static int say_nothing(struct states *s)
{
    (void)s;
    return 0;
}

/* What is expected. */

static bool is_over(const struct row *row)
{
    return row->send == -ECANCELED;
}

static int of_send(const struct row *row)
{
    return row->send;
}

static int of_writable(const struct row *row)
{
    return row->send == 0;
}

static int of_half_close(const struct row *row)
{
    return row->half_close;
}

static int of_write(const struct row *row)
{
    return row->send == -EAGAIN ? -ETIMEDOUT : row->send;
}

static int of_receive(const struct row *row)
{
    return is_over(row) ? 0 : -ETIMEDOUT;
}

static int of_nothing(const struct row *row)
{
    (void)row;
    return 0;
}

static const struct verb {
    const char *name;
    int (*say)(struct states *s);
    int (*expect)(const struct row *row);
    bool blocks;
} verbs[] = {
    {"send", say_send, of_send, false},
    {"send_payload", say_payload, of_send, false},
    {"is_writable", say_writable, of_writable, false},
    {"half_close", say_half_close, of_half_close, false},
    {"write", say_write, of_write, true},
    {"receive", say_receive, of_receive, true},
    {"cancel", say_nothing, of_nothing, false}, /* as after each of the others */
};

/* One of the cells: a state, a verb, a style, and a thread. */
struct cell {
    const struct row *row;
    const struct verb *verb;
    enum states_style style;
    bool is_elsewhere;
};

static void fail_cell(const struct cell *cell, const char *what, int is, int expected)
{
    fail_msg("%s, %s, %s, %s: %s is %d, not %d", cell->row->name, cell->verb->name,
             cell->style == CALLBACKS ? "callbacks" : "blocking",
             cell->is_elsewhere ? "elsewhere" : "on the loop", what, is, expected);
}

static void expect(const struct cell *cell, const char *what, int is, int expected)
{
    if (is != expected) {
        fail_cell(cell, what, is, expected);
    }
}

/* Once a call is over there is nothing to wait for, so that may be done anywhere. */
static int expected_of(const struct cell *cell)
{
    if (cell->verb->blocks && cell->style == CALLBACKS) {
        return -EINVAL;
    }
    if (cell->verb->blocks && !cell->is_elsewhere && !is_over(cell->row)) {
        return -EDEADLK;
    }
    return cell->verb->expect(cell->row);
}

/* Idempotent, and of no effect on what is over, but that callbacks need not come for what waits. */
static void end(struct states *s, const struct cell *cell)
{
    bool drops = cell->style == CALLBACKS && cell->row->n_unread > 0;

    bow_stream_cancel(s->stream);
    bow_stream_cancel(s->stream);
    if (cell->style == CALLBACKS) {
        states_turn_until(s, states_is_closed);
    } else {
        expect(cell, "finish", states_elsewhere(s, say_finish, true), 0);
    }
    states_settle(s);
    expect(cell, "the number of its ends", s->n_closed, 1);
    expect(cell, "its code", (int)s->code, (int)(drops ? BOW_CANCELLED : cell->row->code));
}

static void check(const struct cell *cell)
{
    struct states s;

    states_prepare(&s);
    cell->row->reach(&s, cell->style);
    int rc =
        cell->is_elsewhere ? states_elsewhere(&s, cell->verb->say, false) : cell->verb->say(&s);
    expect(cell, "it", rc, expected_of(cell));
    if (cell->verb->say == say_receive && rc != -EINVAL && rc != -EDEADLK) {
        expect(cell, "the number of messages", s.n_messages, cell->row->n_unread);
    }
    end(&s, cell);
    states_close(&s);
}

static void check_all(enum states_style style, bool is_elsewhere)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (size_t j = 0; j < sizeof(verbs) / sizeof(verbs[0]); j++) {
            check(&(struct cell){&rows[i], &verbs[j], style, is_elsewhere});
        }
    }
}

static void test_stream_with_callbacks_in_each_state(void **state)
{
    (void)state;
    check_all(CALLBACKS, false);
}

static void test_stream_with_callbacks_in_each_state_from_another_thread(void **state)
{
    (void)state;
    check_all(CALLBACKS, true);
}

static void test_stream_blocking_in_each_state(void **state)
{
    (void)state;
    check_all(BLOCKING, true);
}

static void test_stream_blocking_in_each_state_on_the_loop(void **state)
{
    (void)state;
    check_all(BLOCKING, false);
}

/* With callbacks what waits comes before the end, whatever the end is. */
static void test_stream_resumed_brings_what_waits_before_its_end(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct cell cell = {&rows[i], &verbs[0], CALLBACKS, false};
        struct states s;
        if (rows[i].n_unread == 0 || !is_over(&rows[i])) {
            continue;
        }
        states_prepare(&s);
        rows[i].reach(&s, CALLBACKS);
        expect(&cell, "the number of its ends before", s.n_closed, 0);
        bow_stream_resume(s.stream);
        states_turn_until(&s, states_is_closed);
        expect(&cell, "the number of messages", s.n_messages, 1 + rows[i].n_unread);
        expect(&cell, "its code", (int)s.code, (int)rows[i].code);
        states_close(&s);
    }
}

static int say_open(struct states *s)
{
    struct calls__echo__stream__stream stream;

    return calls__echo__stream__open(s->ends.client, NULL, NULL, NULL, &stream);
}

static void test_stream_is_not_opened_on_a_loop_that_has_shut_down(void **state)
{
    struct states s;

    (void)state;
    states_prepare(&s);
    states_settle(&s);
    assert_int_equal(bow_loop_shutdown(s.ends.loop, 0, 0), 0);
    assert_int_equal(bow_loop_run(s.ends.loop), 0);
    assert_int_equal(say_open(&s), -ESHUTDOWN);
    assert_int_equal(states_elsewhere(&s, say_open, false), -ESHUTDOWN);
    states_close(&s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stream_with_callbacks_in_each_state),
        cmocka_unit_test(test_stream_with_callbacks_in_each_state_from_another_thread),
        cmocka_unit_test(test_stream_blocking_in_each_state),
        cmocka_unit_test(test_stream_blocking_in_each_state_on_the_loop),
        cmocka_unit_test(test_stream_resumed_brings_what_waits_before_its_end),
        cmocka_unit_test(test_stream_is_not_opened_on_a_loop_that_has_shut_down),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
