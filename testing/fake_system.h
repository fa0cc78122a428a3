/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTING_FAKE_SYSTEM_H
#define BOWLINE_TESTING_FAKE_SYSTEM_H

/*
 * The operating system with a clock that stands still until it is moved. All but
 * the clock and the waiting is real: sockets, wake-ups, threads.
 *
 * A wait that finds nothing ready moves the clock on by its time-out and returns at
 * once, so a loop lives through an hour in a millisecond. A wait without end
 * waits for real: for another thread.
 *
 *     struct fake_system fake;
 *     bow__fake_system_init(&fake);
 *     options.system = &fake.system;
 *     ...
 *     bow__fake_system_advance(&fake, 5 * FAKE_MS);
 *
 * With on_idle the wait is somebody else's to fill: he runs other loops, and moves the clock.
 *
 * Any thread may read and move the clock; the other fields are set while no loop runs.
 */

#include <bowline/system.h>
#include <stdatomic.h>
#include <stdbool.h>

#define FAKE_US UINT64_C(1000)
#define FAKE_MS UINT64_C(1000000)
#define FAKE_S UINT64_C(1000000000)
#define FAKE_START (1000 * FAKE_S)

struct fake_system {
    struct bow_system system;
    struct bow_poller_ops poller_ops;

    _Atomic(uint64_t) now_ns;
    uint64_t tick_ns;  /* each reading of the clock moves it on by that */
    bool stands_still; /* a wait does not move the clock */

    /** Before each wait, on the loop's thread, with its time-out; 0, or what the wait returns. */
    int (*on_wait)(struct fake_system *fake, uint64_t timeout_ns, void *user);
    /** In place of moving the clock on: nothing is ready, and the wait lasts until `until_ns`. It
     * does something and returns 0, to look again, or what the wait returns (< 0). NULL: none. */
    int (*on_idle)(struct fake_system *fake, uint64_t until_ns, void *user);
    void *user;
    int thread_error;        /* what starting a thread fails with; 0: it does not */
    int wake_error;          /* the same for opening a wake-up */
    int add_error;           /* and for registering with a poller, */
    int n_adds_before_error; /* after so many that go well */
    uint32_t n_cpus;         /* 0: the machine's */

    _Atomic(uint64_t) n_clock_reads;
    _Atomic(uint64_t) n_waits;
    _Atomic(uint64_t) n_sleeps; /* waits with a time-out above 0 */
    _Atomic(uint64_t) last_timeout_ns;
    _Atomic(uint64_t) n_wake_waits; /* waits without the poller */
    _Atomic(uint64_t) n_signals;
    _Atomic(uint64_t) n_threads;
    _Atomic(uint64_t) n_arms;
    _Atomic(uint64_t) last_armed_ns;
};

void bow__fake_system_init(struct fake_system *fake);
void bow__fake_system_advance(struct fake_system *fake, uint64_t by_ns);

#endif
