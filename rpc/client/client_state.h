/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_CLIENT_STATE_H
#define BOWLINE_RPC_CLIENT_CLIENT_STATE_H

/*
 * A client from inside, for the files that make it up:
 *
 *     client_options.c  defaults and checks
 *     client.c          life, metrics
 *     client_start.c    starting and cancelling calls, from any thread
 *     client_metadata.c what a call sends along
 *     client_block.c    waiting for one
 *     client_call.c     a call on its loop: sent, answered, expired, completed
 *     target.h          what it connects to
 *     intercept.h       interceptors, on either side
 *     link.h            its connections on one loop, and their files
 *     stream_state.h    what a streaming call has beside, and its files
 *
 * Design. A client has a balancer per loop, in use from the first call on that loop.
 * A balancer and its calls belong to its loop; from other threads a call reaches it by
 * its own task, and is cancelled by another of its own. What threads share:
 *
 *     closing, n_queued, shown_state: relaxed hints; what they decide is decided again on the loop
 *     balancer->used           acquire/release
 *     balancer->n_posted       release by the last use of the balancer for a call begun on another
 * thread (its start task, or who undoes it), and acquire by who frees the client cancel_posted
 * exchanged under the lock through which the call was found; cleared by the task, and by a thread
 * whose start was refused: of those two the second, which finds it cleared, frees the call settled,
 * n_closing   under the lock
 *
 * A client is destroyed when no close task is under way, and each balancer is settled and
 * awaits no start task. A loop that shuts down settles its balancers by itself, at any time,
 * and refuses close tasks from some moment on.
 */

#include "rpc/client/balancer.h"
#include "rpc/client/call_ids.h"
#include "rpc/client/result.h"
#include "rpc/core/call/child_calls.h"
#include "rpc/core/intercept.h"
#include <bowline/client.h>
#include <bowline/group.h>
#include <stdatomic.h>

struct bow__metadata_list;

/** What a thread that a confined client does not belong to is told. */
#define BOW__CONFINED_TEXT                                                                         \
    "the client is confined to the thread that created it: make one for each thread, or set "      \
    "options.loop or options.group"

/** What a process is told that was forked after the client had been used. */
#define BOW__CLIENT_FORKED_TEXT                                                                    \
    "the client was used before fork(), and belongs to the parent process: make one in the child"

/** Requests up to this size live in the call itself. */
#define BOW__INLINE_REQUEST_BYTES 256

/** A request that is larger is not held for a second try once it was sent. */
#define BOW__RETRY_REQUEST_BYTES ((size_t)64 << 10)

enum bow__client_call_state {
    BOW__CLIENT_CALL_POSTED = 0, /* on its way to the loop */
    BOW__CLIENT_CALL_HELD,       /* by an interceptor, or refused by one: in the balancer's held */
    BOW__CLIENT_CALL_QUEUED,     /* in the balancer's queue */
    BOW__CLIENT_CALL_OPEN,       /* has a stream */
    BOW__CLIENT_CALL_EXPIRING,   /* the server's clock ended it, ours is about to */
    BOW__CLIENT_CALL_LINGERING,  /* the peer has ended it, and messages wait to be taken */
    BOW__CLIENT_CALL_FAILING,    /* its completion is posted */
    BOW__CLIENT_CALL_DONE,
};

/** Where a call's time-out came from, for the text that says it passed. */
enum bow__timeout_origin {
    BOW__TIMEOUT_GIVEN = 0,
    BOW__TIMEOUT_DEFAULT,
    BOW__TIMEOUT_PARENT,
};

struct bow__client_call {
    struct bow__link at; /* in the balancer's queue or calls */
    struct bow__balancer *balancer;
    const struct bow_method *method;
    bow_client_done_fn done;
    bow_any_fn fn;
    void *user;
    struct bow_stream *stream; /* NULL: a unary call */
    uint64_t id;               /* 0: has none */
    enum bow__client_call_state state;
    struct bow__client_conn *conn; /* while open */
    uint64_t key;
    struct bow_timer timer;
    struct bow_task task; /* start, or completion */
    struct bow_task cancel_task;
    atomic_bool cancel_posted;
    bool cancelled; /* before it began */
    bool ended;     /* completed while the cancel task is under way, which frees it */
    struct bow__child child;
    uint64_t started_ns;
    uint64_t deadline_ns;
    uint64_t timeout_ns;
    enum bow__timeout_origin timeout_origin;

    struct bow__block *block; /* the request, when it is not inline */
    size_t n_request;
    size_t queued_bytes; /* what the queue counts it as, while it is there */
    bool retried;
    bool compresses;
    uint8_t encoding;             /* an enum bow__encoding: of messages that pay compressing */
    bool waits_for_ready;         /* a failed attempt to connect does not end it */
    uint16_t n_given;             /* entries of `metadata` that are the caller's own, */
    uint16_t n_inherited;         /* and behind them those of the parent's trace context */
    struct bow_metadata metadata; /* sent along; in `memory`, as all that follows */
    struct bow_metadata initial;  /* received */
    struct bow_result_memory *memory;
    struct bow__intercepted *intercepted; /* NULL: nobody does */
    ProtobufCMessage *reply;
    struct bow_status failure;     /* FAILING, LINGERING: what to complete with; in `memory` */
    struct bow__client_call *next; /* idle */
    uint8_t request[BOW__INLINE_REQUEST_BYTES];
};

struct bow_client {
    struct bow_context *context;
    struct bow_client_options options;
    struct bow__target target;
    struct bow__interceptors interceptors;
    bool confined;
    pthread_t thread; /* of a confined one */
    bool driving;     /* confined: inside its loop */
    bool taking_in;   /* confined: inside its loop for what came to pass while nobody looked */
    struct bow_loop *own_loop;
    struct bow__call_ids ids;
    struct bow__balancer *balancers;
    uint32_t n_balancers;
    struct bow__subchannel *subchannels; /* of all balancers, one after the other */
    atomic_bool closing;

    pthread_mutex_t lock;
    pthread_cond_t settled;
    uint32_t n_closing; /* close tasks under way, and who posts them */
    bool free_when_settled;
};

/* client_options.c */

/** Returns 0, or as bow_client_new() with options->error filled. */
int bow__client_options_check(const struct bow_client_options *options);
/** Put the defaults in place of zeros. */
void bow__client_options_complete(struct bow_client_options *options);

/* client.c */

/** The balancer for the calling thread, marked as used; NULL for a confined client on another
 * thread.
 */
struct bow__balancer *bow__client_link_of(struct bow_client *client);
/** Whether a process that this one was forked from uses it. Thread: any. */
bool bow__client_is_foreign(const struct bow_client *client);
/** Whether the calling thread is one of the client's loops'. */
bool bow__client_in_loops(const struct bow_client *client);
/** The loop holds something of the balancer from now on. Loop. */
void bow__client_link_unsettle(struct bow__balancer *balancer);
/** A balancer's last act: it is touched no more but by tasks that are counted. Loop. */
void bow__client_link_settle(struct bow__balancer *balancer);
/** A call from another thread failed or was refused, and is counted no more: the balancer may go.
 * Thread: any. */
void bow__client_link_unpost(struct bow__balancer *balancer);
/** The close task has run, or was refused: the client may go. Thread: any. */
void bow__client_closed_one(struct bow_client *client);
/** Drive a confined client's loop for one turn. Returns 0 or as bow_loop_run_once(). */
int bow__client_drive(struct bow_client *client, uint64_t timeout_ns);
/** Before a call that waits: have a confined client notice what came while nobody looked, so that a
 * connection that was lost is not used. Returns as bow__client_drive(). */
int bow__client_take_in(struct bow_client *client);
/** After the last drive: shows the counters; the end of a confined client that a callback freed
 * meanwhile. */
void bow__client_end_drive(struct bow_client *client);

/* client_start.c */

/** What a call begins with; as for bow_client_start(). */
struct bow__client_begin {
    const struct bow_method *method;
    const ProtobufCMessage *request;
    const struct bow_call_options *options;
    bow_client_done_fn done;
    bow_any_fn fn;
    void *user;
    uint64_t *ret_id;
    struct bow_stream *stream; /* NULL: a unary call */
};

/** Begin a call: all that the caller's thread prepares, and the step onto the loop. Returns 0 or
 * as bow_client_start(), with the reason. */
int bow__client_begin(struct bow_client *client, const struct bow__client_begin *begin,
                      struct bow__text *reason);
/** Its interceptors have let a held call go on: it is in no list. Loop. */
void bow__client_call_resume(struct bow__client_call *call);
/** Post the call's cancellation; under the lock it was found by. Thread: any. */
void bow__client_call_request_cancel(struct bow__client_call *call);

/* client_metadata.c */

/** Copy what goes along with a call to its memory: the metadata of the options, and the trace
 * context of their parent, if they bring none. Returns 0; -EINVAL and -EMSGSIZE, with the reason;
 * -ENOMEM. */
int bow__client_call_take_metadata(struct bow__client_call *call,
                                   const struct bow_call_options *options,
                                   struct bow__text *reason);
/** An interceptor adds to `list`, which begins with the call's metadata: a trace context of its own
 * takes the place of the parent's. Returns as bow__metadata_add(). Loop. */
int bow__client_call_add_metadata(struct bow__client_call *call, struct bow__metadata_list *list,
                                  const char *key, struct bow_slice value);

/* client_block.c */

/** Fill an empty result with a failure of ours. */
void bow__client_fill_error(struct bow_client *client, int rc, const char *message,
                            struct bow_result *ret_result);

/* client_call.c */

struct bow__client_call *bow__client_call_new(struct bow__balancer *balancer, bool in_loop);
void bow__client_call_free(struct bow__client_call *call, bool in_loop);
/** Free one that was begun on another thread and never came to its loop: the balancer may go.
 * Thread: any. */
void bow__client_call_drop(struct bow__client_call *call);

/** Send the call over the balancer's connection. Returns 0; -EAGAIN and -EPIPE (not now); or what
 * it fails with. */
int bow__client_call_send(struct bow__client_call *call);
/** End it with `status` (borrowed), through its callback, now. */
void bow__client_call_complete(struct bow__client_call *call, const struct bow_status *status);
void bow__client_call_fail(struct bow__client_call *call, enum bow_code code, const char *message);
/** The peer has ended a stream whose messages wait to be taken: complete it after them. */
void bow__client_call_linger(struct bow__client_call *call, const struct bow_status *status);
/** As bow__client_call_fail(), by a task of its own. Returns 0 or -ESHUTDOWN. */
int bow__client_call_fail_later(struct bow__client_call *call, enum bow_code code,
                                const char *message);
/** Arm the deadline; it may have passed. */
void bow__client_call_arm(struct bow__client_call *call);
/** It is over on its connection, which may be idle from now on. */
void bow__client_call_part(struct bow__client_call *call);
/** Tell the peer that an open call is given up. */
void bow__client_call_abandon(struct bow__client_call *call, enum bow_code code);
/** On the loop, after request_cancel. */
int bow__client_call_cancel_task(void *user);

#endif
