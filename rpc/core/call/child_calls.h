/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CALL_CHILD_CALLS_H
#define BOWLINE_RPC_CORE_CALL_CHILD_CALLS_H

/*
 * A served call and the calls its handler makes in turn: the parent's end cancels
 * its children.
 *
 * Design. Parent and children end on different threads in any order, so neither may
 * hold a pointer to the other. Both hold a reference to the list of child calls, whose lock
 * guards the list; a child leaves under the lock, so one that is in the list is
 * alive while the lock is held.
 */

#include "base/list.h"
#include <bowline/context.h>
#include <stdbool.h>

struct bow__child_calls;

struct bow__child {
    /** Ask the child to end, from any thread, under the list's lock: must not call back. */
    void (*cancel)(struct bow__child *child);
    struct bow__child_calls *child_calls; /* NULL: in none */
    struct bow__link link;
};

/** One reference; NULL out of memory. Thread: any. */
struct bow__child_calls *bow__child_calls_new(struct bow_context *context);

/** NULL is allowed. Thread: any. */
void bow__child_calls_unref(struct bow__child_calls *child_calls);

/** Add `child`, cancelling it at once when the parent has ended. Thread: any. */
void bow__child_calls_join(struct bow__child_calls *child_calls, struct bow__child *child);

/** Take `child` out; nothing when it is in none. No cancel() runs or comes after. Thread: any. */
void bow__child_calls_leave(struct bow__child *child);

/** Cancel all children, and those that join from now on. Idempotent. Thread: any. */
void bow__child_calls_end(struct bow__child_calls *child_calls);

#endif
