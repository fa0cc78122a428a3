/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_EXECUTOR_EXECUTOR_H
#define BOWLINE_TRANSPORT_EXECUTOR_EXECUTOR_H

/*
 * What the layers of this library see of an executor beyond the public header.
 */

#include <bowline/executor.h>

/** Keep the memory of the executor, not its life: posting to it then says -ESHUTDOWN instead of
 * reading freed memory. Thread: any. */
void bow__executor_hold(struct bow_executor *executor);
void bow__executor_release(struct bow_executor *executor);

/** As bow__loop_is_foreign(); the mutex of such a one may be locked for ever. */
bool bow__executor_is_foreign(const struct bow_executor *executor);

/** Take, or give back, one of the max_pending_tasks slots. Thread: any. */
bool bow__executor_take_slot(struct bow_executor *executor);
void bow__executor_free_slot(struct bow_executor *executor);

/** Post without asking the rejection handler. Returns as bow_executor_post(). Thread: any. */
int bow__executor_post_internal(struct bow_executor *executor, struct bow_task *task);
/** Count a rejection and ask the handler. */
void bow__executor_reject(struct bow_executor *executor, const char *name, bow_task_fn fn,
                          void *user);
size_t bow__executor_max_channel_bytes(const struct bow_executor *executor);

/* For strand.c; `locked`: with the mutex held */

/** A task for bow__executor_post_internal() or a strand, with a slot taken for it; whoever runs it
 * frees it. Returns 0, -EAGAIN (the rejection handler was asked), -ENOMEM. Thread: any. */
int bow__executor_make_task(struct bow_executor *executor, const char *name, bow_task_fn fn,
                            void *user, struct bow_task **ret_task);
/** Posting it failed with `error`: free it, and ask the rejection handler where that is its matter.
 * Thread: any. */
void bow__executor_drop_task(struct bow_executor *executor, struct bow_task *task, int error);

/** Whether a new task may come, with a thread to run it. Returns 0, -ESHUTDOWN, or what starting
 * the first thread failed with. */
int bow__executor_admit_locked(struct bow_executor *executor);
/** Queue, and wake a thread for it. */
void bow__executor_push_locked(struct bow_executor *executor, struct bow_task *task);
/** Run one task, without the mutex; counts it, and logs when it fails. */
void bow__executor_run_task(struct bow_executor *executor, struct bow_task *task);

#endif
