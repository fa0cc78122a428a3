/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_RPC_TURNS_H
#define BOWLINE_TESTS_RPC_TURNS_H

/*
 * How much a loop does before others have their turn: a task that is posted again each time it has
 * run, and steps that are counted in between.
 */

#include <bowline/loop.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

struct turns {
    struct bow_task task;
    struct bow_loop *loop;
    int n;    /* steps since the task ran last */
    int most; /* of them at a time */
    atomic_bool is_ending;
    atomic_bool has_ended;
};

static inline int turns_run(void *user)
{
    struct turns *turns = user;

    turns->most = turns->n > turns->most ? turns->n : turns->most;
    turns->n = 0;
    if (turns->is_ending) {
        turns->has_ended = true;
        return 0;
    }
    bow_task_init(&turns->task, "turns", turns_run, turns);
    return bow_loop_post(turns->loop, &turns->task);
}

/** Loop. */
static inline void turns_begin(struct turns *turns, struct bow_loop *loop)
{
    turns->loop = loop;
    turns->n = 0;
    turns->most = 0;
    turns->is_ending = false;
    turns->has_ended = false;
    bow_task_init(&turns->task, "turns", turns_run, turns);
    assert_int_equal(bow_loop_post(loop, &turns->task), 0);
}

/** Loop. */
static inline void turns_step(struct turns *turns)
{
    turns->n++;
}

/** Returns the most steps that came together. Another thread. */
static inline int turns_end(struct turns *turns)
{
    turns->is_ending = true;
    while (!turns->has_ended) {
    }
    return turns->most;
}

#endif
