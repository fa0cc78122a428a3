/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A resolver that says what a test knows.
 */

#include "names_fixture.h"

#include <bowline/timer.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define PATIENCE_S 20

struct names_watch {
    struct names *names;
    struct bow_resolver_watch *watch;
    struct bow_loop *loop;
    struct bow_timer timer;
    int at; /* in the names' watches */
};

static void say(struct names_watch *own)
{
    struct names *names = own->names;
    struct bow_resolver_update update = BOW_RESOLVER_UPDATE_INIT;

    pthread_mutex_lock(&names->lock);
    update.addresses = names->addresses;
    update.n_addresses = names->n_addresses;
    update.error = names->error;
    if (names->fails) {
        struct test_alloc *alloc = &names->list->t->alloc;
        alloc->fail_at = names->fail_nth > 0 ? alloc->n_calls + names->fail_nth : 0;
    }
    bow_resolver_update(own->watch, &update);
    names->n_said++;
    pthread_cond_broadcast(&names->changed);
    pthread_mutex_unlock(&names->lock);
}

static void on_timer(struct bow_timer *timer, void *user)
{
    (void)timer;
    say(user);
}

static int start(const struct bow_resolver *resolver, struct bow_loop *loop, const char *name,
                 struct bow_resolver_watch *watch, void **ret_state)
{
    struct names *names = resolver->user;
    struct names_watch *own = NULL;

    pthread_mutex_lock(&names->lock);
    int rc = names->fail_start;
    snprintf(names->name, sizeof(names->name), "%s", name);
    if (rc == 0) {
        own = calloc(1, sizeof(*own));
        *own = (struct names_watch){.names = names, .watch = watch, .loop = loop};
        own->at = names->n_started++;
        names->watches[own->at] = own;
        bow_timer_init(&own->timer, loop, on_timer, own);
        if (!names->is_silent) {
            bow_timer_start(&own->timer, 0);
        }
        *ret_state = own;
    } else {
        names->n_failed_starts++;
    }
    pthread_cond_broadcast(&names->changed);
    pthread_mutex_unlock(&names->lock);
    return rc;
}

static void refresh(void *state)
{
    struct names_watch *own = state;

    pthread_mutex_lock(&own->names->lock);
    own->names->n_refreshed++;
    if (!own->names->is_silent) {
        bow_timer_start(&own->timer, 0);
    }
    pthread_cond_broadcast(&own->names->changed);
    pthread_mutex_unlock(&own->names->lock);
}

static void stop(void *state)
{
    struct names_watch *own = state;
    struct names *names = own->names;

    bow_timer_stop(&own->timer);
    pthread_mutex_lock(&names->lock);
    names->watches[own->at] = NULL;
    names->n_stopped++;
    pthread_cond_broadcast(&names->changed);
    pthread_mutex_unlock(&names->lock);
    free(own);
}

void names_wait(struct names *names, const int *counter, int n)
{
    struct timespec until;
    int rc = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += PATIENCE_S;
    pthread_mutex_lock(&names->lock);
    while (*counter < n && rc == 0) {
        rc = pthread_cond_timedwait(&names->changed, &names->lock, &until);
    }
    int reached = *counter;
    pthread_mutex_unlock(&names->lock);
    assert_true(reached >= n);
}

int names_read(struct names *names, const int *counter)
{
    pthread_mutex_lock(&names->lock);
    int n = *counter;
    pthread_mutex_unlock(&names->lock);
    return n;
}

void names_know(struct names *names, int from, int to)
{
    pthread_mutex_lock(&names->lock);
    names->error = NULL;
    names->n_addresses = 0;
    for (int i = from; i < to; i++) {
        names->addresses[names->n_addresses++] =
            (struct bow_resolver_address){.address = names->list->servers[i]->address};
    }
    pthread_mutex_unlock(&names->lock);
}

void names_know_error(struct names *names, const char *error)
{
    pthread_mutex_lock(&names->lock);
    names->error = error;
    names->n_addresses = 0;
    pthread_mutex_unlock(&names->lock);
}

/* The watch may have stopped by then: it is looked for again. */
static int tell_task(void *user)
{
    const struct names_telling *telling = user;
    struct names *names = telling->names;

    pthread_mutex_lock(&names->lock);
    struct names_watch *own = names->watches[telling->at];
    pthread_mutex_unlock(&names->lock);
    if (own != NULL) {
        say(own);
    }
    return 0;
}

void names_tell(struct names *names)
{
    struct bow_loop *loops[NAMES_MAX_WATCHES] = {NULL};

    pthread_mutex_lock(&names->lock);
    int before = names->n_said;
    int n = 0;
    for (int i = 0; i < names->n_started; i++) {
        loops[i] = names->watches[i] != NULL ? names->watches[i]->loop : NULL;
    }
    pthread_mutex_unlock(&names->lock);
    for (int i = 0; i < NAMES_MAX_WATCHES; i++) {
        if (loops[i] == NULL) {
            continue;
        }
        names->tellings[i] = (struct names_telling){names, i};
        bow_task_init(&names->tasks[i], "tell", tell_task, &names->tellings[i]);
        assert_int_equal(bow_loop_post(loops[i], &names->tasks[i]), 0);
        n++;
    }
    names_wait(names, &names->n_said, before + n);
}

void names_tell_here(struct names *names)
{
    for (int i = 0; i < names->n_started; i++) {
        if (names->watches[i] != NULL) {
            say(names->watches[i]);
        }
    }
}

void names_say(struct names *names, int from, int to)
{
    names_know(names, from, to);
    names_tell(names);
}

void names_options(struct names *names, struct bow_client_options *ret_options)
{
    struct bow_client_options options;

    calls_client_options(names->list->t, &options);
    options.target = calls_is_grpc() ? "grpc:test:///orders" : "test:///orders";
    options.resolvers = names->tables;
    options.n_resolvers = 1;
    options.backoff_min_ns = 2 * MS;
    options.backoff_max_ns = 10 * MS;
    *ret_options = options;
}

void names_new_client(struct names *names, void (*change)(struct bow_client_options *options))
{
    struct bow_client_options options;

    names_options(names, &options);
    if (change != NULL) {
        change(&options);
    }
    names->list->t->client = calls_new_client(names->list->t, &options);
}

int names_setup(void **state)
{
    struct names *names = calloc(1, sizeof(*names));
    void *list = NULL;

    assert_non_null(names);
    list_setup(&list);
    names->list = list;
    pthread_mutex_init(&names->lock, NULL);
    pthread_cond_init(&names->changed, NULL);
    names->table = (struct bow_resolver){
        .size = sizeof(names->table),
        .scheme = "test",
        .start = start,
        .refresh = refresh,
        .stop = stop,
        .user = names,
    };
    names->tables[0] = &names->table;
    names_know(names, 0, LIST_SERVERS);
    *state = names;
    return 0;
}

int names_teardown(void **state)
{
    struct names *names = *state;
    void *list = names->list;

    list_teardown(&list);
    assert_int_equal(names->n_started, names->n_stopped);
    pthread_cond_destroy(&names->changed);
    pthread_mutex_destroy(&names->lock);
    free(names);
    return 0;
}
