/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Posting tasks, from any thread. On the loop's own thread a task goes straight into the queue;
 * from elsewhere through the inbox, and the first one starts the loop's thread. Knows nothing of
 * how they are run.
 */

#include "base/alloc.h"
#include "transport/loop/loop_internal.h"

#include <assert.h>
#include <errno.h>

static int submit_inside(struct bow_loop *loop, struct bow_task *task)
{
    if (bow__loop_is_foreign(loop)) {
        return -ECHILD;
    }
    if (bow__loop_state(loop) >= BOW_LOOP_SHUTDOWN) {
        return -ESHUTDOWN;
    }
    bow__chain_push(&loop->tasks, task);
    bow__loop_rearm(loop);
    return 0;
}

static int submit_outside(struct bow_loop *loop, struct bow_task *task, uint64_t due_ns)
{
    if (bow__loop_is_foreign(loop)) {
        return -ECHILD;
    }
    if (bow__loop_state(loop) == BOW_LOOP_NOT_STARTED) {
        int rc = bow__loop_start(loop);
        if (rc < 0) {
            return rc;
        }
    }
    if (!bow__inbox_push(&loop->inbox, task)) {
        return -ESHUTDOWN;
    }
    if (due_ns == BOW_NEVER) {
        atomic_fetch_add_explicit(&loop->n_lazy_posts, 1, memory_order_relaxed);
    } else if (bow__inbox_must_signal(&loop->inbox, due_ns)) {
        loop->system->wake_signal(loop->system->user, loop->wake_watch.fd);
    }
    return 0;
}

static int submit(struct bow_loop *loop, struct bow_task *task, uint64_t due_ns, uintptr_t flags)
{
    assert((task->flags & BOW__TASK_POSTED) == 0);
    task->flags = flags | BOW__TASK_POSTED;
    int rc =
        bow_loop_in_loop(loop) ? submit_inside(loop, task) : submit_outside(loop, task, due_ns);
    if (rc < 0) {
        task->flags = 0;
    }
    return rc;
}

int bow__loop_post_behind(struct bow_loop *loop, struct bow_task *task)
{
    assert((task->flags & BOW__TASK_POSTED) == 0);
    task->flags = BOW__TASK_POSTED;
    int rc = submit_outside(loop, task, 0);
    if (rc < 0) {
        task->flags = 0;
    }
    return rc;
}

void bow__loop_reject(struct bow_loop *loop, const char *name, bow_task_fn fn, void *user)
{
    atomic_fetch_add_explicit(&loop->n_rejected, 1, memory_order_relaxed);
    if (loop->options.rejected != NULL) {
        loop->options.rejected(loop, name, fn, user, loop->options.rejected_user);
    }
}

static int post(struct bow_loop *loop, struct bow_task *task, uint64_t due_ns)
{
    int rc = submit(loop, task, due_ns, 0);
    if (rc == -ESHUTDOWN) {
        bow__loop_reject(loop, task->name, task->fn, task->user);
    }
    return rc;
}

int bow_loop_post(struct bow_loop *loop, struct bow_task *task)
{
    return post(loop, task, 0);
}

int bow_loop_post_lazy(struct bow_loop *loop, struct bow_task *task)
{
    return post(loop, task, BOW_NEVER);
}

void bow_loop_wake(struct bow_loop *loop)
{
    int kept = errno; /* a signal may have come between a failing call and the look at its errno */

    if (bow__loop_is_foreign(loop)) {
        return;
    }
    loop->system->wake_signal(loop->system->user, loop->wake_watch.fd);
    errno = kept;
}

int bow__loop_post_internal(struct bow_loop *loop, struct bow_task *task, uint64_t due_ns)
{
    return submit(loop, task, due_ns, 0);
}

int bow__loop_post_event(struct bow_loop *loop, struct bow_task *task)
{
    return submit(loop, task, 0, BOW__TASK_TIMED | BOW__TASK_EVENT);
}

int bow_loop_post_tail(struct bow_loop *loop, struct bow_task *task)
{
    assert(bow__loop_may_touch(loop));
    if (bow__loop_state(loop) >= BOW_LOOP_SHUTDOWN) {
        return -ESHUTDOWN;
    }
    if (loop->tails.n_tasks >= loop->options.max_tail_tasks) {
        return -EAGAIN;
    }
    assert((task->flags & BOW__TASK_POSTED) == 0);
    task->flags = BOW__TASK_POSTED;
    bow__chain_push(&loop->tails, task);
    return 0;
}

int bow_loop_execute(struct bow_loop *loop, const char *name, bow_task_fn fn, void *user)
{
    if (!bow__loop_take_slot(loop)) {
        bow__loop_reject(loop, name, fn, user);
        return -EAGAIN;
    }
    int rc = -ENOMEM;
    struct bow_task *task = bow__alloc(loop->context, sizeof(*task));
    if (task == NULL) {
        goto free_slot;
    }
    bow_task_init(task, name, fn, user);
    rc = submit(loop, task, 0, BOW__TASK_EXECUTE);
    if (rc < 0) {
        goto free_task;
    }
    return 0;

free_task:
    bow__free(loop->context, task, sizeof(*task));
free_slot:
    bow__loop_free_slot(loop);
    if (rc == -ESHUTDOWN) {
        bow__loop_reject(loop, name, fn, user);
    }
    return rc;
}
