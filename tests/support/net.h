/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_SUPPORT_NET_H
#define BOWLINE_TESTS_SUPPORT_NET_H

/*
 * What tests of channels have in common: a loop that the test drives over the real
 * system with its calls counted, channels whose other end is a plain socket of the test's,
 * and a handler that writes down what it is told.
 *
 *     struct net net;
 *     struct probe probe;
 *     net_begin(&net);
 *     int peer;
 *     probe_init(&probe, &net);
 *     struct bow_channel *channel = net_channel(&net, NET_TCP, &peer, &probe, 1);
 *     send(peer, "hi", 2, 0);
 *     net_run_until(&net, probe.n_bytes == 2);
 *     close(peer);
 *     net_end(&net);                     shuts the loop down, asserts that nothing is left
 */

#include "tests/support/loops.h"

#include <bowline/channel.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct net {
    struct loops t;
    struct bow_system system;
    struct bow_loop *loop;
    struct bow_channel_options options; /* of net_channel(); without on_channel, probes are added */

    atomic_int n_recv;
    atomic_int n_send;
    atomic_int n_wait;
    atomic_int n_pieces;     /* of the last sendmsg */
    atomic_size_t max_asked; /* the largest recv(), about */
    int accept_error;        /* what accept() fails with; 0: it does not */
    int send_error;          /* the same for sendmsg() */
    size_t send_bytes;       /* what one sendmsg() takes at most; 0: what the socket takes */
    uint64_t call_ns;        /* how long a recv() or sendmsg() takes by the fake clock */
};

enum net_kind {
    NET_UNIX,
    NET_TCP,
};

void net_begin(struct net *net);
/** The same with a clock that stands still but for waits that find nothing. */
void net_begin_fake(struct net *net);
void net_end(struct net *net);
/** Drop the loop only: for tests that look at what is left. */
void net_stop(struct net *net);

/** A connected pair of plain sockets, non-blocking. */
void net_pair(enum net_kind kind, int fds[2]);

struct probe;
/** A channel with `n` probes as handlers, head first; `*ret_peer` is the other end. */
struct bow_channel *net_channel(struct net *net, enum net_kind kind, int *ret_peer,
                                struct probe *probes, int n);

void net_turn(struct net *net);
/** Turns until `condition`, each waiting for what comes; fails the test after ten seconds. */
#define net_run_until(net, condition)                                                              \
    do {                                                                                           \
        uint64_t net_until = net_deadline();                                                       \
        while (!(condition)) {                                                                     \
            net_turn(net);                                                                         \
            if (net_is_late(net_until)) {                                                          \
                fail_msg("never came: %s", #condition);                                            \
            }                                                                                      \
        }                                                                                          \
    } while (0)
uint64_t net_deadline(void);
bool net_is_late(uint64_t deadline);

/** Send all of it, turning the loop while the socket is full. */
void net_send_all(struct net *net, int fd, const void *bytes, size_t len);
/** Receive exactly `len` bytes, turning the loop while there are none. */
void net_recv_all(struct net *net, int fd, void *bytes, size_t len);
/** Receive until the end, comparing with a pattern of bytes; returns how many. */
size_t net_recv_pattern(struct net *net, int fd);
/** Close with a reset. */
void net_reset(int fd);
/** bytes[i] depends on its position. */
void net_fill_pattern(uint8_t *bytes, size_t len, size_t position);
bool net_is_pattern(const uint8_t *bytes, size_t len, size_t position);

#define PROBE_LOG_BYTES 4096

/** A handler that logs its events as words, and does what the test adds. */
struct probe {
    struct bow_handler handler;
    struct net *net;
    char log[PROBE_LOG_BYTES]; /* " added active read:2 complete …" */
    size_t log_len;
    uint8_t *bytes; /* all that was consumed, when `keeps` */
    size_t n_bytes;
    size_t cap;
    bool keeps;
    bool checks_pattern;
    int n_reads;
    int n_completes;
    int n_eofs;
    int n_errors;
    int last_error;
    int n_inactive;
    int inactive_error;
    int n_removed;
    int n_completions;
    int completion_error;
    /** In place of consuming all. */
    size_t (*on_read)(struct probe *probe, const struct bow_buf *bytes);
    /** After the event was logged, before it is passed on. */
    void (*on_event)(struct probe *probe, const char *event);
    bool stops_events; /* does not pass them on */
    void *user;
};

void probe_init(struct probe *probe, struct net *net);
void probe_fini(struct probe *probe);
/** A completion for bow_channel_write(): `user` is the probe. */
void probe_done(struct bow_channel *channel, int error, void *user);
/** Log a word of the test's own. */
void probe_note(struct probe *probe, const char *format, ...) BOW_PRINTF(2, 3);

#endif
