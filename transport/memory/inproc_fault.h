/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_MEMORY_INPROC_FAULT_H
#define BOWLINE_TRANSPORT_MEMORY_INPROC_FAULT_H

/*
 * What a test lets go wrong with the inproc connections of its context: refused, reset or
 * stalled, now or when so much was sent. Without a test there is none of it, and a
 * connection pays one look at a pointer.
 *
 * Design
 *
 * `mutex` guards the list of pairs. It is taken before the mutex of a pair, never
 * inside it: what is sent is counted with atomics, and what fires breaks the pairs
 * after the sender's was let go.
 *
 *     atomic                  order                                  partner
 *     refuses, kind           relaxed: read by those who act later   none
 *     bytes_left, sends_left  relaxed: counts                        none
 */

#include "base/list.h"
#include "base/shared.h"

#include <bowline/context.h>
#include <pthread.h>
#include <stdatomic.h>

enum bow__inproc_fault {
    BOW__INPROC_RESET, /* both ends hear of it, when they have read what was sent */
    BOW__INPROC_STALL, /* what is sent does not arrive, nor does an end */
};

struct bow__inproc_faults {
    pthread_mutex_t mutex;
    struct bow__link pairs;
    atomic_bool refuses;
    atomic_int kind;              /* of what comes when one of these is 0; UINT64_MAX: never */
    _Atomic(uint64_t) bytes_left; /* of all connections, both ways */
    _Atomic(uint64_t) sends_left; /* calls that sent something */
};

BOW__SHARED void bow__inproc_faults_fini(struct bow__inproc_faults *faults);

/** Break them when so much more was sent (> 0). */
BOW__SHARED void bow__inproc_break_after(struct bow__inproc_faults *faults,
                                         enum bow__inproc_fault kind, uint64_t n_bytes,
                                         uint64_t n_sends);

/* For the connections. */

/** No fault, and no connections. */
void bow__inproc_faults_clear(struct bow__inproc_faults *faults);

/** How many bytes may be sent before one of the faults comes. */
uint64_t bow__inproc_faults_room(const struct bow__inproc_faults *faults);
/** So many were. True: it comes now, bow__inproc_faults_take() says which. */
bool bow__inproc_faults_spend(struct bow__inproc_faults *faults, size_t n_bytes);
/** The fault that comes now; none comes after it. */
enum bow__inproc_fault bow__inproc_faults_take(struct bow__inproc_faults *faults);

#endif
