/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_CHANNEL_ACCEPTOR_H
#define BOWLINE_TRANSPORT_CHANNEL_ACCEPTOR_H

/*
 * The acceptor from inside:
 *
 *     acceptor.c     its life, and what it counts for all its listeners
 *     listener.c     one listening socket on its loop
 *
 * One listener, or with per_worker one for each worker.
 *
 * Design
 *
 * Channels start on threads of their own loops and outlive the acceptor, and listeners
 * run on several, so these counts are shared:
 *
 *     atomic        order                                      partner
 *     refs          relaxed up, acq_rel down                   each other: the memory
 *     n_pending     relaxed up, acq_rel down                   each other: see below
 *     n_channels    relaxed: a bound, not a publication        none
 *     n_refused     relaxed: a statistic                       none
 *     n_unset       relaxed: a log's                           none
 *     tell_at_ns    relaxed: a log's                           none
 *
 * n_pending is one for each listener until closed and one for each channel that is starting;
 * `closed` runs when it is 0.
 *
 * A listener belongs to its loop's thread.
 */

#include "transport/channel/channel.h"
#include "transport/channel/listen.h"

struct bow__listener {
    struct bow_acceptor *acceptor;
    struct bow_loop *loop; /* its memory is held */
    struct bow__listening listening;
    struct bow__watch watch;
    struct bow_timer pause;
    struct bow_task start_task;
    struct bow_task close_task;
    bool is_started;
    bool is_fenced;               /* it closes: no further connection comes */
    _Atomic(uint64_t) tell_at_ns; /* when it may be logged again that descriptors ran out */
    uint64_t n_pauses;            /* since it was */
};

struct bow_acceptor {
    struct bow_context *context;
    const struct bow_system *system;
    struct bow_acceptor_options options; /* its address is NULL: not ours to keep */
    struct bow_task closed_task;
    void (*closed)(void *user);
    void *closed_user;
    atomic_uint refs;
    atomic_uint n_pending;
    atomic_uint n_channels;
    _Atomic(uint64_t) n_refused;
    _Atomic(uint64_t) n_unset;    /* channels that were not set up, since it was last logged */
    _Atomic(uint64_t) tell_at_ns; /* when it may be logged again */
    uint32_t n_listeners;
    struct bow__listener listeners[];
};

/* listener.c */

/** `listener` is zeroed but for `listening`, which is open. */
void bow__listener_init(struct bow__listener *listener, struct bow_acceptor *acceptor,
                        struct bow_loop *loop);
/** Begin to accept, on its loop. Returns 0 or why it can't be posted. Thread: any. */
int bow__listener_start(struct bow__listener *listener);
/** Close the socket on its loop, then bow__acceptor_leave(). Thread: any. */
void bow__listener_close(struct bow__listener *listener);

/* acceptor.c */

/** Make a channel of an accepted socket, or close it. Takes the socket. Returns 0, or what stops
 * accepting for now. Thread: the listener's loop. */
int bow__acceptor_admit(struct bow__listener *listener, const struct bow__socket *socket,
                        const struct bow_sockaddr *peer);
/** One of n_pending is over. Thread: any. */
void bow__acceptor_leave(struct bow_acceptor *acceptor);

#endif
