/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * An executor: its birth and references, who runs its tasks and how it ends, what is posted
 * to it and what can be asked of it. Knows nothing of strands, which stand on it.
 *
 *     NOT_STARTED ─► STARTED ─shutdown─► SHUTTING_DOWN ─► SHUTDOWN ─► TERMINATED
 *                                        quiet, time-out  last tasks
 *
 * A thread is started when a task comes and none is idle. Whoever looks at the queue
 * looks at the clock too once the executor is shutting down, so that the time-out
 * holds also while every thread is busy. From SHUTDOWN on a thread leaves when the
 * queue is empty; the last one to leave terminates.
 */

#include "base/alloc.h"
#include "base/log.h"
#include "base/options.h"
#include "base/refuse.h"
#include "base/text.h"
#include "transport/executor/executor_core.h"
#include "transport/loop/condition.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MAX_THREADS 4096u
#define DEFAULT_PENDING_TASKS 65536u
#define DEFAULT_CHANNEL_BYTES ((size_t)256 << 10)

static int read_options(struct bow_context *context, struct bow_executor_options *options,
                        const struct bow_executor_options *given)
{
    const struct bow_system *system = bow__context_system(context);

    int rc = given != NULL ? bow__options_read(options, sizeof(*options), given) : 0;
    if (rc < 0) {
        return bow__refuse_options(context, "bow_executor_new", "BOW_EXECUTOR_OPTIONS_INIT");
    }
    if (options->n_threads == BOW_EXECUTOR_CPUS) {
        options->n_threads = system->cpus(system->user);
    }
    if (options->n_threads > MAX_THREADS) {
        return bow__refuse(context, -EINVAL, "bow_executor_new: options.n_threads is above %u",
                           MAX_THREADS);
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

bool bow__executor_take_slot(struct bow_executor *executor)
{
    uint64_t n = atomic_fetch_add_explicit(&executor->n_executes, 1, memory_order_relaxed);

    if (n < executor->options.max_pending_tasks) {
        return true;
    }
    bow__executor_free_slot(executor);
    return false;
}

void bow__executor_free_slot(struct bow_executor *executor)
{
    atomic_fetch_sub_explicit(&executor->n_executes, 1, memory_order_relaxed);
}

static uint64_t clock_of(const struct bow_executor *executor)
{
    return executor->system->now_ns(executor->system->user);
}

static void set_state(struct bow_executor *executor, enum bow_loop_state state)
{
    atomic_store_explicit(&executor->state, (int)state, memory_order_release);
    pthread_cond_broadcast(&executor->changed);
}

/* Running */

static void log_failed(struct bow_executor *executor, const char *name, int error)
{
    struct bow__text text;

    atomic_fetch_add_explicit(&executor->n_failed, 1, memory_order_relaxed);
    bow__text_clear(&text);
    bow__text_errno(&text, error);
    bow__log(executor->context, BOW_LOG_ERROR, "executor %s: task %s failed: %s", executor->name,
             name != NULL ? name : "without a name", text.bytes);
}

/* The task's memory is its owner's again before its function starts. */
void bow__executor_run_task(struct bow_executor *executor, struct bow_task *task)
{
    const struct bow_task taken = *task;

    if ((taken.flags & BOW__EXECUTOR_TASK_EXECUTE) != 0) {
        bow__free(executor->context, task, sizeof(*task));
        bow__executor_free_slot(executor);
    } else {
        task->flags = 0;
    }
    if ((taken.flags & BOW__EXECUTOR_TASK_STRAND) != 0) {
        taken.fn(taken.user);
        return;
    }
    atomic_fetch_sub_explicit(&executor->n_pending, 1, memory_order_relaxed);
    int rc = taken.fn(taken.user);
    if (rc < 0) {
        log_failed(executor, taken.name, rc);
    }
    atomic_fetch_add_explicit(&executor->n_run, 1, memory_order_relaxed);
}

static void run_next_locked(struct bow_executor *executor)
{
    struct bow_task *task = bow__chain_pop(&executor->tasks);

    executor->n_running++;
    pthread_mutex_unlock(&executor->mutex);
    bow__executor_run_task(executor, task);
    pthread_mutex_lock(&executor->mutex);
    executor->n_running--;
    if (bow__executor_state(executor) == BOW_LOOP_SHUTTING_DOWN) {
        executor->last_work_ns = clock_of(executor);
    }
}

static uint64_t quiet_at(const struct bow_executor *executor)
{
    return bow__time_add(executor->last_work_ns, executor->quiet_ns);
}

/* From SHUTTING_DOWN to SHUTDOWN, when it is time. */
static void update_locked(struct bow_executor *executor)
{
    if (bow__executor_state(executor) != BOW_LOOP_SHUTTING_DOWN) {
        return;
    }
    uint64_t now = clock_of(executor);
    bool is_busy = executor->tasks.first != NULL || executor->n_running > 0;
    if (now >= executor->shutdown_at_ns || (!is_busy && now >= quiet_at(executor))) {
        set_state(executor, BOW_LOOP_SHUTDOWN);
    }
}

/* How long nothing has to happen, if no task comes. */
static uint64_t idle_time(const struct bow_executor *executor)
{
    if (bow__executor_state(executor) != BOW_LOOP_SHUTTING_DOWN) {
        return BOW_NEVER;
    }
    uint64_t due_ns = executor->shutdown_at_ns;
    if (executor->n_running == 0) {
        due_ns = bow__time_min(due_ns, quiet_at(executor));
    }
    return bow__time_left(due_ns, clock_of(executor));
}

static bool is_over(const struct bow_executor *executor)
{
    return bow__executor_state(executor) >= BOW_LOOP_SHUTDOWN && executor->tasks.first == NULL;
}

static void wait_for_change(struct bow_executor *executor, uint64_t timeout_ns)
{
    const struct timespec deadline = bow__cond_deadline(timeout_ns);

    executor->n_idle++;
    bow__cond_wait(&executor->changed, &executor->mutex, &deadline);
    executor->n_idle--;
}

/* Threads of its own */

static void join_thread(struct bow_executor *executor, uint32_t index)
{
    executor->system->thread_join(executor->system->user, executor->workers[index].thread);
}

/* On the last thread of an executor that nobody refers to. */
static void end_abandoned(struct bow__executor_worker *self)
{
    struct bow_executor *executor = self->executor;
    uint32_t n = atomic_load_explicit(&executor->n_started, memory_order_relaxed);

    for (uint32_t i = 0; i < n; i++) {
        if (&executor->workers[i] != self) {
            join_thread(executor, i);
        }
    }
    executor->system->thread_detach(executor->system->user, self->thread);
    bow__executor_release(executor);
}

static void thread_main(void *argument)
{
    struct bow__executor_worker *worker = argument;
    struct bow_executor *executor = worker->executor;

    atomic_store_explicit(&worker->id, (uintptr_t)pthread_self(), memory_order_relaxed);
    pthread_mutex_lock(&executor->mutex);
    update_locked(executor);
    while (!is_over(executor)) {
        if (executor->tasks.first != NULL) {
            run_next_locked(executor);
        } else {
            wait_for_change(executor, idle_time(executor));
        }
        update_locked(executor);
    }
    /* The next thread of the process may get the same id. */
    atomic_store_explicit(&worker->id, 0, memory_order_relaxed);
    executor->n_live--;
    bool is_last = executor->n_live == 0;
    if (is_last) {
        set_state(executor, BOW_LOOP_TERMINATED);
    }
    bool ends_here = is_last && executor->is_abandoned;
    pthread_mutex_unlock(&executor->mutex);
    if (ends_here) {
        end_abandoned(worker);
    }
}

static int start_thread_locked(struct bow_executor *executor)
{
    uint32_t index = atomic_load_explicit(&executor->n_started, memory_order_relaxed);
    struct bow__executor_worker *worker = &executor->workers[index];
    struct bow_thread_options options = {.stack_bytes = executor->options.stack_bytes, .cpu = -1};
    char name[BOW__EXECUTOR_NAME_BYTES + 16];

    snprintf(name, sizeof(name), "%s-%u", executor->name, index);
    memcpy(options.name, name, sizeof(options.name) - 1);
    worker->executor = executor;
    bow__executor_claim(executor);
    int rc = executor->system->thread_start(executor->system->user, &options, thread_main, worker,
                                            &worker->thread);
    if (rc < 0) {
        return rc;
    }
    atomic_store_explicit(&executor->n_started, index + 1, memory_order_relaxed);
    executor->n_live++;
    if (bow__executor_state(executor) == BOW_LOOP_NOT_STARTED) {
        set_state(executor, BOW_LOOP_STARTED);
    }
    return 0;
}

int bow__executor_admit_locked(struct bow_executor *executor)
{
    update_locked(executor);
    if (bow__executor_state(executor) >= BOW_LOOP_SHUTDOWN) {
        return -ESHUTDOWN;
    }
    uint32_t n_started = atomic_load_explicit(&executor->n_started, memory_order_relaxed);
    if (n_started == executor->n_threads || executor->tasks.n_tasks < executor->n_idle) {
        return 0;
    }
    int rc = start_thread_locked(executor);
    /* With one that runs already, the task only waits longer. */
    return executor->n_live > 0 ? 0 : rc;
}

void bow__executor_push_locked(struct bow_executor *executor, struct bow_task *task)
{
    bow__chain_push(&executor->tasks, task);
    if (executor->n_idle == 0) {
        return;
    }
    if (executor->n_joining > 0) {
        pthread_cond_broadcast(&executor->changed); /* they wait for the same signal */
    } else {
        pthread_cond_signal(&executor->changed);
    }
}

/* Run by its owner */

static int enter_locked(struct bow_executor *executor)
{
    if (executor->n_threads != 0) {
        return bow__refuse(executor->context, -EINVAL,
                           "bow_executor_run: executor %s has threads of its own; its owner runs "
                           "one with options.n_threads = 0",
                           executor->name);
    }
    if (executor->is_run) {
        return bow__refuse(executor->context, -EBUSY,
                           "bow_executor_run: executor %s is being run, by another thread or "
                           "further up on this one's stack",
                           executor->name);
    }
    executor->is_run = true;
    bow__executor_claim(executor);
    bow__executor_hold(executor);
    if (bow__executor_state(executor) != BOW_LOOP_TERMINATED) {
        atomic_store_explicit(&executor->owner, (uintptr_t)pthread_self(), memory_order_relaxed);
    }
    if (bow__executor_state(executor) == BOW_LOOP_NOT_STARTED) {
        set_state(executor, BOW_LOOP_STARTED);
    }
    return 0;
}

static void leave(struct bow_executor *executor)
{
    executor->is_run = false;
    bool ends_here = executor->is_abandoned;
    pthread_mutex_unlock(&executor->mutex);
    if (ends_here) {
        bow__executor_release(executor);
    }
    bow__executor_release(executor);
}

static void terminate_if_over_locked(struct bow_executor *executor)
{
    update_locked(executor);
    if (is_over(executor) && bow__executor_state(executor) != BOW_LOOP_TERMINATED) {
        atomic_store_explicit(&executor->owner, 0, memory_order_relaxed);
        set_state(executor, BOW_LOOP_TERMINATED);
    }
}

/* Those present: one that is posted meanwhile is the next call's. */
static void run_present_locked(struct bow_executor *executor, uint64_t timeout_ns)
{
    update_locked(executor);
    if (executor->tasks.first == NULL && !is_over(executor) && timeout_ns > 0) {
        wait_for_change(executor, bow__time_min(timeout_ns, idle_time(executor)));
    }
    for (size_t n = executor->tasks.n_tasks; n > 0; n--) {
        run_next_locked(executor);
    }
    terminate_if_over_locked(executor);
}

int bow_executor_run_once(struct bow_executor *executor, uint64_t timeout_ns)
{
    if (bow__executor_is_foreign(executor)) {
        return -ECHILD;
    }
    pthread_mutex_lock(&executor->mutex);
    int rc = enter_locked(executor);
    if (rc < 0) {
        pthread_mutex_unlock(&executor->mutex);
        return rc;
    }
    run_present_locked(executor, timeout_ns);
    /* Nobody else will drive one that its own task let go of. */
    while (executor->is_abandoned && bow__executor_state(executor) != BOW_LOOP_TERMINATED) {
        run_present_locked(executor, BOW_NEVER);
    }
    leave(executor);
    return 0;
}

int bow_executor_run(struct bow_executor *executor)
{
    if (bow__executor_is_foreign(executor)) {
        return -ECHILD;
    }
    pthread_mutex_lock(&executor->mutex);
    int rc = enter_locked(executor);
    if (rc < 0) {
        pthread_mutex_unlock(&executor->mutex);
        return rc;
    }
    while (bow__executor_state(executor) != BOW_LOOP_TERMINATED) {
        run_present_locked(executor, BOW_NEVER);
    }
    leave(executor);
    return 0;
}

/* The end */

static void shut_down_locked(struct bow_executor *executor, uint64_t quiet_ns, uint64_t timeout_ns)
{
    const uint64_t now = clock_of(executor);
    const enum bow_loop_state state = bow__executor_state(executor);

    executor->quiet_ns = bow__time_min(executor->quiet_ns, quiet_ns);
    executor->shutdown_at_ns =
        bow__time_min(executor->shutdown_at_ns, bow__time_add(now, timeout_ns));
    if (state <= BOW_LOOP_STARTED) {
        executor->last_work_ns = now;
        set_state(executor, BOW_LOOP_SHUTTING_DOWN);
    }
    if (state == BOW_LOOP_NOT_STARTED && executor->n_threads > 0) {
        set_state(executor, BOW_LOOP_TERMINATED);
    }
    pthread_cond_broadcast(&executor->changed);
}

int bow_executor_shutdown(struct bow_executor *executor, uint64_t quiet_ns, uint64_t timeout_ns)
{
    if (bow__executor_is_foreign(executor)) {
        return -ECHILD;
    }
    pthread_mutex_lock(&executor->mutex);
    shut_down_locked(executor, quiet_ns, timeout_ns);
    pthread_mutex_unlock(&executor->mutex);
    return 0;
}

int bow_executor_join(struct bow_executor *executor, uint64_t timeout_ns)
{
    const struct timespec deadline = bow__cond_deadline(timeout_ns);
    bool in_time = true;

    if (bow__executor_is_foreign(executor)) {
        return -ECHILD;
    }
    if (bow_executor_in_executor(executor)) {
        return bow__refuse(executor->context, -EDEADLK,
                           "bow_executor_join: on executor %s itself it would wait for ever",
                           executor->name);
    }
    pthread_mutex_lock(&executor->mutex);
    executor->n_joining++;
    while (in_time && bow__executor_state(executor) != BOW_LOOP_TERMINATED) {
        in_time = bow__cond_wait(&executor->changed, &executor->mutex, &deadline);
    }
    executor->n_joining--;
    bool has_ended = bow__executor_state(executor) == BOW_LOOP_TERMINATED;
    pthread_mutex_unlock(&executor->mutex);
    return has_ended ? 0 : -ETIMEDOUT;
}

/* Inside one of its tasks, whoever runs that ends it afterwards. */
static bool leave_to_runner(struct bow_executor *executor)
{
    pthread_mutex_lock(&executor->mutex);
    shut_down_locked(executor, 0, 0);
    bool is_inside =
        bow_executor_in_executor(executor) && (executor->n_threads > 0 || executor->is_run);
    executor->is_abandoned = is_inside;
    pthread_mutex_unlock(&executor->mutex);
    return is_inside;
}

/* The last reference is gone: shut down, wait, let go of the memory. */
static void abandon(struct bow_executor *executor)
{
    if (bow__executor_is_foreign(executor)) {
        return; /* its memory stays: nobody can say what its threads were doing */
    }
    if (leave_to_runner(executor)) {
        return;
    }
    if (executor->n_threads == 0) {
        int rc = bow_executor_run(executor);
        assert(rc == 0); /* whoever else runs it holds a reference */
        (void)rc;
    }
    uint32_t n = atomic_load_explicit(&executor->n_started, memory_order_relaxed);
    for (uint32_t i = 0; i < n; i++) {
        join_thread(executor, i);
    }
    bow__executor_release(executor);
}

struct bow_executor *bow_executor_unref(struct bow_executor *executor)
{
    if (executor != NULL &&
        atomic_fetch_sub_explicit(&executor->refs, 1, memory_order_acq_rel) == 1) {
        abandon(executor);
    }
    return NULL;
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

int bow__executor_make_task(struct bow_executor *executor, const char *name, bow_task_fn fn,
                            void *user, struct bow_task **ret_task)
{
    if (!bow__executor_take_slot(executor)) {
        bow__executor_reject(executor, name, fn, user);
        return -EAGAIN;
    }
    struct bow_task *task = bow__alloc(executor->context, sizeof(*task));
    if (task == NULL) {
        bow__executor_free_slot(executor);
        return -ENOMEM;
    }
    bow_task_init(task, name, fn, user);
    task->flags = BOW__EXECUTOR_TASK_EXECUTE;
    *ret_task = task;
    return 0;
}

void bow__executor_drop_task(struct bow_executor *executor, struct bow_task *task, int error)
{
    const struct bow_task dropped = *task;

    bow__free(executor->context, task, sizeof(*task));
    bow__executor_free_slot(executor);
    if (error == -ESHUTDOWN) {
        bow__executor_reject(executor, dropped.name, dropped.fn, dropped.user);
    }
}

int bow_executor_execute(struct bow_executor *executor, const char *name, bow_task_fn fn,
                         void *user)
{
    struct bow_task *task = NULL;

    int rc = bow__executor_make_task(executor, name, fn, user, &task);
    if (rc < 0) {
        return rc;
    }
    rc = bow__executor_post_internal(executor, task);
    if (rc < 0) {
        bow__executor_drop_task(executor, task, rc);
    }
    return rc;
}

/* What can be asked */

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
        return bow__refuse(executor->context, -EINVAL,
                           "bow_executor_get_stats: set stats->size to its size first");
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
