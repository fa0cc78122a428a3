/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_LOOP_INBOX_H
#define BOWLINE_TRANSPORT_LOOP_INBOX_H

/*
 * What other threads give a loop: tasks, and the decision whether it must be woken
 * for them. Knows nothing of descriptors: its answer is "signal" or "don't".
 *
 * Design
 *
 * `newest` is a stack of tasks that any thread pushes on and only the loop takes,
 * all at once, turning it round into the order of pushing. So each producer's
 * tasks keep their order, a push is one compare-and-swap, and there is no moment
 * in which a pushed task can't be seen. Nobody pops single tasks, so a task that
 * is pushed, run and pushed again between a producer's load and its swap (ABA)
 * does no harm: the producer's `next` is still the task below. A closed inbox
 * holds its own address in `newest`; closing takes what was there, so each push
 * is either before the close, and its task is run, or after, and refused.
 *
 * `sleep_until` says what a producer has to do:
 *
 *     AWAKE (0)          the loop will look into the inbox before it sleeps
 *     T                  it sleeps until T: wake it for anything that is due earlier
 *     NONE (BOW_NEVER)   it sleeps without end
 *
 * The loop stores T, then loads `newest`; a producer swaps `newest`, then loads
 * `sleep_until`. All four are seq_cst, so in their single order one of the two
 * sees the other: the loop does not sleep, or the producer wakes it (no lost
 * wake-up). Fences would say the same, but ThreadSanitizer does not model them.
 *
 * The producer that exchanges T for AWAKE is the one who signals; all others find
 * AWAKE and skip that. The loop's own store of AWAKE is relaxed: a producer that
 * reads it has read before the next T in the order above, so its task is seen then.
 *
 *     atomic        order                       partner
 *     newest        seq_cst (release part)      take(): seq_cst exchange (acquire part)
 *                   acquire, where refused      close(): seq_cst exchange (release part)
 *     sleep_until   seq_cst; AWAKE by the loop relaxed    as above
 *     n_signals     relaxed, a statistic        none
 */

#include "transport/loop/task_chain.h"

#include <stdatomic.h>

#define BOW__INBOX_AWAKE UINT64_C(0)

struct bow__inbox {
    _Atomic(struct bow_task *) newest;
    _Atomic(uint64_t) sleep_until;
    _Atomic(uint64_t) n_signals;
};

void bow__inbox_init(struct bow__inbox *inbox);

/** Push; false when the inbox is closed: what the loop did before it closed it has happened then,
 * so that who is refused may go on in its place. Thread: any. */
bool bow__inbox_push(struct bow__inbox *inbox, struct bow_task *task);

/** Whether the caller must signal the loop for work that is due at `due_ns` (0: at once). Thread:
 * any. */
bool bow__inbox_must_signal(struct bow__inbox *inbox, uint64_t due_ns);

/** Announce sleep until `until_ns` (> 0); false when a task has come: then the loop is awake.
 * Thread: loop. */
bool bow__inbox_sleep(struct bow__inbox *inbox, uint64_t until_ns);
void bow__inbox_awake(struct bow__inbox *inbox);
bool bow__inbox_is_empty(const struct bow__inbox *inbox);

/** Take all tasks, oldest first. Thread: loop. */
struct bow__task_chain bow__inbox_take(struct bow__inbox *inbox);
/** Take all tasks and refuse all later ones; idempotent. Thread: loop. */
struct bow__task_chain bow__inbox_close(struct bow__inbox *inbox);

#endif
