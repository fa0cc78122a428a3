/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A client of a name whose addresses change while calls run: what is asked and when, which
 * connections stay, come and go, what calls wait for, and what they are told.
 */

#include "bound.h"
#include "names_fixture.h"

#include <bowline/group.h>
#include <bowline/limits.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct calls *calls_of(struct names *names)
{
    return names->list->t;
}

/* Targets */

static void expect_refused(struct names *names, const char *target, int rc, const char *words)
{
    struct bow_client_options options;
    struct bow_transport_error error = {0};
    struct bow_client *client = NULL;

    names_options(names, &options);
    options.target = target;
    options.error = &error;
    assert_int_equal(bow_client_new(&options, &client), rc);
    if (strstr(error.text, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", error.text, words);
    }
}

static void expect_table_refused(struct names *names, const char *scheme, const char *words)
{
    const char *before = names->table.scheme;

    names->table.scheme = scheme;
    expect_refused(names, "127.0.0.1:1", -EINVAL, words);
    names->table.scheme = before;
}

static void test_resolver_tables_that_cannot_be_are_refused(void **state)
{
    struct names *names = *state;

    expect_table_refused(names, "unix", "addresses have that scheme");
    expect_table_refused(names, "list", "addresses have that scheme");
    expect_table_refused(names, "Test", "its scheme is none");
    expect_table_refused(names, "", "its scheme is none");
    expect_table_refused(names, "a_scheme", "its scheme is none");
    expect_table_refused(names, "a-scheme-that-has-31-characters-at-most", "its scheme is none");
    expect_refused(names, "test:", -EINVAL, "a name must follow the scheme");
    expect_refused(names, "test:///", -EINVAL, "a name must follow the scheme");
    expect_refused(names, "list:test:a,127.0.0.1:1", -EINVAL, "address 1 of the list");
}

static void expect_asked(struct names *names, const char *target, const char *name)
{
    struct bow_client_options options;
    char text[64];

    names_options(names, &options);
    snprintf(text, sizeof(text), "%s%s", calls_is_grpc() ? "grpc:" : "", target);
    options.target = text;
    calls_of(names)->client = calls_new_client(calls_of(names), &options);
    assert_string_equal(bow_client_target(calls_of(names)->client), text);
    assert_int_equal(list_say(names->list, NULL), BOW_OK);
    assert_string_equal(names->name, name);
    list_free_client(names->list);
}

static void test_resolver_name_is_what_stands_behind_the_scheme(void **state)
{
    struct names *names = *state;

    expect_asked(names, "test:///orders", "orders");
    expect_asked(names, "test:orders:80?x=1", "orders:80?x=1");
    expect_asked(names, "test://authority/orders", "//authority/orders");
}

/* Nothing is asked before the first call, and of a loop once. */
static void test_resolver_is_asked_by_the_first_call(void **state)
{
    struct names *names = *state;

    names_new_client(names, NULL);
    assert_int_equal(bow_client_get_state(calls_of(names)->client), BOW_CLIENT_IDLE);
    assert_int_equal(names_read(names, &names->n_started), 0);
    assert_int_equal(list_say(names->list, NULL), BOW_OK);
    assert_int_equal(list_say(names->list, NULL), BOW_OK);
    assert_int_equal(names_read(names, &names->n_started), 1);
    assert_int_equal(bow_client_get_state(calls_of(names)->client), BOW_CLIENT_READY);
    list_free_client(names->list);
    assert_int_equal(names_read(names, &names->n_stopped), 1);
}

/* Waiting for the first answer */

static void test_resolver_calls_wait_for_the_first_answer(void **state)
{
    struct names *names = *state;
    struct calls *t = calls_of(names);

    names->is_silent = true;
    names_new_client(names, NULL);
    list_start_say(names->list);
    list_start_say(names->list);
    names_wait(names, &names->n_started, 1);
    assert_int_equal(bow_client_get_state(t->client), BOW_CLIENT_CONNECTING);
    assert_int_equal(t->n_done, 0);
    names_tell(names);
    calls_wait(t, &t->n_done, 2);
    assert_int_equal(t->n_failed, 0);
}

static void test_resolver_deadline_says_that_the_name_was_not_resolved(void **state)
{
    struct names *names = *state;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;

    names->is_silent = true;
    names_new_client(names, NULL);
    options.timeout_ns = 20 * MS;
    assert_int_equal(list_say(names->list, &options), BOW_DEADLINE_EXCEEDED);
    list_expect_words(names->list, "passed while resolving the name of ");
    list_expect_words(names->list, "test:///orders");
}

/* Errors */

static void test_resolver_error_fails_calls_and_says_why(void **state)
{
    struct names *names = *state;
    struct calls *t = calls_of(names);

    names_know_error(names, "the directory is shut");
    names_new_client(names, NULL);
    assert_int_equal(list_say(names->list, NULL), BOW_UNAVAILABLE);
    list_expect_words(names->list, "resolving ");
    list_expect_words(names->list, "test:///orders: the directory is shut");
    assert_int_equal(bow_client_get_state(t->client), BOW_CLIENT_TRANSIENT_FAILURE);
    names_say(names, 0, 1);
    while (list_say(names->list, NULL) != BOW_OK) { /* it is taken one turn later */
    }
}

/* It asks again by itself, while calls want to know. */
static void test_resolver_is_asked_again_after_an_error(void **state)
{
    struct names *names = *state;

    names_know_error(names, "the directory is shut");
    names_new_client(names, NULL);
    assert_int_equal(list_say(names->list, NULL), BOW_UNAVAILABLE);
    names_know(names, 0, 1);
    while (list_say(names->list, NULL) != BOW_OK) {
    }
    assert_true(names_read(names, &names->n_refreshed) > 0);
    assert_int_equal(names_read(names, &names->n_started), 1);
}

static void test_resolver_call_that_waits_for_ready_outlasts_an_error(void **state)
{
    struct names *names = *state;
    struct calls *t = calls_of(names);
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;

    names_know_error(names, "the directory is shut");
    names_new_client(names, NULL);
    options.wait_for_ready = true;
    assert_int_equal(calls__echo__say__start(t->client, &request, &options, calls_on_done, t, NULL),
                     0);
    names_wait(names, &names->n_said, 1);
    names_say(names, 0, 1);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->n_failed, 0);
}

static void test_resolver_that_cannot_begin_is_begun_again(void **state)
{
    struct names *names = *state;

    names->fail_start = -ENETDOWN;
    names_new_client(names, NULL);
    assert_int_equal(list_say(names->list, NULL), BOW_UNAVAILABLE);
    list_expect_words(names->list, "its resolver could not begin: ENETDOWN");
    names_wait(names, &names->n_failed_starts, 3);
    pthread_mutex_lock(&names->lock);
    names->fail_start = 0;
    pthread_mutex_unlock(&names->lock);
    names_wait(names, &names->n_started, 1);
    names_wait(names, &names->n_said, 1);
    assert_int_equal(list_say(names->list, NULL), BOW_OK);
}

/* Whatever is said of a name that was known: its servers are there. */
static void expect_unchanged(struct names *names)
{
    int before[LIST_SERVERS];

    names_tell(names);
    for (int i = 0; i < LIST_SERVERS; i++) {
        before[i] = list_said(names->list, i);
    }
    for (int n = 0; n < 4 * LIST_SERVERS; n++) {
        assert_int_equal(list_say(names->list, NULL), BOW_OK);
    }
    for (int i = 0; i < LIST_SERVERS; i++) {
        assert_int_equal(list_said(names->list, i) - before[i], 4);
    }
}

static void reach_all(struct names *names)
{
    for (int i = 0; i < LIST_SERVERS; i++) {
        list_say_until(names->list, i, 1);
    }
}

static void test_resolver_last_good_addresses_outlast_what_is_none(void **state)
{
    struct names *names = *state;

    names_new_client(names, NULL);
    reach_all(names);
    names_know_error(names, "the directory is shut");
    expect_unchanged(names);
    names_know_error(names, NULL);
    expect_unchanged(names);
    names_know(names, 0, 2);
    names->addresses[1].address = "nonsense";
    expect_unchanged(names);
    names->addresses[1].address = "192.0.2.1:1";
    expect_unchanged(names);
    names->addresses[1].address = NULL;
    expect_unchanged(names);
}

static void test_resolver_address_beyond_the_host_needs_encryption(void **state)
{
    struct names *names = *state;

    names_know(names, 0, 2);
    names->addresses[1].address = "192.0.2.1:1";
    names_new_client(names, NULL);
    assert_int_equal(list_say(names->list, NULL), BOW_UNAVAILABLE);
    list_expect_words(names->list, "address 2 of 2 cannot be used, and so none of them is: "
                                   "\"192.0.2.1:1\": it is beyond this host");
}

/* Addresses that come and go */

static void test_resolver_new_address_takes_its_part(void **state)
{
    struct names *names = *state;

    names_know(names, 0, 1);
    names_new_client(names, NULL);
    for (int n = 0; n < 10; n++) {
        assert_int_equal(list_say(names->list, NULL), BOW_OK);
    }
    assert_int_equal(list_said(names->list, 0), 10);
    names_say(names, 0, LIST_SERVERS);
    reach_all(names);
    expect_unchanged(names);
}

static void test_resolver_address_that_goes_takes_no_calls(void **state)
{
    struct names *names = *state;

    names_new_client(names, NULL);
    reach_all(names);
    names_say(names, 1, LIST_SERVERS);
    assert_int_equal(list_say(names->list, NULL), BOW_OK); /* it is taken by then */
    int before = list_said(names->list, 0);
    for (int n = 0; n < 20; n++) {
        assert_int_equal(list_say(names->list, NULL), BOW_OK);
    }
    assert_int_equal(list_said(names->list, 0), before);
    CALLS_WAIT_METRIC(names->list->servers[0], connections_closed, 1);
    CALLS_WAIT_METRIC(names->list->servers[1], connections_closed, 0);
}

/* In another order, twice, with another weight, it is the same set. */
static void test_resolver_addresses_that_stay_keep_their_connections(void **state)
{
    struct names *names = *state;

    names_new_client(names, NULL);
    reach_all(names);
    for (int round = 0; round < 3; round++) {
        names_know(names, 0, LIST_SERVERS);
        struct bow_resolver_address first = names->addresses[0];
        names->addresses[0] = names->addresses[2];
        names->addresses[2] = first;
        names->addresses[1].weight = (uint32_t)round;
        names->addresses[names->n_addresses++] = names->addresses[1];
        names_tell(names);
        assert_int_equal(list_say(names->list, NULL), BOW_OK);
    }
    list_free_client(names->list);
    for (int i = 0; i < LIST_SERVERS; i++) {
        CALLS_WAIT_METRIC(names->list->servers[i], connections_opened, 1);
    }
}

static void test_resolver_address_that_comes_back_is_connected_to_again(void **state)
{
    struct names *names = *state;

    names_new_client(names, NULL);
    reach_all(names);
    names_say(names, 1, LIST_SERVERS);
    names_say(names, 0, LIST_SERVERS);
    list_say_until(names->list, 0, list_said(names->list, 0) + 1);
}

/* Of another server name, or elsewhere, it is another server. */
static uint64_t n_opened(const struct calls *server)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;

    assert_int_equal(bow_server_metrics(server->server, &metrics), 0);
    return metrics.connections_opened;
}

static void test_resolver_same_address_by_another_name_is_another(void **state)
{
    struct names *names = *state;

    names_know(names, 0, 1);
    names_new_client(names, NULL);
    assert_int_equal(list_say(names->list, NULL), BOW_OK);
    names->addresses[0].locality = "zone-b";
    names_tell(names);
    while (n_opened(names->list->servers[0]) < 2) {
        assert_int_equal(list_say(names->list, NULL), BOW_OK);
    }
    list_free_client(names->list);
}

/* Calls in flight on an address that goes */

static void test_resolver_call_on_an_address_that_goes_ends_by_itself(void **state)
{
    struct names *names = *state;
    struct calls *t = calls_of(names);

    names_know(names, 0, 1);
    names_new_client(names, NULL);
    list_start_hold(names->list);
    struct bow_call *held = calls_take_held(names->list->servers[0]);
    names_say(names, 1, LIST_SERVERS);
    for (int n = 0; n < 10; n++) {
        assert_int_equal(list_say(names->list, NULL), BOW_OK);
    }
    assert_int_equal(t->n_done, 0);
    assert_int_equal(calls_reply(held, 1), 0);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->n_failed, 0);
    CALLS_WAIT_METRIC(names->list->servers[0], connections_closed, 1);
}

static _Atomic(uint64_t) later_ns;

static uint64_t read_later(void *user)
{
    return bow_system_default()->now_ns(user) + later_ns;
}

/* A client in a context of its own, whose clock the test moves. */
static void new_timed_client(struct names *names, struct bow_system *system,
                             struct bow_context **ret_context, struct bow_loop **ret_loop)
{
    struct bow_context_options context_options = BOW_CONTEXT_OPTIONS_INIT;
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct bow_client_options options;

    later_ns = 0;
    *system = *bow_system_default();
    system->now_ns = read_later;
    context_options.system = system;
    assert_int_equal(bow_context_new(&context_options, ret_context), 0);
    assert_int_equal(bow_loop_new(*ret_context, &loop_options, ret_loop), 0);
    names_options(names, &options);
    options.context = *ret_context;
    options.loop = *ret_loop;
    calls_of(names)->client = calls_new_client(calls_of(names), &options);
}

static void end_timed_client(struct names *names, struct bow_context *context,
                             struct bow_loop *loop)
{
    list_free_client(names->list);
    bow_result_fini(&calls_of(names)->result);
    bow_loop_unref(loop);
    bow_context_unref(context);
}

static void say_all_well(struct names *names, int n)
{
    for (; n > 0; n--) {
        if (list_say(names->list, NULL) != BOW_OK) {
            fail_msg("%s", calls_of(names)->result.status.message);
        }
    }
}

/* All the time that there is. */
static void test_resolver_calls_on_an_address_that_goes_have_their_time(void **state)
{
    struct names *names = *state;
    struct calls *t = calls_of(names);
    struct bow_system system;
    struct bow_context *context = NULL;
    struct bow_loop *loop = NULL;
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;

    names_know(names, 0, 1);
    new_timed_client(names, &system, &context, &loop);
    options.timeout_ns = BOW_NEVER;
    assert_int_equal(
        calls__echo__hold__start(t->client, &request, &options, calls_on_done, t, NULL), 0);
    calls_wait(names->list->servers[0], &names->list->servers[0]->n_held, 1);
    names_say(names, 1, 2);
    say_all_well(names, 2);
    later_ns = BOW_LIMIT_RESOLVED_DRAIN_NS - 1000 * MS;
    say_all_well(names, 5);
    assert_int_equal(t->n_done, 0);
    later_ns = BOW_LIMIT_RESOLVED_DRAIN_NS + 1;
    names_tell(names); /* the loop looks at its clock */
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->n_failed, 1);
    bow_call_fail(calls_take_held(names->list->servers[0]), BOW_CANCELLED, "nobody waits");
    end_timed_client(names, context, loop);
}

/* As many as can be, and nobody is at any of them. */
static void say_nobody(struct names *names)
{
    static char texts[NAMES_MAX_ADDRESSES][32];

    names_know_error(names, NULL);
    for (size_t i = 0; i < NAMES_MAX_ADDRESSES; i++) {
        snprintf(texts[i], sizeof(texts[i]), "unix-abstract:nobody-%zu", i);
        names->addresses[i] = (struct bow_resolver_address){.address = texts[i]};
    }
    names->n_addresses = NAMES_MAX_ADDRESSES;
    names_tell(names);
    while (list_say(names->list, NULL) == BOW_OK) { /* it is taken one turn later */
    }
}

/* One update lets more of them go than may be kept: each of the oldest ends for it. */
static void test_resolver_oldest_of_too_many_addresses_that_went_are_cut(void **state)
{
    struct names *names = *state;
    struct calls *t = calls_of(names);

    names_know(names, 0, 2);
    names_new_client(names, NULL);
    list_say_until(names->list, 0, 1);
    list_say_until(names->list, 1, 1);
    list_start_hold(names->list);
    list_start_hold(names->list);
    struct bow_call *held[] = {calls_take_held(names->list->servers[0]),
                               calls_take_held(names->list->servers[1])};
    say_nobody(names);
    assert_int_equal(t->n_done, 0);
    names_say(names, 2, 3);
    calls_wait(t, &t->n_done, 2);
    assert_int_equal(t->n_failed, 2);
    for (int i = 0; i < 2; i++) {
        bow_call_fail(held[i], BOW_CANCELLED, "nobody waits");
    }
}

/* None is lost, whatever comes and goes under them. */
static void test_resolver_load_survives_changes(void **state)
{
    enum { CALLS = 2000, AT_ONCE = 50 };
    struct names *names = *state;
    struct calls *t = calls_of(names);

    names_new_client(names, NULL);
    for (int n = 0; n < CALLS; n += AT_ONCE) {
        for (int k = 0; k < AT_ONCE; k++) {
            list_start_say(names->list);
        }
        int from = (n / AT_ONCE) % LIST_SERVERS;
        names_say(names, from, from + 1 + (n / AT_ONCE) % (LIST_SERVERS - from));
        calls_wait(t, &t->n_done, n);
    }
    calls_wait(t, &t->n_done, CALLS);
    if (t->n_failed > 0) {
        fail_msg("%d failed: %s", t->n_failed, t->result.status.message);
    }
}

static void several_to_each(struct bow_client_options *options)
{
    options->max_connections_per_address = 3;
}

static void test_resolver_further_connections_go_with_their_address(void **state)
{
    struct names *names = *state;
    struct calls *first = names->list->servers[0];
    struct bow_server_options options;
    struct calls *t = calls_of(names);

    if (!calls_is_grpc()) {
        print_message("skipped: only HTTP/2 tells how few calls a server takes\n");
        skip();
    }
    list_kill_server(names->list, 0);
    calls_server_options(first, &options);
    options.max_calls = 1;
    first->server = calls_start_server(first, &options);
    names_know(names, 0, 1);
    names_new_client(names, several_to_each);
    for (int i = 0; i < 3; i++) {
        list_start_hold(names->list);
    }
    calls_wait(first, &first->n_held, 3);
    names_say(names, 1, LIST_SERVERS);
    for (int n = 0; n < 10; n++) {
        assert_int_equal(list_say(names->list, NULL), BOW_OK);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(calls_reply(calls_take_held(first), 1), 0);
    }
    calls_wait(t, &t->n_done, 3);
    assert_int_equal(t->n_failed, 0);
    CALLS_WAIT_METRIC(first, connections_closed, 3);
}

/* Hints */

static void test_resolver_is_told_when_a_server_fails(void **state)
{
    struct names *names = *state;

    names_new_client(names, NULL);
    reach_all(names);
    names_know(names, 1, LIST_SERVERS);
    list_kill_server(names->list, 0);
    (void)list_say(names->list, NULL);
    names_wait(names, &names->n_refreshed, 1);
    for (int n = 0; n < 20; n++) {
        assert_int_equal(list_say(names->list, NULL), BOW_OK);
    }
}

/* The end */

static void test_resolver_client_freed_while_the_name_is_resolved(void **state)
{
    struct names *names = *state;
    struct calls *t = calls_of(names);

    names->is_silent = true;
    names_new_client(names, NULL);
    list_start_say(names->list);
    names_wait(names, &names->n_started, 1);
    list_free_client(names->list);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_CANCELLED);
}

static void test_resolver_client_freed_with_calls_on_addresses_that_went(void **state)
{
    struct names *names = *state;
    struct calls *t = calls_of(names);

    names_know(names, 0, 1);
    names_new_client(names, NULL);
    list_start_hold(names->list);
    calls_wait(names->list->servers[0], &names->list->servers[0]->n_held, 1);
    names_say(names, 1, 2);
    list_free_client(names->list);
    calls_wait(t, &t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_CANCELLED);
}

static void free_when_done(struct bow_result *result, const Calls__Reply *reply, void *user)
{
    struct names *names = user;
    struct calls *t = calls_of(names);

    names_tell_here(names); /* an update that comes in the same turn */
    bow_client_free(t->client);
    t->client = NULL;
    names_tell_here(names);
    calls_on_done(result, reply, t);
}

/* By an error, and by an answer. */
static void test_resolver_client_freed_in_a_callback_in_the_middle_of_an_update(void **state)
{
    struct names *names = *state;
    struct calls *t = calls_of(names);
    Calls__Request request = CALLS__REQUEST__INIT;

    for (int round = 0; round < 4; round++) {
        names_know(names, 0, 1 + round % LIST_SERVERS);
        if (round % 2 == 0) {
            names_know_error(names, "the directory is shut");
        }
        names_new_client(names, NULL);
        assert_int_equal(
            calls__echo__say__start(t->client, &request, NULL, free_when_done, names, NULL), 0);
        calls_wait(t, &t->n_done, round + 1);
        names_wait(names, &names->n_stopped, round + 1);
    }
}

/* Bindings */

static void test_resolver_owners_loop_is_asked_as_it_is_driven(void **state)
{
    struct names *names = *state;
    struct calls *t = calls_of(names);
    struct bow_loop *loop = bound_new_loop(t, BOW_LOOP_OWNER);
    struct bow_client_options options;

    names_options(names, &options);
    options.loop = loop;
    t->client = calls_new_client(t, &options);
    names_know(names, 0, 1);
    bound_expect_say(t, t->client, loop);
    names_know(names, 1, 2);
    names_tell_here(names);
    bound_expect_say(t, t->client, loop);
    bow_client_free(t->client);
    t->client = NULL;
    assert_int_equal(bow_loop_shutdown(loop, 0, 0), 0);
    assert_int_equal(bow_loop_run(loop), 0);
    bow_loop_unref(loop);
    assert_int_equal(names->n_stopped, 1);
}

/* With calls that wait for an answer that does not come. */
static void test_resolver_loop_that_shuts_down_ends_the_watch(void **state)
{
    struct names *names = *state;
    struct calls *t = calls_of(names);
    struct bow_loop *loop = bound_new_loop(t, BOW_LOOP_OWNER);
    struct bow_client_options options;

    names->is_silent = true;
    names_options(names, &options);
    options.loop = loop;
    t->client = calls_new_client(t, &options);
    list_start_say(names->list);
    while (names->n_started == 0) {
        assert_int_equal(bow_loop_run_once(loop, MS), 0);
    }
    assert_int_equal(bow_loop_shutdown(loop, 0, 0), 0);
    assert_int_equal(bow_loop_run(loop), 0);
    assert_int_equal(t->n_done, 1);
    assert_int_equal(t->result.status.code, BOW_UNAVAILABLE);
    assert_int_equal(names->n_stopped, 1);
    list_free_client(names->list);
    bow_loop_unref(loop);
}

static void test_resolver_group_has_a_watch_for_each_loop(void **state)
{
    struct names *names = *state;
    struct calls *t = calls_of(names);
    struct bow_group_options group_options = BOW_GROUP_OPTIONS_INIT;
    struct bow_client_options options;
    struct bow_group *group = NULL;

    group_options.n_loops = 2;
    assert_int_equal(bow_group_new(t->context, &group_options, &group), 0);
    names_options(names, &options);
    options.loop = NULL;
    options.group = group;
    t->client = calls_new_client(t, &options);
    for (int n = 0; n < 8; n++) {
        assert_int_equal(list_say(names->list, NULL), BOW_OK);
    }
    assert_int_equal(names_read(names, &names->n_started), 1);
    names_say(names, 1, 2);
    while (list_said(names->list, 1) == 0) {
        assert_int_equal(list_say(names->list, NULL), BOW_OK);
    }
    list_free_client(names->list);
    bow_group_unref(group);
}

static void test_resolver_confined_client_takes_changes_as_it_is_driven(void **state)
{
    struct names *names = *state;
    struct calls *t = calls_of(names);
    struct bow_client_options options;

    names_options(names, &options);
    options.loop = NULL;
    names_know(names, 0, 1);
    t->client = calls_new_client(t, &options);
    assert_int_equal(list_say(names->list, NULL), BOW_OK);
    names_know(names, 1, 2);
    names_tell_here(names);
    assert_int_equal(list_say(names->list, NULL), BOW_OK);
    assert_int_equal(list_said(names->list, 0) + list_said(names->list, 1), 2);
    while (list_said(names->list, 1) == 0) {
        assert_int_equal(list_say(names->list, NULL), BOW_OK);
    }
    names_know_error(names, "the directory is shut");
    names_tell_here(names);
    list_free_client(names->list);
    assert_int_equal(names->n_stopped, 1);
}

/* Without memory at each point the name is resolved again, or the set before stays. */
static void test_resolver_without_memory_nothing_is_lost(void **state)
{
    struct names *names = *state;

    names_new_client(names, NULL);
    reach_all(names);
    names->fails = true;
    for (size_t n = 1; n < 40; n++) {
        names->fail_nth = n;
        names_say(names, (int)(n % 2), LIST_SERVERS);
        (void)list_say(names->list, NULL);
        names->fail_nth = 0;
        names_tell(names);
        assert_int_equal(list_say(names->list, NULL), BOW_OK);
    }
    names_say(names, 0, LIST_SERVERS);
    int before = list_said(names->list, 0);
    list_say_until(names->list, 0, before + 1);
}

static void test_resolver_client_without_memory_says_so(void **state)
{
    struct names *names = *state;
    struct calls *t = calls_of(names);
    struct bow_client_options options;
    struct bow_client *client = NULL;
    int rc = -ENOMEM;

    names_options(names, &options);
    for (size_t n = 1; rc == -ENOMEM; n++) {
        t->alloc.fail_at = t->alloc.n_calls + n;
        rc = bow_client_new(&options, &client);
    }
    t->alloc.fail_at = 0;
    assert_int_equal(rc, 0);
    bow_client_free(client);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, names_setup, names_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        TEST(test_resolver_tables_that_cannot_be_are_refused),
        TEST(test_resolver_name_is_what_stands_behind_the_scheme),
        TEST(test_resolver_is_asked_by_the_first_call),
        TEST(test_resolver_calls_wait_for_the_first_answer),
        TEST(test_resolver_deadline_says_that_the_name_was_not_resolved),
        TEST(test_resolver_error_fails_calls_and_says_why),
        TEST(test_resolver_is_asked_again_after_an_error),
        TEST(test_resolver_call_that_waits_for_ready_outlasts_an_error),
        TEST(test_resolver_that_cannot_begin_is_begun_again),
        TEST(test_resolver_last_good_addresses_outlast_what_is_none),
        TEST(test_resolver_address_beyond_the_host_needs_encryption),
        TEST(test_resolver_new_address_takes_its_part),
        TEST(test_resolver_address_that_goes_takes_no_calls),
        TEST(test_resolver_addresses_that_stay_keep_their_connections),
        TEST(test_resolver_address_that_comes_back_is_connected_to_again),
        TEST(test_resolver_same_address_by_another_name_is_another),
        TEST(test_resolver_call_on_an_address_that_goes_ends_by_itself),
        TEST(test_resolver_calls_on_an_address_that_goes_have_their_time),
        TEST(test_resolver_oldest_of_too_many_addresses_that_went_are_cut),
        TEST(test_resolver_load_survives_changes),
        TEST(test_resolver_further_connections_go_with_their_address),
        TEST(test_resolver_is_told_when_a_server_fails),
        TEST(test_resolver_client_freed_while_the_name_is_resolved),
        TEST(test_resolver_client_freed_with_calls_on_addresses_that_went),
        TEST(test_resolver_client_freed_in_a_callback_in_the_middle_of_an_update),
        TEST(test_resolver_owners_loop_is_asked_as_it_is_driven),
        TEST(test_resolver_loop_that_shuts_down_ends_the_watch),
        TEST(test_resolver_group_has_a_watch_for_each_loop),
        TEST(test_resolver_confined_client_takes_changes_as_it_is_driven),
        TEST(test_resolver_without_memory_nothing_is_lost),
        TEST(test_resolver_client_without_memory_says_so),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
