/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_DISPATCH_WORKER_H
#define BOWLINE_RPC_SERVER_DISPATCH_WORKER_H

/*
 * What a server has on one of its loops: connections, calls, counters, and a
 * pool of calls so that a call allocates nothing once warm.
 *
 *     new ──► open ──► (connections) ──► drain ──► [close] ──► done, reported once ──► unref
 *
 * Counted: the server holds one reference, and each call that its handler keeps
 * longer than anybody waits for it holds one, so that it can be let go of on any
 * thread after the server has gone.
 */

#include "rpc/connection/conn.h"
#include "rpc/connection/loop_compression.h"
#include "rpc/core/registry.h"
#include "rpc/server/dispatch/admission.h"
#include "rpc/server/dispatch/backlog.h"
#include "rpc/web/origins.h"
#include "rpc/web/page.h"
#include "rpc/web/web.h"
#include <bowline/server.h>
#include <pthread.h>

struct bow__worker_limits {
    const struct bow__interceptors *interceptors; /* NULL: none */
    struct bow__health *health;                   /* NULL: not the library's */
    uint64_t max_deadline_ns;
    uint64_t heartbeat_ns;
    uint64_t heartbeat_timeout_ns;
    uint64_t first_frame_timeout_ns;
    size_t max_message_bytes;
    size_t max_header_bytes;
    size_t max_bytes_in_flight; /* of the whole server, and of each loop */
    size_t max_loop_bytes_in_flight;
    size_t max_queued_reply_bytes; /* likewise */
    size_t max_loop_queued_reply_bytes;
    uint32_t max_calls;
    uint32_t max_connections;
    uint64_t retry_after_ns;
    uint64_t write_timeout_ns;
    uint64_t idle_timeout_ns;
    uint64_t max_age_ns;
    uint64_t max_age_grace_ns;
    struct bow__quotas *quotas; /* NULL: no limits of calls in progress */
    struct bow__compression_options compression;
    struct bow__web_origins *web_origins; /* NULL: none */
    struct bow__web_page *web_page;       /* NULL: none */
    const struct bow_file **web_files;
    size_t n_web_files;
    size_t cap_web_files;
};

/** Calls that were answered in the batch under way and take the same time: of one method, begun
 * together, and with one code. */
struct bow__answered {
    struct bow__method_counts *counts;
    uint64_t started_ns;
    enum bow_code code;
    uint32_t n;
};

/** Of those that follow each other; more are counted at once. */
#define BOW__ANSWERED_AT_ONCE 8u

struct bow__worker {
    struct bow_context *context;
    struct bow_loop *loop;     /* its memory is held */
    struct bow_server *server; /* until done */
    const struct bow__registry *registry;
    const struct bow__worker_limits *limits;
    atomic_uint *n_connections; /* of all workers */
    atomic_uint refs;           /* relaxed up, acq_rel down */
    /* Handlers and events on executors: up on the loop, down anywhere, which with `watched` (set
     * by the drain) posts a look at whether the worker is done; sequentially consistent both. */
    atomic_uint n_on_executors;
    atomic_bool watched;
    atomic_bool look_posted;
    struct bow_task look_task;
    pthread_mutex_t outside; /* for executors' threads, once the loop has ended; the quarantine */
    struct bow__counters counters;
    struct bow__answered answered[BOW__ANSWERED_AT_ONCE];
    uint32_t n_answered; /* of them */
    struct bow__loop_compression compression;
    struct bow__web web;
    struct bow__admission admission;
    struct bow__in_flight in_flight;
    struct bow__backlog backlog;
    struct bow_timer backlog_timer; /* while it is short */
    struct bow__deferred relief;    /* credit and calls that were withheld for those two */
    struct bow__link conns;
    struct bow__unanswered *unanswered; /* while calls are cut off, else NULL */
    struct bow__server_call *idle;
    uint32_t n_idle;
    uint32_t max_idle;
    struct bow__link quarantine; /* calls that have ended, oldest first; under `outside` */
    uint32_t n_quarantined;
    uint32_t n_streams;             /* entered, and on_closed has not returned */
    _Atomic(uint64_t) tell_full_ns; /* when the log may hear of max_connections again */
    bool draining;
    bool done;
    bool hooked;
    struct bow_loop_hook hook;
    struct bow_task open_task;
    struct bow_task drain_task;
    struct bow_task close_task;
    struct bow_task done_task;
    void (*on_done)(struct bow__worker *worker); /* on the worker's loop */
};

struct bow__server_call;

/** Methods whose handlers have not answered. */
#define BOW__UNANSWERED_SHOWN 8
struct bow__unanswered {
    uint32_t n_methods; /* in the table: others are not named */
    uint32_t n_others;
    struct {
        const char *path;
        uint32_t n;
    } methods[BOW__UNANSWERED_SHOWN];
};

struct bow__server_conn {
    struct bow__conn conn; /* first */
    struct bow__worker *worker;
    struct bow__in_flight_share share;
    struct bow__backlog_share backlog;
    struct bow__work_waiter waiter; /* for the turn in which calls go on that wait in `backlog` */
    struct bow__link link;          /* in the worker's conns */
    struct bow__link batch_calls;   /* calls that came with the batch under way */
    struct bow__link calls;         /* those that have outlived theirs, and do not wait */
};

/** Returns 0 or -ENOMEM. Thread: any. */
int bow__worker_new(struct bow_context *context, struct bow_loop *loop, struct bow_server *server,
                    const struct bow__registry *registry, const struct bow__worker_limits *limits,
                    atomic_uint *n_connections, void (*on_done)(struct bow__worker *worker),
                    struct bow__worker **ret_worker);
void bow__worker_ref(struct bow__worker *worker);
void bow__worker_unref(struct bow__worker *worker);

/** Begin on the loop, refuse and wind up new and old connections, close them now; each posts a
 * task. Returns 0, or what posting fails with. Thread: any. */
int bow__worker_open(struct bow__worker *worker);
int bow__worker_drain(struct bow__worker *worker);
int bow__worker_close(struct bow__worker *worker);

/** A connection has gone, and is out of `conns`: the worker may be done. Loop. */
void bow__worker_conn_gone(struct bow__worker *worker);

/** The last event of a streaming call was given: the worker may be done. Loop, or any thread once
 * that has ended. */
void bow__worker_stream_closed(struct bow__worker *worker);

/** What a call counted for that nobody waited for is in flight no more. Thread: any. */
void bow__worker_release_in_flight(struct bow__worker *worker, size_t n_in_flight);

/** Something of a call is on an executor now: the worker stays. Loop. */
void bow__worker_enter_executor(struct bow__worker *worker);
/** It has come back. Thread: any. */
void bow__worker_leave_executor(struct bow__worker *worker);

/** A handler loses its client before it has answered: told of in the log when calls are cut off.
 * Loop. */
void bow__worker_note_unanswered(struct bow__worker *worker, const char *path);

/** A call from the pool, or NULL. Loop. */
struct bow__server_call *bow__worker_get(struct bow__worker *worker);
/** Its memory again: the arena has been reset. Loop. */
void bow__worker_put(struct bow__worker *worker, struct bow__server_call *server_call);
/** The same for memory that no other call is to get: free it, or, where faults are looked for, keep
 * it for a while. Thread: any. */
void bow__worker_put_apart(struct bow__worker *worker, struct bow__server_call *server_call);
/** Let go of the memory that is kept for later. Loop. */
void bow__worker_trim(struct bow__worker *worker);

#endif
