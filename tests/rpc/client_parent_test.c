/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls that a handler makes for the call it serves: one deadline, one end, one trace. */

#include "call_fixture.h"
#include "tests/support/gate.h"

#include <bowline/interceptor.h>
#include <bowline/system.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void start_child(struct calls *t, struct bow_call *parent)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    options.parent = parent;
    assert_int_equal(
        calls__echo__hold__start(t->client, &request, &options, calls_on_done, t, NULL), 0);
}

static struct bow_call *start_parent(struct calls *t, uint64_t timeout_ns, uint64_t *ret_id)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    options.timeout_ns = timeout_ns;
    assert_int_equal(
        calls__echo__hold__start(t->client, &request, &options, calls_on_done, t, ret_id), 0);
    return calls_take_held(t);
}

static void test_client_parent_cancelled_cancels_its_child(void **state)
{
    struct calls *t = *state;
    uint64_t id = 0;
    struct bow_call *parent = start_parent(t, 0, &id);

    start_child(t, parent);
    struct bow_call *child = calls_take_held(t);
    bow_client_cancel(t->client, id);
    calls_wait(t, &t->n_cancelled, 2);
    calls_wait(t, &t->n_done, 2);
    assert_int_equal(t->result.status.code, BOW_CANCELLED);
    assert_int_equal(calls_reply(child, 1), -ECANCELED);
    start_child(t, parent); /* of a parent that has ended: cancelled at once */
    calls_wait(t, &t->n_done, 3);
    assert_int_equal(t->result.status.code, BOW_CANCELLED);
    assert_int_equal(calls_reply(parent, 1), -ECANCELED);
}

/* Its queue has room for one call, which is there and waits for a server. */
static struct bow_client *new_full_client(struct calls *t)
{
    struct bow_client_options options;
    struct bow_call_options call_options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    calls_client_options(t, &options);
    options.target = calls_is_grpc() ? "grpc:unix-abstract:nobody" : "unix-abstract:nobody";
    options.max_queued_calls = 1;
    struct bow_client *client = calls_new_client(t, &options);
    call_options.wait_for_ready = true;
    assert_int_equal(
        calls__echo__hold__start(client, &request, &call_options, calls_on_done, t, NULL), 0);
    return client;
}

struct parked {
    struct gate there;
    struct gate go;
};

static int park(void *user)
{
    struct parked *parked = user;

    gate_add(&parked->there);
    gate_wait(&parked->go, 1);
    return 0;
}

static void expect_no_room(struct calls *t, struct bow_client *full, struct bow_call *parent)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    options.parent = parent;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(calls__echo__hold__start(full, &request, &options, calls_on_done, t, NULL),
                         -EAGAIN);
    }
}

/* The cancellation is on its way to the loop, which has no time, when the call finds no room. */
static void test_client_parent_ended_cancels_what_could_not_be_started(void **state)
{
    struct calls *t = *state;
    struct bow_client *full = new_full_client(t);
    struct parked parked;
    uint64_t id = 0;
    struct bow_call *parent = start_parent(t, 0, &id);

    bow_client_cancel(t->client, id);
    calls_wait(t, &t->n_cancelled, 1);
    calls_wait(t, &t->n_done, 1);
    gate_init(&parked.there);
    gate_init(&parked.go);
    assert_int_equal(bow_loop_execute(t->loop, "park", park, &parked), 0);
    gate_wait(&parked.there, 1);
    expect_no_room(t, full, parent);
    gate_add(&parked.go);
    bow_client_free(full);
    assert_int_equal(t->n_done, 2); /* the one that waited */
    assert_int_equal(calls_reply(parent, 1), -ECANCELED);
    gate_fini(&parked.there);
    gate_fini(&parked.go);
}

static void test_client_parent_answered_cancels_its_child(void **state)
{
    struct calls *t = *state;
    struct bow_call *parent = start_parent(t, 0, NULL);

    start_child(t, parent);
    struct bow_call *child = calls_take_held(t);
    assert_int_equal(calls_reply(parent, 1), 0);
    calls_wait(t, &t->n_done, 2);
    calls_wait(t, &t->n_cancelled, 1);
    assert_int_equal(calls_reply(child, 1), -ECANCELED);
}

static void test_client_parent_child_that_ends_first_leaves_its_parent(void **state)
{
    struct calls *t = *state;
    struct bow_call *parent = start_parent(t, 0, NULL);

    start_child(t, parent);
    assert_int_equal(calls_reply(calls_take_held(t), 1), 0);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(calls_reply(parent, 1), 0);
    calls_wait(t, &t->n_done, 2);
    assert_int_equal(t->result.status.code, BOW_OK);
}

static void test_client_parents_deadline_is_the_childs(void **state)
{
    struct calls *t = *state;
    struct bow_call *parent = start_parent(t, 5000 * MS, NULL);

    start_child(t, parent);
    struct bow_call *child = calls_take_held(t);
    assert_true(bow_call_deadline(child) <= bow_call_deadline(parent) + 1000 * MS);
    assert_int_equal(calls_reply(child, 1), 0);
    assert_int_equal(calls_reply(parent, 1), 0);
    calls_wait(t, &t->n_done, 2);
}

/* As a handler does that has worked for long when it calls on. */
static int start_late_in_a_turn(void *user)
{
    struct calls *t = user;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;

    calls_hold_loop(300 * MS);
    options.timeout_ns = 5000 * MS;
    assert_int_equal(
        calls__echo__hold__start(t->client, &request, &options, calls_on_done, t, NULL), 0);
    return 0;
}

static void test_client_call_late_in_a_turn_gives_no_more_than_its_time(void **state)
{
    struct calls *t = *state;
    const struct bow_system *system = bow_system_default();

    /* Connected, so that it is sent within that turn. */
    assert_int_equal(calls_reply(start_parent(t, 0, NULL), 1), 0);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(bow_loop_execute(t->loop, "start", start_late_in_a_turn, t), 0);
    struct bow_call *call = calls_take_held(t);
    /* The server rounds up to a microsecond. */
    assert_true(bow_call_deadline(call) <= system->now_ns(system->user) + 5001 * MS);
    assert_int_equal(calls_reply(call, 1), 0);
    calls_wait(t, &t->n_done, 2);
}

/* Trace context */

#define PARENT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#define OTHER "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"

static struct bow_metadata_entry entry_of(const char *key, const char *value)
{
    return (struct bow_metadata_entry){key, {(const uint8_t *)value, strlen(value)}};
}

static void start_with(struct calls *t, struct bow_call *parent,
                       const struct bow_metadata_entry *entries, size_t n)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_metadata metadata = {entries, n};

    options.parent = parent;
    options.metadata = &metadata;
    assert_int_equal(
        calls__echo__hold__start(t->client, &request, &options, calls_on_done, t, NULL), 0);
}

static struct bow_call *start_traced(struct calls *t)
{
    const struct bow_metadata_entry entries[] = {
        entry_of("tracestate", "a=1"),
        entry_of("other", "not a trace"),
        entry_of("traceparent", PARENT),
        entry_of("tracestate", "b=2"),
    };

    start_with(t, NULL, entries, 4);
    return calls_take_held(t);
}

/* The child's metadata as "key=value;", and its end. */
static void expect_sent(struct calls *t, struct bow_call *child, const char *expected)
{
    const struct bow_metadata *metadata = bow_call_metadata(child);
    char text[512] = "";

    for (size_t i = 0; i < metadata->n; i++) {
        const struct bow_metadata_entry *entry = &metadata->entries[i];
        size_t n = strlen(text);
        snprintf(text + n, sizeof(text) - n, "%s=%s;", entry->key, (const char *)entry->value.data);
    }
    assert_string_equal(text, expected);
    int n_done = t->n_done;
    assert_int_equal(calls_reply(child, 1), 0);
    calls_wait(t, &t->n_done, n_done + 1);
}

static void end_parent(struct calls *t, struct bow_call *parent)
{
    int n_done = t->n_done;

    assert_int_equal(calls_reply(parent, 1), 0);
    calls_wait(t, &t->n_done, n_done + 1);
}

static void test_client_parents_trace_goes_on_with_the_child(void **state)
{
    struct calls *t = *state;
    struct bow_metadata_entry own = entry_of("own", "x");
    struct bow_call *parent = start_traced(t);

    start_with(t, parent, NULL, 0);
    expect_sent(t, calls_take_held(t), "tracestate=a=1;traceparent=" PARENT ";tracestate=b=2;");
    start_with(t, parent, &own, 1);
    expect_sent(t, calls_take_held(t),
                "own=x;tracestate=a=1;traceparent=" PARENT ";tracestate=b=2;");
    end_parent(t, parent);
}

static void test_client_childs_own_trace_goes_instead(void **state)
{
    struct calls *t = *state;
    struct bow_metadata_entry own = entry_of("traceparent", OTHER);
    struct bow_call *parent = start_traced(t);

    start_with(t, parent, &own, 1);
    expect_sent(t, calls_take_held(t), "traceparent=" OTHER ";");
    end_parent(t, parent);
}

/* The caller's own metadata leaves little of the limit. */
static void test_client_parents_trace_that_does_not_fit_is_left_out(void **state)
{
    struct calls *t = *state;
    static char value[12200];
    struct bow_call *parent = start_traced(t);

    memset(value, 'v', sizeof(value) - 1);
    struct bow_metadata_entry own = entry_of("own", value);
    start_with(t, parent, &own, 1);
    struct bow_call *child = calls_take_held(t);
    assert_int_equal(bow_call_metadata(child)->n, 1);
    assert_int_equal(calls_reply(child, 1), 0);
    calls_wait(t, &t->n_done, 1);
    end_parent(t, parent);
}

static void add_trace(struct bow_interception *at, void *user)
{
    struct bow_slice own = {(const uint8_t *)OTHER, strlen(OTHER)};
    struct bow_slice x = {(const uint8_t *)"x", 1};

    (void)user;
    assert_int_equal(bow_interception_add_request(at, "traceparent", own), 0);
    assert_int_equal(bow_interception_add_request(at, "tracestate", x), 0);
}

static void add_trace_behind_another(struct bow_interception *at, void *user)
{
    struct bow_slice x = {(const uint8_t *)"x", 1};

    assert_int_equal(bow_interception_add_request(at, "first", x), 0);
    add_trace(at, user);
}

static void add_bad_trace(struct bow_interception *at, void *user)
{
    struct bow_slice bad = {(const uint8_t *)"\n", 1};

    (void)user;
    assert_int_equal(bow_interception_add_request(at, "traceparent", bad), -EINVAL);
}

/* In place of whatever is there. */
static void set_trace(struct bow_interception *at, void *user)
{
    struct bow_slice own = {(const uint8_t *)OTHER, strlen(OTHER)};
    struct bow_slice none = {NULL, 0};
    struct bow_slice bad = {(const uint8_t *)"\n", 1};

    (void)user;
    assert_int_equal(bow_interception_set_request(at, "own", bad), -EINVAL);
    assert_int_equal(bow_interception_set_request(at, "traceparent", own), 0);
    assert_int_equal(bow_interception_set_request(at, "tracestate", none), 0);
    assert_int_equal(bow_interception_set_request(at, "absent", none), 0);
}

static void set_own(struct bow_interception *at, void *user)
{
    struct bow_slice y = {(const uint8_t *)"y", 1};

    set_trace(at, user);
    assert_int_equal(bow_interception_set_request(at, "own", y), 0);
    assert_int_equal(bow_interception_set_request(at, "own", y), 0);
    assert_int_equal(bow_interception_add_request(at, "traceparent", y), 0); /* one more */
}

static void set_state_alone(struct bow_interception *at, void *user)
{
    struct bow_slice x = {(const uint8_t *)"x", 1};

    (void)user;
    assert_int_equal(bow_interception_set_request(at, "tracestate", x), 0);
}

static void expect_traced(struct calls *t,
                          void (*on_start)(struct bow_interception *at, void *user),
                          const char *expected)
{
    struct bow_interceptor tracer = BOW_INTERCEPTOR_INIT;
    const struct bow_interceptor *interceptors[] = {&tracer};
    struct bow_client_options options;
    struct bow_metadata_entry own = entry_of("own", "x");
    struct bow_client *plain = t->client;
    struct bow_call *parent = start_traced(t);

    tracer.name = "tracer";
    tracer.on_start = on_start;
    calls_client_options(t, &options);
    options.interceptors = interceptors;
    options.n_interceptors = 1;
    t->client = calls_new_client(t, &options);
    start_with(t, parent, &own, 1);
    expect_sent(t, calls_take_held(t), expected);
    bow_client_free(t->client);
    t->client = plain;
    end_parent(t, parent);
}

static void test_client_interceptors_trace_goes_instead(void **state)
{
    expect_traced(*state, add_trace, "own=x;traceparent=" OTHER ";tracestate=x;");
    expect_traced(*state, add_trace_behind_another,
                  "own=x;first=x;traceparent=" OTHER ";tracestate=x;");
}

static void test_client_interceptors_entry_takes_the_place_of_all_of_its_key(void **state)
{
    expect_traced(*state, set_trace, "own=x;traceparent=" OTHER ";");
    expect_traced(*state, set_own, "traceparent=" OTHER ";own=y;traceparent=y;");
    expect_traced(*state, set_state_alone, "own=x;traceparent=" PARENT ";tracestate=x;");
}

static void test_client_interceptors_trace_that_is_refused_leaves_the_parents(void **state)
{
    expect_traced(*state, add_bad_trace,
                  "own=x;tracestate=a=1;traceparent=" PARENT ";tracestate=b=2;");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, calls_setup, calls_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_client_parent_cancelled_cancels_its_child),
        TEST(test_client_parent_ended_cancels_what_could_not_be_started),
        TEST(test_client_parent_answered_cancels_its_child),
        TEST(test_client_parent_child_that_ends_first_leaves_its_parent),
        TEST(test_client_parents_deadline_is_the_childs),
        TEST(test_client_call_late_in_a_turn_gives_no_more_than_its_time),
        TEST(test_client_parents_trace_goes_on_with_the_child),
        TEST(test_client_childs_own_trace_goes_instead),
        TEST(test_client_parents_trace_that_does_not_fit_is_left_out),
        TEST(test_client_interceptors_trace_goes_instead),
        TEST(test_client_interceptors_entry_takes_the_place_of_all_of_its_key),
        TEST(test_client_interceptors_trace_that_is_refused_leaves_the_parents),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
