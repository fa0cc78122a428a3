/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_LOOP_CONDITION_H
#define BOWLINE_TRANSPORT_LOOP_CONDITION_H

/*
 * Waiting for another thread: conditions over the real monotonic clock, so that no
 * step of the wall clock ends a wait, and none of the table's clock: what is waited
 * for are real threads. Knows nothing of what they do.
 */

#include "base/clock.h"

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

/** A mutex and its condition. Returns 0 or a negative errno, with neither made. */
static inline int bow__cond_init(pthread_mutex_t *mutex, pthread_cond_t *cond)
{
    pthread_condattr_t attributes;

    int rc = pthread_mutex_init(mutex, NULL);
    if (rc != 0) {
        return -rc;
    }
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    rc = pthread_cond_init(cond, &attributes);
    pthread_condattr_destroy(&attributes);
    if (rc != 0) {
        pthread_mutex_destroy(mutex);
    }
    return -rc;
}

static inline void bow__cond_fini(pthread_mutex_t *mutex, pthread_cond_t *cond)
{
    pthread_cond_destroy(cond);
    pthread_mutex_destroy(mutex);
}

static inline struct timespec bow__cond_deadline(uint64_t timeout_ns)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t at_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    at_ns = bow__time_add(at_ns, timeout_ns);
    return (struct timespec){.tv_sec = (time_t)(at_ns / 1000000000u),
                             .tv_nsec = (long)(at_ns % 1000000000u)};
}

/** Wait for a signal, with `mutex` held; false when the deadline has passed. */
static inline bool bow__cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *deadline)
{
    return pthread_cond_timedwait(cond, mutex, deadline) == 0;
}

#endif
