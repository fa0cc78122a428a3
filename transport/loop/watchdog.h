/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_LOOP_WATCHDOG_H
#define BOWLINE_TRANSPORT_LOOP_WATCHDOG_H

/*
 * Who holds the loop, and for how long: the watchdog. Every callback that is not
 * the library's own stands between a begin and an end:
 *
 *     struct bow__watchdog watchdog;
 *     bow__watchdog_begin(&watchdog, loop, "task", task->name, 0);
 *     task->fn(task->user);
 *     bow__watchdog_end(&watchdog);
 *
 * These nest, and the time of an inner one is not the outer one's, so it is the
 * handler that blocked which is named, not those that passed the bytes to it.
 * Without max_hold_ns, and off the loop's thread, all of this is one comparison;
 * where even the call to find that out shows (a handler is entered twice a frame),
 * the caller remembers bow__watchdog_is_on() and leaves `loop` NULL by itself.
 */

#include <bowline/loop_stats.h>
#include <stdbool.h>

struct bow__watchdog {
    struct bow_loop *loop; /* NULL: nobody looks */
    struct bow__watchdog *outer;
    const char *what; /* these as in struct bow_loop_held */
    const char *name;
    uintptr_t fn;
    uint64_t started_ns;
    uint64_t inner_ns; /* spent in those inside of this one */
};

/** `what` and `name` must live until the end; `name` may be NULL. Thread: any. */
void bow__watchdog_begin(struct bow__watchdog *watchdog, struct bow_loop *loop, const char *what,
                         const char *name, uintptr_t fn);
void bow__watchdog_finish(struct bow__watchdog *watchdog);

static inline void bow__watchdog_end(struct bow__watchdog *watchdog)
{
    if (watchdog->loop != NULL) {
        bow__watchdog_finish(watchdog);
    }
}

/** Whether anybody looks; the same for the whole life of the loop. Thread: any. */
bool bow__watchdog_is_on(const struct bow_loop *loop);

#endif
