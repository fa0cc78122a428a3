/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a server's streaming call says to whatever is asked of it, in each state that it can be in:
 * on its loop's thread and on another one. And that it ends once for both sides, with the code that
 * it ought to have.
 */

#include "states_fixture.h"

#include <bowline/channel.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* The states */

static bool has_half_close(const struct states *s)
{
    return s->n_half_closes > 0;
}

static bool has_closed(const struct states *s)
{
    return s->n_call_closed > 0;
}

static bool is_cancelled(const struct states *s)
{
    return bow_call_is_cancelled(s->call);
}

static void reach_unheard(struct states *s)
{
    s->is_deaf = true;
    states_enter(s, CALLBACKS, BOW_NEVER);
}

static void reach_open(struct states *s)
{
    states_enter(s, CALLBACKS, BOW_NEVER);
}

static void reach_half_closed(struct states *s)
{
    s->reads = true;
    states_enter(s, CALLBACKS, BOW_NEVER);
    assert_int_equal(bow_stream_half_close(s->stream), 0);
    states_turn_until(s, has_half_close);
}

/* The client takes the first message, and no other. */
static void reach_blocked(struct states *s)
{
    s->pauses = true;
    states_enter(s, CALLBACKS, BOW_NEVER);
    assert_true(states_fill(s, states_call_send) > 0);
}

static void reach_finishing(struct states *s)
{
    states_enter(s, CALLBACKS, BOW_NEVER);
    assert_int_equal(bow_call_finish(s->call), 0);
}

static void reach_finished(struct states *s)
{
    reach_finishing(s);
    states_turn_until(s, has_closed);
}

static void reach_finishing_unheard(struct states *s)
{
    reach_unheard(s);
    assert_int_equal(bow_call_finish(s->call), 0);
}

static void reach_finished_unheard(struct states *s)
{
    reach_finishing_unheard(s);
    states_turn_until(s, states_is_closed);
}

static void reach_cancelled(struct states *s)
{
    states_enter(s, CALLBACKS, BOW_NEVER);
    bow_stream_cancel(s->stream);
    states_turn_until(s, has_closed);
}

static void reach_cancelled_blocked(struct states *s)
{
    reach_blocked(s);
    bow_stream_cancel(s->stream);
    states_turn_until(s, has_closed);
}

static void reach_cancelled_unheard(struct states *s)
{
    reach_unheard(s);
    bow_stream_cancel(s->stream);
    states_turn_until(s, is_cancelled);
    states_settle(s);
}

static void reach_lost(struct states *s)
{
    states_enter(s, CALLBACKS, BOW_NEVER);
    bow_channel_close(bow_call_channel(s->call), 0);
    states_turn_until(s, has_closed);
}

static void reach_left(struct states *s)
{
    states_enter(s, CALLBACKS, BOW_NEVER);
    bow_client_free(s->ends.client);
    s->ends.client = NULL;
    states_turn_until(s, has_closed);
}

static void reach_freed(struct states *s)
{
    states_enter(s, CALLBACKS, BOW_NEVER);
    bow_server_free(s->ends.server);
    s->ends.server = NULL;
    states_turn_until(s, has_closed);
    states_turn_until(s, states_is_closed);
}

static void reach_shut(struct states *s)
{
    states_enter(s, CALLBACKS, BOW_NEVER);
    assert_int_equal(bow_loop_shutdown(s->ends.loop, 0, 0), 0);
    assert_int_equal(bow_loop_run(s->ends.loop), 0);
}

static const struct row {
    const char *name;
    void (*reach)(struct states *s);
    int send;
    int answer;
    int listen;
    enum bow_code code; /* the client's, unless the verb answers */
} rows[] = {
    {"unheard", reach_unheard, 0, 0, 0, BOW_OK},
    {"open", reach_open, 0, 0, -EALREADY, BOW_OK},
    {"half-closed", reach_half_closed, 0, 0, -EALREADY, BOW_OK},
    {"blocked", reach_blocked, -EAGAIN, 0, -EALREADY, BOW_OK},
    {"finishing", reach_finishing, -ECANCELED, -ECANCELED, -EALREADY, BOW_OK},
    {"finished", reach_finished, -ECANCELED, -ECANCELED, -EALREADY, BOW_OK},
    {"finishing, unheard", reach_finishing_unheard, -ECANCELED, -ECANCELED, 0, BOW_OK},
    {"finished, unheard", reach_finished_unheard, -ECANCELED, -ECANCELED, -ECANCELED, BOW_OK},
    {"cancelled", reach_cancelled, -ECANCELED, -ECANCELED, -EALREADY, BOW_CANCELLED},
    {"blocked, cancelled", reach_cancelled_blocked, -ECANCELED, -ECANCELED, -EALREADY,
     BOW_CANCELLED},
    {"cancelled, unheard", reach_cancelled_unheard, -ECANCELED, -ECANCELED, -ECANCELED,
     BOW_CANCELLED},
    {"lost", reach_lost, -ECANCELED, -ECANCELED, -EALREADY, BOW_UNAVAILABLE},
    {"client freed", reach_left, -ECANCELED, -ECANCELED, -EALREADY, BOW_CANCELLED},
    {"server freed", reach_freed, -ECANCELED, -ECANCELED, -EALREADY, BOW_UNAVAILABLE},
    {"loop shut down", reach_shut, -ECANCELED, -ECANCELED, -EALREADY, BOW_UNAVAILABLE},
};

/* The verbs */

static int say_send(struct states *s)
{
    return states_call_send(s, 10);
}

static int say_writable(struct states *s)
{
    return bow_call_is_writable(s->call);
}

static int say_finish(struct states *s)
{
    return bow_call_finish(s->call);
}

static int say_reply(struct states *s)
{
    Calls__Reply reply = CALLS__REPLY__INIT;

    return bow_call_reply(s->call, &reply.base);
}

static int say_fail(struct states *s)
{
    return bow_call_fail(s->call, STATES_FAILURE, "it is to fail");
}

static int of_send(const struct row *row)
{
    return row->send;
}

static int of_writable(const struct row *row)
{
    return row->send == 0;
}

static int of_answer(const struct row *row)
{
    return row->answer;
}

static int of_listen(const struct row *row)
{
    return row->listen;
}

static const struct verb {
    const char *name;
    int (*say)(struct states *s);
    int (*expect)(const struct row *row);
    bool is_loops;
} verbs[] = {
    {"send", say_send, of_send, false},       {"is_writable", say_writable, of_writable, false},
    {"finish", say_finish, of_answer, false}, {"reply", say_reply, of_answer, false},
    {"fail", say_fail, of_answer, false},     {"listen", states_listen, of_listen, true},
};

static void expect(const struct row *row, const struct verb *verb, const char *what, int is,
                   int expected)
{
    if (is != expected) {
        fail_msg("%s, %s: %s is %d, not %d", row->name, verb->name, what, is, expected);
    }
}

static enum bow_code code_of(const struct row *row, const struct verb *verb)
{
    return row->answer == 0 && verb->say == say_fail ? STATES_FAILURE : row->code;
}

/* Each answers at last, in vain where that has been done. */
static void end(struct states *s, const struct row *row, const struct verb *verb, bool listens)
{
    (void)bow_call_finish(s->call);
    bow_stream_resume(s->stream);
    states_turn_until(s, states_is_closed);
    states_settle(s);
    expect(row, verb, "the number of its ends", s->n_call_closed, listens);
    expect(row, verb, "the number of the client's", s->n_closed, 1);
    expect(row, verb, "the client's code", (int)s->code, (int)code_of(row, verb));
    expect(row, verb, "what is said then", bow_call_finish(s->call), -ECANCELED);
}

static void check(const struct row *row, const struct verb *verb, bool is_elsewhere)
{
    struct states s;

    states_prepare(&s);
    row->reach(&s);
    int rc = is_elsewhere ? states_elsewhere(&s, verb->say, false) : verb->say(&s);
    expect(row, verb, "it", rc, verb->expect(row));
    end(&s, row, verb, !s.is_deaf || (verb->say == states_listen && rc == 0));
    states_close(&s);
}

static void check_all(bool is_elsewhere)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (size_t j = 0; j < sizeof(verbs) / sizeof(verbs[0]); j++) {
            bool is_off_loop = is_elsewhere || rows[i].reach == reach_shut;
            if (!is_off_loop || !verbs[j].is_loops) {
                check(&rows[i], &verbs[j], is_elsewhere);
            }
        }
    }
}

static void test_call_in_each_state(void **state)
{
    (void)state;
    check_all(false);
}

static void test_call_in_each_state_from_another_thread(void **state)
{
    (void)state;
    check_all(true);
}

/* What was sent is delivered before the end, also behind a window that was closed. */
static void test_call_finished_while_blocked_delivers_all(void **state)
{
    struct states s;

    (void)state;
    states_prepare(&s);
    s.pauses = true;
    states_enter(&s, CALLBACKS, BOW_NEVER);
    int n = states_fill(&s, states_call_send);
    assert_int_equal(bow_call_finish(s.call), 0);
    bow_stream_resume(s.stream);
    states_turn_until(&s, states_is_closed);
    assert_int_equal(s.n_messages, n);
    assert_int_equal(s.code, BOW_OK);
    states_close(&s);
}

static bool has_room(const struct states *s)
{
    return bow_call_is_writable(s->call);
}

/* Others send for a handler, and are refused before it listens. */
static void test_call_writable_is_told_to_who_listens_later(void **state)
{
    struct states s;

    (void)state;
    states_prepare(&s);
    s.pauses = true;
    s.is_deaf = true;
    states_enter(&s, CALLBACKS, BOW_NEVER);
    (void)states_fill(&s, states_call_send);
    bow_stream_resume(s.stream);
    states_turn_until(&s, has_room);
    states_settle(&s);
    assert_int_equal(s.n_writable, 0);
    assert_int_equal(states_listen(&s), 0);
    assert_int_equal(s.n_writable, 0); /* not from inside it */
    states_settle(&s);
    assert_int_equal(s.n_writable, 1);
    states_close(&s);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_call_in_each_state),
        cmocka_unit_test(test_call_in_each_state_from_another_thread),
        cmocka_unit_test(test_call_finished_while_blocked_delivers_all),
        cmocka_unit_test(test_call_writable_is_told_to_who_listens_later),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
