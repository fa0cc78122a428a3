/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_EXECUTOR_EXECUTOR_CORE_H
#define BOWLINE_TRANSPORT_EXECUTOR_EXECUTOR_CORE_H

/*
 * What an executor is, for executor.c and for strand.c, which stands on it.
 *
 * Design
 *
 * Tasks here may block, so there are few of them and each is long: one mutex over one queue,
 * and over the queues of all strands, costs nothing beside them. `mutex` guards every
 * field without a word of its own; tasks run without it.
 *
 *     atomic                     order                                   partner
 *     state                      written under mutex, release            loads: acquire
 *     refs, memory_refs          relaxed up, acq_rel down                each other
 *     owner, worker.id           relaxed: a thread looks for itself      none
 *     used_by                    relaxed: fork() itself publishes it     none
 *     n_executes                 relaxed: a bound, not a publication     none
 *     counters                   relaxed: statistics                     none
 *
 * `refs` are those of users: the last one shuts down. `memory_refs` keep the memory for
 * those who may still post and be refused; all `refs` together hold one of them.
 */

#include "base/process.h"
#include "transport/executor/executor.h"
#include "transport/loop/inbox.h"

#include <pthread.h>

#define BOW__EXECUTOR_NAME_BYTES 64

enum bow__executor_task_flags {
    BOW__EXECUTOR_TASK_POSTED = 1,
    BOW__EXECUTOR_TASK_EXECUTE = 2, /* made by an execute function: owned by the executor */
    BOW__EXECUTOR_TASK_STRAND = 4,  /* a strand's turn: no work of its own */
};

struct bow__executor_worker {
    struct bow_executor *executor;
    struct bow_thread *thread;
    atomic_uintptr_t id; /* pthread_self(); 0: not yet */
};

struct bow_executor {
    struct bow_context *context;
    const struct bow_system *system;
    struct bow_executor_options options;
    char name[BOW__EXECUTOR_NAME_BYTES]; /* PREFIX-NAME */

    atomic_uint refs;
    atomic_uint memory_refs;
    atomic_int state;
    atomic_uintptr_t owner;             /* with 0 threads: who runs it */
    atomic_int used_by;                 /* the process that runs it; 0: none has yet */
    const struct bow__process *process; /* the context's */
    _Atomic(uint64_t) n_executes;
    _Atomic(uint64_t) n_run;
    _Atomic(uint64_t) n_failed;
    _Atomic(uint64_t) n_rejected;
    _Atomic(uint64_t) n_pending; /* posted and not started, those in strands too */

    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a task came, or the state moved on */
    struct bow__task_chain tasks;
    uint32_t n_threads; /* at most */
    _Atomic(uint32_t) n_started;
    uint32_t n_live; /* threads that have not left */
    uint32_t n_idle; /* waiting for a task */
    uint32_t n_running;
    uint32_t n_joining; /* waiting for the end */
    bool is_run;        /* the owner is in run() or run_once() */
    bool is_abandoned;  /* the last reference went on a thread of its own */
    uint64_t last_work_ns;
    uint64_t quiet_ns;
    uint64_t shutdown_at_ns;

    struct bow__executor_worker workers[]; /* n_threads */
};

static inline enum bow_loop_state bow__executor_state(const struct bow_executor *executor)
{
    return (enum bow_loop_state)atomic_load_explicit(&executor->state, memory_order_acquire);
}

static inline void bow__executor_claim(struct bow_executor *executor)
{
    atomic_store_explicit(&executor->used_by, bow__process_id(executor->process),
                          memory_order_relaxed);
}

#endif
