/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_SUPPORT_GATE_H
#define BOWLINE_TESTS_SUPPORT_GATE_H

/*
 * A counter that threads of a test wait for: the events that take the place of sleeps.
 *
 *     struct gate gate;
 *     gate_init(&gate);
 *     gate_add(&gate);              on one thread
 *     gate_wait(&gate, 1);          on another: until the count is at least 1
 *     gate_fini(&gate);
 */

#include <pthread.h>

struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int count;
};

static inline void gate_init(struct gate *gate)
{
    pthread_mutex_init(&gate->mutex, NULL);
    pthread_cond_init(&gate->changed, NULL);
    gate->count = 0;
}

static inline void gate_fini(struct gate *gate)
{
    pthread_cond_destroy(&gate->changed);
    pthread_mutex_destroy(&gate->mutex);
}

static inline void gate_add(struct gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    gate->count++;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->mutex);
}

static inline void gate_wait(struct gate *gate, int count)
{
    pthread_mutex_lock(&gate->mutex);
    while (gate->count < count) {
        pthread_cond_wait(&gate->changed, &gate->mutex);
    }
    pthread_mutex_unlock(&gate->mutex);
}

static inline int gate_count(struct gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    int count = gate->count;
    pthread_mutex_unlock(&gate->mutex);
    return count;
}

#endif
