/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_NATIVE_STATE_H
#define BOWLINE_RPC_NATIVE_STATE_H

/*
 * The state of a native session and of its streams. What may be done to it is in
 * internal.h.
 */

#include "base/list.h"
#include "base/map.h"
#include "base/outbuf.h"
#include "rpc/core/quiet.h"
#include "rpc/core/session.h"
#include "rpc/native/frame.h"
#include "rpc/native/header.h"

/** A window may hold this much, said both by SETTINGS and by WINDOW. */
#define BOW__NATIVE_WINDOW_MAX UINT32_C(0x7FFFFFFF)

/** One turn of a stream. */
#define BOW__NATIVE_FRAME_BYTES ((size_t)16 << 10)

/** Credit that streams begin with, for what our peers send: a message of 64 KiB and what surrounds
 * it needs no round trip. */
#define BOW__NATIVE_STREAM_WINDOW (UINT32_C(68) << 10)

/** A frame up to this size is taken when all of it is there, so that its message can be borrowed;
 * of a larger one that is so with the header block only. */
#define BOW__NATIVE_WHOLE_BYTES ((size_t)16 << 10)

/** The header block of a GOAWAY, both ways. */
#define BOW__NATIVE_GOAWAY_BYTES ((size_t)16 << 10)

/** Beyond this much output messages wait on their streams, so that a peer that does not read costs
 * little more. */
#define BOW__NATIVE_IN_PLACE_AHEAD_BYTES ((size_t)1 << 20)

/** While so much output waits for the socket, messages of streams wait on their streams, where
 * their producers are told. */
#define BOW__NATIVE_AHEAD_BYTES ((size_t)64 << 10)
/** The same while there are large messages alone. */
#define BOW__NATIVE_QUIET_AHEAD_BYTES ((size_t)512 << 10)

/** Credit that the peer has at most, and how fast it was spent lately. */
struct bow__native_window {
    uint32_t size;
    uint64_t n_granted;     /* altogether */
    uint64_t since_ns;      /* of the stretch that is looked at */
    uint64_t n_spent_since; /* what was spent when it began */
};

struct bow__native_stream {
    struct bow__link link;          /* in `streams` by rising id, then in `ended` or `idle` */
    struct bow__link send_link;     /* in `senders` while a frame could be sent, or in `unbegun` */
    struct bow__link writable_link; /* while was_high: in `writables`, or alone */
    uint64_t id;
    void *user;
    bool open;            /* not ended: in `streams` */
    bool mapped;          /* in `by_id`, as each open stream but `last` is */
    bool out_ended;       /* we sent END */
    bool peer_ended;      /* the peer sent END */
    bool responded;       /* client: RESPONSE has come, or what must come after it */
    uint8_t out_encoding; /* enum bow__encoding; of our messages that are compressed */
    uint8_t in_encoding;  /* of the peer's */
    bool response_due;    /* server: the peer does not know out_encoding yet */
    bool peer_done;       /* its CANCEL or STATUS has come, behind which there is nothing */
    uint64_t overdue_ns;  /* server: from when on its client gives it up for its deadline */

    /* Out. */
    uint32_t send_credit;
    struct bow__native_outgoing *queue; /* oldest first */
    struct bow__native_outgoing *queue_tail;
    size_t n_queued; /* bytes in it, each message as its credit is counted */
    bool was_high;   /* so much waited that the producer is to be told when it may go on */

    /* In. */
    uint32_t receive_credit; /* what the peer may still send */
    struct bow__native_window window;
    size_t n_unread;   /* of whole messages, as bow__consumed_bytes() counts */
    size_t n_overhead; /* what those cost beyond their bytes */
    bool assembling;   /* a message has begun and is not whole */
    bool compressed;
    size_t n_announced;
    size_t n_arrived;
    size_t n_reserved;               /* bytes counted as in flight in the server */
    struct bow__block *block;        /* the message so far; NULL: no byte yet */
    struct bow__block *status_block; /* client: header block of a STATUS whose message arrives */
    size_t status_len;
};

/** A message, or the status behind it, that waits on its stream. */
struct bow__native_outgoing {
    struct bow__native_outgoing *next;
    struct bow__block *block; /* NULL when there are no bytes */
    size_t offset;            /* of the bytes not yet framed */
    size_t n_left;
    size_t n_announced; /* 0: it has not begun, or went in one frame */
    size_t n_memory;    /* what it counts for in the session's n_waiting */
    bool begun;         /* its first frame is in the output */
    bool is_status;     /* the block is a STATUS's body */
    uint32_t flags;     /* enum bow__send_flags */
};

/** Room in `out` where a frame's message is being encoded; key 0: none. */
struct bow__native_room {
    uint64_t key;
    uint8_t *at;     /* the frame header */
    size_t n_prefix; /* bytes before the message */
    size_t cap;      /* of the message */
    enum bow__frame_type type;
};

/** A path that the client bound to a number. */
struct bow__native_bound {
    void *cache; /* the host's word */
    size_t len;
    char path[];
};

/** How fast messages come, and when a small one last came or went: whether much may be sent at
 * once. */
struct bow__native_pace {
    uint64_t small_ns;
    uint64_t since_ns; /* from when on bytes are counted */
    size_t n_bytes;    /* of messages that are put together */
    size_t per_ms;     /* as many came in a millisecond */
};

/** Events counted in windows of a second. */
struct bow__native_rate {
    uint64_t since_ns;
    uint32_t n;
};

enum bow__native_drain_state {
    BOW__NATIVE_SERVING,
    BOW__NATIVE_ANNOUNCED, /* server: GOAWAY(max) and a PING are out */
    BOW__NATIVE_FINAL,     /* the last GOAWAY is out */
};

struct bow__native {
    struct bow__session base;
    struct bow__outbuf out;
    struct bow__header_settings own;
    struct bow__header_settings peer; /* its max_header_bytes is what we may send */
    size_t max_message_bytes;
    size_t max_header_bytes;
    uint32_t max_calls;

    /* Streams. */
    struct bow__map by_id;
    struct bow__link streams;
    struct bow__link ended; /* ended while a frame is taken */
    struct bow__link idle;
    size_t n_idle;
    size_t n_ended;
    struct bow__native_stream *last; /* found or opened last */
    uint64_t next_id;                /* client */
    uint64_t unsent_id;              /* client: next_id when a byte left last */
    uint64_t highest_id;             /* opened so far */
    uint64_t accepted_id;            /* server: highest one that may still be opened */

    /* In. */
    bool preface_seen;
    bool settings_seen;
    bool needs_settings;     /* client: a call waits to learn whether its header is too large */
    struct bow__frame frame; /* whose message bytes are arriving */
    size_t n_body_left;      /* of it */
    struct bow__native_stream *target; /* whose they are; NULL: they are skipped */
    uint32_t receive_credit;
    struct bow__native_window window;
    uint32_t n_unreturned; /* connection credit spent and not given back */
    size_t n_grown;        /* what the windows of streams have grown by */
    size_t n_buffered;     /* message bytes that arrived and were not consumed, all streams */
    size_t n_missing;      /* bytes announced and still to come, all streams */
    struct bow__native_pace pace;
    uint64_t late_credit;   /* of streams that we ended: what may come late without being counted */
    size_t late_frames_due; /* the same, of frames that spend no credit */

    /* Out. */
    uint32_t send_credit;
    bool is_behind; /* the socket did not take all */
    struct bow__link senders;
    struct bow__link unbegun;   /* those whose message waits until others have gone */
    size_t n_begun;             /* announced by messages that have begun and not ended */
    size_t n_queued;            /* bytes that wait on all streams */
    struct bow__link writables; /* streams whose producer is to be told that it may go on */
    struct bow__native_outgoing *idle_outgoing;
    size_t n_idle_outgoing;
    struct bow__native_room room;

    /* Method numbers: of a path_key (client); to a path (server). */
    struct bow__map numbers;
    struct bow__native_bound **bound;
    size_t bound_cap;
    uint32_t n_bound;
    uint64_t new_binding; /* client: path_key that the call being opened binds, or 0 */

    /* Life and time. */
    bool feeding; /* frees wait */
    bool broken;
    int broken_rc;
    bool out_of_memory;
    bool ready_due;   /* on_ready to be said */
    bool retire_due;  /* client: the ids are used up, GOAWAY and on_goaway to be said */
    bool peer_leaves; /* its GOAWAY has come */
    uint64_t peer_last_id;
    enum bow__native_drain_state drain;
    bool unattended;
    bool reading;
    bool ping_is_out; /* one that asks whether the peer is alive */
    bool doubted;     /* and the host waits for the answer */
    bool probe_due;   /* it would be good to know how long the path is */
    uint64_t now_ns;
    uint64_t heartbeat_ns;
    uint64_t heartbeat_timeout_ns;
    uint64_t last_byte_ns; /* received */
    uint64_t last_ping_ns; /* sent; 0: none yet */
    uint64_t n_pings;      /* sent; each holds its number */
    uint64_t ping_sent_ns; /* the last one; 0: it is answered */
    uint64_t path_rtt_ns;  /* a round trip, without queues; 0: not known */
    uint64_t asked_path_ns;
    uint64_t asked_ns;    /* from when on an answer to it is waited for */
    size_t n_before_ping; /* bytes that have to leave before it does */
    bool ping_moved;      /* some of them have left */
    struct bow__native_rate cancels;
    struct bow__native_rate pings;
    size_t acks_due; /* PINGs of ours that are not answered */
    size_t n_moved;  /* frames of calls, either way, that excuse PINGs */
    size_t
        cancels_due; /* server: calls with a deadline that we ended: it may have come meanwhile */
    struct bow__native_rate late_frames;
    struct bow__native_rate empty_frames;
};

static inline struct bow__native *bow__native_of(struct bow__session *base)
{
    return (struct bow__native *)(void *)base;
}

static inline const struct bow__native *bow__native_of_const(const struct bow__session *base)
{
    return (const struct bow__native *)(const void *)base;
}

/** A message of `n` bytes comes or goes. */
static inline void bow__native_note_message(struct bow__native *session, size_t n)
{
    bow__quiet_note(&session->pace.small_ns, n, session->now_ns);
}

/** Whether there are large messages alone, to the best of our knowledge. */
static inline bool bow__native_is_quiet(const struct bow__native *session)
{
    return bow__is_quiet(session->pace.small_ns, session->now_ns);
}

/** What the next frame of a message that waits spends at least. */
static inline uint32_t bow__native_needed_credit(const struct bow__native_outgoing *message)
{
    return message->begun ? 1 : (uint32_t)BOW__FRAME_MESSAGE_COST;
}

#endif
