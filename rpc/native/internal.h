/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_NATIVE_INTERNAL_H
#define BOWLINE_RPC_NATIVE_INTERNAL_H

/*
 * What the files of the native session do for each other, lowest first: each uses only those that
 * stand before it. docs/protocol.md is the protocol; state.h has what they share.
 *
 *     header.c     header blocks, without state
 *     output.c     frames into the output
 *     error.c      errors of the connection
 *     flow.c       credit for what the peer sends
 *     stream.c     the streams, and their errors
 *     heartbeat.c  PINGs: is the peer alive, how long is the path
 *     queue.c      messages that wait on their streams
 *     send.c       messages into frames: in place, or out of the queue
 *     calls.c      calls of the client
 *     message.c    messages being assembled
 *     frames.c     what the frames of calls have in common; MESSAGE
 *     requests.c   REQUEST, CANCEL, method numbers
 *     replies.c    RESPONSE, STATUS
 *     control.c    SETTINGS, WINDOW, PING, GOAWAY: the connection's own frames
 *     receive.c    bytes in: preface, frame headers, which handler
 *     session.c    the session's life and time, and its function table
 *
 * Errors. Whatever the peer does wrong with the connection goes through
 * bow__native_break(), whose result the callers hand up unchanged until feed()
 * returns it. What is wrong with one call ends in bow__native_refuse().
 *
 * Events. After one the host may have ended any stream; its struct lives on until
 * the frame has been taken, with `open` false.
 *
 * Memory. An operation that cannot report a lack of memory for its few bytes of
 * control frame sets `out_of_memory`; the next feed() or on_time() breaks the
 * connection, for a frame that the peer waits for is lost.
 */

#include "rpc/native/frames.h"
#include "rpc/native/output.h"
#include "rpc/native/stream.h"

/* error.c */

/**
 * The connection is broken: keep the reason, queue a GOAWAY that carries it.
 * Returns what feed() has to return.
 */
int bow__native_break(struct bow__native *session, enum bow_code code, const char *format, ...)
    BOW_PRINTF(3, 4);
/** The same for `frame`, which the reason then begins with. -EPROTO. */
int bow__native_break_at(struct bow__native *session, const struct bow__frame *frame,
                         const char *format, ...) BOW_PRINTF(3, 4);
/** Count one event; above `limit` a second (named `limit_name`) the connection breaks. */
int bow__native_count(struct bow__native *session, const struct bow__frame *frame,
                      struct bow__native_rate *rate, uint32_t limit, const char *limit_name);

/* flow.c */

/** `n` bytes of a message that is put together have come. */
void bow__native_pace_count(struct bow__native *session, size_t n);
/** Message bytes of `frame` have come for `stream` (NULL: a late frame). Returns 0 or what breaks.
 */
int bow__native_receive_credit_spend(struct bow__native *session, const struct bow__frame *frame,
                                     struct bow__native_stream *stream, size_t n);
/** Give the connection's credit back when half of it is spent, unless too much is buffered, here or
 * in the whole server. */
void bow__native_return_connection_credit(struct bow__native *session);
/** Give the stream's credit back when it is time. */
void bow__native_return_stream_credit(struct bow__native *session,
                                      struct bow__native_stream *stream);
/** `n` bytes are no longer buffered for a stream. */
void bow__native_release_buffered(struct bow__native *session, size_t n);
bool bow__native_refill(struct bow__session *base);

/* heartbeat.c */

uint64_t bow__native_next_time(const struct bow__session *base);
/** Time has passed. Returns 0 or what breaks. */
int bow__native_heartbeat(struct bow__native *session);
bool bow__native_doubt(struct bow__session *base, uint64_t now_ns);
/** A PING came back. */
void bow__native_heartbeat_answered(struct bow__native *session, uint64_t opaque);
/** `n` bytes have left. */
void bow__native_heartbeat_sent(struct bow__native *session, size_t n);
/** Ask how long the path is, if that is not known; at the end of feed(). */
void bow__native_heartbeat_probe(struct bow__native *session);
void bow__native_set_reading(struct bow__session *base, bool reading, uint64_t now_ns);

/* queue.c */

/** Let `stream` have its turn if it has a message that waits and credit for it. */
void bow__native_schedule_sender(struct bow__native *session, struct bow__native_stream *stream);
/** The same when the peer has given the stream credit. */
void bow__native_credit_came(struct bow__native *session, struct bow__native_stream *stream);
/** `n` of the bytes that waited on `stream` are in the output. */
void bow__native_dequeued(struct bow__native *session, struct bow__native_stream *stream, size_t n);
int bow__native_send(struct bow__session *base, uint64_t key, uint32_t flags,
                     struct bow__block *block, size_t offset, size_t len);
int bow__native_half_close(struct bow__session *base, uint64_t key);
int bow__native_finish(struct bow__session *base, uint64_t key, const struct bow_status *status);
size_t bow__native_queued(const struct bow__session *base, uint64_t key);
void *bow__native_take_writable(struct bow__session *base, uint64_t *ret_key);

/* send.c */

int bow__native_check_trailing(struct bow__session *base, const struct bow_metadata *metadata);
int bow__native_respond(struct bow__session *base, uint64_t key,
                        const struct bow_metadata *metadata, enum bow__encoding encoding);
uint8_t *bow__native_reserve(struct bow__session *base, uint64_t key, uint32_t flags,
                             size_t *ret_cap);
int bow__native_commit(struct bow__session *base, uint64_t key, uint32_t flags, size_t len);
int bow__native_drain(struct bow__session *base, struct iovec *pieces, int max);

/* calls.c */

bool bow__native_can_open(const struct bow__session *base);
int bow__native_open(struct bow__session *base, const struct bow__request_head *head, void *stream,
                     uint64_t *ret_key);
void bow__native_abandon(struct bow__session *base, uint64_t key);
int bow__native_begin(struct bow__session *base, uint64_t key);
void bow__native_cancel(struct bow__session *base, uint64_t key, enum bow_code code);

/* message.c */

/** Begin a message of `announced` bytes. Returns 0, or what breaks; a refused stream is gone. */
int bow__native_message_begin(struct bow__native *session, struct bow__native_stream *stream,
                              size_t announced, bool compressed);
/** Add bytes to it. Returns 0, or what breaks; a refused stream is gone afterwards. */
int bow__native_message_add(struct bow__native *session, struct bow__native_stream *stream,
                            const uint8_t *bytes, size_t n);
/** Room for `*ret_len` of the next `n` bytes of it, and behind those for `*ret_behind` that are
 * none of them; NULL when they have to be added. */
uint8_t *bow__native_message_room(struct bow__native *session, struct bow__native_stream *stream,
                                  size_t n, size_t *ret_len, size_t *ret_behind);
/** `n` bytes have come into that room. */
void bow__native_message_arrived(struct bow__native *session, struct bow__native_stream *stream,
                                 size_t n);
/** It is whole: say so to the host. The stream may be gone afterwards. */
void bow__native_message_end(struct bow__native *session, struct bow__native_stream *stream,
                             bool end);
/** A whole message that lies in what was fed. */
void bow__native_message_borrowed(struct bow__native *session, struct bow__native_stream *stream,
                                  struct bow_slice bytes, bool compressed, bool end);
void bow__native_consumed(struct bow__session *base, uint64_t key, size_t n);

/* frames.c, requests.c, replies.c, control.c: take a frame's body, of which `n` bytes are there.
 * Each returns how many it took (the rest is set up as message bytes or to be skipped), -EAGAIN
 * when it needs more of them, or what breaks. */

ssize_t bow__native_take_request(struct bow__native *session, const struct bow__frame *frame,
                                 const uint8_t *body, size_t n);
ssize_t bow__native_take_response(struct bow__native *session, const struct bow__frame *frame,
                                  const uint8_t *body, size_t n);
ssize_t bow__native_take_message(struct bow__native *session, const struct bow__frame *frame,
                                 const uint8_t *body, size_t n);
ssize_t bow__native_take_status(struct bow__native *session, const struct bow__frame *frame,
                                const uint8_t *body, size_t n);
ssize_t bow__native_take_cancel(struct bow__native *session, const struct bow__frame *frame,
                                const uint8_t *body, size_t n);

ssize_t bow__native_take_settings(struct bow__native *session, const struct bow__frame *frame,
                                  const uint8_t *body, size_t n);
ssize_t bow__native_take_window(struct bow__native *session, const struct bow__frame *frame,
                                const uint8_t *body, size_t n);
ssize_t bow__native_take_ping(struct bow__native *session, const struct bow__frame *frame,
                              const uint8_t *body, size_t n);
ssize_t bow__native_take_goaway(struct bow__native *session, const struct bow__frame *frame,
                                const uint8_t *body, size_t n);

int bow__native_put_opening(struct bow__native *session);
void bow__native_goaway(struct bow__session *base, const struct bow_status *reason);
/** The last word of a drain, though its first was not answered. */
void bow__native_leave(struct bow__session *base);

/* receive.c */

/** Take bytes in. Returns how many were used, or what breaks. */
ssize_t bow__native_receive(struct bow__native *session, const uint8_t *bytes, size_t n);
uint8_t *bow__native_receive_room(struct bow__session *base, size_t *ret_len, size_t *ret_behind);
/** `n` bytes have come into that room. Returns 0 or what breaks. */
int bow__native_receive_filled(struct bow__native *session, size_t n);

#endif
