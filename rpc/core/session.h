/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_SESSION_H
#define BOWLINE_RPC_CORE_SESSION_H

/*
 * The session table: one connection's protocol as a machine without I/O. It is
 * fed with bytes and emits events; it is told what to send and yields bytes. The
 * host (rpc/) owns the socket, the deadlines, the calls and their codec. Adding
 * a protocol is one folder that fills this table in and makes sessions.
 *
 *              events                       feed(bytes)
 *     host ◄───────────────  session  ◄──────────────────  socket
 *          ───────────────►           ──────────────────►
 *           open, send, finish          drain(pieces), sent(n)
 *
 * Re-entry. Events may call any operation but feed, on_time, drain, sent, fail
 * and free. What an operation produces waits in the session until the host
 * drains it; memory that an operation ends is freed after the feed (on_time, fail)
 * that emitted the event has returned. Streams are named by a key, an opaque u64
 * of the session's, never 0 and never reused; an operation on an ended key does
 * nothing and says -ENOENT.
 *
 * Life of a stream, client: open ─► begin, or a message ─► messages out, half_close ─►
 * [on_headers] ─► on_message* ─► on_status (last). Life of a stream, server: on_open ─►
 * on_message* [on_half_close] ─► [respond] ─► messages out, finish (no event follows), or on_reset
 * (last).
 *
 * Metadata is checked by the host; a session drops what came in and breaks the rules of its
 * protocol as that protocol says. What an event brings is borrowed until it returns.
 */

#include "base/block.h"
#include "base/pool.h"
#include "base/text.h"
#include "rpc/core/in_flight.h"
#include "rpc/core/work.h"
#include <bowline/limits.h>
#include <bowline/status.h>
#include <bowline/system.h>
#include <errno.h>
#include <sys/uio.h>

/** The server does not read while so many bytes of replies wait and none before them leaves. */
#define BOW__CLOGGED_BYTES (BOW_LIMIT_QUEUED_REPLY_BYTES / 8)

struct bow__session;
struct bow__web;

/** Messages up to this size may be encoded in place; larger ones come in a block of their own. */
#define BOW__IN_PLACE_BYTES ((size_t)16 << 10)

/** Message encodings, the better one first, as bits where a set is meant (1u << encoding). */
enum bow__encoding {
    BOW__ENCODING_IDENTITY = 0,
    BOW__ENCODING_ZSTD = 1,
    BOW__ENCODING_GZIP = 2,
    BOW__ENCODING_DEFLATE = 3,
    BOW__N_ENCODINGS = 4,
    BOW__ENCODING_UNKNOWN = 15, /* received: one that we do not know */
};

/** Waiting on a stream: from so much on its producer is told to stop, and from there down to so
 * little, to go on. */
#define BOW__STREAM_HIGH_BYTES ((size_t)64 << 10)
#define BOW__STREAM_LOW_BYTES ((size_t)32 << 10)

/** What opens a call. Slices are borrowed for the call or event. */
struct bow__request_head {
    struct bow_slice path; /* "/package.Service/Method" */
    uint64_t time_left_ns; /* BOW_NEVER: no deadline; 0: expired */
    /** Client: identifies the path for the connection's life (the address of its struct
     * bow_method), so that the session may send a number instead; 0: don't. */
    uint64_t path_key;
    /**
     * Server: a word of the connection's, the same for each call with the same
     * number, NULL at first, where the host keeps what it looked up; or NULL.
     */
    void **path_cache;
    struct bow_metadata metadata;
    enum bow__encoding encoding; /* of the client's messages that are marked compressed */
    uint32_t previous_attempts;  /* client: how often the call was sent before */
    const char *protocol; /* server: by which it came; lives for ever; NULL: the session's name */
    size_t n_beside;      /* server: what it takes in memory beside n_stream_bytes */
};

/** A whole message. Borrowed until the event returns, unless the event takes `block` (sets it
 * NULL). */
struct bow__message {
    struct bow_slice bytes;   /* inside `block` when that is set */
    struct bow__block *block; /* NULL: the bytes lie in what was fed */
    bool compressed;
    enum bow__encoding encoding; /* of a compressed one */
    size_t n_made; /* bytes that it was inflated and decoded to by now, also in vain */
};

/** What consumed() is told of a message: one without bytes waited to be read as well. */
static inline size_t bow__consumed_bytes(size_t len)
{
    return len > 0 ? len : 1;
}

struct bow__session_events {
    /**
     * Server: a call arrived. Returns what its later events bring as `stream`. To
     * refuse, finish(key, status) in here and return NULL: no further event comes.
     */
    void *(*on_open)(void *owner, uint64_t key, const struct bow__request_head *head);
    /** A whole message. `end`: the last one from that side (for a client, on_status follows). */
    void (*on_message)(void *owner, uint64_t key, void *stream, struct bow__message *message,
                       bool end);
    /** Server: the client ended its side without (a further) message. */
    void (*on_half_close)(void *owner, uint64_t key, void *stream);
    /** Client: initial metadata came, before the first message; not said when there is none. */
    void (*on_headers)(void *owner, uint64_t key, void *stream,
                       const struct bow_metadata *metadata);
    /** Client: the call's end; the last event of the stream. `status` is borrowed, with the
     * trailing metadata in it. */
    void (*on_status)(void *owner, uint64_t key, void *stream, const struct bow_status *status);
    /** Server: the call ended without the handler (cancelled by the peer, broken, too large,
     * connection lost); the last event. The peer has been told if it can be. */
    void (*on_reset)(void *owner, uint64_t key, void *stream, const struct bow_status *why);
    /** What waits on the stream has sunk to BOW__STREAM_LOW_BYTES, as take_writable() said. The
     * host's own event: no session emits it. */
    void (*on_writable)(void *owner, uint64_t key, void *stream);
    /**
     * The peer's settings arrived: it speaks the protocol. Client: also when a stream slot got
     * free; open() may succeed again.
     */
    void (*on_ready)(void *owner);
    /** The peer takes no new calls on this connection; those it did not process have ended with
     * not_processed. */
    void (*on_goaway)(void *owner, const struct bow_status *reason);
    /** Server, may be NULL: the session has refused a call itself, of which no other event comes.
     * `path` is empty where it was not read; `limit` lives for ever. */
    void (*on_refused)(void *owner, struct bow_slice path, const struct bow_status *status,
                       const char *limit);
};

enum bow__send_flags {
    /** Last message from this side. Server: the call ends with OK. */
    BOW__SEND_END = 1,
    BOW__SEND_COMPRESSED = 2, /* with the encoding of the head, or of respond() */
};

/** What keeps a connection that is to end. */
struct bow__session_rest {
    uint32_t n_calls; /* that are not answered; of a client, all */
    size_t n_bytes;   /* of answers */
};

struct bow__session_ops {
    const char *name; /* "native", "grpc", "http"; for programs, too */

    /* Bytes in and time. */

    /**
     * Take bytes in. Returns how many were used (the rest comes again, with more
     * behind it; also when `work` is enough for this turn), or a negative errno: the connection is
     * broken, session->failure says why, what the peer has to be told is ready to drain, no further
     * feed.
     */
    ssize_t (*feed)(struct bow__session *session, const uint8_t *bytes, size_t n, uint64_t now_ns);
    /**
     * Where the next bytes may be put instead, when all that was fed has been used: `*ret_len` of
     * them belong there, and up to `*ret_behind` more may lie behind those until received() is
     * called. NULL: nowhere, feed them. Nothing else may be called before received(), if that is.
     * May be NULL.
     */
    uint8_t *(*room)(struct bow__session *session, size_t *ret_len, size_t *ret_behind);
    /** The first `n` bytes are in that room, at least 1. Returns 0, or as feed. */
    int (*received)(struct bow__session *session, size_t n, uint64_t now_ns);
    /** When on_time wants to be called; BOW_NEVER. Changes by any operation. */
    uint64_t (*next_time)(const struct bow__session *session);
    /** Heartbeats and their time-outs. Returns 0, or as feed. */
    int (*on_time)(struct bow__session *session, uint64_t now_ns);
    /** Client: ask a peer that was silent for heartbeat_ns for a sign of life, now. Returns whether
     * that is done (it was, and may be asked): on_ready tells of the answer; without one the
     * session breaks, as with any heartbeat. */
    bool (*doubt)(struct bow__session *session, uint64_t now_ns);
    /** The host stopped or resumed reading: the heartbeat's count stands still meanwhile. */
    void (*set_reading)(struct bow__session *session, bool reading, uint64_t now_ns);

    /* Calls. */

    /** Client: whether open() would succeed now. */
    bool (*can_open)(const struct bow__session *session);
    /**
     * Client: begin a call. Directly after it, before any other operation, comes
     * reserve and commit, or send, or begin, or abandon. `head` is borrowed. Returns 0;
     * -EAGAIN (no stream slot, or not ready); -EPIPE (going away); -ENOMEM;
     * -EMSGSIZE (the header exceeds what the peer takes, as `excess` says then). One that may do so
     * before the peer has said what it takes is -EAGAIN, and so are those behind it.
     */
    int (*open)(struct bow__session *session, const struct bow__request_head *head, void *stream,
                uint64_t *ret_key);
    /** Client: undo the open() just done; nothing was sent, no event comes. */
    void (*abandon)(struct bow__session *session, uint64_t key);
    /** Client: directly after open(): let the call begin without a message; some may follow.
     * Returns 0, -ENOENT, -ENOMEM. */
    int (*begin)(struct bow__session *session, uint64_t key);
    /** Client: no message follows those sent. Returns 0, -ENOENT, -ENOMEM. */
    int (*half_close)(struct bow__session *session, uint64_t key);
    /**
     * Server: what precedes the first message: initial metadata, and the encoding of messages
     * that will be marked compressed. At most once, before any message; without it there is none.
     * Returns 0; -ENOENT; -ENOMEM; -EMSGSIZE over what the peer takes, see `excess`.
     */
    int (*respond)(struct bow__session *session, uint64_t key, const struct bow_metadata *metadata,
                   enum bow__encoding encoding);
    /** Server: whether the peer takes this much with a status of OK. Returns 0, or -EMSGSIZE, see
     * `excess`. */
    int (*check_trailing)(struct bow__session *session, const struct bow_metadata *metadata);
    /** The set of encodings that the peer can decode in messages of this stream, with identity. */
    uint32_t (*encodings)(const struct bow__session *session, uint64_t key);
    /** Server: by which protocol the call came, as its head said. NULL: all of them by `name`. */
    const char *(*protocol)(const struct bow__session *session, uint64_t key);
    /** Bytes of the stream's messages that wait for credit or their turn; 0 when it has ended. */
    size_t (*queued)(const struct bow__session *session, uint64_t key);
    /**
     * One of the streams that had BOW__STREAM_HIGH_BYTES or more queued and have no more than
     * BOW__STREAM_LOW_BYTES now: what it is to the host, and its key; NULL when there is none (any
     * more). The host asks after drain and sent, and after feed.
     */
    void *(*take_writable)(struct bow__session *session, uint64_t *ret_key);
    /**
     * Room to encode the stream's next message in place, with `flags` as they will be
     * at commit. Returns NULL when it must be sent as a block: no credit, earlier
     * bytes still queued, no memory. `*ret_cap` <= BOW__IN_PLACE_BYTES. A reserve not
     * followed by commit is forgotten.
     */
    uint8_t *(*reserve)(struct bow__session *session, uint64_t key, uint32_t flags,
                        size_t *ret_cap);
    /** The message is the first `len` bytes of the room. Returns 0, -ENOENT, or -ENOMEM. */
    int (*commit)(struct bow__session *session, uint64_t key, uint32_t flags, size_t len);
    /** Send `len` bytes of `block` from `offset` as one message, under the peer's credit. Takes the
     * caller's reference on success. Returns 0, -ENOENT, -ENOMEM, -EBADMSG as `failure` says. */
    int (*send)(struct bow__session *session, uint64_t key, uint32_t flags,
                struct bow__block *block, size_t offset, size_t len);
    /** Server: end the call with `status` (borrowed), after the messages sent so far; with an
     * error, those that wait may be dropped. Its metadata is the trailing one. Whatever it returns,
     * the call has ended and no event follows. Returns 0; -ENOENT; -ENOMEM: the peer cannot be
     * told, so the connection is of no use any more. */
    int (*finish)(struct bow__session *session, uint64_t key, const struct bow_status *status);
    /** Server: give credit that was withheld. Returns whether there is anything to send. */
    bool (*refill)(struct bow__session *session);
    /** The host has done with messages of `n` bytes, as bow__consumed_bytes() counts each: credit
     * may be returned. */
    void (*consumed)(struct bow__session *session, uint64_t key, size_t n);
    /** Client: give the call up; the peer is told; no event follows. */
    void (*cancel)(struct bow__session *session, uint64_t key, enum bow_code code);

    /** Client, in on_status: whether the call ended with its connection (lost, or the peer's
     * GOAWAY) and was begun after the last byte that left, so that the peer has seen nothing of it.
     */
    bool (*never_left)(const struct bow__session *session, uint64_t key);

    /* The connection. */

    /** Take no further calls and tell the peer so; calls in flight go on. Idempotent. */
    void (*goaway)(struct bow__session *session, const struct bow_status *reason);
    /** Server, after goaway: wait no longer for the peer to have read that; calls that come from
     * now on are not processed. Idempotent. */
    void (*leave)(struct bow__session *session);
    /** The peer has passed a limit that the host counts, as `reason` says: take nothing more from
     * it, and tell it by a last GOAWAY. The host closes the connection then. */
    void (*condemn)(struct bow__session *session, const struct bow_status *reason);
    /** Whether the connection may be closed: goaway was said by either side, no call is open,
     * nothing is left to drain. */
    bool (*is_done)(const struct bow__session *session);
    /** What is left before is_done(), control frames aside: calls that no host has answered, and
     * bytes of answers that wait for the peer's credit. Takes time that grows with the streams. */
    struct bow__session_rest (*rest)(const struct bow__session *session);
    /** Server: end each call that is_done() waits for with `status`, also those that are answered
     * and not sent: the peer is told as with finish(), without what waits, and the host by
     * on_reset. The host closes the connection then. */
    void (*cut)(struct bow__session *session, const struct bow_status *status);
    /** Memory of all that waits to be sent: messages on their streams, and output. How much that
     * may be is the host's business: it begins no further call while it is too much. */
    size_t (*unsent)(const struct bow__session *session);
    /** Whether so much is queued for a peer that does not read that the host should stop reading
     * from it. */
    bool (*is_clogged)(const struct bow__session *session);
    /** At most `max` pieces of what is to be sent now; in place until sent() passed them. */
    int (*drain)(struct bow__session *session, struct iovec *pieces, int max);
    void (*sent)(struct bow__session *session, size_t n);
    /** The connection is lost: every open stream gets its last event with `status`. Then only free.
     */
    void (*fail)(struct bow__session *session, const struct bow_status *status);
    void (*free)(struct bow__session *session);
};

/** What an HTTP/2 client calls itself. */
#define BOW__USER_AGENT "grpc-c-bowline/" BOW__VERSION

/** A header that was more than the peer takes, as its protocol counts. */
struct bow__header_excess {
    size_t n_bytes;
    size_t max_bytes;
    bool is_value;    /* one value of it, which the protocol bounds, and no option */
    bool is_trailing; /* of metadata that goes with the status */
};

/** What both protocols keep; the first member of theirs. */
struct bow__session {
    const struct bow__session_ops *ops;
    const struct bow__session_events *events;
    void *owner;
    struct bow_context *context;
    struct bow__in_flight_share *in_flight; /* NULL: nothing is counted */
    bool server;
    bool cancels_by_close;   /* server: its clients have no other way to give a call up */
    uint64_t retry_after_ns; /* what clients are told whose messages find no room; 0: nothing */
    uint32_t n_streams;      /* open now */
    size_t n_stream_bytes;   /* what each takes in memory */
    size_t n_waiting;        /* memory of messages that wait on their streams to be sent */
    size_t n_dequeued;       /* bytes of them that went on their way; wraps */
    struct bow__work work;   /* counted by the host; the session stops for it between messages */
    uint64_t heartbeats_sent;
    uint64_t heartbeats_lost;
    bool is_own_status;        /* in on_status: it is the session's, not what the peer said */
    bool is_peer_unattended;   /* it has said that nobody reads while there is no call */
    uint32_t calls_refused;    /* over a limit of the connection; the host sets it back */
    uint32_t requests_refused; /* for other reasons, before there was a call; likewise */
    uint64_t rtt_ns;           /* of the last PING that was answered; 0: none was yet */
    struct bow__header_excess excess; /* after -EMSGSIZE of open(), respond() or check_trailing() */
    enum bow_code failure_code;       /* after feed or on_time failed */
    struct bow__text failure; /* what was wrong, the peer's bytes escaped; after send(), too */
};

/** Client: end a call for a reason of the session's own. */
static inline void bow__session_end_own(struct bow__session *session, uint64_t key, void *stream,
                                        const struct bow_status *status)
{
    session->is_own_status = true;
    session->events->on_status(session->owner, key, stream, status);
    session->is_own_status = false;
}

/** What a message that waits takes in memory beside what keeps the place in its queue: nothing of
 * its own if its bytes are shared, as a payload's are. */
static inline size_t bow__waiting_bytes(const struct bow__block *block)
{
    /* relaxed: whoever may come to share it has been given it by its only holder */
    if (block == NULL || atomic_load_explicit(&block->refs, memory_order_relaxed) > 1) {
        return 0;
    }
    return sizeof(*block) + block->cap;
}

/** Frames that may be due at most, of what is forgiven for it was sent before its sender can have
 * known: no connection has more on its way. */
#define BOW__FRAMES_DUE_MAX ((size_t)4 * BOW_LIMIT_LATE_FRAMES_PER_SECOND)

/** `n` more frames are due. */
static inline void bow__frames_expect(size_t *due, size_t n)
{
    *due = *due + n < BOW__FRAMES_DUE_MAX ? *due + n : BOW__FRAMES_DUE_MAX;
}

/** One has come. Returns whether it was due. */
static inline bool bow__frames_take(size_t *due)
{
    bool is_due = *due > 0;

    *due -= is_due ? 1 : 0;
    return is_due;
}

/** A PING has come, after `*moved` frames of calls since the one before. Returns whether those
 * excuse it: an estimator of bandwidth asks once for each frame at most. */
static inline bool bow__ping_is_excused(size_t *moved)
{
    *moved = *moved < BOW_LIMIT_PINGS_PER_SECOND ? *moved : BOW_LIMIT_PINGS_PER_SECOND;
    return bow__frames_take(moved);
}

/** From when on a client that gives the call up does so for its deadline: clocks differ a little,
 * and a call that has hardly begun is none of those. */
static inline uint64_t bow__overdue_time(uint64_t now_ns, uint64_t time_left_ns)
{
    const uint64_t slack_ns = UINT64_C(10) * 1000000u;

    if (time_left_ns >= BOW_NEVER - now_ns) {
        return BOW_NEVER;
    }
    return now_ns + time_left_ns - (time_left_ns / 2 < slack_ns ? time_left_ns / 2 : slack_ns);
}

/** A message of `n_wire` bytes was opened and decoded, or could not be (`rc` < 0). */
static inline void bow__message_worked(struct bow__work *work, const struct bow__message *message,
                                       size_t n_wire, int rc)
{
    if (rc < 0 || message->n_made > BOW__WORK_FREE_BYTES) {
        bow__work_add(work, n_wire, message->n_made,
                      bow__work_is_in_vain(n_wire, message->n_made, rc));
    }
}

/** The same of one of its session's. Loop. */
static inline void bow__session_worked(struct bow__session *session,
                                       const struct bow__message *message, size_t n_wire, int rc)
{
    bow__message_worked(&session->work, message, n_wire, rc);
}

/** Whether what waits on a stream may go on: it costs no less than what comes, and its connection's
 * others have their turn first. NULL: there is no connection any more. Loop. */
static inline bool bow__session_has_turn(const struct bow__session *session)
{
    return session == NULL || !bow__work_is_enough(&session->work);
}

/** What a client is asked to wait whose own connection has too much of something. */
#define BOW__CROWDED_RETRY_AFTER_NS (UINT64_C(100) * 1000000)

/** Tell the host of a call that the session has refused. */
static inline void bow__session_refused(const struct bow__session *session, struct bow_slice path,
                                        const struct bow_status *status, const char *limit)
{
    if (session->events->on_refused != NULL) {
        session->events->on_refused(session->owner, path, status, limit);
    }
}

struct bow__session_options {
    struct bow_context *context;
    struct bow__pool *pool; /* output chunks; the loop's */
    const struct bow__session_events *events;
    void *owner;
    bool server;
    struct bow__in_flight_share *in_flight; /* server: where messages count; or NULL */
    uint64_t retry_after_ns;    /* server: what clients wait that it has no room for; 0: not said */
    bool unattended;            /* client: nobody reads between calls, so don't ping us then */
    size_t max_message_bytes;   /* that we accept */
    size_t max_header_bytes;    /* the same; 0: BOW_LIMIT_HEADER_BYTES */
    uint32_t max_calls;         /* that we accept in flight (server) */
    uint32_t protocols;         /* server: spoken here: BOW_PROTOCOL_ bits */
    const struct bow__web *web; /* server: for calls of browsers; NULL: none */
    uint64_t heartbeat_ns;      /* BOW_NEVER: none */
    uint64_t heartbeat_timeout_ns;
    uint32_t encodings;         /* the set of encodings that we can decode; 0: identity alone */
    uint32_t assumed_encodings; /* client: that the server can, as long as it has not said so */
    struct bow_slice authority; /* HTTP/2 client; borrowed for new */
    const char *user_agent;     /* HTTP/2 client: outlives it; NULL: the library's alone */
    bool secured;               /* HTTP/2 client: its URIs are https, for the connection has TLS */
    uint64_t now_ns;
    uint64_t first_key; /* tests: where stream ids begin; 0: at the protocol's first */
};

#endif
