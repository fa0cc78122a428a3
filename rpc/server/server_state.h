/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_SERVER_STATE_H
#define BOWLINE_RPC_SERVER_SERVER_STATE_H

/*
 * A server from inside, and how long it lasts. The files that make it up, lowest first:
 *
 *     server_state.c      references, the state, giving back what it has
 *     server_fork.c       one that is the parent process's
 *     hand_over.c         its sockets offered to another process
 *     take_over.c         another process's sockets taken
 *     server_metrics.c    what it counts
 *     server_services.c   services, interceptors, where handlers run
 *     server_own.c        the services that the library brings
 *     server_listen.c     addresses, and connections from them
 *     server_reload.c     renewed certificates
 *     server_stop.c       drain: lame duck, GOAWAY, grace, close
 *     server_hand_over.c  the end because another process has taken over
 *     server_start.c      loops, workers, listeners
 *     server_run.c        bow_server_run() and its signals
 *     server.c            options, new and free
 *
 * Design. `main` is the loop that accepts and drains; each worker has its own. A
 * part is a listener, a worker, or what is posted to the main loop to stop it; the last
 * part to end stops the server. `refs`:
 * the user's, one while it serves, one for each thread in run or join. The lock guards
 * `state` and `n_parts` and goes with the condition that join waits for. Whoever starts
 * the server holds it while the parts are told to begin, and the drain begins with it, so
 * that no part ends before it is known which ones there are.
 *
 * Of loops that are the user's the server keeps the memory only: their last reference is
 * his, and its end waits for them, whatever of the server is still posted there.
 */

#include "base/text.h"
#include "rpc/core/intercept.h"
#include "rpc/core/registry.h"
#include "rpc/server/dispatch/worker.h"
#include "rpc/server/take_over.h"
#include "rpc/services/health.h"
#include "rpc/services/reflection.h"
#include <bowline/generic.h>
#include <bowline/group.h>
#include <bowline/server.h>
#include <pthread.h>

/** What options.protocols may name. */
#define BOW__ALL_PROTOCOLS (BOW__DEFAULT_PROTOCOLS | BOW__WEB_PROTOCOLS)
/** What 0 stands for: no port is open to pages of browsers that nobody has opened to them. */
#define BOW__DEFAULT_PROTOCOLS ((uint32_t)(BOW_PROTOCOL_NATIVE | BOW_PROTOCOL_GRPC))
#define BOW__WEB_PROTOCOLS ((uint32_t)(BOW_PROTOCOL_CONNECT | BOW_PROTOCOL_GRPC_WEB))

enum bow__server_state {
    BOW__SERVER_NEW = 0,
    BOW__SERVER_STARTED,
    BOW__SERVER_STOPPED,
};

/** An address to listen on, until the server is destroyed. */
struct bow__listener {
    struct bow__listener *next;
    struct bow_server *server;
    struct bow_listen_options options; /* `address` points below, `security` is a reference */
    size_t address_len;
    char address[];
};

struct bow__hand_over;
struct bow__operations;

struct bow_server {
    struct bow_context *context;
    struct bow_server_options options; /* `listen` is ours */
    struct bow__worker_limits limits;
    struct bow__registry registry;
    bow_generic_fn fallback_handler;
    struct bow__interceptors interceptors; /* constant once started */
    struct bow__health health;
    struct bow__reflection *reflection; /* NULL: not the library's */
    struct bow__handler_executor *handler_executors;
    struct bow__text error;

    struct bow_loop *main; /* a reference when it is ours, else its memory is held */
    bool owns_main;        /* made here, ended here */
    struct bow_group *group;
    bool owns_group;
    struct bow__worker **workers;
    uint32_t n_workers;
    struct bow__listener *listeners; /* in the order they were given */
    uint32_t n_listeners;
    struct bow_acceptor **acceptors;
    uint32_t n_acceptors;
    uint32_t cap_acceptors;
    /* Acceptors report on the main loop, or, once that has terminated, on any: counted down
     * acq_rel, each other's partner. */
    atomic_uint n_open_acceptors;
    uint16_t port;                      /* of the first TCP listener; constant once started */
    struct bow__operations *operations; /* NULL: none */
    char *operations_address;           /* what the options name, copied; as the next */
    char *operations_hosts;
    bool runs_operations; /* it was started, and is a part; set before the server is open */
    bool ends_operations; /* it has been told to; under the lock */
    struct bow_task operations_task;
    struct bow__take_over take_over;  /* while it starts */
    char *take_over_address;          /* what the options name, copied */
    struct bow__hand_over *hand_over; /* NULL: none; set once, under the lock; the rest of it is the
                                         main loop's */
    struct bow_task hand_over_task;
    char *addresses; /* of all listeners, in words; the same; NULL before */
    size_t addresses_bytes;
    atomic_uint n_connections;
    atomic_uint n_reloads; /* relaxed, as the next: for metrics */
    atomic_uint n_reloads_failed;

    atomic_uint refs;
    /* Set when all of it has been told to begin: from then on any thread may look at its loops.
     * This and the next: stored before the other one is looked at, sequentially consistent. */
    atomic_bool opened;
    atomic_bool stop_requested; /* also before the start */
    atomic_bool stop_posted;
    struct bow_task open_task;
    struct bow_task stop_task;
    struct bow_task hurry_task;
    atomic_bool hurry_posted; /* exchanged by who posts, cleared by the task */
    struct bow_timer lame_timer;
    struct bow_timer grace_timer;
    struct bow_timer metrics_timer;
    struct bow_loop_hook hook; /* of the main loop */
    bool hooked;
    bool tells_stopping; /* set before the server is open; then main loop only, as are the next */
    bool draining;
    bool closing;

    pthread_mutex_t lock;
    pthread_cond_t stopped;
    enum bow__server_state state;
    uint32_t n_parts;
    struct bow_loop *run_loop; /* of the thread in bow_server_run(), to be woken; under the lock */
    struct bow_task run_task;
};

/** The listeners that start has made and nobody has started, at once: what was handed down is the
 * caller's again. None after they were closed. */
void bow__server_unlisten(struct bow_server *server);
/** What start has made, in reverse; before anything runs, or after all has stopped. */
void bow__server_unmake(struct bow_server *server);
/** A copy of an option's text. */
void bow__server_free_text(struct bow_server *server, char *text);
/** What has been noted of addresses to listen on. */
void bow__server_free_listeners(struct bow_server *server);

void bow__server_ref(struct bow_server *server);
void bow__server_unref(struct bow_server *server);
/** Drop a reference without acting on it; true: it was the last, destroy the server. */
bool bow__server_drop(struct bow_server *server);
void bow__server_destroy(struct bow_server *server);

enum bow__server_state bow__server_get_state(struct bow_server *server);

/** Whether the calling thread is one of the server's loops'. */
bool bow__server_in_loops(const struct bow_server *server);

#endif
