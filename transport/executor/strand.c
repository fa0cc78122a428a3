/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A strand: tasks of an executor one after the other. It stands in the executor's queue
 * as one task, its turn, while it has any of its own.
 *
 * Design
 *
 * `tasks` and `is_active` are guarded by the executor's mutex; taking it between two
 * tasks is what makes the second see all that the first did, whichever thread runs it.
 * An active strand holds a reference to itself. `refs`: relaxed up, acq_rel down.
 */

#include "transport/executor/strand.h"
#include "base/alloc.h"
#include "transport/executor/executor_core.h"

#include <assert.h>
#include <errno.h>

/* Then the turn goes to the end of the queue, so that one strand leaves room for others. */
#define TASKS_PER_TURN 16

struct bow_strand {
    struct bow_executor *executor; /* held */
    atomic_uint refs;
    struct bow__task_chain tasks;
    bool is_active; /* its turn is queued or runs */
    struct bow_task turn;
};

static int run_turn(void *user);

int bow_strand_new(struct bow_executor *executor, struct bow_strand **ret_strand)
{
    struct bow_strand *strand = bow__alloc_zero(executor->context, sizeof(*strand));
    if (strand == NULL) {
        return -ENOMEM;
    }
    strand->executor = executor;
    atomic_init(&strand->refs, 1);
    bow__executor_hold(executor);
    *ret_strand = strand;
    return 0;
}

struct bow_strand *bow_strand_ref(struct bow_strand *strand)
{
    atomic_fetch_add_explicit(&strand->refs, 1, memory_order_relaxed);
    return strand;
}

struct bow_strand *bow_strand_unref(struct bow_strand *strand)
{
    if (strand != NULL && atomic_fetch_sub_explicit(&strand->refs, 1, memory_order_acq_rel) == 1) {
        struct bow_executor *executor = strand->executor;
        bow__free(executor->context, strand, sizeof(*strand));
        bow__executor_release(executor);
    }
    return NULL;
}

static void push_turn_locked(struct bow_strand *strand)
{
    bow_task_init(&strand->turn, "strand", run_turn, strand);
    strand->turn.flags = BOW__EXECUTOR_TASK_POSTED | BOW__EXECUTOR_TASK_STRAND;
    bow__executor_push_locked(strand->executor, &strand->turn);
}

static struct bow_task *next_task(struct bow_strand *strand)
{
    pthread_mutex_lock(&strand->executor->mutex);
    struct bow_task *task = bow__chain_pop(&strand->tasks);
    strand->is_active = task != NULL;
    pthread_mutex_unlock(&strand->executor->mutex);
    return task;
}

static int run_turn(void *user)
{
    struct bow_strand *strand = user;

    for (int i = 0; i < TASKS_PER_TURN; i++) {
        struct bow_task *task = next_task(strand);
        if (task == NULL) {
            bow_strand_unref(strand);
            return 0;
        }
        bow__executor_run_task(strand->executor, task);
    }
    /* Also after SHUTDOWN: this thread looks into the queue once more before it leaves. */
    pthread_mutex_lock(&strand->executor->mutex);
    push_turn_locked(strand);
    pthread_mutex_unlock(&strand->executor->mutex);
    return 0;
}

static int post(struct bow_strand *strand, struct bow_task *task, bool is_last)
{
    struct bow_executor *executor = strand->executor;
    int rc = 0;

    assert((task->flags & BOW__EXECUTOR_TASK_POSTED) == 0);
    if (bow__executor_is_foreign(executor)) {
        return -ECHILD;
    }
    pthread_mutex_lock(&executor->mutex);
    if (!is_last || !strand->is_active) {
        rc = bow__executor_admit_locked(executor);
    }
    if (rc < 0) {
        goto unlock;
    }
    task->flags |= BOW__EXECUTOR_TASK_POSTED;
    bow__chain_push(&strand->tasks, task);
    atomic_fetch_add_explicit(&executor->n_pending, 1, memory_order_relaxed);
    if (!strand->is_active) {
        strand->is_active = true;
        bow_strand_ref(strand);
        push_turn_locked(strand);
    }
unlock:
    pthread_mutex_unlock(&executor->mutex);
    return rc;
}

int bow__strand_post_internal(struct bow_strand *strand, struct bow_task *task)
{
    return post(strand, task, false);
}

int bow__strand_post_last(struct bow_strand *strand, struct bow_task *task)
{
    return post(strand, task, true);
}

int bow_strand_post(struct bow_strand *strand, struct bow_task *task)
{
    int rc = post(strand, task, false);
    if (rc == -ESHUTDOWN) {
        bow__executor_reject(strand->executor, task->name, task->fn, task->user);
    }
    return rc;
}

int bow_strand_execute(struct bow_strand *strand, const char *name, bow_task_fn fn, void *user)
{
    struct bow_executor *executor = strand->executor;
    struct bow_task *task = NULL;

    int rc = bow__executor_make_task(executor, name, fn, user, &task);
    if (rc < 0) {
        return rc;
    }
    rc = post(strand, task, false);
    if (rc < 0) {
        bow__executor_drop_task(executor, task, rc);
    }
    return rc;
}
