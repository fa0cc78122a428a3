/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_CALL_CLIENT_CALL_H
#define BOWLINE_RPC_CLIENT_CALL_CLIENT_CALL_H

/*
 * A client's call, and all those of one loop: their memory, the lists they are in, their end.
 *
 *     POSTED ──► HELD ──► QUEUED ──► OPEN ──► EXPIRING, LINGERING ──► DONE
 *        │         │        ▲  └─ RESTING ◄┘                            │
 *        └─────────┴────────┴──► FAILING ──────────────────────────────┘
 *
 * Design. A call and its table belong to their loop. A call that another thread starts comes to
 * the loop by its own task, and is cancelled by another of its own. What threads share:
 *
 *     n_queued         a relaxed hint; what it decides is decided again on the loop
 *     cancel_posted    exchanged under the lock through which the call was found; cleared by the
 *                      task, and by a thread whose start was refused: of those two the second,
 *                      which finds it cleared, frees the call
 */

#include "rpc/client/call/call_ids.h"
#include "rpc/client/call/client_methods.h"
#include "rpc/client/call/result.h"
#include "rpc/client/retry/retries.h"
#include "rpc/connection/conn.h"
#include "rpc/connection/loop_compression.h"
#include "rpc/core/call/child_calls.h"
#include "rpc/core/intercept.h"
#include "rpc/core/metadata.h"
#include <bowline/client.h>
#include <bowline/timer.h>
#include <stdatomic.h>

struct bow__client_call;
struct bow__client_calls;

/** Requests up to this size live in the call itself. */
#define BOW__INLINE_REQUEST_BYTES 256

/** What the owner of a table of calls is told. All on the loop. */
struct bow__client_calls_ops {
    /** The server has not processed `call`: it is tried again. `counts`: as the one time that this
     * is done for what has left us. */
    void (*requeue)(struct bow__client_call *call, bool counts);
    /** `call`, which is in no list, has rested: its next attempt is due. It may end in here. */
    void (*resubmit)(struct bow__client_call *call);
    /** Something that a table that is closing waits for has ended. */
    void (*check_closed)(struct bow__client_calls *calls);
};

struct bow__client_calls {
    struct bow_context *context;
    struct bow_loop *loop;
    struct bow__call_ids *ids; /* the client's */
    const struct bow__client_calls_ops *ops;
    atomic_uint n_queued;
    atomic_uint n_refused; /* because the queue was full: relaxed */

    /* The rest belongs to the loop. */
    bool closing;
    uint32_t n_calls;      /* all that are on the loop and not completed */
    struct bow__link held; /* calls that wait for interceptors */
    uint32_t n_held;
    struct bow__link queue; /* calls that wait for a connection or a stream */
    size_t queued_bytes;    /* of them */
    uint32_t n_queued_fast; /* of them, those that do not wait until a server has answered */
    struct bow__link open;
    struct bow__link resting; /* calls between two attempts */
    uint32_t n_resting;
    uint32_t max_resting;
    size_t held_bytes; /* of messages that streams keep for another attempt */
    size_t max_held_bytes;
    struct bow__retries retries;
    struct bow__counters counters;
    struct bow__client_methods methods;
    struct bow__loop_compression compression;
    struct bow__client_call *idle;
    uint32_t n_idle;
    uint32_t max_idle;
};

enum bow__client_call_state {
    BOW__CLIENT_CALL_POSTED = 0, /* on its way to the loop */
    BOW__CLIENT_CALL_HELD,       /* by an interceptor, or refused by one: in the table's held */
    BOW__CLIENT_CALL_QUEUED,     /* in the table's queue */
    BOW__CLIENT_CALL_RESTING,    /* until its next attempt: in the table's resting */
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
    BOW__TIMEOUT_CONFIG, /* the service config's, of its method */
};

/** What a call has beside that passes interceptors; in its memory. */
struct bow__client_interception {
    struct bow__intercepted it; /* first */
    struct bow__client_call *call;
    struct bow__deferred deferred;
    struct bow__metadata_list request; /* all that is sent along, once something was added */
};

/** Bytes of why the last attempt failed, for who asks what a call waits for; with a NUL. */
#define BOW__RETRY_REASON_BYTES 160

/** What a call has beside that may be tried again by a policy; in its memory. See call_retry.h. */
struct bow__call_retry {
    struct bow__client_call *call;
    struct bow__method_policy policy;
    struct bow_timer timer;  /* RESTING: of the next attempt; OPEN: of this one's end; of hedges:
                                of the next of them */
    uint64_t pause_ns;       /* the last one, without jitter */
    bool may_have_run;       /* in an attempt that has failed */
    enum bow_code last_code; /* of that */
    char last_reason[BOW__RETRY_REASON_BYTES];

    struct bow__link hedges; /* other attempts beside it, by hedge_link; see call_hedge.h */
    uint8_t n_hedges;        /* so many have been sent */
    bool hedges_no_more;     /* the server asks for no other */
    const struct bow__hedge_ops *hedge_ops;
};

/** What becomes of attempts beside a call. On the loop. */
struct bow__hedge_ops {
    /** `hedge` has ended with its `failure`, which may be OK, and is in no list: it is let go of in
     * here, and the call may end. */
    void (*on_end)(struct bow__client_call *hedge);
    /** The call ends: so do all of them. */
    void (*drop_all)(struct bow__call_retry *retry);
};

struct bow__client_call {
    struct bow__link at; /* in the table's held, queue, resting or open */
    struct bow__client_calls *calls;
    const struct bow_method *method;
    bow_client_done_fn done;
    bow_any_fn fn;
    void *user;
    struct bow_stream *stream; /* NULL: a unary call */
    uint64_t id;               /* 0: has none */
    enum bow__client_call_state state;
    struct bow__conn *conn; /* while open */
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
    size_t queued_bytes;               /* what the queue counts it as, while it is there */
    struct bow__method_counts *counts; /* the table's, of its method; NULL before it has begun */
    uint64_t queued_since_ns;          /* while it `is_counted_as_queued` */
    uint64_t sent_at_ns;               /* while it `is_attempted` */
    size_t n_received;                 /* message bytes of the attempt, */
    size_t n_sent;                     /* as they were sent */
    bool is_counted_as_queued;
    bool is_attempted;
    bool retried;
    uint8_t n_failed;             /* attempts that its policy has had it follow by others */
    uint8_t compresses;           /* an enum bow_compression; below AUTO: not */
    uint8_t encoding;             /* an enum bow__encoding: of messages that are compressed */
    bool waits_for_ready;         /* a failed attempt to connect does not end it */
    uint16_t n_given;             /* entries of `metadata` that are the caller's own, */
    uint16_t n_inherited;         /* and behind them those of the parent's trace context */
    struct bow_metadata metadata; /* sent along; in `memory`, as all that follows */
    struct bow_metadata initial;  /* received */
    struct bow_result_memory *memory;
    struct bow__intercepted *intercepted; /* of a bow__client_interception; NULL: nobody does */
    struct bow__client_call *hedge_of;    /* an attempt beside that call, and no call of its own */
    struct bow__link hedge_link;
    struct bow__call_retry *retry; /* in `memory`; NULL: no policy, or none needed so far */
    ProtobufCMessage *reply;
    struct bow_status failure;     /* FAILING, LINGERING: what to complete with; in `memory`; of a
                                      hedge: what it has ended with */
    struct bow__client_call *next; /* idle */
    uint8_t request[BOW__INLINE_REQUEST_BYTES];
};

static inline bool bow__method_sends_many(const struct bow_method *method)
{
    return (method->flags & BOW_METHOD_CLIENT_STREAMING) != 0;
}

static inline bool bow__method_receives_many(const struct bow_method *method)
{
    return (method->flags & BOW_METHOD_SERVER_STREAMING) != 0;
}

/** Zeroed memory that has its context, loop, ids, ops and limits. */
void bow__client_calls_init(struct bow__client_calls *calls,
                            const struct bow__compression_options *compression,
                            const struct bow__retry_config *retry);
/** None is left but idle ones. */
void bow__client_calls_fini(struct bow__client_calls *calls);

/** Returns NULL out of memory. `in_loop`: the caller is on the loop. */
struct bow__client_call *bow__client_call_new(struct bow__client_calls *calls, bool in_loop);
void bow__client_call_free(struct bow__client_call *call, bool in_loop);

/** What a call counts for in the queue. */
size_t bow__client_call_bytes(const struct bow__client_call *call);
/** The first of the queue, or NULL. Loop. */
struct bow__client_call *bow__client_calls_first_queued(const struct bow__client_calls *calls);
/** Put `call`, which is in no list, at an end of the queue, or take it out. Loop. */
void bow__client_call_queue_back(struct bow__client_call *call);
void bow__client_call_queue_front(struct bow__client_call *call);
void bow__client_call_unqueue(struct bow__client_call *call);
/** Put `call`, which is in no list, among those that rest, or take it out. Loop. */
void bow__client_call_rest(struct bow__client_call *call);
void bow__client_call_rise(struct bow__client_call *call);

/** Find where its method is counted; before it is sent. Loop. */
void bow__client_call_find_counts(struct bow__client_call *call);
/** Count that it has begun. Loop. */
void bow__client_call_count_start(struct bow__client_call *call);
/** It has been sent, and what it waited for is over. Loop. */
void bow__client_call_count_attempt(struct bow__client_call *call);
/** A message of it has come or was sent, of `n_bytes` on the wire. Loop. */
static inline void bow__client_call_count_received(struct bow__client_call *call, size_t n_bytes)
{
    call->n_received += n_bytes;
    bow__count(&call->counts->bytes_in, n_bytes);
}

static inline void bow__client_call_count_sent(struct bow__client_call *call, size_t n_bytes)
{
    call->n_sent += n_bytes;
    bow__count(&call->counts->bytes_out, n_bytes);
}

/** That attempt has ended with `code`: it is tried again, or over. Loop. */
void bow__client_call_count_attempt_end(struct bow__client_call *call, enum bow_code code);

/** Count that it was refused because the queue is full. Thread: any. */
void bow__client_call_count_refused(struct bow__client_call *call);

/** End it with `status` (borrowed), through its callback, now. Loop, as all that follow. */
void bow__client_call_complete(struct bow__client_call *call, const struct bow_status *status);
void bow__client_call_fail(struct bow__client_call *call, enum bow_code code, const char *message);
/** As bow__client_call_fail(), by a task of its own. Returns 0 or -ESHUTDOWN. */
int bow__client_call_fail_later(struct bow__client_call *call, enum bow_code code,
                                const char *message);
/** The peer has ended a stream whose messages wait to be taken: complete it after them. */
void bow__client_call_linger(struct bow__client_call *call, const struct bow_status *status);
/** It is over on its connection, which may be idle from now on. */
void bow__client_call_part(struct bow__client_call *call);
/** Tell the peer that an open call is given up. */
void bow__client_call_abandon(struct bow__client_call *call, enum bow_code code);
/** Tell the interceptors of a call that has some of its end. */
void bow__client_call_end_interceptors(struct bow__client_call *call,
                                       const struct bow_status *status);

#endif
