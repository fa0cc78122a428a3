/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The inbox of a loop; the design stands in inbox.h. */

#include "transport/loop/inbox.h"

/* Its own address is no task's, so it can stand for "closed". */
static struct bow_task *closed_mark(struct bow__inbox *inbox)
{
    return (struct bow_task *)(void *)inbox;
}

void bow__inbox_init(struct bow__inbox *inbox)
{
    atomic_init(&inbox->newest, NULL);
    atomic_init(&inbox->sleep_until, BOW__INBOX_AWAKE);
    atomic_init(&inbox->n_signals, 0);
}

bool bow__inbox_push(struct bow__inbox *inbox, struct bow_task *task)
{
    struct bow_task *newest = atomic_load_explicit(&inbox->newest, memory_order_relaxed);

    do {
        if (newest == closed_mark(inbox)) {
            /* It stays closed; this one pairs with the close. */
            (void)atomic_load_explicit(&inbox->newest, memory_order_acquire);
            return false;
        }
        task->next = newest;
    } while (!atomic_compare_exchange_weak_explicit(&inbox->newest, &newest, task,
                                                    memory_order_seq_cst, memory_order_relaxed));
    return true;
}

bool bow__inbox_must_signal(struct bow__inbox *inbox, uint64_t due_ns)
{
    uint64_t until = atomic_load_explicit(&inbox->sleep_until, memory_order_seq_cst);

    if (until <= due_ns) {
        return false;
    }
    until = atomic_exchange_explicit(&inbox->sleep_until, BOW__INBOX_AWAKE, memory_order_seq_cst);
    if (until == BOW__INBOX_AWAKE) {
        return false;
    }
    atomic_fetch_add_explicit(&inbox->n_signals, 1, memory_order_relaxed);
    return true;
}

bool bow__inbox_sleep(struct bow__inbox *inbox, uint64_t until_ns)
{
    atomic_store_explicit(&inbox->sleep_until, until_ns, memory_order_seq_cst);
    if (bow__inbox_is_empty(inbox)) {
        return true;
    }
    bow__inbox_awake(inbox);
    return false;
}

void bow__inbox_awake(struct bow__inbox *inbox)
{
    atomic_store_explicit(&inbox->sleep_until, BOW__INBOX_AWAKE, memory_order_relaxed);
}

bool bow__inbox_is_empty(const struct bow__inbox *inbox)
{
    const struct bow_task *newest = atomic_load_explicit(&inbox->newest, memory_order_seq_cst);
    return newest == NULL || (const void *)newest == (const void *)inbox;
}

static struct bow__task_chain in_order(struct bow_task *newest)
{
    struct bow__task_chain chain = {.last = newest};

    while (newest != NULL) {
        struct bow_task *older = newest->next;
        newest->next = chain.first;
        chain.first = newest;
        chain.n_tasks++;
        newest = older;
    }
    return chain;
}

struct bow__task_chain bow__inbox_take(struct bow__inbox *inbox)
{
    /* The load spares an idle turn the locked exchange. */
    if (bow__inbox_is_empty(inbox)) {
        return (struct bow__task_chain){0};
    }
    return in_order(atomic_exchange_explicit(&inbox->newest, NULL, memory_order_seq_cst));
}

struct bow__task_chain bow__inbox_close(struct bow__inbox *inbox)
{
    struct bow_task *newest =
        atomic_exchange_explicit(&inbox->newest, closed_mark(inbox), memory_order_seq_cst);
    return in_order(newest == closed_mark(inbox) ? NULL : newest);
}
