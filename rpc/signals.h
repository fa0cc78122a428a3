/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SIGNALS_H
#define BOWLINE_RPC_SIGNALS_H

/*
 * SIGTERM and SIGINT as events of a loop, while a server runs on it.
 *
 * Design. A handler that wakes a loop would have to find it through a global. So
 * the signals are blocked on the loop's thread and read from a signalfd. The
 * process may have other threads that do not block them: for those a handler is
 * installed that has no state: it blocks the signal in its own thread and sends it
 * again, until it is left to the thread that reads the descriptor.
 */

#include "transport/loop.h"
#include <signal.h>

#define BOW__N_SIGNALS 3

struct bow__signals {
    struct bow__watch watch;
    struct bow_loop *loop;
    void (*on_signal)(int number, void *user);
    void *user;
    int fd;
    sigset_t taken;     /* whose disposition was the default */
    sigset_t unblocked; /* those of them that this thread did not block before */
    struct sigaction old[BOW__N_SIGNALS];
};

/**
 * Take SIGTERM, SIGINT and, if wanted, SIGHUP, where their disposition is the default. Returns 0 or
 * a negative errno (nothing is taken then).
 *
 * Thread:  the loop's, which is to be driven by this thread
 * Owns:    keeps `signals` until stop
 */
int bow__signals_start(struct bow__signals *signals, struct bow_loop *loop, bool hangup,
                       void (*on_signal)(int number, void *user), void *user);

/** Give them back. Same thread. */
void bow__signals_stop(struct bow__signals *signals);

#endif
