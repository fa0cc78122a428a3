/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_E2E_LAB_PROCESS_H
#define BOWLINE_TESTS_E2E_LAB_PROCESS_H

/*
 * The lab_server program as a process that tests stop, continue and kill. It dies with the test.
 * It may have a network of its own, at the far end of a cable that can be pulled.
 */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct lab_process {
    const char *program;
    char host[32];
    uint16_t port;
    pid_t pid;
    char cable[16]; /* the far end's name; "" for none */
};

/** Start `program` on `host` and `port` (0: any), and wait until it listens. */
void lab_process_start(struct lab_process *process, const char *program, const char *host,
                       uint16_t port);
/** As it was started, on the same port. */
void lab_process_restart(struct lab_process *process);
void lab_process_kill(struct lab_process *process);
void lab_process_signal(const struct lab_process *process, int number);

/** Leave this machine's network for an empty one of our own. Once, before there is a second
 * thread. Returns false when that is not permitted, or something for it is missing. */
bool lab_process_isolate(void);
/** Start it with a network of its own. Only after lab_process_isolate(). */
void lab_process_start_apart(struct lab_process *process, const char *program);
/** Pull the cable, without a word to either end, or plug it in again. */
void lab_process_plug(const struct lab_process *process, bool is_in);

#endif
