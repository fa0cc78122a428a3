/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The watchdog of a loop. It looks when a callback has returned, on the loop's own
 * thread; what is said here to other threads is only who holds the loop now.
 *
 * Design
 *
 *     atomic           order                                partner
 *     holder           release by the loop, one writer      acquire by bow_loop_get_holder()
 *     held_since_ns    release; 0 while `holder` changes    acquire, read before and after
 *
 * A reader that sees the same time before and after the name has the name that
 * belongs to it: each change of the name comes after a 0 and before a new time.
 */

#include "transport/loop/watchdog.h"

#include "base/clock.h"
#include "base/log.h"
#include "transport/loop/loop_core.h"

#include <inttypes.h>

/* Each one is told to the callback; a line a second is enough for the log. */
#define LOG_EVERY_NS UINT64_C(1000000000)

static void publish(struct bow_loop *loop, const struct bow__watchdog *watchdog)
{
    atomic_store_explicit(&loop->held_since_ns, 0, memory_order_release);
    if (watchdog == NULL) {
        return;
    }
    atomic_store_explicit(&loop->holder, watchdog->name != NULL ? watchdog->name : watchdog->what,
                          memory_order_release);
    atomic_store_explicit(&loop->held_since_ns, watchdog->started_ns, memory_order_release);
}

bool bow__watchdog_is_on(const struct bow_loop *loop)
{
    return loop->options.max_hold_ns != 0;
}

void bow__watchdog_begin(struct bow__watchdog *watchdog, struct bow_loop *loop, const char *what,
                         const char *name, uintptr_t fn)
{
    if (!bow__watchdog_is_on(loop) || !bow_loop_in_loop(loop)) {
        watchdog->loop = NULL;
        return;
    }
    *watchdog = (struct bow__watchdog){
        .loop = loop,
        .outer = loop->watchdog,
        .what = what,
        .name = name,
        .fn = name == NULL ? fn : 0,
        .started_ns = bow__loop_clock(loop),
    };
    loop->watchdog = watchdog;
    publish(loop, watchdog);
}

static void log_blocked(struct bow_loop *loop, const struct bow_loop_held *held, uint64_t now)
{
    if (now < loop->next_hold_log_ns) {
        return;
    }
    loop->next_hold_log_ns = bow__time_add(now, LOG_EVERY_NS);
    if (held->name != NULL) {
        bow__log(loop->context, BOW_LOG_WARNING, "loop %s: %s %s held it for %" PRIu64 " us",
                 loop->name, held->what, held->name, held->held_ns / 1000);
    } else {
        bow__log(loop->context, BOW_LOG_WARNING,
                 "loop %s: %s 0x%" PRIxPTR " held it for %" PRIu64 " us", loop->name, held->what,
                 held->fn, held->held_ns / 1000);
    }
}

static void report(const struct bow__watchdog *watchdog, uint64_t held_ns, uint64_t now)
{
    struct bow_loop *loop = watchdog->loop;
    const struct bow_loop_held held = {
        .what = watchdog->what, .name = watchdog->name, .fn = watchdog->fn, .held_ns = held_ns};

    bow__count(&loop->counters.holds, 1);
    log_blocked(loop, &held, now);
    if (loop->options.held != NULL) {
        loop->options.held(loop, &held, loop->options.held_user);
    }
}

void bow__watchdog_finish(struct bow__watchdog *watchdog)
{
    struct bow_loop *loop = watchdog->loop;
    uint64_t now = bow__loop_clock(loop);
    uint64_t whole_ns = now - watchdog->started_ns;
    if (watchdog->outer != NULL) {
        watchdog->outer->inner_ns += whole_ns;
    }
    loop->watchdog = watchdog->outer;
    publish(loop, loop->watchdog);
    uint64_t own_ns = bow__time_left(whole_ns, watchdog->inner_ns);
    bow__count_most(&loop->counters.max_hold_ns, own_ns);
    if (own_ns > loop->options.max_hold_ns) {
        report(watchdog, own_ns, now);
    }
}

const char *bow_loop_get_holder(const struct bow_loop *loop, uint64_t *ret_since_ns)
{
    uint64_t since_ns = atomic_load_explicit(&loop->held_since_ns, memory_order_acquire);
    const char *name = atomic_load_explicit(&loop->holder, memory_order_acquire);
    uint64_t again_ns = atomic_load_explicit(&loop->held_since_ns, memory_order_acquire);

    if (since_ns == 0 || since_ns != again_ns) {
        return NULL;
    }
    *ret_since_ns = since_ns;
    return name;
}
