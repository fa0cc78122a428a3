/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Readiness without a descriptor, rung from another thread. */

#include "tests/support/loops.h"
#include "transport/loop/readiness.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct door {
    struct bow__readiness readiness;
    pthread_mutex_t mutex;
    struct bow__watch watch;
    struct bow_loop *loop;
    uint32_t ready;
    int n_holds;
    int n_events;
};

static struct door *door_of(const struct bow__readiness *readiness)
{
    return BOW__CONTAINER((uintptr_t)readiness, struct door, readiness);
}

static uint32_t ready(const struct bow__readiness *readiness)
{
    return door_of(readiness)->ready;
}

static void hold(struct bow__readiness *readiness)
{
    door_of(readiness)->n_holds++;
}

static void release(struct bow__readiness *readiness)
{
    struct door *door = door_of(readiness);

    pthread_mutex_lock(&door->mutex);
    door->n_holds--;
    pthread_mutex_unlock(&door->mutex);
}

static const struct bow__readiness_ops readiness_ops = {
    .ready = ready, .hold = hold, .release = release};

static void *ring(void *user)
{
    struct door *door = user;

    pthread_mutex_lock(&door->mutex);
    door->ready = BOW_POLL_IN;
    bool must_notify = bow__readiness_must_notify(&door->readiness, BOW_POLL_IN);
    pthread_mutex_unlock(&door->mutex);
    if (must_notify) {
        bow__readiness_notify(&door->readiness);
    }
    return NULL;
}

/* When it returns, the other thread is through. */
static void ring_from_outside(struct door *door)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, ring, door), 0);
    pthread_join(thread, NULL);
}

static void on_events(struct bow__watch *watch, uint32_t events)
{
    struct door *door = BOW__CONTAINER(watch, struct door, watch);

    assert_int_equal(events, BOW_POLL_IN);
    door->n_events++;
    door->ready = 0;
}

/* Its task is the last that the loop accepts; no turn follows in which it could be told. */
static void ring_and_leave(struct bow__watch *watch)
{
    struct door *door = BOW__CONTAINER(watch, struct door, watch);

    ring_from_outside(door);
    assert_int_equal(door->n_holds, 1);
    bow__loop_unwatch(door->loop, watch);
}

static const struct bow__watch_ops watch_ops = {.on_events = on_events,
                                                .on_shutdown = ring_and_leave};

static void begin(struct door *door, struct loops *t)
{
    *door = (struct door){.watch.ops = &watch_ops, .watch.source = &door->readiness.source};
    loops_begin(t);
    pthread_mutex_init(&door->mutex, NULL);
    bow__readiness_init(&door->readiness, &readiness_ops, &door->mutex);
    door->loop = loops_new_owner(t);
    assert_int_equal(bow_loop_run_once(door->loop, 0), 0);
    assert_int_equal(bow__loop_watch(door->loop, &door->watch, -1, BOW_POLL_IN), 0);
}

static void end(struct door *door, struct loops *t)
{
    bow_loop_unref(door->loop);
    bow__readiness_fini(&door->readiness);
    pthread_mutex_destroy(&door->mutex);
    loops_end(t);
}

static void test_readiness_told_from_another_thread_is_heard_once(void **state)
{
    struct door door;
    struct loops t;
    (void)state;
    begin(&door, &t);
    ring_from_outside(&door);
    ring_from_outside(&door); /* it is due already */
    assert_int_equal(door.n_holds, 1);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(bow_loop_run_once(door.loop, 0), 0);
    }
    assert_int_equal(door.n_events, 1);
    assert_int_equal(door.n_holds, 0);
    bow__loop_unwatch(door.loop, &door.watch);
    end(&door, &t);
}

/* It was rung while nobody listened, and is not rung again. */
static void test_readiness_f01_ready_before_there_is_interest_is_heard(void **state)
{
    struct door door;
    struct loops t;
    (void)state;
    begin(&door, &t);
    bow__loop_unwatch(door.loop, &door.watch);
    ring_from_outside(&door);
    assert_int_equal(bow_loop_run_once(door.loop, 0), 0);
    assert_int_equal(door.n_holds, 0);
    assert_int_equal(bow__loop_watch(door.loop, &door.watch, -1, BOW_POLL_IN), 0);
    assert_int_equal(bow_loop_run_once(door.loop, 0), 0);
    assert_int_equal(door.n_events, 1);
    assert_int_equal(door.n_holds, 0);
    bow__loop_unwatch(door.loop, &door.watch);
    end(&door, &t);
}

static void test_readiness_f24_told_while_its_loop_ends_is_let_go(void **state)
{
    struct door door;
    struct loops t;
    (void)state;
    begin(&door, &t);
    assert_int_equal(bow_loop_shutdown(door.loop, 0, 0), 0);
    assert_int_equal(bow_loop_run(door.loop), 0);
    assert_int_equal(door.n_events, 0);
    assert_int_equal(door.n_holds, 0);
    end(&door, &t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_readiness_told_from_another_thread_is_heard_once),
        cmocka_unit_test(test_readiness_f01_ready_before_there_is_interest_is_heard),
        cmocka_unit_test(test_readiness_f24_told_while_its_loop_ends_is_let_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
