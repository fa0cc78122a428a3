/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_EXECUTOR_EVENT_EXECUTOR_H
#define BOWLINE_TRANSPORT_EXECUTOR_EVENT_EXECUTOR_H

/*
 * What tasks are posted to: a loop, an executor, or (both NULL) none. Keeps the memory of
 * what it names, not its life. Knows nothing of what runs there.
 */

#include <bowline/executor.h>
#include <bowline/loop.h>

struct bow__event_executor {
    struct bow_loop *loop;
    struct bow_executor *executor;
};

static inline bool bow__event_executor_is_none(const struct bow__event_executor *event_executor)
{
    return event_executor->loop == NULL && event_executor->executor == NULL;
}

void bow__event_executor_hold(const struct bow__event_executor *event_executor);
void bow__event_executor_release(const struct bow__event_executor *event_executor);
/** Whether the calling thread is its own, or one of them. */
bool bow__event_executor_is_here(const struct bow__event_executor *event_executor);

/** Whether it was run by a process that this one was forked from. */
bool bow__event_executor_is_foreign(const struct bow__event_executor *event_executor);

/** Take, or give back, one of the slots of its bounded queue. */
bool bow__event_executor_take_slot(const struct bow__event_executor *event_executor);
void bow__event_executor_free_slot(const struct bow__event_executor *event_executor);

/** Post without asking the rejection handler. Returns 0 or a negative errno. */
int bow__event_executor_post(const struct bow__event_executor *event_executor,
                             struct bow_task *task);
/** Give what can't run there to its rejection handler. */
void bow__event_executor_reject(const struct bow__event_executor *event_executor, const char *name,
                                bow_task_fn fn, void *user);

#endif
