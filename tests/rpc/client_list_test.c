/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One client of several servers: which forms a list may have, how calls are shared out, and who
 * answers when a server is not there, does not answer, goes or comes back.
 */

#include "list_fixture.h"

#include <bowline/limits.h>
#include <bowline/metrics.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Forms */

static void expect_refused(struct list *list, const char *target, int rc, const char *words)
{
    struct bow_client_options options;
    struct bow_transport_error error = {0};
    struct bow_client *client = NULL;

    calls_client_options(list->t, &options);
    options.target = target;
    options.error = &error;
    assert_int_equal(bow_client_new(&options, &client), rc);
    if (strstr(error.text, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", error.text, words);
    }
}

static void test_list_forms_that_cannot_be_are_refused_with_a_reason(void **state)
{
    struct list *list = *state;

    expect_refused(list, "list:", -EINVAL, "address 1 of the list: it is empty");
    expect_refused(list, "list:127.0.0.1:1,,127.0.0.1:2", -EINVAL, "address 2 of the list");
    expect_refused(list, "list:127.0.0.1:1,", -EINVAL, "address 2 of the list");
    expect_refused(list, "list:127.0.0.1:1,here", -EINVAL, "\"here\": no port");
    expect_refused(list, "list:127.0.0.1:1,grpc:127.0.0.1:2", -EINVAL, "address 2 of the list");
    expect_refused(list, "list:127.0.0.1:1,192.0.2.1:2", -EPERM, "options.plaintext");
}

static void name_many(char *target, size_t size, unsigned n)
{
    int at = snprintf(target, size, "list:");

    for (unsigned i = 0; i < n; i++) {
        at += snprintf(target + at, size - (size_t)at, "%s127.0.0.1:%u", i > 0 ? "," : "", i + 1);
    }
}

static void test_list_length_is_bounded(void **state)
{
    struct list *list = *state;
    struct bow_client_options options;
    char target[(BOW_LIMIT_LIST_ADDRESSES + 1) * sizeof("127.0.0.1:1,") + 64];

    calls_client_options(list->t, &options);
    options.target = target;
    name_many(target, sizeof(target), BOW_LIMIT_LIST_ADDRESSES);
    bow_client_free(calls_new_client(list->t, &options));
    name_many(target, sizeof(target), BOW_LIMIT_LIST_ADDRESSES + 1);
    expect_refused(list, target, -EINVAL, "at most 64 addresses (BOW_LIMIT_LIST_ADDRESSES)");
}

static void test_list_of_one_is_that_one(void **state)
{
    struct list *list = *state;

    snprintf(list->target, sizeof(list->target), "%slist:%s", calls_is_grpc() ? "grpc:" : "",
             list->servers[1]->address);
    list_new_client(list, NULL);
    assert_int_equal(list_say(list, NULL), BOW_OK);
    assert_int_equal(list_said(list, 1), 1);
}

static void expect_served(struct list *list, const char *format, const char *first,
                          const char *second)
{
    char address[300];

    snprintf(address, sizeof(address), format, first, second);
    snprintf(list->target, sizeof(list->target), "%s%s", calls_is_grpc() ? "grpc:" : "", address);
    list_new_client(list, NULL);
    list_say_until(list, 1, list_said(list, 1) + 1);
    if (second != NULL) {
        list_say_until(list, 2, list_said(list, 2) + 1);
    }
    list_free_client(list);
}

static void test_list_f63_targets_as_grpc_writes_them(void **state)
{
    struct list *list = *state;
    const char *first = list->servers[1]->address;
    const char *second = list->servers[2]->address;

    if (!calls_is_unix()) {
        expect_served(list, "ipv4:%s", first, NULL);
        expect_served(list, "dns:///%s", first, NULL);
        expect_served(list, "passthrough:///%s", first, NULL);
        expect_served(list, "ipv4:%s,%s", first, second);
        expect_served(list, "list:dns:%s,ipv4:%s", first, second);
    }
    expect_refused(list, "ipv4:127.0.0.1:1,localhost:2", -EINVAL,
                   "address 2 of the list: \"ipv4:localhost:2\": an IPv4 address must follow");
    expect_refused(list, "ipv4:127.0.0.1:1,", -EINVAL, "address 2 of the list: it is empty");
    expect_refused(list, "dns:///a:1,b:2", -EINVAL, "several addresses stand behind \"list:\"");
}

static void test_list_client_without_memory_says_so(void **state)
{
    struct list *list = *state;
    struct calls *t = list->t;
    struct bow_client_options options;
    struct bow_client *client = NULL;
    int rc = -ENOMEM;

    calls_client_options(t, &options);
    options.target = list->target;
    for (size_t n = 1; rc == -ENOMEM; n++) {
        t->alloc.fail_at = t->alloc.n_calls + n;
        rc = bow_client_new(&options, &client);
    }
    t->alloc.fail_at = 0;
    assert_int_equal(rc, 0);
    bow_client_free(client);
}

/* Turns */

static void reach_all(struct list *list)
{
    for (int i = 0; i < LIST_SERVERS; i++) {
        list_say_until(list, i, 1);
    }
}

static void test_list_calls_go_round(void **state)
{
    enum { ROUNDS = 10 };
    struct list *list = *state;
    int before[LIST_SERVERS];

    list_new_client(list, NULL);
    reach_all(list);
    for (int i = 0; i < LIST_SERVERS; i++) {
        before[i] = list_said(list, i);
    }
    for (int n = 0; n < ROUNDS * LIST_SERVERS; n++) {
        assert_int_equal(list_say(list, NULL), BOW_OK);
    }
    for (int i = 0; i < LIST_SERVERS; i++) {
        assert_int_equal(list_said(list, i) - before[i], ROUNDS);
    }
}

/* One connection to each, however many calls there were. */
static void test_list_has_a_connection_to_each_address(void **state)
{
    struct list *list = *state;

    list_new_client(list, NULL);
    reach_all(list);
    list_free_client(list);
    for (int i = 0; i < LIST_SERVERS; i++) {
        CALLS_WAIT_METRIC(list->servers[i], connections_opened, 1);
    }
}

/* Holds of all servers */
static int n_held(struct list *list)
{
    int n = 0;

    for (int i = 0; i < LIST_SERVERS; i++) {
        n += list_held(list, i);
    }
    return n;
}

static void restart_with_max_calls(struct list *list, uint32_t max_calls)
{
    for (int i = 0; i < LIST_SERVERS; i++) {
        struct calls *t = list->servers[i];
        struct bow_server_options options;
        list_kill_server(list, i);
        calls_server_options(t, &options);
        options.max_calls = max_calls;
        t->server = calls_start_server(t, &options);
    }
}

/* With a call on each the connections are full; the one that gets free is found, whose turn it may
 * not be. HTTP/2 alone lets a server say so few. */
static void test_list_full_connections_are_passed_over(void **state)
{
    struct list *list = *state;

    if (!calls_is_grpc()) {
        print_message("skipped: only HTTP/2 tells how few calls a server takes\n");
        skip();
    }
    restart_with_max_calls(list, 1);
    list_new_client(list, NULL);
    reach_all(list);
    for (int i = 0; i < LIST_SERVERS; i++) {
        list_start_hold(list);
    }
    while (n_held(list) < LIST_SERVERS) {
    }
    int done = 0;
    for (int round = 0; round < 2; round++) {
        for (int i = LIST_SERVERS - 1; i >= 0; i--) {
            assert_int_equal(calls_reply(calls_take_held(list->servers[i]), 1), 0);
            calls_wait(list->t, &list->t->n_done, ++done);
            int before = list_said(list, i);
            assert_int_equal(list_say(list, NULL), BOW_OK);
            assert_int_equal(list_said(list, i), before + 1);
            list_start_hold(list);
            calls_wait(list->servers[i], &list->servers[i]->n_held, 1);
        }
    }
    for (int i = 0; i < LIST_SERVERS; i++) {
        assert_int_equal(calls_reply(calls_take_held(list->servers[i]), 1), 0);
    }
    calls_wait(list->t, &list->t->n_done, done + LIST_SERVERS);
}

/* Servers that are not there */

static void test_list_dead_server_fails_no_call(void **state)
{
    struct list *list = *state;

    list_kill_server(list, 0);
    list_new_client(list, NULL);
    for (int n = 0; n < 50; n++) {
        assert_int_equal(list_say(list, NULL), BOW_OK);
    }
    list_say_until(list, 1, 1);
    list_say_until(list, 2, 1);
}

static void test_list_server_that_comes_back_is_found(void **state)
{
    struct list *list = *state;

    list_new_client(list, NULL);
    reach_all(list);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < LIST_SERVERS; i++) {
            int before = list_said(list, i);
            list_kill_server(list, i);
            for (int n = 0; n < 20; n++) { /* the loss is seen before the call, or is its end */
                (void)list_say(list, NULL);
            }
            list_start_server(list, i);
            list_say_until(list, i, before + 1);
        }
    }
}

static void kill_all(struct list *list)
{
    for (int i = 0; i < LIST_SERVERS; i++) {
        list_kill_server(list, i);
    }
}

static void slow_to_retry(struct bow_client_options *options)
{
    options->backoff_min_ns = 3600 * 1000 * MS;
    options->backoff_max_ns = 3600 * 1000 * MS;
}

static void test_list_without_any_server_says_what_failed_where(void **state)
{
    struct list *list = *state;

    kill_all(list);
    list_new_client(list, slow_to_retry);
    assert_int_equal(list_say(list, NULL), BOW_UNAVAILABLE);
    list_expect_words(list, "none of 3 addresses takes calls: connecting to ");
    list_expect_words(list, "ECONNREFUSED");
    for (int i = 0; i < LIST_SERVERS; i++) {
        list_expect_words(list, list->servers[i]->address);
    }
    assert_int_equal(list_say(list, NULL), BOW_UNAVAILABLE);
    list_expect_words(list, "the next try is due in ");
    assert_int_equal(bow_client_get_state(list->t->client), BOW_CLIENT_TRANSIENT_FAILURE);
}

static void test_list_call_waits_until_some_server_is_there(void **state)
{
    struct list *list = *state;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;

    kill_all(list);
    list_new_client(list, NULL);
    assert_int_equal(list_say(list, NULL), BOW_UNAVAILABLE);
    list_start_server(list, 2);
    options.wait_for_ready = true;
    assert_int_equal(list_say(list, &options), BOW_OK);
    assert_int_equal(list_said(list, 2), 1);
}

static void test_list_deadline_says_the_first_address_and_how_many(void **state)
{
    struct list *list = *state;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    char words[256];

    kill_all(list);
    list_new_client(list, NULL);
    options.wait_for_ready = true;
    options.timeout_ns = 30 * MS;
    assert_int_equal(list_say(list, &options), BOW_DEADLINE_EXCEEDED);
    snprintf(words, sizeof(words),
             "connecting to %s and 2 others; the last attempt: ", list->servers[0]->address);
    list_expect_words(list, words);
}

/* With nobody who calls, a server that is gone is left alone. */
static int on_later(void *user)
{
    calls_let_go(user);
    return 0;
}

static void wait_on_loop(struct list *list, uint64_t ns)
{
    struct calls *t = list->t;
    int before = t->n_let_go;

    assert_int_equal(bow_loop_execute(t->loop, "later", on_later, t), 0);
    calls_wait(t, &t->n_let_go, before + 1);
    calls_hold_loop(ns); /* this thread, which is none */
}

static uint64_t connects_failed(struct list *list)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;

    assert_int_equal(bow_client_metrics(list->t->client, &metrics), 0);
    return metrics.connects_failed;
}

static void test_list_connects_only_while_there_are_calls(void **state)
{
    struct list *list = *state;

    list_new_client(list, NULL);
    reach_all(list);
    list_kill_server(list, 1);
    wait_on_loop(list, 300 * MS);
    /* At most one for the calls before, and one for the loss. */
    assert_true(connects_failed(list) <= 2);
    list_start_server(list, 1);
    list_say_until(list, 1, list_said(list, 1) + 1);
}

/* Calls in flight */

static int holder(struct list *list)
{
    int at = 0;

    while (n_held(list) == 0) {
    }
    for (int i = 0; i < LIST_SERVERS; i++) {
        at = list_held(list, i) > 0 ? i : at;
    }
    return at;
}

static void test_list_call_on_a_lost_connection_names_its_address(void **state)
{
    struct list *list = *state;

    list_new_client(list, NULL);
    reach_all(list);
    list_start_hold(list);
    int i = holder(list);
    list_kill_server(list, i);
    calls_wait(list->t, &list->t->n_done, 1);
    assert_int_equal(list->t->result.status.code, BOW_UNAVAILABLE);
    list_expect_words(list, list->servers[i]->address);
    for (int n = 0; n < 20; n++) {
        assert_int_equal(list_say(list, NULL), BOW_OK);
    }
}

static void test_list_deadline_of_a_call_names_its_server(void **state)
{
    struct list *list = *state;
    Calls__Request request = CALLS__REQUEST__INIT;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;

    list_new_client(list, NULL);
    reach_all(list);
    options.timeout_ns = 400 * MS;
    assert_int_equal(
        calls__echo__hold__start(list->t->client, &request, &options, calls_on_done, list->t, NULL),
        0);
    int i = holder(list);
    calls_wait(list->t, &list->t->n_done, 1);
    list_expect_words(list, "waiting for the reply of ");
    if (strstr(list->t->result.status.message, " and 2 others") == NULL) {
        list_expect_words(list, list->servers[i]->address);
    }
}

/* A peer that takes connections and says nothing, in the first place. */
static int replace_by_mute(struct list *list, int i)
{
    list_kill_server(list, i);
    return calls_raw_listen(list->servers[i]);
}

static void test_list_server_that_says_nothing_gets_no_call(void **state)
{
    struct list *list = *state;
    int fd = replace_by_mute(list, 0);

    list_new_client(list, NULL);
    for (int n = 0; n < 30; n++) {
        assert_int_equal(list_say(list, NULL), BOW_OK);
    }
    list_say_until(list, 1, 1);
    list_say_until(list, 2, 1);
    list_free_client(list);
    close(fd);
}

static void short_to_answer(struct bow_client_options *options)
{
    options->connect_timeout_ns = 50 * MS;
    slow_to_retry(options);
}

static void test_list_server_that_says_nothing_is_given_up(void **state)
{
    struct list *list = *state;
    int fd = replace_by_mute(list, 0);

    list_kill_server(list, 1);
    list_kill_server(list, 2);
    list_new_client(list, short_to_answer);
    assert_int_equal(list_say(list, NULL), BOW_UNAVAILABLE);
    list_expect_words(list, "it took the connection and then said nothing for 50 ms");
    list_expect_words(list, calls_is_grpc() ? "a gRPC server?" : "a Bowline server?");
    list_free_client(list);
    close(fd);
}

/* States */

struct told {
    struct calls *t;
    int n_of[BOW_CLIENT_SHUTDOWN + 1]; /* under its lock */
};

static struct told told;

static void on_state(struct bow_client *client, struct bow_loop *loop, enum bow_client_state state,
                     void *user)
{
    struct told *counts = user;

    (void)client;
    (void)loop;
    pthread_mutex_lock(&counts->t->lock);
    counts->n_of[state]++;
    pthread_cond_broadcast(&counts->t->changed);
    pthread_mutex_unlock(&counts->t->lock);
}

static void tell_states(struct bow_client_options *options)
{
    options->on_state = on_state;
    options->state_user = &told;
}

static void test_list_is_ready_while_any_server_is(void **state)
{
    struct list *list = *state;

    told = (struct told){.t = list->t};
    list_new_client(list, tell_states);
    reach_all(list);
    assert_int_equal(bow_client_get_state(list->t->client), BOW_CLIENT_READY);
    for (int i = 0; i < 2; i++) {
        list_kill_server(list, i);
        for (int n = 0; n < 10; n++) {
            (void)list_say(list, NULL);
        }
        assert_int_equal(bow_client_get_state(list->t->client), BOW_CLIENT_READY);
    }
    assert_int_equal(told.n_of[BOW_CLIENT_READY], 1);
    assert_int_equal(told.n_of[BOW_CLIENT_TRANSIENT_FAILURE], 0);
    list_kill_server(list, 2);
    while (list_say(list, NULL) == BOW_OK) {
    }
    calls_wait(list->t, &told.n_of[BOW_CLIENT_TRANSIENT_FAILURE], 1);
    list_free_client(list);
    assert_int_equal(told.n_of[BOW_CLIENT_SHUTDOWN], 1);
}

#define LIST_TEST(name) cmocka_unit_test_setup_teardown(name, list_setup, list_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        LIST_TEST(test_list_forms_that_cannot_be_are_refused_with_a_reason),
        LIST_TEST(test_list_length_is_bounded),
        LIST_TEST(test_list_of_one_is_that_one),
        LIST_TEST(test_list_f63_targets_as_grpc_writes_them),
        LIST_TEST(test_list_client_without_memory_says_so),
        LIST_TEST(test_list_calls_go_round),
        LIST_TEST(test_list_has_a_connection_to_each_address),
        LIST_TEST(test_list_full_connections_are_passed_over),
        LIST_TEST(test_list_dead_server_fails_no_call),
        LIST_TEST(test_list_server_that_comes_back_is_found),
        LIST_TEST(test_list_without_any_server_says_what_failed_where),
        LIST_TEST(test_list_call_waits_until_some_server_is_there),
        LIST_TEST(test_list_deadline_says_the_first_address_and_how_many),
        LIST_TEST(test_list_connects_only_while_there_are_calls),
        LIST_TEST(test_list_call_on_a_lost_connection_names_its_address),
        LIST_TEST(test_list_deadline_of_a_call_names_its_server),
        LIST_TEST(test_list_server_that_says_nothing_gets_no_call),
        LIST_TEST(test_list_server_that_says_nothing_is_given_up),
        LIST_TEST(test_list_is_ready_while_any_server_is),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
