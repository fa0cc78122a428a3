/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TIMER_H
#define BOWLINE_TIMER_H

/*
 * Intrusive timers: part of the structure they guard, so arming never allocates.
 *
 *     init ──► start ──► fn        disarmed when fn runs: start it again or free its memory there
 *                └────► stop       at once, also from inside fn
 *
 *     bow_timer_init(&conn->timer, bow_channel_loop(channel), on_late, conn);
 *     bow_timer_start(&conn->timer, 5 * 1000000000ull);
 *
 * The clock is CLOCK_MONOTONIC: it does not jump when the time of day is set, and stands still
 * while the machine is suspended. One that comes due while the loop does not look, in a callback
 * that takes long or a process that is stopped, fires after what has arrived meanwhile was read:
 * what it judges is not judged without.
 *
 * A timer must be disarmed when its memory goes. When the loop shuts down, those that are
 * armed then are disarmed, and do not fire. From other threads: bow_loop_schedule().
 */

#include <bowline/heap_node.h>
#include <bowline/loop.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_timer;

/** Runs when a timer fires; it is disarmed then. Thread: loop. */
typedef void (*bow_timer_fn)(struct bow_timer *timer, void *user);

/** A timer, embedded in what it guards. Set up with bow_timer_init(), once. */
struct bow_timer {
    bow_timer_fn fn;            /* public */
    void *user;                 /* public */
    struct bow_loop *loop;      /* read-only */
    struct bow__heap_node node; /* private */
};

/** Set up a disarmed timer of `loop`. Thread: any. */
BOW_EXPORT void bow_timer_init(struct bow_timer *timer, struct bow_loop *loop, bow_timer_fn fn,
                               void *user);

/**
 * Arm `timer` to fire once, `delay_ns` after bow_loop_now().
 *
 * Arming an armed timer moves it. A delay of zero fires in the next turn of the
 * loop, never inside this call. Equal deadlines fire in the order of arming. A
 * delay that overflows the clock never fires.
 *
 * Thread:  loop
 * Owns:    keeps `timer` until `fn` runs or bow_timer_stop() returns
 */
BOW_EXPORT void bow_timer_start(struct bow_timer *timer, uint64_t delay_ns);

/** Arm for a point on the clock of bow_loop_now(); one in the past fires in the next turn,
 * BOW_NEVER disarms. Thread: loop. */
BOW_EXPORT void bow_timer_start_at(struct bow_timer *timer, uint64_t deadline_ns);

/** Disarm; idempotent. Thread: loop. */
BOW_EXPORT void bow_timer_stop(struct bow_timer *timer);
/** Whether it will fire. Thread: loop. */
BOW_EXPORT bool bow_timer_is_armed(const struct bow_timer *timer);

#ifdef __cplusplus
}
#endif
#endif
