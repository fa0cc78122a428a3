/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_E2E_MISBEHAVING_H
#define BOWLINE_TESTS_E2E_MISBEHAVING_H

/*
 * Two child processes of a test: clients that behave, whose calls are timed, and
 * clients that do not. Each obeys bytes from its parent and answers each of them:
 *
 *     fork both ──► port ──► [bad: 'g' go, 's' stop] [good: 'm' measure] ──► close the pipe
 *
 * They are forked before the test has threads. A child that fails says why and exits with 1.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct crowd {
    pid_t pid;
    int to;   /* commands */
    int from; /* answers */
};

/** What a phase of good calls came to. */
struct crowd_report {
    uint64_t n_ok;
    uint64_t n_failed;
    uint64_t median_ns;
    uint64_t p99_ns;
    char text[128]; /* why the last one failed */
};

/** What bad clients have done so far. */
struct crowd_deeds {
    uint64_t n_connects;
    uint64_t n_closed; /* by the server */
};

/** `n` clients, each with a connection of its own, of both protocols; one call a millisecond. */
void crowd_fork_good(struct crowd *crowd, unsigned n);
/** `n` that do not, with what the others leave of the processors: `run` reads the port, then 'g'
 * and 's', each of which it answers by its deeds, until the pipe ends. */
void crowd_fork_with(struct crowd *crowd, unsigned n,
                     void (*run)(int from_parent, int to_parent, unsigned n));

/** Tell where the server is. The good ones connect, and answer when all have made a call. */
void crowd_begin(struct crowd *crowd, uint16_t port);
/** Time the next `n_calls` calls after some that are not looked at. */
void crowd_measure(struct crowd *crowd, unsigned n_calls, struct crowd_report *ret_report);
/** Misbehave, or stop doing so with all connections closed. */
void crowd_go(struct crowd *crowd, struct crowd_deeds *ret_deeds);
void crowd_stop(struct crowd *crowd, struct crowd_deeds *ret_deeds);
/** End the child; it must have exited well. */
void crowd_end(struct crowd *crowd);

#endif
