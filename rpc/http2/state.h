/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_HTTP2_STATE_H
#define BOWLINE_RPC_HTTP2_STATE_H

/*
 * The state of an HTTP/2 session and of its streams. What may be done to it is in
 * internal.h.
 */

#include "base/list.h"
#include "base/map.h"
#include "base/outbuf.h"
#include "rpc/core/quiet.h"
#include "rpc/core/session.h"
#include "rpc/web/web.h"
#include <bowline/limits.h>
#include <nghttp2/nghttp2.h>

/** Output beyond which a pump stops until some of it has left. */
#define BOW__HTTP2_PUMP_BYTES ((size_t)64 << 10)
/** The same while there are large messages alone. */
#define BOW__HTTP2_QUIET_PUMP_BYTES ((size_t)512 << 10)

/** A DATA frame while small messages are about; what nghttp2 makes by itself. */
#define BOW__HTTP2_FRAME_BYTES ((size_t)16 << 10)
/** The same while there are large messages alone: half a stream's window, for so much credit comes
 * back at a time. nghttp2 keeps memory for the largest frame that a connection has sent, and does
 * not touch it. */
#define BOW__HTTP2_QUIET_FRAME_BYTES ((size_t)128 << 10)

/** Receive windows that we announce. */
#define BOW__HTTP2_STREAM_WINDOW ((int32_t)256 << 10)
#define BOW__HTTP2_CONNECTION_WINDOW ((int32_t)1 << 20)

/** A setting of ours (from the range for experiments; others skip it): its value 1 says that the
 * client reads only while it has calls in flight. */
#define BOW__HTTP2_SETTINGS_UNATTENDED 0xf0b0
/** Another, of our servers: its value 1 says that PINGs are not held against a client as gRPC's
 * servers do, so that it may ask as often as its heartbeat wants. */
#define BOW__HTTP2_SETTINGS_PINGS 0xf0b1

/** Entries of our SETTINGS, at most. */
#define BOW__HTTP2_SETTINGS_SAID 7

/** Streams that nghttp2 takes at a time: for one more it ends the connection, once our SETTINGS are
 * acknowledged. What we take is max_calls, which is what the peer is told. */
#define BOW__HTTP2_STREAMS_TAKEN UINT32_C(0x7FFFFFFF)

/** Streams that we open before the peer's SETTINGS said how many it takes. */
#define BOW__HTTP2_STREAMS_AT_FIRST 100u

/** How often a client of a server that leaves is asked whether it has more calls on their way, at
 * most. */
#define BOW__HTTP2_DRAIN_ANSWERS 16u
/** What a GOAWAY says to people, at most. */
#define BOW__HTTP2_GOAWAY_TEXT_BYTES ((size_t)256)

/** How many of something came in the current second. */
struct bow__http2_rate {
    uint64_t began_ns;
    uint32_t n;
};

/** A receive window of ours, and how fast it was used up lately. */
struct bow__http2_window {
    uint32_t size;
    uint64_t since_ns; /* of the stretch that is looked at */
    size_t n_spent;    /* in it */
};

/** Where in the peer's frames we are. */
struct bow__http2_frame_reader {
    size_t n_skip; /* of a payload, or of the preface */
    size_t n_header;
    uint8_t header[9];
};

/** One message on its way out. */
struct bow__http2_outgoing {
    struct bow__link queue_link;
    struct bow__block *block;
    size_t offset;
    size_t len;      /* body bytes not yet framed */
    size_t n_memory; /* what it counts for in the session's n_waiting */
    uint8_t prefix[5];
    uint8_t n_prefix_framed;
    bool pooled;   /* `block` is the session's chunk */
    bool is_small; /* counted in the stream's n_small */
};

/** Fields that gRPC itself puts into a header block, at most. */
#define BOW__HTTP2_MAX_FIELDS 12

/** Metadata as header fields that we send. */
struct bow__http2_fields {
    size_t size; /* of the allocation */
    size_t n;
    nghttp2_nv before[BOW__HTTP2_MAX_FIELDS]; /* gRPC's own go to its end */
    nghttp2_nv own[];                         /* and behind them their texts */
};

/** The metadata of the header block that is coming in. */
struct bow__http2_incoming_metadata {
    struct bow__block *chunk; /* entries, then texts; or NULL */
    size_t max_bytes;         /* of a header that it has room for */
    size_t n;                 /* entries */
    size_t n_bytes;           /* of the chunk, that are used up to the last text */
};

/** What ends a server's stream, encoded for the header block. */
struct bow__http2_trailers {
    size_t size; /* of the allocation */
    enum bow_code code;
    uint64_t retry_after_ms;
    size_t message_len;
    size_t details_len;
    struct bow__http2_fields *fields; /* metadata; NULL: none */
    char texts[];                     /* message, then details */
};

/** Why a server refuses a request by its header. In order of precedence. */
enum bow__http2_defect {
    BOW__HTTP2_DEFECT_NONE,
    BOW__HTTP2_DEFECT_TIMEOUT,
    BOW__HTTP2_DEFECT_TOO_LARGE,
    BOW__HTTP2_DEFECT_CONTENT_TYPE,
    BOW__HTTP2_DEFECT_METHOD,
};

/** What the request that is coming in says that is none of gRPC's own, kept for rpc/web/. */
struct bow__http2_web_header {
    nghttp2_rcbuf *method; /* NULL: POST */
    nghttp2_rcbuf *content_type;
    nghttp2_rcbuf *accept_encoding;
};

/** What the peer's header blocks said so far. */
struct bow__http2_header {
    size_t n_bytes; /* of the block, names and values and 32 each, as RFC 9113 counts */
    enum bow__http2_defect defect;
    bool has_content_type; /* application/grpc */
    enum bow__encoding encoding;
    nghttp2_rcbuf *unknown_encoding; /* its name, kept when it is none of ours */
    uint32_t accepts;                /* grpc-accept-encoding, as a set */

    /* server */
    nghttp2_rcbuf *path;
    nghttp2_rcbuf *timeout; /* kept when it is malformed */
    uint64_t time_left_ns;

    /* client */
    int http_status;                /* 0: none */
    int grpc_status;                /* -1: none */
    nghttp2_rcbuf *unusable_status; /* kept when it is no status */
    uint64_t retry_after_ns;
    bool has_pushback; /* grpc-retry-pushback-ms, which goes before what the details say */
    char *message;     /* or NULL */
    size_t message_size;
    uint8_t *details; /* or NULL */
    size_t details_len;
    size_t details_size;
};

/** The message that is being taken in. */
struct bow__http2_incoming {
    uint8_t prefix[5];
    uint8_t n_prefix;
    uint32_t len;
    uint32_t n_bytes;         /* of `len`, in `block` */
    struct bow__block *block; /* NULL while nothing of a body is kept */
    bool is_reserved;         /* `len` is counted as in flight in the server */
};

struct bow__http2_stream {
    struct bow__link link; /* in session->streams */
    struct bow__link late_link;
    uint64_t key;
    uint64_t overdue_ns; /* server: from when on its client gives it up for its deadline */
    int32_t id;          /* 0 until submitted */
    void *user;          /* the host's; server: from on_open */
    bool open;           /* the host may use the key and awaits events */
    bool closed;         /* nghttp2 forgot it */
    bool is_sent;        /* client: the request left nghttp2 */
    uint32_t close_error;

    /* in */
    struct bow__http2_header header;
    struct bow__http2_incoming incoming;
    struct bow__web_call *web; /* server: of a call that is not gRPC's own; it has no `incoming` */
    bool remote_ended;
    size_t n_unread;     /* bytes of messages the host has not consumed */
    size_t n_unreturned; /* received, and not yet granted anew */
    struct bow__http2_window window;

    /* out */
    bool has_begun; /* server: the response's header is queued */
    bool local_ended;
    bool has_ended;                 /* server: the trailers are queued in nghttp2 */
    struct bow__link queue;         /* bow__http2_outgoing */
    size_t n_queued;                /* bytes in it, prefixes included */
    size_t n_small;                 /* messages in it that take little beside their place */
    bool was_high;                  /* so many that its producer was to stop */
    struct bow__link writable_link; /* in session->writables while it may go on */
    enum bow__encoding encoding;    /* of messages that we mark compressed */
    struct bow__http2_trailers *trailers;

    /* client: the header until it is submitted */
    uint64_t time_left_ns;
    uint32_t previous_attempts;
    struct bow__http2_fields *fields; /* the metadata, or NULL */
    size_t path_len;
    char path[];
};

struct bow__http2_field;

struct bow__http2_session {
    struct bow__session base;
    const struct bow__http2_field *fields; /* that the peer's header blocks may have */
    nghttp2_session *ng;
    struct bow__outbuf out;
    struct bow__link streams;
    struct bow__map by_key; /* open ones */
    uint64_t next_key;      /* client */
    uint64_t unsent_key;    /* client: next_key when a byte left last */
    uint32_t n_live;        /* that nghttp2 has or gets */
    size_t max_message_bytes;
    size_t max_header_bytes;
    uint32_t max_calls;
    const struct bow__web *web; /* server: NULL: nothing but gRPC */
    uint32_t web_protocols;     /* those of it that are spoken: BOW_PROTOCOL_ bits */
    struct bow__http2_web_header web_header;
    bool takes_grpc;
    bool is_acknowledged; /* our SETTINGS are: the peer knows max_calls */
    bool unattended;
    uint32_t encodings;      /* that we decode, as a set */
    uint32_t peer_encodings; /* client: that the server decodes, as far as it said */
    bool assumes_encodings;  /* client: peer_encodings are what its options say */
    char accept_encoding[32];
    size_t n_accept_encoding; /* its length */
    char *authority;
    size_t authority_size;
    const char *user_agent; /* client; the host's */
    const char *scheme;     /* client */

    /* in-place messages: a chunk of the pool, filled from the front */
    struct bow__block *chunk;
    size_t chunk_used;
    size_t n_queued; /* of all streams */
    struct bow__link writables;

    /* the state of feed and pump */
    uint64_t now_ns;
    uint64_t small_ns;      /* when a small message last came or went */
    size_t pump_bytes;      /* output at which this pump stops */
    size_t frame_bytes;     /* what one of its DATA frames takes */
    bool is_behind;         /* the socket did not take all */
    bool is_receiving;      /* inside mem_recv */
    const uint8_t *fed_end; /* of what mem_recv was given */
    size_t n_inspected;     /* of what is fed again, bow__http2_inspect() has seen so many bytes */
    bool broken;            /* nghttp2 is not to be called any more, but for deletion */
    int error;              /* why: a negative errno */
    uint32_t http2_error;
    bool has_begun;      /* our preface is in `out`, or sent */
    bool has_put_goaway; /* a GOAWAY with the reason is in `out` */
    bool is_failed;      /* fail() was called, or the failure was returned */
    struct bow__http2_incoming_metadata metadata;
    nghttp2_frame_hd frame;
    size_t frame_left; /* payload of the DATA frame still to come; SIZE_MAX: padded, unknown */
    uint8_t first[24]; /* what the peer began with, for the error text */
    size_t n_first;

    /* late events */
    struct bow__link late;
    bool is_ready_wanted; /* an open() was refused for lack of a slot */
    bool is_goaway_told;
    bool are_ids_used_up;

    /* the peer */
    bool has_settings;
    bool needs_settings; /* client: a call waits to learn whether its header is too large */
    bool may_ping;       /* client: the server says so */
    bool has_peer_goaway;

    /* our own going away */
    bool is_leaving;
    bool has_asked;  /* the PING behind the first GOAWAY is queued */
    bool has_left;   /* the final GOAWAY is queued */
    int32_t last_id; /* that it names; before, the last one taken when a PING was answered */
    uint32_t n_drain_answers; /* to those PINGs */
    char *leaving_why;        /* or NULL */

    struct bow__http2_rate resets;
    size_t resets_due; /* calls that we ended, which the peer may reset too: before it had ended
                        * them, or with a deadline that may have come meanwhile */
    struct bow__http2_rate pings;
    size_t acks_due; /* PINGs of ours that are not answered */
    size_t n_moved;  /* frames of calls, either way, that excuse PINGs */
    struct bow__http2_rate settings;
    struct bow__http2_rate goaways;
    struct bow__http2_rate refusals;
    struct bow__http2_rate empties;
    struct bow__http2_rate lates;
    size_t late_credit; /* what peers may have sent to calls before they heard of their end */
    size_t lates_due;   /* the same, of frames without bytes that count */
    struct bow__http2_frame_reader frames;

    /* our receive windows */
    struct bow__http2_window window;
    size_t n_grown;         /* what the streams' have grown by */
    size_t n_unreturned;    /* bytes that came and were not granted anew to the connection */
    uint32_t n_under_way;   /* messages that have begun and are reserved */
    uint64_t path_rtt_ns;   /* 0: not known */
    uint64_t asked_ns;      /* when a PING was sent that is to be measured; 0: none was */
    uint64_t asked_path_ns; /* when one was sent to learn about the path */
    size_t n_since_probe;

    /* heartbeat */
    uint64_t heartbeat_ns;
    uint64_t heartbeat_timeout_ns;
    uint64_t life_ns;      /* when the last byte came */
    uint64_t pinged_ns;    /* when our last PING was queued; 0: none awaited */
    uint64_t last_ping_ns; /* the same, awaited or not */
    size_t n_before_ping;  /* bytes that have to leave before it does */
    bool has_ping_moved;   /* some of them have left */
    bool is_doubted;       /* the host waits for the answer to a PING */
    uint32_t n_silent_pings;
    uint64_t paused_ns; /* reading stands still since; 0: it does not */
};

/** The open stream, or NULL. */
static inline struct bow__http2_stream *
bow__http2_stream_find(const struct bow__http2_session *session, uint64_t key)
{
    return key == 0 ? NULL : bow__map_get(&session->by_key, key);
}

/** Whatever nghttp2 knows by that number, or NULL. */
static inline struct bow__http2_stream *
bow__http2_stream_of_id(const struct bow__http2_session *session, int32_t id)
{
    return nghttp2_session_get_stream_user_data(session->ng, id);
}

static inline struct bow_slice bow__http2_slice_of(nghttp2_rcbuf *buf)
{
    nghttp2_vec vec = nghttp2_rcbuf_get_buf(buf);
    return (struct bow_slice){vec.base, vec.len};
}

/** Whether there are large messages alone, to the best of our knowledge. */
static inline bool bow__http2_is_quiet(const struct bow__http2_session *session)
{
    return bow__is_quiet(session->small_ns, session->now_ns);
}

/** Of several defects the one that goes before counts. */
static inline void bow__http2_raise_defect(struct bow__http2_header *header,
                                           enum bow__http2_defect defect)
{
    header->defect = defect > header->defect ? defect : header->defect;
}

#endif
