/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_E2E_SOAK_HOSTILE_H
#define BOWLINE_TESTS_E2E_SOAK_HOSTILE_H

/*
 * A process that means harm: in rounds, it plays all floods, and what else costs a server more than
 * it costs a client: messages that expand, replies that wait, PINGs, replies that nobody reads. It
 * tells what it begins, and ends when its pipe does. Fork it before there are threads.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/** What it has begun to do; a number of -1: a round is over. */
struct soak_deed_note {
    int number;
    uint32_t n_unended; /* connections so far that the server should have ended, and has not */
};

struct soak_hostile {
    pid_t pid;
    int to;   /* closed, to end it */
    int from; /* struct soak_deed_note; does not block */
};

/** Attack the server at the first of these ports, and at times the second, which may be away. */
void soak_hostile_fork(struct soak_hostile *hostile, const uint16_t ports[2]);
const char *soak_hostile_name(int number);
/** Whether there was a note. Fails the test when the process is gone. */
bool soak_hostile_read(const struct soak_hostile *hostile, struct soak_deed_note *ret_note);
void soak_hostile_end(struct soak_hostile *hostile);

#endif
