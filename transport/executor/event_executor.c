/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A loop or an executor, whichever is meant. */

#include "transport/executor/event_executor.h"
#include "transport/executor/executor.h"
#include "transport/loop/loop.h"

void bow__event_executor_hold(const struct bow__event_executor *event_executor)
{
    if (event_executor->loop != NULL) {
        bow__loop_hold(event_executor->loop);
    }
    if (event_executor->executor != NULL) {
        bow__executor_hold(event_executor->executor);
    }
}

void bow__event_executor_release(const struct bow__event_executor *event_executor)
{
    if (event_executor->loop != NULL) {
        bow__loop_release(event_executor->loop);
    }
    if (event_executor->executor != NULL) {
        bow__executor_release(event_executor->executor);
    }
}

bool bow__event_executor_is_here(const struct bow__event_executor *event_executor)
{
    return (event_executor->loop != NULL && bow_loop_in_loop(event_executor->loop)) ||
           (event_executor->executor != NULL && bow_executor_in_executor(event_executor->executor));
}

bool bow__event_executor_is_foreign(const struct bow__event_executor *event_executor)
{
    return (event_executor->loop != NULL && bow__loop_is_foreign(event_executor->loop)) ||
           (event_executor->executor != NULL && bow__executor_is_foreign(event_executor->executor));
}

bool bow__event_executor_take_slot(const struct bow__event_executor *event_executor)
{
    return event_executor->loop != NULL ? bow__loop_take_slot(event_executor->loop)
                                        : bow__executor_take_slot(event_executor->executor);
}

void bow__event_executor_free_slot(const struct bow__event_executor *event_executor)
{
    if (event_executor->loop != NULL) {
        bow__loop_free_slot(event_executor->loop);
    } else {
        bow__executor_free_slot(event_executor->executor);
    }
}

int bow__event_executor_post(const struct bow__event_executor *event_executor,
                             struct bow_task *task)
{
    return event_executor->loop != NULL
               ? bow__loop_post_internal(event_executor->loop, task, 0)
               : bow__executor_post_internal(event_executor->executor, task);
}

void bow__event_executor_reject(const struct bow__event_executor *event_executor, const char *name,
                                bow_task_fn fn, void *user)
{
    if (event_executor->loop != NULL) {
        bow__loop_reject(event_executor->loop, name, fn, user);
    } else {
        bow__executor_reject(event_executor->executor, name, fn, user);
    }
}
