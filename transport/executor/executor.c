/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * An executor's birth, its references, what is posted to it and what can be asked of it.
 * Knows nothing of threads.
 */

#include "base/alloc.h"
#include "base/options.h"
#include "transport/executor/executor_core.h"
#include "transport/loop/condition.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#define MAX_THREADS 4096u
#define DEFAULT_PENDING_TASKS 65536u
#define DEFAULT_CHANNEL_BYTES ((size_t)256 << 10)

static int read_options(struct bow_context *context, struct bow_executor_options *options,
                        const struct bow_executor_options *given)
{
    const struct bow_system *system = bow__context_system(context);

    int rc = given != NULL ? bow__options_read(options, sizeof(*options), given) : 0;
    if (rc < 0) {
        return rc;
    }
    if (options->n_threads == BOW_EXECUTOR_CPUS) {
        options->n_threads = system->cpus(system->user);
    }
    if (options->n_threads > MAX_THREADS) {
        return -EINVAL;
    }
    if (options->max_pending_tasks == 0) {
        options->max_pending_tasks = DEFAULT_PENDING_TASKS;
    }
    if (options->max_channel_bytes == 0) {
        options->max_channel_bytes = DEFAULT_CHANNEL_BYTES;
    }
    return 0;
}

static size_t executor_bytes(uint32_t n_threads)
{
    return sizeof(struct bow_executor) + n_threads * sizeof(struct bow__executor_worker);
}

static void set_name(struct bow_executor *executor)
{
    const struct bow_executor_options *options = &executor->options;

    snprintf(executor->name, sizeof(executor->name), "%s-%s",
             options->prefix != NULL ? options->prefix : "bow",
             options->name != NULL ? options->name : "exec");
}

int bow_executor_new(struct bow_context *context, const struct bow_executor_options *options,
                     struct bow_executor **ret_executor)
{
    struct bow_executor_options known = BOW_EXECUTOR_OPTIONS_INIT;

    int rc = read_options(context, &known, options);
    if (rc < 0) {
        return rc;
    }
    struct bow_executor *executor = bow__alloc_zero(context, executor_bytes(known.n_threads));
    if (executor == NULL) {
        return -ENOMEM;
    }
    rc = bow__cond_init(&executor->mutex, &executor->changed);
    if (rc < 0) {
        bow__free(context, executor, executor_bytes(known.n_threads));
        return rc;
    }
    executor->context = bow_context_ref(context);
    executor->system = bow__context_system(context);
    executor->process = bow__context_process(context);
    executor->options = known;
    executor->n_threads = known.n_threads;
    executor->quiet_ns = BOW_NEVER;
    executor->shutdown_at_ns = BOW_NEVER;
    atomic_init(&executor->refs, 1);
    atomic_init(&executor->memory_refs, 1);
    atomic_init(&executor->used_by, 0);
    atomic_init(&executor->state, BOW_LOOP_NOT_STARTED);
    set_name(executor);
    *ret_executor = executor;
    return 0;
}

/* References */

struct bow_executor *bow_executor_ref(struct bow_executor *executor)
{
    unsigned before = atomic_fetch_add_explicit(&executor->refs, 1, memory_order_relaxed);
    assert(before > 0);
    (void)before;
    return executor;
}

struct bow_executor *bow_executor_unref(struct bow_executor *executor)
{
    if (executor != NULL &&
        atomic_fetch_sub_explicit(&executor->refs, 1, memory_order_acq_rel) == 1) {
        bow__executor_abandon(executor);
    }
    return NULL;
}

void bow__executor_hold(struct bow_executor *executor)
{
    atomic_fetch_add_explicit(&executor->memory_refs, 1, memory_order_relaxed);
}

void bow__executor_release(struct bow_executor *executor)
{
    if (atomic_fetch_sub_explicit(&executor->memory_refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    struct bow_context *context = executor->context;
    bow__cond_fini(&executor->mutex, &executor->changed);
    bow__free(context, executor, executor_bytes(executor->n_threads));
    bow_context_unref(context);
}

bool bow__executor_is_foreign(const struct bow_executor *executor)
{
    int id = atomic_load_explicit(&executor->used_by, memory_order_relaxed);
    return id != 0 && id != bow__process_id(executor->process);
}

/* Posting */

void bow__executor_reject(struct bow_executor *executor, const char *name, bow_task_fn fn,
                          void *user)
{
    atomic_fetch_add_explicit(&executor->n_rejected, 1, memory_order_relaxed);
    if (executor->options.rejected != NULL) {
        executor->options.rejected(executor, name, fn, user, executor->options.rejected_user);
    }
}

int bow__executor_post_internal(struct bow_executor *executor, struct bow_task *task)
{
    assert((task->flags & BOW__EXECUTOR_TASK_POSTED) == 0);
    if (bow__executor_is_foreign(executor)) {
        return -ECHILD;
    }
    pthread_mutex_lock(&executor->mutex);
    int rc = bow__executor_admit_locked(executor);
    if (rc == 0) {
        task->flags |= BOW__EXECUTOR_TASK_POSTED;
        atomic_fetch_add_explicit(&executor->n_pending, 1, memory_order_relaxed);
        bow__executor_push_locked(executor, task);
    }
    pthread_mutex_unlock(&executor->mutex);
    return rc;
}

int bow_executor_post(struct bow_executor *executor, struct bow_task *task)
{
    int rc = bow__executor_post_internal(executor, task);
    if (rc == -ESHUTDOWN) {
        bow__executor_reject(executor, task->name, task->fn, task->user);
    }
    return rc;
}

bool bow__executor_take_place(struct bow_executor *executor)
{
    uint64_t n = atomic_fetch_add_explicit(&executor->n_executes, 1, memory_order_relaxed);

    if (n < executor->options.max_pending_tasks) {
        return true;
    }
    bow__executor_leave_place(executor);
    return false;
}

void bow__executor_leave_place(struct bow_executor *executor)
{
    atomic_fetch_sub_explicit(&executor->n_executes, 1, memory_order_relaxed);
}

static struct bow_task *make_task(struct bow_executor *executor, const char *name, bow_task_fn fn,
                                  void *user)
{
    struct bow_task *task = bow__alloc(executor->context, sizeof(*task));
    if (task == NULL) {
        return NULL;
    }
    bow_task_init(task, name, fn, user);
    task->flags = BOW__EXECUTOR_TASK_EXECUTE;
    return task;
}

int bow__executor_execute(struct bow_executor *executor, struct bow_strand *strand,
                          const char *name, bow_task_fn fn, void *user)
{
    int rc = -EAGAIN;

    if (!bow__executor_take_place(executor)) {
        goto reject;
    }
    struct bow_task *task = make_task(executor, name, fn, user);
    if (task == NULL) {
        bow__executor_leave_place(executor);
        return -ENOMEM;
    }
    rc = strand != NULL ? bow__strand_post_internal(strand, task)
                        : bow__executor_post_internal(executor, task);
    if (rc == 0) {
        return 0;
    }
    bow__free(executor->context, task, sizeof(*task));
    bow__executor_leave_place(executor);
    if (rc != -ESHUTDOWN) {
        return rc;
    }
reject:
    bow__executor_reject(executor, name, fn, user);
    return rc;
}

int bow_executor_execute(struct bow_executor *executor, const char *name, bow_task_fn fn,
                         void *user)
{
    return bow__executor_execute(executor, NULL, name, fn, user);
}

/* What can be asked */

bool bow_executor_in_executor(const struct bow_executor *executor)
{
    const uintptr_t self = (uintptr_t)pthread_self();

    for (uint32_t i = 0; i < executor->n_threads; i++) {
        if (atomic_load_explicit(&executor->workers[i].id, memory_order_relaxed) == self) {
            return true;
        }
    }
    return atomic_load_explicit(&executor->owner, memory_order_relaxed) == self;
}

enum bow_loop_state bow_executor_get_state(const struct bow_executor *executor)
{
    return bow__executor_state(executor);
}

struct bow_context *bow_executor_context(const struct bow_executor *executor)
{
    return executor->context;
}

size_t bow__executor_max_channel_bytes(const struct bow_executor *executor)
{
    return executor->options.max_channel_bytes;
}

int bow_executor_get_stats(const struct bow_executor *executor, struct bow_executor_stats *stats)
{
    const size_t size = stats->size;

    if (size < sizeof(size) || size > sizeof(*stats)) {
        return -EINVAL;
    }
    struct bow_executor_stats now = {
        .size = size,
        .tasks_run = atomic_load_explicit(&executor->n_run, memory_order_relaxed),
        .tasks_failed = atomic_load_explicit(&executor->n_failed, memory_order_relaxed),
        .tasks_rejected = atomic_load_explicit(&executor->n_rejected, memory_order_relaxed),
        .pending_tasks = atomic_load_explicit(&executor->n_pending, memory_order_relaxed),
        .threads = atomic_load_explicit(&executor->n_started, memory_order_relaxed),
    };
    memcpy(stats, &now, size);
    return 0;
}
