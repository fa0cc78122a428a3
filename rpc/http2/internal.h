/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_HTTP2_INTERNAL_H
#define BOWLINE_RPC_HTTP2_INTERNAL_H

/*
 * What the files of the HTTP/2 session do for each other, lowest first: each uses only those that
 * stand before it. state.h has what they share.
 *
 *     codes.c          gRPC's codes and HTTP's, without state
 *     nghttp2.c        memory and options for nghttp2
 *     error.c          errors of the connection
 *     flow.c           receive windows: when they are granted anew, how large they are
 *     inspect.c        the peer's frame headers, before nghttp2 sees them
 *     heartbeat.c      is the peer alive
 *     queue.c          messages that wait on their streams
 *     submit.c         header blocks that we send, and whence DATA comes
 *     header_block.c   the peer's header blocks while they come in
 *     stream.c         the life of a stream
 *     web_answer.c     answers to calls that are not gRPC's own
 *     control.c        SETTINGS, PING, GOAWAY: the connection's own frames
 *     answer.c         a server's answer; calls that are refused
 *     calls.c          calls of the client
 *     web_request.c    and those calls
 *     send.c           messages sent
 *     message.c        messages being assembled
 *     headers.c        what whole header blocks of the peer mean
 *     nghttp2_send.c   nghttp2's sending half
 *     nghttp2_receive.c   its receiving half: callbacks
 *     session.c        the table, feed and drain
 *
 * Design: nghttp2 runs in two places only, mem_recv inside feed() and mem_send
 * inside pump(); both are never nested. Everything else only queues in it. A
 * stream's memory goes when nghttp2 says that the stream is closed, which it says
 * inside those two. Events are emitted from feed, on_time and fail alone; what
 * becomes known while pumping waits as a late event for the first of them.
 */

#include "rpc/http2/state.h"

/* nghttp2.c */

nghttp2_mem bow__http2_memory(struct bow__pool *pool);
void bow__http2_option_no_reset_limit(nghttp2_option *option);
/** Take values with blanks around them, against RFC 9113 (8.2.1), as far as this nghttp2 can. */
void bow__http2_option_blanks(nghttp2_option *option);

/* error.c */

/**
 * Break the connection: the first reason counts. `http2_error` goes into the GOAWAY, `error` is
 * what feed returns. Nothing of nghttp2's may be called after it.
 */
void bow__http2_break(struct bow__http2_session *session, uint32_t http2_error, int error,
                      enum bow_code code, const char *format, ...) BOW_PRINTF(5, 6);

/** Break for lack of memory if `rv` says so. What else nghttp2 refuses to queue concerns streams
 * that are gone. */
void bow__http2_check(struct bow__http2_session *session, int rv);
/** Send a PING, with 8 bytes or NULL. */
void bow__http2_ping(struct bow__http2_session *session, const uint8_t *opaque);
/** Count one more in this second; above `max` the connection breaks, naming `what` and `limit`. */
void bow__http2_count(struct bow__http2_session *session, struct bow__http2_rate *rate,
                      uint32_t max, const char *what, const char *limit);

/* flow.c */

/** `n` bytes of a message that is not whole came, or of its prefix: the stream's window has them
 * back, now or when the host has consumed what it holds. */
void bow__http2_charge(struct bow__http2_session *session, struct bow__http2_stream *stream,
                       size_t n);
void bow__http2_consumed(struct bow__session *base, uint64_t key, size_t n);
/** Grant anew to the connection what came on it, unless that is withheld for what the whole
 * server has in flight. */
void bow__http2_return_credit(struct bow__http2_session *session);
bool bow__http2_refill(struct bow__session *base);
/** `n` bytes of DATA came; the stream may be NULL. */
void bow__http2_window_spent(struct bow__http2_session *session, struct bow__http2_stream *stream,
                             size_t n);
/** The stream's window goes. */
void bow__http2_window_forget(struct bow__http2_session *session,
                              const struct bow__http2_stream *stream);
/** A PING was answered. */
void bow__http2_window_learn(struct bow__http2_session *session);

/* inspect.c */

void bow__http2_inspect_init(struct bow__http2_session *session);
/** A stream is refused; what the peer has credit for may be on its way. */
void bow__http2_expect_refused(struct bow__http2_session *session, int32_t id);
/** The call ends; what the peer has credit for may be on its way. */
void bow__http2_expect_late(struct bow__http2_session *session,
                            const struct bow__http2_stream *stream);
/** Look at what nghttp2 is going to get, and count it as work. Returns how much of it that is to be
 * in one go: up to the end of a frame with which this turn's is enough, or some of a header block,
 * whose fields are counted meanwhile. At least 1, unless the session broke. */
size_t bow__http2_inspect(struct bow__http2_session *session, const uint8_t *bytes, size_t n);

/* heartbeat.c */

uint64_t bow__http2_heartbeat_time(const struct bow__http2_session *session);
void bow__http2_heartbeat(struct bow__http2_session *session);
bool bow__http2_doubt(struct bow__session *base, uint64_t now_ns);
/** A PING came back. */
void bow__http2_heartbeat_answered(struct bow__http2_session *session);
/** `n` bytes have left. */
void bow__http2_heartbeat_sent(struct bow__http2_session *session, size_t n);
void bow__http2_set_reading(struct bow__session *base, bool reading, uint64_t now_ns);

/* queue.c */

size_t bow__http2_queued(const struct bow__session *base, uint64_t key);
void *bow__http2_take_writable(struct bow__session *base, uint64_t *ret_key);
/** Queue a copy of `what`, or nothing without memory. Returns 0 or -ENOMEM. */
int bow__http2_queue_push(struct bow__http2_session *session, struct bow__http2_stream *stream,
                          const struct bow__http2_outgoing *what);
/** Undo the last push; the block stays the caller's. */
void bow__http2_queue_pop_last(struct bow__http2_session *session,
                               struct bow__http2_stream *stream);
/** No message follows those that are queued. */
void bow__http2_end_local(struct bow__http2_session *session, struct bow__http2_stream *stream);
/** `n` bytes of the stream's messages wait no longer. */
void bow__http2_dequeued(struct bow__http2_session *session, struct bow__http2_stream *stream,
                         size_t n);
/** Take the queue's first message out. */
void bow__http2_queue_pop(struct bow__http2_session *session, struct bow__http2_stream *stream);
void bow__http2_queue_clear(struct bow__http2_session *session, struct bow__http2_stream *stream);
/* submit.c */

/** Whether values of that key are base64 on the wire. */
bool bow__http2_is_binary(const char *key, size_t len);
/** All of it on the wire, as RFC 9113 counts. */
size_t bow__http2_fields_bytes(const struct bow_metadata *metadata);
/** A copy, NULL of nothing. Returns 0 or -ENOMEM. */
int bow__http2_fields_new(struct bow__http2_session *session, const struct bow_metadata *metadata,
                          struct bow__http2_fields **ret_fields);
/** NULL is allowed. Returns NULL. */
struct bow__http2_fields *bow__http2_fields_free(struct bow__http2_session *session,
                                                 struct bow__http2_fields *fields);
/** Trailers may be NULL. Returns NULL. */
struct bow__http2_trailers *bow__http2_trailers_free(struct bow__http2_session *session,
                                                     struct bow__http2_trailers *trailers);

int bow__http2_submit_request(struct bow__http2_session *session, struct bow__http2_stream *stream);
/** `fields` may be NULL. */
int bow__http2_submit_response(struct bow__http2_session *session, struct bow__http2_stream *stream,
                               struct bow__http2_fields *fields);
/** Of one value: nghttp2 ends the connection for a longer one that it reads. */
#define BOW__HTTP2_VALUE_BYTES ((size_t)64 << 10)
/** Whether no value of it is longer. */
bool bow__http2_fits_values(const struct bow_metadata *metadata);
/** Whether a header of `n_own` bytes, gRPC's own fields and the metadata may be sent. Returns 0;
 * -EMSGSIZE; -EAGAIN: the peer has not said yet whether it takes so much. */
int bow__http2_check_header(struct bow__http2_session *session, size_t n_own,
                            const struct bow_metadata *metadata);
/** Bytes of a header block that the peer takes, without what gRPC's own fields may take. */
size_t bow__http2_header_room(const struct bow__http2_session *session);
/** Answer with an HTTP status and nothing else. */
int bow__http2_submit_http_error(struct bow__http2_session *session,
                                 struct bow__http2_stream *stream, const char *http_status);
/** Answer with a head that is not gRPC's; `has_body`: what is queued follows, and what will be. */
int bow__http2_submit_fields(struct bow__http2_session *session, struct bow__http2_stream *stream,
                             const char *http_status, const struct bow__web_field *fields,
                             size_t n_fields, bool has_body);
int bow__http2_submit_trailers(struct bow__http2_session *session,
                               struct bow__http2_stream *stream);
/** An answer that is nothing but its status ("Trailers-Only"); trailers may be NULL. */
int bow__http2_submit_status(struct bow__http2_session *session, struct bow__http2_stream *stream,
                             const struct bow__http2_trailers *trailers);
/** Let nghttp2 ask for DATA again. */
void bow__http2_resume(struct bow__http2_session *session, struct bow__http2_stream *stream);

/* header_block.c */

void bow__http2_header_init(struct bow__http2_header *header);
void bow__http2_header_fini(struct bow__http2_session *session, struct bow__http2_header *header);
/** Which fields the peer's header blocks may have that are no metadata. */
void bow__http2_choose_fields(struct bow__http2_session *session);
/** Let go of what was kept of a request for rpc/web/. */
void bow__http2_web_header_end(struct bow__http2_session *session);
int bow__http2_on_header(nghttp2_session *ng, const nghttp2_frame *frame, nghttp2_rcbuf *name,
                         nghttp2_rcbuf *value, uint8_t flags, void *user);
/** Metadata of a new block. */
void bow__http2_metadata_begin(struct bow__http2_session *session);
/** What there is, until the end or another beginning. */
struct bow_metadata bow__http2_metadata(struct bow__http2_session *session);
void bow__http2_metadata_end(struct bow__http2_session *session);

/* stream.c */

/** A stream in no map yet, with `path_len` bytes behind it, or NULL. */
struct bow__http2_stream *bow__http2_stream_new(struct bow__http2_session *session,
                                                size_t path_len);
/** The memory; nghttp2 must not know it any more. */
void bow__http2_stream_free(struct bow__http2_session *session, struct bow__http2_stream *stream);
/** Give the stream its key; it is open then. Returns 0 or -ENOMEM. */
int bow__http2_stream_open(struct bow__http2_session *session, struct bow__http2_stream *stream,
                           uint64_t key);
/** The host is done with it: its key means nothing any more, no event follows. */
void bow__http2_stream_detach(struct bow__http2_session *session, struct bow__http2_stream *stream);
/** Detach it, and free it unless nghttp2 knows it. Returns whether it is still there. */
bool bow__http2_stream_drop(struct bow__http2_session *session, struct bow__http2_stream *stream);
/** Detach it and emit its last event, for a reason of the session's own. */
void bow__http2_stream_end(struct bow__http2_session *session, struct bow__http2_stream *stream,
                           const struct bow_status *status);
/** Client: the same with the peer's status. */
void bow__http2_stream_end_as_told(struct bow__http2_session *session,
                                   struct bow__http2_stream *stream,
                                   const struct bow_status *status);
/** The same, with a status that nobody sent. */
void bow__http2_stream_end_with(struct bow__http2_session *session,
                                struct bow__http2_stream *stream, enum bow_code code,
                                const char *format, ...) BOW_PRINTF(4, 5);
void bow__http2_stream_reset(struct bow__http2_session *session, struct bow__http2_stream *stream,
                             uint32_t http2_error);
/** nghttp2 closed it. */
void bow__http2_stream_closed(struct bow__http2_session *session, struct bow__http2_stream *stream,
                              uint32_t http2_error, bool late);
/** End every open stream above the id, and requests that have not left; those are not_processed
 * whatever `status` says. */
void bow__http2_streams_end(struct bow__http2_session *session, int32_t above,
                            const struct bow_status *status);
/** End those that closed while no event could be. */
void bow__http2_streams_end_late(struct bow__http2_session *session);
/** The message being taken in counts no longer as in flight in the server. */
void bow__http2_incoming_give_reserved(struct bow__http2_session *session,
                                       struct bow__http2_incoming *incoming);

/* web_answer.c: of streams with `web`; as rpc/web/answer.h says of each. Returns 0 or -ENOMEM. */

int bow__http2_web_respond(struct bow__http2_session *session, struct bow__http2_stream *stream,
                           const struct bow_metadata *metadata, enum bow__encoding encoding);
/** Takes the reference to `block` if it succeeds. */
int bow__http2_web_send(struct bow__http2_session *session, struct bow__http2_stream *stream,
                        uint32_t flags, struct bow__block *block, size_t offset, size_t len);
int bow__http2_web_end(struct bow__http2_session *session, struct bow__http2_stream *stream,
                       const struct bow_status *status);
int bow__http2_web_refuse(struct bow__http2_session *session, struct bow__http2_stream *stream);

/* web_request.c */

/** Server: the head of a request is whole that is not gRPC's own. Returns whether a call begins
 * with it, or is refused for what the header's `defect` says; else it has been answered. */
bool bow__http2_web_begin(struct bow__http2_session *session, struct bow__http2_stream *stream);
/** Bytes of its body. */
void bow__http2_web_take(struct bow__http2_session *session, struct bow__http2_stream *stream,
                         struct bow_slice bytes);
/** Bytes of it that come when the call is over. */
void bow__http2_web_discard(struct bow__http2_session *session, struct bow__http2_stream *stream,
                            size_t n);
/** Its end. */
void bow__http2_web_take_end(struct bow__http2_session *session, struct bow__http2_stream *stream);

/* control.c */

int bow__http2_submit_settings(struct bow__http2_session *session);
/** Of the frame that begins all that a server says, our SETTINGS. */
void bow__http2_say_max_calls(const struct bow__http2_session *session, uint8_t *frame, size_t n);
void bow__http2_on_settings(struct bow__http2_session *session, const nghttp2_settings *frame);
void bow__http2_on_ping(struct bow__http2_session *session, const nghttp2_ping *frame);
void bow__http2_on_goaway(struct bow__http2_session *session, const nghttp2_goaway *frame);
void bow__http2_goaway(struct bow__session *base, const struct bow_status *reason);
void bow__http2_leave(struct bow__session *base);
/** A GOAWAY of ours has left nghttp2. */
void bow__http2_goaway_sent(struct bow__http2_session *session);
bool bow__http2_can_open(const struct bow__session *base);
/** Calls that the peer takes at a time. */
uint32_t bow__http2_max_streams(const struct bow__http2_session *session);

/* answer.c */

int bow__http2_check_trailing(struct bow__session *base, const struct bow_metadata *metadata);
int bow__http2_respond(struct bow__session *base, uint64_t key, const struct bow_metadata *metadata,
                       enum bow__encoding encoding);
int bow__http2_finish(struct bow__session *base, uint64_t key, const struct bow_status *status);
void bow__http2_cut(struct bow__session *base, const struct bow_status *status);
/** The answer's end, after what is queued; the host's view is not touched. Returns 0 or -ENOMEM. */
int bow__http2_end_answer(struct bow__http2_session *session, struct bow__http2_stream *stream,
                          const struct bow_status *status);
/** End it for a fault of the peer's: the peer is told too. */
void bow__http2_stream_refuse(struct bow__http2_session *session, struct bow__http2_stream *stream,
                              enum bow_code code, const char *format, ...) BOW_PRINTF(4, 5);
/** The same for want of room, which there may be later: RESOURCE_EXHAUSTED, and when to come
 * again. */
void bow__http2_stream_refuse_for_now(struct bow__http2_session *session,
                                      struct bow__http2_stream *stream, const char *format, ...)
    BOW_PRINTF(3, 4);

/* calls.c */

int bow__http2_open(struct bow__session *base, const struct bow__request_head *head, void *user,
                    uint64_t *ret_key);
void bow__http2_abandon(struct bow__session *base, uint64_t key);
int bow__http2_begin(struct bow__session *base, uint64_t key);
void bow__http2_cancel(struct bow__session *base, uint64_t key, enum bow_code code);

/* send.c */

uint8_t *bow__http2_reserve(struct bow__session *base, uint64_t key, uint32_t flags,
                            size_t *ret_cap);
int bow__http2_commit(struct bow__session *base, uint64_t key, uint32_t flags, size_t len);
int bow__http2_send(struct bow__session *base, uint64_t key, uint32_t flags,
                    struct bow__block *block, size_t offset, size_t len);
int bow__http2_half_close(struct bow__session *base, uint64_t key);
/** Let go of the chunk when nothing lies in it. */
void bow__http2_trim_chunk(struct bow__http2_session *session);

/* message.c */

/** Room for the message that `stream` is taking in, of which `n` more bytes are to come in this
 * frame; as of struct bow__session_ops. */
uint8_t *bow__http2_message_room(struct bow__http2_session *session,
                                 struct bow__http2_stream *stream, size_t n, size_t *ret_len,
                                 size_t *ret_behind);
/** Bytes of the peer's messages. `last`: its side ends with them. */
void bow__http2_take(struct bow__http2_session *session, struct bow__http2_stream *stream,
                     struct bow_slice bytes, bool last);
/** The peer's side ended. */
void bow__http2_take_end(struct bow__http2_session *session, struct bow__http2_stream *stream);
bool bow__http2_is_mid_message(const struct bow__http2_stream *stream);

/* headers.c */

/** Server: the request's header is whole. */
void bow__http2_on_request(struct bow__http2_session *session, struct bow__http2_stream *stream);
/** Client: a response's header, or trailers, are whole. */
void bow__http2_on_response(struct bow__http2_session *session, struct bow__http2_stream *stream,
                            bool end);

/* nghttp2_send.c */

void bow__http2_set_send_callbacks(nghttp2_session_callbacks *callbacks);
/** Move nghttp2's output into `out`, up to a bound. */
void bow__http2_pump(struct bow__http2_session *session);

/* nghttp2_receive.c */

void bow__http2_set_receive_callbacks(nghttp2_session_callbacks *callbacks);

#endif
