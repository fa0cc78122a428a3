/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_SIGNALS_H
#define BOWLINE_RPC_SERVER_SIGNALS_H

/*
 * SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGUSR2 as events of a loop, while a server runs on it
 * (server_run.c).
 *
 * Design. A handler that wakes a loop would have to find it through a global. So
 * the signals are blocked on the loop's thread and read from a signalfd. The
 * process may have other threads that do not block them: for those a handler is
 * installed that has no state: it blocks the signal in its own thread and sends it
 * again, until it is left to the thread that reads the descriptor.
 */

#include "transport/loop/loop.h"
#include <signal.h>

#define BOW__N_SIGNALS 5

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

/** Those beside SIGTERM and SIGINT that are wanted. */
struct bow__signals_wanted {
    bool hangup;
    bool user1;
    bool user2;
};

/** Take SIGTERM, SIGINT and those that are wanted, where their disposition is the default: from now
 * on they wait, as do those that were blocked and are pending. Thread: the one that is going to
 * drive the loop. */
void bow__signals_take(struct bow__signals *signals, const struct bow__signals_wanted *wanted);

/**
 * Hear of those that were taken, the ones that wait already first. Returns 0 or a negative errno.
 *
 * Thread:  the loop's, which took them
 * Owns:    keeps `signals` until stop
 */
int bow__signals_start(struct bow__signals *signals, struct bow_loop *loop,
                       void (*on_signal)(int number, void *user), void *user);

/** Hear of them no more; those that still wait are dropped. Same thread. */
void bow__signals_stop(struct bow__signals *signals);
/** What was taken is as it was before. Same thread. */
void bow__signals_give_back(struct bow__signals *signals);

#endif
