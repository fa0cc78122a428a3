/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_PLACE_H
#define BOWLINE_TRANSPORT_PLACE_H

/*
 * Where something runs: a loop, an executor, or (both NULL) nowhere. Keeps the memory of
 * what it names, not its life. Knows nothing of what runs there.
 */

#include <bowline/executor.h>
#include <bowline/loop.h>

struct bow__place {
    struct bow_loop *loop;
    struct bow_executor *executor;
};

static inline bool bow__place_is_nowhere(const struct bow__place *place)
{
    return place->loop == NULL && place->executor == NULL;
}

void bow__place_hold(const struct bow__place *place);
void bow__place_release(const struct bow__place *place);
/** Whether the calling thread is the place's, or one of them. */
bool bow__place_is_here(const struct bow__place *place);

/** Whether it was run by a process that this one was forked from. */
bool bow__place_is_foreign(const struct bow__place *place);

/** Take, or give back, one of the places in its bounded queue. */
bool bow__place_take(const struct bow__place *place);
void bow__place_leave(const struct bow__place *place);

/** Post without asking the rejection handler. Returns 0 or a negative errno. */
int bow__place_post(const struct bow__place *place, struct bow_task *task);
/** Give what can't run there to its rejection handler. */
void bow__place_reject(const struct bow__place *place, const char *name, bow_task_fn fn,
                       void *user);

#endif
