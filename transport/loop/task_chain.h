/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_LOOP_TASK_CHAIN_H
#define BOWLINE_TRANSPORT_LOOP_TASK_CHAIN_H

/* Tasks one after the other, first in, first out. Knows nothing of threads. */

#include <bowline/loop.h>
#include <stddef.h>

/** Tasks in order, linked by `next`; `last` is undefined when `first` is NULL. */
struct bow__task_chain {
    struct bow_task *first;
    struct bow_task *last;
    size_t n_tasks;
};

static inline void bow__chain_push(struct bow__task_chain *chain, struct bow_task *task)
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

static inline struct bow_task *bow__chain_pop(struct bow__task_chain *chain)
{
    struct bow_task *task = chain->first;

    if (task != NULL) {
        chain->first = task->next;
        chain->n_tasks--;
    }
    return task;
}

/** Behind what is there; the tasks of `more` are then those of `chain`. */
static inline void bow__chain_append(struct bow__task_chain *chain, struct bow__task_chain more)
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

#endif
