/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A client of several servers of which some have fallen silent, without a word that they are gone.
 * The client is confined to the test's thread: such a one asks for no sign of life between calls,
 * over either protocol, so a silence is found by a call.
 */

#include "list_fixture.h"

#include <bowline/metrics.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* A server that lives answers within the second, however busy the machine. */
#define HEARTBEAT_NS (200 * MS)
#define HEARTBEAT_TIMEOUT_NS (1500 * MS)

/* Servers on loops of the test's, which can be made to stand still. */
struct silent {
    struct list *list;
    struct bow_loop *loops[LIST_SERVERS];
};

static void begin(struct silent *silent, struct list *list)
{
    struct bow_loop_options loop_options = BOW_LOOP_OPTIONS_INIT;
    struct bow_server_options options;

    *silent = (struct silent){.list = list};
    for (int i = 0; i < LIST_SERVERS; i++) {
        struct calls *t = list->servers[i];
        list_kill_server(list, i);
        assert_int_equal(bow_loop_new(t->context, &loop_options, &silent->loops[i]), 0);
        calls_server_options(t, &options);
        options.loop = silent->loops[i];
        t->server = calls_start_server(t, &options);
    }
    list_name_target(list);
}

static void end(struct silent *silent)
{
    list_free_client(silent->list);
    for (int i = 0; i < LIST_SERVERS; i++) {
        list_kill_server(silent->list, i);
        assert_int_equal(bow_loop_shutdown(silent->loops[i], 0, 0), 0);
        assert_int_equal(bow_loop_join(silent->loops[i], BOW_NEVER), 0);
        bow_loop_unref(silent->loops[i]);
    }
}

static void confined(struct bow_client_options *options)
{
    options->loop = NULL;
    options->heartbeat_ns = HEARTBEAT_NS;
    options->heartbeat_timeout_ns = HEARTBEAT_TIMEOUT_NS;
}

static void reach_all(struct list *list)
{
    for (int i = 0; i < LIST_SERVERS; i++) {
        list_say_until(list, i, list_said(list, i) + 1);
    }
}

/* Silence */

static int stand_still(void *user)
{
    struct calls *t = user;

    pthread_mutex_lock(&t->lock);
    t->n_cancelled++; /* nothing is cancelled here: it counts those that stand still */
    pthread_cond_broadcast(&t->changed);
    pthread_mutex_unlock(&t->lock);
    calls_wait(t, &t->n_let_go, 1);
    return 0;
}

static void silence(struct silent *silent, int i)
{
    struct calls *t = silent->list->servers[i];

    assert_int_equal(bow_loop_execute(silent->loops[i], "stand still", stand_still, t), 0);
    calls_wait(t, &t->n_cancelled, 1);
}

static void call_until_one_is_lost(struct list *list)
{
    int n = 0;

    while (list_say(list, NULL) == BOW_OK) {
        assert_true(++n < LIST_SERVERS);
    }
    assert_int_equal(list->t->result.status.code, BOW_UNAVAILABLE);
    list_expect_words(list, "heartbeat");
}

static uint64_t heartbeats_lost(struct list *list)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;

    assert_int_equal(bow_client_metrics(list->t->client, &metrics), 0);
    return metrics.heartbeats_lost;
}

static void test_silent_servers_cost_one_call(void **state)
{
    struct list *list = *state;
    struct silent silent;

    begin(&silent, list);
    list_new_client(list, confined);
    reach_all(list);
    silence(&silent, 0);
    silence(&silent, 1);
    call_until_one_is_lost(list);
    int before = list_said(list, 2);
    for (int n = 0; n < 20; n++) {
        if (list_say(list, NULL) != BOW_OK) {
            fail_msg("%s", list->t->result.status.message);
        }
    }
    assert_int_equal(list_said(list, 2), before + 20);
    for (int i = 0; i < 2; i++) {
        calls_let_go(list->servers[i]);
        list_say_until(list, i, list_said(list, i) + 1);
    }
    assert_true(heartbeats_lost(list) >= 1);
    end(&silent);
}

/* Nobody spoke to them meanwhile, so they are asked; they answer, and nothing is connected anew. */
static void test_silent_server_does_not_cost_the_others_their_connections(void **state)
{
    struct list *list = *state;
    struct silent silent;

    begin(&silent, list);
    list_new_client(list, confined);
    reach_all(list);
    silence(&silent, 0);
    call_until_one_is_lost(list);
    for (int i = 1; i < LIST_SERVERS; i++) {
        list_say_until(list, i, list_said(list, i) + 3);
        CALLS_WAIT_METRIC(list->servers[i], connections_opened, 1);
        CALLS_WAIT_METRIC(list->servers[i], calls_ended, (uint64_t)list_said(list, i));
    }
    struct bow_metrics metrics = BOW_METRICS_INIT;
    assert_int_equal(bow_client_metrics(list->t->client, &metrics), 0);
    assert_int_equal(metrics.reconnects, 0);
    assert_int_equal(metrics.heartbeats_lost, 1);
    calls_let_go(list->servers[0]);
    end(&silent);
}

#define SILENT_TEST(name) cmocka_unit_test_setup_teardown(name, list_setup, list_teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        SILENT_TEST(test_silent_servers_cost_one_call),
        SILENT_TEST(test_silent_server_does_not_cost_the_others_their_connections),
    };

    calls_choose(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
