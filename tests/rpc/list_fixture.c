/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Several servers behind one target.
 */

#include "list_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/** Calls until a server that runs has been found again: its client comes back within pauses of
 * milliseconds, and only a broken test makes so many. */
#define MANY_CALLS 200000

void list_start_server(struct list *list, int i)
{
    struct calls *t = list->servers[i];
    struct bow_server_options options;

    calls_server_options(t, &options);
    t->server = calls_start_server(t, &options);
}

void list_kill_server(struct list *list, int i)
{
    calls_kill_server(list->servers[i]);
}

void list_name_target(struct list *list)
{
    int n = snprintf(list->target, sizeof(list->target), "%slist:", calls_is_grpc() ? "grpc:" : "");

    for (int i = 0; i < LIST_SERVERS; i++) {
        n += snprintf(list->target + n, sizeof(list->target) - (size_t)n, "%s%s", i > 0 ? "," : "",
                      list->servers[i]->address);
    }
}

int list_setup(void **state)
{
    struct list *list = calloc(1, sizeof(*list));

    assert_non_null(list);
    for (int i = 0; i < LIST_SERVERS; i++) {
        void *t = NULL;
        calls_setup_bare(&t);
        list->servers[i] = t;
        list_start_server(list, i);
    }
    list->t = list->servers[0];
    list_name_target(list);
    *state = list;
    return 0;
}

int list_teardown(void **state)
{
    struct list *list = *state;

    list_free_client(list);
    for (int i = LIST_SERVERS - 1; i >= 0; i--) {
        void *t = list->servers[i];
        calls_teardown(&t);
    }
    free(list);
    return 0;
}

void list_new_client(struct list *list, void (*change)(struct bow_client_options *options))
{
    struct bow_client_options options;

    calls_client_options(list->t, &options);
    options.target = list->target;
    options.backoff_min_ns = 2 * MS;
    options.backoff_max_ns = 10 * MS;
    if (change != NULL) {
        change(&options);
    }
    list->t->client = calls_new_client(list->t, &options);
}

void list_free_client(struct list *list)
{
    bow_client_free(list->t->client);
    list->t->client = NULL;
}

enum bow_code list_say(struct list *list, const struct bow_call_options *options)
{
    struct calls *t = list->t;
    Calls__Request request = CALLS__REQUEST__INIT;

    bow_result_fini(&t->result);
    t->result = (struct bow_result)BOW_RESULT_INIT;
    (void)calls__echo__say__call(t->client, &request, options, &t->result);
    return t->result.status.code;
}

void list_start_say(struct list *list)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    assert_int_equal(
        calls__echo__say__start(list->t->client, &request, NULL, calls_on_done, list->t, NULL), 0);
}

void list_start_hold(struct list *list)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    assert_int_equal(
        calls__echo__hold__start(list->t->client, &request, NULL, calls_on_done, list->t, NULL), 0);
}

static int read_counter(struct calls *t, const int *counter)
{
    pthread_mutex_lock(&t->lock);
    int n = *counter;
    pthread_mutex_unlock(&t->lock);
    return n;
}

int list_said(struct list *list, int i)
{
    return read_counter(list->servers[i], &list->servers[i]->n_said);
}

int list_held(struct list *list, int i)
{
    return read_counter(list->servers[i], &list->servers[i]->n_held);
}

void list_say_until(struct list *list, int i, int n)
{
    for (int k = 0; list_said(list, i) < n; k++) {
        assert_true(k < MANY_CALLS);
        if (list_say(list, NULL) != BOW_OK) {
            fail_msg("%s", list->t->result.status.message);
        }
    }
}

void list_expect_words(struct list *list, const char *words)
{
    const char *message = list->t->result.status.message;

    if (strstr(message, words) == NULL) {
        fail_msg("\"%s\" does not say \"%s\"", message, words);
    }
}
