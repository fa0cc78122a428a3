/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_CHANNEL_ACCEPTOR_OPEN_H
#define BOWLINE_TRANSPORT_CHANNEL_ACCEPTOR_OPEN_H

/*
 * An acceptor and its listeners from inside, and the opening of what they listen on. What they do
 * then, and on which thread, is in acceptor.c.
 */

#include "base/text.h"
#include "transport/channel/listen.h"

#include <bowline/timer.h>
#include <pthread.h>
#include <stdatomic.h>

struct bow__acceptor_listener {
    struct bow_acceptor *acceptor;
    struct bow_loop *loop; /* its memory is held */
    struct bow__listening listening;
    struct bow__watch watch;
    struct bow_timer pause;
    struct bow_task start_task;
    struct bow_task close_task;
    bool is_started;
    bool refuses_new;             /* it closes: no further connection comes */
    bool begins_place;            /* the first of its address */
    bool lent;                    /* under `lending` */
    _Atomic(uint64_t) tell_at_ns; /* when it may be logged again that descriptors ran out */
    uint64_t n_pauses;            /* since it was */
};

struct bow_acceptor {
    struct bow_context *context;
    struct bow_acceptor_options options; /* its address is NULL: not ours to keep */
    struct bow_loop *home;               /* where `closed` runs; its memory is held */
    struct bow_task closed_task;
    void (*closed)(void *user);
    void *closed_user;
    atomic_uint refs;
    atomic_uint n_pending;
    atomic_uint n_channels;
    pthread_mutex_t starting;
    bool withdrawn; /* under the lock: a listener could not be told, so none is to begin */
    pthread_mutex_t lending;
    _Atomic(uint64_t) n_refused;
    _Atomic(uint64_t) n_unset;    /* channels that were not set up, since it was last logged */
    _Atomic(uint64_t) tell_at_ns; /* when it may be logged again */
    char *addresses;              /* where it listens */
    size_t addresses_bytes;
    uint32_t n_listeners;
    uint32_t n_allocated;
    struct bow__acceptor_listener listeners[];
};

/** What an acceptor's address names, while it is opened: a name may have several addresses, and
 * each may have several sockets. */
struct bow__opening {
    const char *text;
    struct bow__address addresses[BOW__LISTEN_MAX];
    int n_addresses;
    uint32_t n_each;
    uint32_t n_before;          /* listeners of the addresses before the one that is being opened */
    struct bow__handed *handed; /* NULL: nobody hands anything over */
    int n_skipped;
    struct bow_transport_error skipped; /* the last of them */
};

/** Open all or none. Returns 0 or a negative errno with `ret_error` (may be NULL) filled. */
int bow__acceptor_open(struct bow_acceptor *acceptor, struct bow__opening *opening,
                       struct bow_transport_error *ret_error);
/** Room for what is written next, before anything is opened that could not be given back. Returns 0
 * or -ENOMEM. */
int bow__acceptor_alloc_addresses(struct bow_acceptor *acceptor,
                                  const struct bow__opening *opening);
/** Write down where it listens, and log what its address does not say. */
void bow__acceptor_name_addresses(struct bow_acceptor *acceptor,
                                  const struct bow__opening *opening);

/** Of a lent one the file stays. Under `lending`, or before anybody else knows of it. */
static inline void bow__acceptor_forget_lent(struct bow__acceptor_listener *listener)
{
    if (listener->lent) {
        bow__unix_file_forget(&listener->listening.unix_file);
    }
}

#endif
