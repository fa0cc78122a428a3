/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Tasks: taking them in from any thread, and running them. On the loop's own
 * thread a task goes straight into the queue; from elsewhere through the inbox.
 * Every task that was accepted is run, the last ones when the loop closes.
 */

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "transport/loop/loop_core.h"

#include <assert.h>
#include <errno.h>

/* The clock costs as much as a small task, so it is read this seldom (L14). */
#define TASKS_PER_CLOCK 64

static void push(struct bow__task_chain *chain, struct bow_task *task)
{
    task->next = NULL;
    if (chain->first == NULL) {
        chain->first = task;
    } else {
        chain->last->next = task;
    }
    chain->last = task;
    chain->n_tasks++;
}

static struct bow_task *pop(struct bow__task_chain *chain)
{
    struct bow_task *task = chain->first;

    if (task != NULL) {
        chain->first = task->next;
        chain->n_tasks--;
    }
    return task;
}

static void append(struct bow__task_chain *chain, struct bow__task_chain more)
{
    if (more.first == NULL) {
        return;
    }
    if (chain->first == NULL) {
        chain->first = more.first;
    } else {
        chain->last->next = more.first;
    }
    chain->last = more.last;
    chain->n_tasks += more.n_tasks;
}

static int submit_inside(struct bow_loop *loop, struct bow_task *task)
{
    if (bow__loop_is_foreign(loop)) {
        return -ECHILD;
    }
    if (bow__loop_state(loop) >= BOW_LOOP_SHUTDOWN) {
        return -ESHUTDOWN;
    }
    push(&loop->tasks, task);
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

void bow__loop_push_timed(struct bow_loop *loop, struct bow_task *task)
{
    assert((task->flags & BOW__TASK_POSTED) == 0);
    task->flags = BOW__TASK_POSTED | BOW__TASK_TIMED;
    push(&loop->tasks, task);
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
    push(&loop->tails, task);
    return 0;
}

bool bow__loop_take_place(struct bow_loop *loop)
{
    uint64_t n = atomic_fetch_add_explicit(&loop->n_executes, 1, memory_order_relaxed);

    if (n < loop->options.max_pending_tasks) {
        return true;
    }
    bow__loop_leave_place(loop);
    return false;
}

void bow__loop_leave_place(struct bow_loop *loop)
{
    atomic_fetch_sub_explicit(&loop->n_executes, 1, memory_order_relaxed);
}

int bow_loop_execute(struct bow_loop *loop, const char *name, bow_task_fn fn, void *user)
{
    if (!bow__loop_take_place(loop)) {
        bow__loop_reject(loop, name, fn, user);
        return -EAGAIN;
    }
    int rc = -ENOMEM;
    struct bow_task *task = bow__alloc(loop->context, sizeof(*task));
    if (task == NULL) {
        goto leave_place;
    }
    bow_task_init(task, name, fn, user);
    rc = submit(loop, task, 0, BOW__TASK_EXECUTE);
    if (rc < 0) {
        goto free_task;
    }
    return 0;

free_task:
    bow__free(loop->context, task, sizeof(*task));
leave_place:
    bow__loop_leave_place(loop);
    if (rc == -ESHUTDOWN) {
        bow__loop_reject(loop, name, fn, user);
    }
    return rc;
}

void bow__loop_take_inbox(struct bow_loop *loop)
{
    struct bow__task_chain chain = bow__inbox_take(&loop->inbox);

    bow__count(&loop->counters.posts_taken, chain.n_tasks);
    append(&loop->tasks, chain);
}

void bow__loop_take_events(struct bow_loop *loop)
{
    struct bow__task_chain chain = bow__inbox_take(&loop->inbox);
    struct bow_task *task;

    bow__count(&loop->counters.posts_taken, chain.n_tasks);
    while ((task = pop(&chain)) != NULL) {
        if ((task->flags & BOW__TASK_EVENT) == 0) {
            push(&loop->tasks, task);
            continue;
        }
        task->flags = 0;
        (void)task->fn(task->user);
    }
}

static void log_failed_task(struct bow_loop *loop, const char *name, int error)
{
    struct bow__text text;

    bow__count(&loop->counters.tasks_failed, 1);
    bow__text_clear(&text);
    bow__text_errno(&text, error);
    bow__log(loop->context, BOW_LOG_ERROR, "loop %s: task %s failed: %s", loop->name,
             name != NULL ? name : "without a name", text.bytes);
}

/* The task's memory is its owner's again before its function starts. */
static void run(struct bow_loop *loop, struct bow_task *task)
{
    const struct bow_task taken = *task;
    struct bow__watchdog watchdog;

    if ((taken.flags & BOW__TASK_EXECUTE) != 0) {
        bow__free(loop->context, task, sizeof(*task));
        bow__loop_leave_place(loop);
    } else {
        task->flags = 0;
    }
    if ((taken.flags & BOW__TASK_TIMED) == 0) {
        loop->last_work_ns = loop->now_ns;
    }
    bow__watchdog_begin(&watchdog, loop, "task", taken.name, (uintptr_t)taken.fn);
    int rc = taken.fn(taken.user);
    bow__watchdog_end(&watchdog);
    if (rc < 0) {
        log_failed_task(loop, taken.name, rc);
    }
}

static struct bow_task *next_task(struct bow_loop *loop)
{
    if (loop->tasks.first == NULL) {
        bow__loop_take_inbox(loop);
    }
    return pop(&loop->tasks);
}

void bow__loop_run_tasks(struct bow_loop *loop, uint64_t budget_ns)
{
    const uint64_t started_ns = loop->now_ns;
    const uint64_t max_tasks = budget_ns == BOW_NEVER ? loop->tasks.n_tasks : BOW_NEVER;
    struct bow_task *task;
    uint64_t n = 0;

    while (n < max_tasks && (task = next_task(loop)) != NULL) {
        run(loop, task);
        n++;
        if (n % TASKS_PER_CLOCK == 0 && bow__loop_update_now(loop) - started_ns >= budget_ns) {
            break;
        }
    }
    bow__count(&loop->counters.tasks_run, n);
}

/* Only those present now: one that posts itself again runs in the next turn. */
void bow__loop_run_tails(struct bow_loop *loop)
{
    size_t n = loop->tails.n_tasks;

    for (size_t i = 0; i < n; i++) {
        run(loop, pop(&loop->tails));
    }
    bow__count(&loop->counters.tasks_run, n);
}

void bow__loop_close_tasks(struct bow_loop *loop)
{
    append(&loop->tasks, bow__inbox_close(&loop->inbox));
    while (loop->tasks.first != NULL) {
        bow__loop_run_tasks(loop, BOW_NEVER);
    }
    bow__loop_run_tails(loop);
}
