/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_FAMILY_H
#define BOWLINE_RPC_CORE_FAMILY_H

/*
 * A served call and the calls its handler makes in turn: the parent's end cancels
 * its children.
 *
 * Design. Parent and children end on different threads in any order, so neither may
 * hold a pointer to the other. Both hold a reference to the family, whose lock
 * guards the list; a child leaves under the lock, so one that is in the list is
 * alive while the lock is held.
 */

#include "base/list.h"
#include <bowline/context.h>
#include <stdbool.h>

struct bow__family;

struct bow__child {
    /** Ask the child to end, from any thread, under the family's lock: must not call back. */
    void (*cancel)(struct bow__child *child);
    struct bow__family *family; /* NULL: in none */
    struct bow__link link;
};

/** One reference; NULL out of memory. Thread: any. */
struct bow__family *bow__family_new(struct bow_context *context);

/** NULL is allowed. Thread: any. */
void bow__family_unref(struct bow__family *family);

/** Add `child`, cancelling it at once when the family has ended. Thread: any. */
void bow__family_join(struct bow__family *family, struct bow__child *child);

/** Take `child` out; nothing when it is in none. No cancel() runs or comes after. Thread: any. */
void bow__family_leave(struct bow__child *child);

/** Cancel all children, and those that join from now on. Idempotent. Thread: any. */
void bow__family_end(struct bow__family *family);

#endif
