/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_NATIVE_SEND_H
#define BOWLINE_RPC_NATIVE_SEND_H

/*
 * What goes out: calls and messages, frames of the connection, credit, and what
 * time asks for. Each put_ function appends to the output or does nothing.
 */

#include "rpc/native/native.h"

/** While so much output waits for the socket, messages of streams wait on their streams, where
 * their producers are told. */
#define BOW__NATIVE_AHEAD_BYTES ((size_t)64 << 10)
/** The same while there are large messages alone. */
#define BOW__NATIVE_QUIET_AHEAD_BYTES ((size_t)512 << 10)

/* send.c */

/** One frame that is not under credit. Returns 0, or -ENOMEM and sets `out_of_memory`. */
int bow__native_put_frame(struct bow__native *session, const struct bow__frame *frame,
                          const void *body);
/** STATUS without a message. Returns 0 or -ENOMEM. */
int bow__native_put_status(struct bow__native *session, uint64_t id,
                           const struct bow_status *status);
/** The header that `status` is sent as: what is too long is cut or left out. */
struct bow__header_status bow__native_wire_of(const struct bow_status *status);
/** Forget a reservation that was not committed. */
void bow__native_drop_room(struct bow__native *session);
/** Room at the end of the output for a frame with up to `n_prefix` bytes before its message. False:
 * no memory. */
bool bow__native_make_room(struct bow__native *session, const struct bow__native_stream *stream,
                           enum bow__frame_type type, size_t n_prefix);
/** The frame in the room is whole, with `len` bytes of message. */
static inline void bow__native_put_room(struct bow__native *session, uint8_t flags, size_t len)
{
    struct bow__native_room *room = &session->room;
    struct bow__frame frame = {
        .length = (uint32_t)(room->n_prefix - BOW__FRAME_HEADER_BYTES + len),
        .type = (uint8_t)room->type,
        .flags = flags,
        .stream = room->key,
    };

    bow__frame_encode(room->at, &frame);
    /* The call is on its way: what it binds is bound. */
    room->key = 0;
    session->new_binding = 0;
    bow__outbuf_commit(&session->out, room->n_prefix + len);
}
/** The body of a STATUS without a message: varint and header block. */
size_t bow__native_status_body_size(const struct bow__header_status *wire);
void bow__native_encode_status_body(uint8_t *to, const struct bow__header_status *wire);

uint8_t *bow__native_reserve(struct bow__session *base, uint64_t key, uint32_t flags,
                             size_t *ret_cap);
int bow__native_commit(struct bow__session *base, uint64_t key, uint32_t flags, size_t len);

/* calls.c */

bool bow__native_can_open(const struct bow__session *base);
int bow__native_open(struct bow__session *base, const struct bow__request_head *head, void *stream,
                     uint64_t *ret_key);
void bow__native_abandon(struct bow__session *base, uint64_t key);
int bow__native_begin(struct bow__session *base, uint64_t key);
void bow__native_cancel(struct bow__session *base, uint64_t key, enum bow_code code);

/* queue.c */

/** What the next frame of a message that waits spends at least. */
static inline uint32_t bow__native_needed_credit(const struct bow__native_outgoing *message)
{
    return message->begun ? 1 : (uint32_t)BOW__FRAME_MESSAGE_COST;
}

/** Frames may be cut of `stream` now, if it has any. */
void bow__native_wake_sender(struct bow__native *session, struct bow__native_stream *stream);
/** `n` of the bytes that waited on `stream` have been cut. */
void bow__native_dequeued(struct bow__native *session, struct bow__native_stream *stream, size_t n);
int bow__native_send(struct bow__session *base, uint64_t key, uint32_t flags,
                     struct bow__block *block, size_t offset, size_t len);
int bow__native_half_close(struct bow__session *base, uint64_t key);
int bow__native_finish(struct bow__session *base, uint64_t key, const struct bow_status *status);
size_t bow__native_queued(const struct bow__session *base, uint64_t key);
void *bow__native_take_writable(struct bow__session *base, uint64_t *ret_key);

/* backlog.c */

/** Whether `len` more bytes must not wait. */
bool bow__native_backlog_is_full(const struct bow__native *session, size_t len);
/** End the stream instead of sending the message. Returns 0, or -ENOMEM as finish. */
int bow__native_backlog_drop(struct bow__native *session, struct bow__native_stream *stream,
                             uint32_t flags);
/** End a stream of which a message was dropped. Returns 0 or -ENOMEM. */
int bow__native_backlog_finish(struct bow__native *session, struct bow__native_stream *stream);
/** Tell peer and host of the streams that were ended; at the end of feed(). */
void bow__native_backlog_end_streams(struct bow__native *session);

/* respond.c */

int bow__native_respond(struct bow__session *base, uint64_t key,
                        const struct bow_metadata *metadata, enum bow__encoding encoding);
/** Before a MESSAGE, when a response is due: what the peer has to know first. Returns 0 or -ENOMEM.
 */
int bow__native_put_due_response(struct bow__native *session, struct bow__native_stream *stream);

#define BOW__NATIVE_REPLY_BLOCK_BYTES ((size_t)8)
/** Length and header block of a STATUS with the one reply inside, while a response is due. */
size_t bow__native_due_block(const struct bow__native_stream *stream, uint8_t *to);
/** The same of any STATUS with the one reply inside. Returns the size. */
static inline size_t bow__native_reply_block(const struct bow__native_stream *stream, uint8_t *to)
{
    if (stream->response_due) {
        return bow__native_due_block(stream, to);
    }
    /* OK is an empty block: its length alone. */
    *to = 0;
    return 1;
}

/* cut.c */

int bow__native_drain(struct bow__session *base, struct iovec *pieces, int max);
void bow__native_sent(struct bow__session *base, size_t n);

/* control.c */

int bow__native_put_opening(struct bow__native *session);
/** GOAWAY with `last`; what of `status` fits. Returns 0 or -ENOMEM. */
int bow__native_put_goaway(struct bow__native *session, uint64_t last,
                           const struct bow_status *status);
void bow__native_goaway(struct bow__session *base, const struct bow_status *reason);
/** The last word of a drain, though its first was not answered. */
void bow__native_leave(struct bow__session *base);
/** PING; its answer says how long a round trip takes. */
int bow__native_put_ping(struct bow__native *session);

/* flow.c */

/** `n` bytes of a message that is put together have come. */
void bow__native_pace_count(struct bow__native *session, size_t n);

/** Message bytes of `frame` have come for `stream` (NULL: a late frame). Returns 0 or what breaks.
 */
int bow__native_receive_credit_spend(struct bow__native *session, const struct bow__frame *frame,
                                     struct bow__native_stream *stream, size_t n);
/** Half of the connection's credit is spent: give it back, unless too much is held, here or in the
 * whole server. */
void bow__native_give_connection_credit(struct bow__native *session);
/** Give the connection's credit back when it is time. */
static inline void bow__native_return_connection_credit(struct bow__native *session)
{
    if (session->n_unreturned >= session->window.size / 2) {
        bow__native_give_connection_credit(session);
    }
}
/** Give the stream's credit back when it is time. */
void bow__native_return_stream_credit(struct bow__native *session,
                                      struct bow__native_stream *stream);
/** `n` bytes are no longer held for a stream. */
void bow__native_unhold(struct bow__native *session, size_t n);
void bow__native_consumed(struct bow__session *base, uint64_t key, size_t n);
bool bow__native_refill(struct bow__session *base);

/* window.c */

/** Let the stream's window grow if it is too small. Returns by how much, which is more credit. */
uint32_t bow__native_window_grow_stream(struct bow__native *session,
                                        struct bow__native_stream *stream);
uint32_t bow__native_window_grow_connection(struct bow__native *session);
/** Ask how long the path is, if that is not known; at the end of feed(). */
void bow__native_window_probe(struct bow__native *session);
/** A PING was answered after so long. */
void bow__native_window_learn(struct bow__native *session, uint64_t sample_ns);

/* heartbeat.c */

/** Whether the peer lets us send a PING now. */
bool bow__native_may_ping(const struct bow__native *session);

uint64_t bow__native_next_time(const struct bow__session *base);
int bow__native_on_time(struct bow__session *base, uint64_t now_ns);
bool bow__native_doubt(struct bow__session *base, uint64_t now_ns);
/** A PING came back. */
void bow__native_heartbeat_answered(struct bow__native *session);
/** `n` bytes have left. */
void bow__native_heartbeat_sent(struct bow__native *session, size_t n);
void bow__native_set_reading(struct bow__session *base, bool reading, uint64_t now_ns);

#endif
