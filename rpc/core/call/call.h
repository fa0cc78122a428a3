/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CALL_CALL_H
#define BOWLINE_RPC_CORE_CALL_CALL_H

/*
 * The server's call: its memory, its request, and the one answer it gets. It
 * reaches its connection through struct bow__call_ops and knows no channel.
 *
 * Design. Until the handler is entered the loop owns the call. From then on the
 * handler does, on any thread, and the loop may only tell it that nobody waits
 * any more. Who frees is decided by one word, changed by compare-and-swap:
 *
 *     HELD ──answered on the loop──────────────────────────────────────► freed there
 *      │ ├───answered elsewhere──► POSTED ──task──► sent, freed on the loop
 *      │ │                           ├──peer gone──► POSTED_LATE ──task──► freed
 *      │ │                           └──loop shut down──► STRANDED ──peer gone──► freed
 *      │ └───peer gone──► ORPHANED ──answered──► freed by the answerer, on any thread
 *      └─────peer gone, on_cancel set──► NOTIFYING ──► ORPHANED
 *                                            └──answered──► DROPPED ──► freed by the loop
 *
 * `end_code` is set before the word changes, so a handler may see it while the call
 * is still HELD; it then leaves the call STRANDED to the loop, which is about to
 * change the word.
 *
 * Streaming calls are counted instead: see call_stream.h.
 */

#include "base/arena.h"
#include "rpc/core/call/child_calls.h"
#include "rpc/core/session.h"
#include <bowline/call.h>
#include <bowline/service.h>
#include <stdatomic.h>

struct bow_peer_credentials;
struct bow__call_metadata;
struct bow__call_stream;
struct bow__registered_method;

enum bow__call_state {
    BOW__CALL_HELD = 0,
    BOW__CALL_POSTED,
    BOW__CALL_POSTED_LATE,
    BOW__CALL_STRANDED,
    BOW__CALL_ORPHANED,
    BOW__CALL_NOTIFYING,
    BOW__CALL_DROPPED,
};

/** In `end_code`, beyond the codes: the holder has answered, and is to ask the call for nothing. */
#define BOW__CALL_ANSWERED 0x100u /* on another thread; the loop has yet to send it */
#define BOW__CALL_GONE 0x101u     /* its memory waits for another call */

/** What a call asks of the connection it came by. */
struct bow__call_ops {
    bool (*in_loop)(const struct bow_call *call);
    struct bow_loop *(*loop)(const struct bow_call *call);
    /** The connection's channel; NULL once nobody waits. Loop. */
    struct bow_channel *(*channel)(const struct bow_call *call);
    /** Returns 0, -ENODATA, or -ENOSPC. Loop. */
    int (*peer_subject)(const struct bow_call *call, char *text, size_t size);
    /** Returns 0 or -ENOTSUP. Thread: any. */
    int (*peer_credentials)(const struct bow_call *call, struct bow_peer_credentials *credentials);
    /** Have `run(call)` run on the loop, later, without allocating. One at a time. Returns 0 or
     * -ESHUTDOWN. */
    int (*post)(struct bow_call *call, void (*run)(struct bow_call *call));
    /** On the loop, before each answer: whether it comes after the deadline, with why in `reason`.
     * Reads the clock: a handler may have held the loop, and its timers, since it was entered. */
    bool (*is_late)(struct bow_call *call, struct bow__text *reason);
    /** On the loop, of a unary call after is_late: the answer is with the session, or could not be
     * (-ENOMEM: the connection is of no use any more). Take the call out of the connection. */
    void (*answered)(struct bow_call *call, const struct bow_status *status, size_t n_bytes,
                     int error);
    /** On the loop: nobody waits any more; what the call stands on must outlive its connection. */
    void (*hold)(struct bow_call *call);
    /** Give the call's memory back. Thread: any after hold, else the loop. */
    void (*free)(struct bow_call *call);

    /* Of streaming calls, on the loop. */

    /** The session was operated on, and `n_bytes` of messages went out. */
    void (*sent)(struct bow_call *call, size_t n_bytes);
    /** A message could not be decoded. */
    void (*undecodable)(struct bow_call *call);
    /** Have bow__call_stream_run() run soon, from no function of the call; asking twice is one. */
    void (*defer)(struct bow_call *call);
    /** Of one whose handler runs on an executor: have bow__call_stream_deliver_event() run there,
     * and then bow__call_stream_go_on() here. Returns 0, or what posting fails with. */
    int (*post_event)(struct bow_call *call);
    /** After hold: its last event has been given; it is not to run again. */
    void (*closed)(struct bow_call *call);
};

/** What is to be sent once the call is back on its loop. */
struct bow__answer {
    struct bow_status status; /* text in the call's arena */
    struct bow_slice bytes;   /* of the reply, in the arena or in `block` */
    struct bow__block *block; /* owned */
};

struct bow_call {
    const struct bow__call_ops *ops;
    struct bow__session *session; /* loop only; NULL once the stream has ended */
    uint64_t key;
    const struct bow_method *method;
    const struct bow__registered_method *entry; /* until the handler is entered */
    struct bow__call_stream *stream;            /* NULL: unary */
    struct bow__call_metadata *metadata;        /* NULL: there is none; in the arena */
    struct bow__intercepted *intercepted;       /* loop only; NULL: nobody does (any more) */
    const struct bow__intercepted *states;      /* the same, until the call goes */
    const char *peer;
    uint64_t deadline_ns;
    ProtobufCMessage *request;
    struct bow__compression *compression; /* loop only, as are the next three */
    bool invoked;                         /* the handler was entered */
    bool responded;                       /* what precedes messages is with the session */
    uint8_t encoding;           /* an enum bow__encoding: of messages that are compressed */
    _Atomic uint8_t compresses; /* an enum bow_compression, of messages to come; the holder's, and
                                   of a stream several may be; relaxed: a message that waits has its
                                   own. DEFAULT: nobody has asked for it */
    atomic_uint state;
    atomic_uint end_code;    /* a bow_code, or as above; 0: the peer waits */
    bool request_compressed; /* it came so, or the message did that a stream was given last */
    _Atomic(struct bow__child_calls *) child_calls; /* made by the handler's first child */
    bow_call_cancel_fn on_cancel;
    void *cancel_user;
    void (*run)(struct bow_call *call); /* of the post under way */
    struct bow__arena arena;            /* the first that is not zeroed when a call begins */
    struct bow__answer answer;          /* its block alone is, until there is one */
};

/** Set up a call in zeroed or recycled memory; `slab` is the arena's first memory. */
void bow__call_init(struct bow_call *call, const struct bow__call_ops *ops,
                    struct bow_context *context, void *slab, size_t n_slab);

/** The stream has ended without an answer: tell the handler, or free a call that has none. Loop. */
void bow__call_end(struct bow_call *call, enum bow_code why);

/** Free what the call holds and give it back. Its owner, once. */
void bow__call_free(struct bow_call *call);

/** Nobody waits: the answerer lets go. Returns -ECANCELED; or what bow__misuse() does, for there
 * has been an answer. */
int bow__call_discard_answer(struct bow_call *call);

/** The child calls that children of `call` join, made on first use; NULL out of memory. The call's
 * holder. */
struct bow__child_calls *bow__call_family(struct bow_call *call);

#endif
