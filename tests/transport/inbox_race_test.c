/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The instant in which a loop goes to sleep and another thread posts, over and over: one of
 * the two must see the other (L13, F01). No turn of a loop lies between, so that the instants meet
 * often. And that in which it ends: who is refused has seen all that it did.
 */

#include "transport/loop/inbox.h"

#include <bowline/loop.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <time.h>

#include <cmocka.h>

#define N_ROUNDS 400000
/* Where others keep the two from meeting, a round may take a time slice: fewer of them, then. */
#define N_ROUNDS_LEAST 2000
#define ENOUGH_S 15
/* Who waits longer than that has no processor to meet the other on. */
#define MAX_SPINS 2000

struct race {
    struct bow__inbox inbox;
    struct bow_task task;
    atomic_int round; /* begun by the loop's side */
    atomic_int done;  /* ended by the producer's */
    atomic_bool is_over;
    bool has_signalled;
};

static void await(atomic_int *counter, int value)
{
    for (int spins = 0; atomic_load_explicit(counter, memory_order_acquire) < value; spins++) {
        if (spins > MAX_SPINS) {
            sched_yield();
        }
    }
}

/* So that each comes first now and then, by a few instructions. */
static void dawdle(int n)
{
    for (volatile int i = 0; i < n; i++) {
    }
}

static void *produce(void *argument)
{
    struct race *race = argument;

    for (int i = 1; i <= N_ROUNDS; i++) {
        await(&race->round, i);
        if (atomic_load_explicit(&race->is_over, memory_order_relaxed)) {
            break;
        }
        dawdle(i % 61);
        bool is_in = bow__inbox_push(&race->inbox, &race->task);
        race->has_signalled = is_in && bow__inbox_must_signal(&race->inbox, 0);
        atomic_store_explicit(&race->done, i, memory_order_release);
    }
    return NULL;
}

static bool is_enough(int n_rounds, time_t began_s)
{
    return n_rounds >= N_ROUNDS || (n_rounds >= N_ROUNDS_LEAST && time(NULL) - began_s > ENOUGH_S);
}

static void test_inbox_l13_f01_who_goes_to_sleep_sees_the_post_or_is_woken(void **state)
{
    static struct race race;
    const time_t began_s = time(NULL);
    pthread_t producer;
    int n_lost = 0;
    int i;

    (void)state;
    bow__inbox_init(&race.inbox);
    assert_int_equal(pthread_create(&producer, NULL, produce, &race), 0);
    for (i = 1; !is_enough(i - 1, began_s); i++) {
        atomic_store_explicit(&race.round, i, memory_order_release);
        dawdle(i % 67);
        bool is_asleep = bow__inbox_sleep(&race.inbox, BOW_NEVER);
        await(&race.done, i);
        n_lost += is_asleep && !race.has_signalled;
        bow__inbox_awake(&race.inbox);
        assert_ptr_equal(bow__inbox_take(&race.inbox).first, &race.task);
    }
    atomic_store_explicit(&race.is_over, true, memory_order_relaxed);
    atomic_store_explicit(&race.round, i, memory_order_release);
    pthread_join(producer, NULL);
    assert_int_equal(n_lost, 0);
}

/* Closed: whoever is refused does the rest itself, with what the loop has left */

#define N_CLOSES 1000
#define N_POSTS 50000 /* more than a loop that is about to close is sent */

struct refusal {
    struct bow__inbox inbox;
    struct bow_task tasks[N_POSTS];
    int left_by_loop; /* plain memory: ThreadSanitizer tells who reads it too early */
    int n_refused;
    int n_seen;
};

static void *push_until_refused(void *argument)
{
    struct refusal *refusal = argument;

    for (int i = 0; i < N_POSTS; i++) {
        if (!bow__inbox_push(&refusal->inbox, &refusal->tasks[i])) {
            refusal->n_refused++;
            refusal->n_seen += refusal->left_by_loop;
            return NULL;
        }
        sched_yield();
    }
    return NULL;
}

static void test_inbox_who_is_refused_sees_what_the_loop_did_before_it_closed(void **state)
{
    static struct refusal refusal;

    (void)state;
    for (int i = 0; i < N_CLOSES; i++) {
        pthread_t producer;
        bow__inbox_init(&refusal.inbox);
        refusal.left_by_loop = 0;
        assert_int_equal(pthread_create(&producer, NULL, push_until_refused, &refusal), 0);
        dawdle(i % 67);
        refusal.left_by_loop = 1;
        (void)bow__inbox_close(&refusal.inbox);
        pthread_join(producer, NULL);
    }
    assert_int_equal(refusal.n_seen, refusal.n_refused);
    assert_true(refusal.n_refused > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_inbox_l13_f01_who_goes_to_sleep_sees_the_post_or_is_woken),
        cmocka_unit_test(test_inbox_who_is_refused_sees_what_the_loop_did_before_it_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
