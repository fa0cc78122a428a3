/* SPDX-License-Identifier: 0BSD */
#ifndef BOWLINE_EXAMPLES_ETCD_ETCD_WATCH_H
#define BOWLINE_EXAMPLES_ETCD_ETCD_WATCH_H

/*
 * What is below a prefix, and each change of it, once and in order, whatever becomes of the
 * connection, the server and the token meanwhile.
 *
 *     start ──► on_state_begin, on_state*, on_state_end ──► on_event*, on_progress* ──► on_closed
 *       │               ▲                                        │  ▲       │
 *       │               └──── compacted: changes were lost ──────┘  │   on_interrupted
 *       └──── from a revision that you know of ─────────────────────┴───────┘
 *
 * It remembers how far it is, and when its stream is lost it asks a server for what comes after
 * that. etcd forgets old changes when it is compacted: a watch that was away for longer cannot be
 * told of them. Then the state is read anew, and you are told so: what is not in it was deleted.
 *
 * Everything happens on the loop of its etcd, and each function here is for that thread, or before
 * the loop runs.
 */

#include "etcd.h"
#include "etcd_pages.h"
#include <bowline/timer.h>

struct etcd_watch;

/** What happens to a watch; all are called. What is passed is borrowed. */
struct etcd_watch_events {
    /** The state follows: forget what you had. `compact_revision` is 0 at the beginning; else
     * changes before it are lost. */
    void (*on_state_begin)(struct etcd_watch *watch, int64_t compact_revision, void *user);
    void (*on_state)(struct etcd_watch *watch, const Mvccpb__KeyValue *kv, void *user);
    /** That was all, as it was at `revision`. */
    void (*on_state_end)(struct etcd_watch *watch, int64_t revision, void *user);
    void (*on_event)(struct etcd_watch *watch, const Mvccpb__Event *event, void *user);
    /** You have been told of all up to `revision`. The server says so when nothing happens. */
    void (*on_progress)(struct etcd_watch *watch, int64_t revision, void *user);
    /** For people: it goes on by itself, after `revision`. */
    void (*on_interrupted)(struct etcd_watch *watch, const struct bow_status *why, int64_t revision,
                           void *user);
    /** The last one: stopped, or an error that stays. The memory of `watch` is yours again. */
    void (*on_closed)(struct etcd_watch *watch, const struct bow_status *status, void *user);
};

/** What a watch is to do next. */
enum etcd_watch_step {
    ETCD_WATCH_STATE,  /* read the next page */
    ETCD_WATCH_STREAM, /* open a stream */
};

/** A watch, embedded in what it is for. All of it is private. */
struct etcd_watch {
    struct etcd *etcd;
    const struct etcd_watch_events *events;
    void *user;
    struct etcd_pages pages;
    struct etcd_login login;
    struct bow_timer timer; /* begins the next step */
    enum etcd_watch_step step;
    struct etcdserverpb__watch__watch__stream stream;
    uint64_t call; /* the unary one that is under way; 0: none */
    uint64_t pause_ns;
    int64_t revision; /* of the last change that was told */
    int64_t next;     /* to ask for; as `revision` when the last reply was cut within that */
    uint32_t n_told;  /* changes of `revision` */
    uint32_t n_skip;  /* of them, that the stream is to send again */
    int64_t compact_revision; /* why the state is read */
    bool lacks_token;
    bool refused; /* by the server; the stream has not ended yet */
    bool stopping;
    struct bow_status refusal; /* its message is `reason` */
    char reason[256];
};

/**
 * Watch all keys that begin with `prefix` (copied). With `revision` 0 their state comes first; else
 * what has happened after that revision.
 *
 * Owns:    keeps all else that it is given until on_closed
 * Returns: 0; -ENOMEM, and no event comes
 */
BOW_MUST_USE int etcd_watch_start(struct etcd_watch *watch, struct etcd *etcd, const char *prefix,
                                  int64_t revision, const struct etcd_watch_events *events,
                                  void *user);
/** Nothing more is told but on_closed, with CANCELLED, later. Idempotent. */
void etcd_watch_stop(struct etcd_watch *watch);

#endif
