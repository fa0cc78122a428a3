/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Servers on each kind of loop; see bound.h. */

#include "bound.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

struct bow_loop *bound_new_loop(struct calls *t, enum bow_loop_thread thread)
{
    struct bow_loop_options options = BOW_LOOP_OPTIONS_INIT;
    struct bow_loop *loop = NULL;

    options.thread = thread;
    assert_int_equal(bow_loop_new(t->context, &options, &loop), 0);
    return loop;
}

void bound_begin(struct bound *bound, enum binding binding)
{
    struct bow_group_options options = BOW_GROUP_OPTIONS_INIT;

    bound->binding = binding;
    bound->loop = NULL;
    bound->group = NULL;
    if (binding == LOOP || binding == OWNER) {
        bound->loop =
            bound_new_loop(bound->t, binding == OWNER ? BOW_LOOP_OWNER : BOW_LOOP_OWN_THREAD);
    }
    if (binding == GROUP) {
        options.n_loops = BOUND_N_WORKERS;
        assert_int_equal(bow_group_new(bound->t->context, &options, &bound->group), 0);
    }
}

void bound_end(struct bound *bound)
{
    bow_loop_unref(bound->loop);
    bow_group_unref(bound->group);
}

struct bow_server *bound_make_server(struct bound *bound)
{
    struct bow_server_options options;

    calls_server_options(bound->t, &options);
    options.loop = bound->loop;
    options.group = bound->group;
    options.max_calls = bound->max_calls;
    options.workers = bound->binding == WORKERS ? BOUND_N_WORKERS : 0;
    options.listen = NULL;
    return calls_make_server(bound->t, &options);
}

void bound_listen(struct bow_server *server, const char *address, bool per_worker)
{
    struct bow_listen_options listen = BOW_LISTEN_OPTIONS_INIT;

    listen.address = address;
    listen.per_worker = per_worker;
    assert_int_equal(bow_server_listen(server, &listen), 0);
}

struct bow_loop *bound_driven(const struct bound *bound)
{
    return bound->binding == OWNER ? bound->loop : NULL;
}

/* Until the counter, of t, is at least `n`; `loop` (may be NULL) is driven meanwhile. */
static void drive_until(struct calls *t, struct bow_loop *loop, const int *counter, int n)
{
    int found = 0;

    while (loop != NULL && found < n) {
        assert_int_equal(bow_loop_run_once(loop, BOUND_TURN_NS), 0);
        pthread_mutex_lock(&t->lock);
        found = *counter;
        pthread_mutex_unlock(&t->lock);
    }
    calls_wait(t, counter, n);
}

void bound_wait(const struct bound *bound, const int *counter, int n)
{
    drive_until(bound->t, bound_driven(bound), counter, n);
}

void bound_expect_say(struct calls *t, struct bow_client *client, struct bow_loop *driven)
{
    Calls__Request request = CALLS__REQUEST__INIT;

    t->n_done = 0;
    assert_int_equal(calls__echo__say__start(client, &request, NULL, calls_on_done, t, NULL), 0);
    drive_until(t, driven, &t->n_done, 1);
    if (t->result.status.code != BOW_OK) {
        fail_msg("%s", t->result.status.message);
    }
}

void bound_stop_server(struct bound *bound, struct bow_server *server)
{
    bow_server_stop(server);
    while (bow_server_join(server) != 0) {
        assert_non_null(bound_driven(bound));
        assert_int_equal(bow_loop_run_once(bound_driven(bound), BOUND_TURN_NS), 0);
    }
}
