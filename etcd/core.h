/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_ETCD_CORE_H
#define BOWLINE_ETCD_CORE_H

/*
 * A bow_etcd, and what programs have of it: objects (registrations, watches, locks), each with a
 * handle and an activity on the loop. Knows nothing of what the objects do.
 *
 *     new ──► open(): posts ──► kind->start, on the loop ──► … ──► bow__etcd_object_close():
 * on_closed └──────────────────────► release(): posts ──► kind->stop ──┘
 *
 * Design. An object's memory lives until its handle was released and its activity has ended
 * (`refs`). Its two tasks are posted from any thread; all else of it is the loop's, but for
 * `is_released`, which the loop looks at before an event. `n_open` is counted under the lock, for
 * bow_etcd_stop(). When the loop shuts down, its hook ends the activities: calls have ended by
 * then.
 */

#include "base/list.h"
#include "etcd/token.h"
#include <bowline/client.h>
#include <bowline/etcd.h>
#include <bowline/loop.h>
#include <bowline/resolver.h>

#include <pthread.h>
#include <stdatomic.h>

struct bow__etcd_object;

struct bow__etcd_object_kind {
    void (*start)(struct bow__etcd_object *object);
    /** Idempotent; leads to bow__etcd_object_close(), also when etcd->is_dead. */
    void (*stop)(struct bow__etcd_object *object);
    void (*on_closed)(struct bow__etcd_object *object);
    void (*free)(struct bow__etcd_object *object); /* any thread */
};

struct bow__etcd_object {
    const struct bow__etcd_object_kind *kind;
    struct bow_etcd *etcd; /* a reference */
    struct bow__link link; /* in etcd->objects, while it is open */
    struct bow_task starting;
    struct bow_task stopping;
    atomic_uint refs;
    atomic_bool is_released;
    atomic_bool is_closed; /* release, for who lets go of it */
    bool is_stopped;
};

struct bow_etcd {
    struct bow_context *context;
    struct bow_loop *loop;
    struct bow_client *client;
    char *target; /* as the client has it */
    char *prefix;
    enum bow_etcd_layout layout;
    uint64_t timeout_ns;
    uint64_t backoff_min_ns;
    uint64_t backoff_max_ns;
    struct bow_resolver resolver;
    struct bow__etcd_token token;
    atomic_uint refs;
    atomic_bool is_stopped;
    _Atomic(uint64_t) log_due_ns;
    struct bow_task stopping;
    struct bow_task closing;

    /* The loop's. */
    struct bow__link objects;
    struct bow__link services;
    struct bow_loop_hook hook;
    bool has_hook;
    bool is_dead; /* the loop shuts down */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    size_t n_open;
};

/** `*etcd` is zeroed but for context and loop, of which it takes a reference each. Returns 0 or a
 * negative errno. */
int bow__etcd_core_init(struct bow_etcd *etcd);
/** Free it, half-built too, but for the loop's reference. Nothing is under way. */
void bow__etcd_core_free(struct bow_etcd *etcd);

/** Begin the activity of an object whose memory is zeroed. Returns 0, with two references; or
 * -ESHUTDOWN, -ECHILD, and the object is as it was. Thread: any. */
int bow__etcd_object_open(struct bow__etcd_object *object, const struct bow__etcd_object_kind *kind,
                          struct bow_etcd *etcd);
/** The handle is let go of; its activity ends later. Thread: any. */
void bow__etcd_object_release(struct bow__etcd_object *object);
/** The activity has ended: tells on_closed; the object may be gone afterwards. Thread: loop. */
void bow__etcd_object_close(struct bow__etcd_object *object);
/** Whether its events are still wanted. */
bool bow__etcd_object_listens(const struct bow__etcd_object *object);

#endif
