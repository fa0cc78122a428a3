/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_SUPPORT_CROWD_H
#define BOWLINE_TESTS_SUPPORT_CROWD_H

/*
 * Many connections at once to an echo server that the test drives. The clients are in a process of
 * their own, so that their descriptors do not count against the server's limit.
 *
 *     struct crowd crowd;
 *     crowd_begin(&crowd, on_channel, greet, user);
 *     crowd_come(&crowd, 1000);          they connect, say a word, hear it, and are silent
 *     ... look at what they cost ...
 *     crowd_end(&crowd);                 they leave, the loop ends; asserts that no byte is left
 *     loops_end(&crowd.net.t);
 */

#include "tests/support/net.h"

#include <sys/types.h>

/** What a client says; the server says it again. */
#define CROWD_WORD "bowline"
#define CROWD_WORD_BYTES 7

struct crowd {
    struct net net;
    struct bow_acceptor *acceptor;
    bow_channel_init_fn on_channel;
    int (*greet)(int fd, void *user);
    void *user;
    int n_accepted;
    int n_ended;
    pid_t clients;
    int command_fd; /* to them: how many more shall come */
    int answer_fd;  /* from them: those have come */
};

/** `on_channel` (may be NULL) adds to each new channel what stands in front of the echo. `greet`
 * (NULL: over the bare socket) is a client's first exchange, in its process, on a blocking socket;
 * it returns whether that went well. */
void crowd_begin(struct crowd *crowd, bow_channel_init_fn on_channel,
                 int (*greet)(int fd, void *user), void *user);
/** Returns once `n` more have come and been answered. Returns nanoseconds. */
uint64_t crowd_come(struct crowd *crowd, int n);
void crowd_end(struct crowd *crowd);

#endif
