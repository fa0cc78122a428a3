/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_HTTP2_INTERNAL_H
#define BOWLINE_RPC_HTTP2_INTERNAL_H

/*
 * What the files of the HTTP/2 session share: its state and that of a stream.
 *
 *     receive.c ──► headers.c, assemble.c ──► stream.c ──► events
 *     send.c    ◄── operations                          session.c: the table, feed and drain
 *
 * Design: nghttp2 runs in two places only, mem_recv inside feed() and mem_send
 * inside pump(); both are never nested. Everything else only queues in it. A
 * stream's memory goes when nghttp2 says that the stream is closed, which it says
 * inside those two. Events are emitted from feed, on_time and fail alone; what
 * becomes known while pumping waits as a late event for the first of them.
 */

#include "base/list.h"
#include "base/map.h"
#include "base/outbuf.h"
#include "rpc/core/session.h"
#include <bowline/limits.h>
#include <nghttp2/nghttp2.h>

/** Output beyond which a pump stops until some of it has left. */
#define BOW__HTTP2_PUMP_BYTES ((size_t)64 << 10)

/** Receive windows that we announce. */
#define BOW__HTTP2_STREAM_WINDOW ((int32_t)256 << 10)
#define BOW__HTTP2_CONNECTION_WINDOW ((int32_t)1 << 20)

/** A setting of ours (from the range for experiments; others skip it): its value 1 says that the
 * client reads only while it has calls in flight. */
#define BOW__HTTP2_SETTINGS_UNATTENDED 0xf0b0

/** Streams that we open before the peer's SETTINGS said how many it takes. */
#define BOW__HTTP2_STREAMS_AT_FIRST 100u

/** How many of something came in the current second. */
struct bow__http2_rate {
    uint64_t began_ns;
    uint32_t n;
};

/** One message on its way out. */
struct bow__http2_outgoing {
    struct bow__link queue_link;
    struct bow__block *block;
    size_t offset;
    size_t len; /* body bytes not yet framed */
    uint8_t prefix[5];
    uint8_t n_prefix_framed;
    bool pooled; /* `block` is the session's chunk */
};

/** What ends a server's stream, encoded for the header block. */
struct bow__http2_trailers {
    size_t size; /* of the allocation */
    enum bow_code code;
    uint64_t retry_after_ms;
    size_t message_len;
    size_t details_len;
    char texts[]; /* message, then details */
};

/** Why a server refuses a request by its header. In order of precedence. */
enum bow__http2_defect {
    BOW__HTTP2_DEFECT_NONE,
    BOW__HTTP2_DEFECT_TIMEOUT,
    BOW__HTTP2_DEFECT_TOO_LARGE,
    BOW__HTTP2_DEFECT_CONTENT_TYPE,
    BOW__HTTP2_DEFECT_METHOD,
};

/** What the peer's header blocks said so far. */
struct bow__http2_header {
    size_t n_bytes; /* of the block, names and values and 32 each, as RFC 9113 counts */
    enum bow__http2_defect defect;
    bool has_content_type; /* application/grpc */
    bool has_encoding;     /* grpc-encoding other than identity */

    /* server */
    nghttp2_rcbuf *path;
    nghttp2_rcbuf *timeout; /* kept when it is malformed */
    uint64_t time_left_ns;

    /* client */
    int http_status; /* 0: none */
    int grpc_status; /* -1: none */
    uint64_t retry_after_ns;
    char *message; /* or NULL */
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
};

struct bow__http2_stream {
    struct bow__link link; /* in session->streams */
    struct bow__link late_link;
    uint64_t key;
    int32_t id;   /* 0 until submitted */
    void *user;   /* the host's; server: from on_open */
    bool open;    /* the host may use the key and awaits events */
    bool closed;  /* nghttp2 forgot it */
    bool is_sent; /* client: the request left nghttp2 */
    uint32_t close_error;

    /* in */
    struct bow__http2_header header;
    struct bow__http2_incoming incoming;
    bool remote_ended;
    size_t n_unread;   /* bytes of messages the host has not consumed */
    size_t n_withheld; /* received, and not yet granted anew */

    /* out */
    bool has_begun; /* server: the response's header is queued */
    bool local_ended;
    struct bow__link queue; /* bow__http2_outgoing */
    size_t n_queued;        /* bytes in it, prefixes included */
    struct bow__http2_trailers *trailers;

    /* client: the header until it is submitted */
    uint64_t time_left_ns;
    size_t path_len;
    char path[];
};

struct bow__http2_session {
    struct bow__session base;
    nghttp2_session *ng;
    struct bow__outbuf out;
    struct bow__link streams;
    struct bow__map by_key; /* open ones */
    uint64_t next_key;      /* client */
    uint32_t n_live;        /* that nghttp2 has or gets */
    size_t max_message_bytes;
    uint32_t max_calls;
    bool unattended;
    char *authority;
    size_t authority_size;

    /* in-place messages: a chunk of the pool, filled from the front */
    struct bow__block *chunk;
    size_t chunk_used;
    size_t n_queued; /* of all streams */

    /* the state of feed and pump */
    uint64_t now_ns;
    bool is_receiving; /* inside mem_recv */
    bool broken;       /* nghttp2 is not to be called any more, but for deletion */
    int error;         /* why: a negative errno */
    uint32_t http2_error;
    bool has_said_goodbye; /* a GOAWAY with the reason is in `out` */
    bool is_failed;        /* fail() was called, or the failure was returned */
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
    bool is_peer_unattended;
    bool has_peer_goaway;

    /* our own going away */
    bool is_leaving;
    bool has_left; /* the final GOAWAY is queued */

    struct bow__http2_rate resets;
    struct bow__http2_rate pings;
    struct bow__http2_rate settings;
    struct bow__http2_rate empties;

    /* heartbeat */
    uint64_t heartbeat_ns;
    uint64_t heartbeat_timeout_ns;
    uint64_t life_ns;      /* when the last byte came */
    uint64_t pinged_ns;    /* when our last PING was queued; 0: none awaited */
    uint64_t last_ping_ns; /* the same, awaited or not */
    uint32_t n_silent_pings;
    uint64_t paused_ns; /* reading stands still since; 0: it does not */
};

/* session.c */

/**
 * Break the connection: the first reason counts. `http2_error` goes into the GOAWAY, `error` is
 * what feed returns. Nothing of nghttp2's may be called after it.
 */
void bow__http2_break(struct bow__http2_session *session, uint32_t http2_error, int error,
                      enum bow_code code, const char *format, ...) BOW_PRINTF(5, 6);

/** Break for lack of memory if `rv` says so. What else nghttp2 refuses to queue concerns streams
 * that are gone. */
void bow__http2_check(struct bow__http2_session *session, int rv);

/* connection.c */

int bow__http2_submit_settings(struct bow__http2_session *session);
void bow__http2_on_settings(struct bow__http2_session *session, const nghttp2_settings *frame);
void bow__http2_on_ping(struct bow__http2_session *session, const nghttp2_ping *frame);
void bow__http2_on_goaway(struct bow__http2_session *session, const nghttp2_goaway *frame);
void bow__http2_goaway(struct bow__session *base, const struct bow_status *reason);
bool bow__http2_can_open(const struct bow__session *base);
/** Count one more in this second; above `max` the connection breaks, naming `what` and `limit`. */
void bow__http2_count(struct bow__http2_session *session, struct bow__http2_rate *rate,
                      uint32_t max, const char *what, const char *limit);
/** Calls that the peer takes at a time. */
uint32_t bow__http2_max_streams(const struct bow__http2_session *session);

/* heartbeat.c */

uint64_t bow__http2_heartbeat_time(const struct bow__http2_session *session);
void bow__http2_heartbeat(struct bow__http2_session *session);
void bow__http2_set_reading(struct bow__session *base, bool reading, uint64_t now_ns);

/* stream.c */

/** A stream in no map yet, with `path_len` bytes behind it, or NULL. */
struct bow__http2_stream *bow__http2_stream_new(struct bow__http2_session *session,
                                                size_t path_len);
/** The memory; nghttp2 must not know it any more. */
void bow__http2_stream_free(struct bow__http2_session *session, struct bow__http2_stream *stream);
struct bow__http2_stream *bow__http2_stream_find(const struct bow__http2_session *session,
                                                 uint64_t key);
struct bow__http2_stream *bow__http2_stream_of_id(const struct bow__http2_session *session,
                                                  int32_t id);
/** Give the stream its key; it is open then. Returns 0 or -ENOMEM. */
int bow__http2_stream_open(struct bow__http2_session *session, struct bow__http2_stream *stream,
                           uint64_t key);
/** The host is done with it: its key means nothing any more, no event follows. */
void bow__http2_stream_detach(struct bow__http2_session *session, struct bow__http2_stream *stream);
/** Detach it and emit its last event. */
void bow__http2_stream_end(struct bow__http2_session *session, struct bow__http2_stream *stream,
                           const struct bow_status *status);
/** The same, with a status that nobody sent. */
void bow__http2_stream_end_with(struct bow__http2_session *session,
                                struct bow__http2_stream *stream, enum bow_code code,
                                const char *format, ...) BOW_PRINTF(4, 5);
/** End it for a fault of the peer's: the peer is told too. */
void bow__http2_stream_refuse(struct bow__http2_session *session, struct bow__http2_stream *stream,
                              enum bow_code code, const char *format, ...) BOW_PRINTF(4, 5);
void bow__http2_stream_reset(struct bow__http2_session *session, struct bow__http2_stream *stream,
                             uint32_t http2_error);
/** nghttp2 closed it. */
void bow__http2_stream_closed(struct bow__http2_session *session, struct bow__http2_stream *stream,
                              uint32_t http2_error, bool late);
/** End every open stream above the id, and requests that have not left; those are not_processed
 * whatever `status` says. */
void bow__http2_streams_end(struct bow__http2_session *session, int32_t above,
                            const struct bow_status *status);
/** Emit what became known while no event could be. */
void bow__http2_emit_late(struct bow__http2_session *session);
bool bow__http2_has_late(const struct bow__http2_session *session);

/* receive.c */

void bow__http2_set_receive_callbacks(nghttp2_session_callbacks *callbacks);

/* headers.c */

void bow__http2_header_init(struct bow__http2_header *header);
void bow__http2_header_fini(struct bow__http2_session *session, struct bow__http2_header *header);
int bow__http2_on_header(nghttp2_session *ng, const nghttp2_frame *frame, nghttp2_rcbuf *name,
                         nghttp2_rcbuf *value, uint8_t flags, void *user);
/** Server: the request's header is whole. */
void bow__http2_on_request(struct bow__http2_session *session, struct bow__http2_stream *stream);
/** Client: a response's header, or trailers, are whole. */
void bow__http2_on_response(struct bow__http2_session *session, struct bow__http2_stream *stream,
                            bool end);

/* assemble.c */

/** Bytes of the peer's messages. `last`: its side ends with them. */
void bow__http2_take(struct bow__http2_session *session, struct bow__http2_stream *stream,
                     struct bow_slice bytes, bool last);
/** The peer's side ended. */
void bow__http2_take_end(struct bow__http2_session *session, struct bow__http2_stream *stream);
bool bow__http2_is_mid_message(const struct bow__http2_stream *stream);
void bow__http2_consumed(struct bow__session *base, uint64_t key, size_t n);

/* send.c */

int bow__http2_open(struct bow__session *base, const struct bow__request_head *head, void *user,
                    uint64_t *ret_key);
void bow__http2_abandon(struct bow__session *base, uint64_t key);
uint8_t *bow__http2_reserve(struct bow__session *base, uint64_t key, uint32_t flags,
                            size_t *ret_cap);
int bow__http2_commit(struct bow__session *base, uint64_t key, uint32_t flags, size_t len);
int bow__http2_send(struct bow__session *base, uint64_t key, uint32_t flags,
                    struct bow__block *block, size_t offset, size_t len);
void bow__http2_cancel(struct bow__session *base, uint64_t key, enum bow_code code);
/** Take the queue's first message out. */
void bow__http2_pop_queue(struct bow__http2_session *session, struct bow__http2_stream *stream);
void bow__http2_drop_queue(struct bow__http2_session *session, struct bow__http2_stream *stream);
/** Let go of the chunk when nothing lies in it. */
void bow__http2_trim_chunk(struct bow__http2_session *session);
void bow__http2_resume(struct bow__http2_session *session, struct bow__http2_stream *stream);

/* submit.c: what goes into header blocks */

int bow__http2_submit_request(struct bow__http2_session *session, struct bow__http2_stream *stream);
int bow__http2_submit_response(struct bow__http2_session *session,
                               struct bow__http2_stream *stream);
/** Answer with an HTTP status and nothing else. */
int bow__http2_submit_http_error(struct bow__http2_session *session,
                                 struct bow__http2_stream *stream, const char *http_status);
int bow__http2_submit_trailers(struct bow__http2_session *session,
                               struct bow__http2_stream *stream);
int bow__http2_finish(struct bow__session *base, uint64_t key, const struct bow_status *status);
/** The answer's end, after what is queued; the host's view is not touched. Returns 0 or -ENOMEM. */
int bow__http2_end_answer(struct bow__http2_session *session, struct bow__http2_stream *stream,
                          const struct bow_status *status);

/* data.c */

/** nghttp2's data provider of a stream: pulls from its queue. */
ssize_t bow__http2_read_data(nghttp2_session *ng, int32_t id, uint8_t *bytes, size_t len,
                             uint32_t *data_flags, nghttp2_data_source *source, void *user);
void bow__http2_set_send_callbacks(nghttp2_session_callbacks *callbacks);
/** Move nghttp2's output into `out`, up to a bound. */
void bow__http2_pump(struct bow__http2_session *session);

/* memory.c, options.c */

nghttp2_mem bow__http2_memory(struct bow_context *context);
void bow__http2_option_no_reset_limit(nghttp2_option *option);

#endif
