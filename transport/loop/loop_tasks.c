/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The queue of tasks, and running them on the loop's thread. Every task that was accepted is run,
 * the last ones when the loop closes. Knows nothing of who posts them.
 */

#include "base/alloc.h"
#include "base/log.h"
#include "base/text.h"
#include "transport/loop/loop_internal.h"

#include <assert.h>

/* The clock costs as much as a small task, so it is read this seldom (L14). */
#define TASKS_PER_CLOCK 64

void bow__loop_push_timed(struct bow_loop *loop, struct bow_task *task)
{
    assert((task->flags & BOW__TASK_POSTED) == 0);
    task->flags = BOW__TASK_POSTED | BOW__TASK_TIMED;
    bow__chain_push(&loop->tasks, task);
}

bool bow__loop_take_slot(struct bow_loop *loop)
{
    uint64_t n = atomic_fetch_add_explicit(&loop->n_executes, 1, memory_order_relaxed);

    if (n < loop->options.max_pending_tasks) {
        return true;
    }
    bow__loop_free_slot(loop);
    return false;
}

void bow__loop_free_slot(struct bow_loop *loop)
{
    atomic_fetch_sub_explicit(&loop->n_executes, 1, memory_order_relaxed);
}

void bow__loop_take_inbox(struct bow_loop *loop)
{
    struct bow__task_chain chain = bow__inbox_take(&loop->inbox);

    bow__count(&loop->counters.posts_taken, chain.n_tasks);
    bow__chain_append(&loop->tasks, chain);
}

void bow__loop_take_events(struct bow_loop *loop)
{
    struct bow__task_chain chain = bow__inbox_take(&loop->inbox);
    struct bow_task *task;

    bow__count(&loop->counters.posts_taken, chain.n_tasks);
    while ((task = bow__chain_pop(&chain)) != NULL) {
        if ((task->flags & BOW__TASK_EVENT) == 0) {
            bow__chain_push(&loop->tasks, task);
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
        bow__loop_free_slot(loop);
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
    return bow__chain_pop(&loop->tasks);
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
        run(loop, bow__chain_pop(&loop->tails));
    }
    bow__count(&loop->counters.tasks_run, n);
}

void bow__loop_close_tasks(struct bow_loop *loop)
{
    bow__chain_append(&loop->tasks, bow__inbox_close(&loop->inbox));
    while (loop->tasks.first != NULL) {
        bow__loop_run_tasks(loop, BOW_NEVER);
    }
    bow__loop_run_tails(loop);
}
