/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_NATIVE_RECEIVE_H
#define BOWLINE_RPC_NATIVE_RECEIVE_H

/*
 * What comes in: a frame's way from feed() to the host's events.
 *
 *     receive.c ──► requests.c, replies.c, frames.c ──► message.c ──► on_message
 *             └───► control.c
 *
 * After an event the host may have ended any stream; its struct lives on until
 * the frame has been taken, with `open` false.
 */

#include "rpc/native/native.h"

#include <bowline/limits.h>

/* receive.c */

uint8_t *bow__native_room(struct bow__session *base, size_t *ret_len, size_t *ret_behind);
int bow__native_received(struct bow__session *base, size_t n, uint64_t now_ns);
ssize_t bow__native_feed(struct bow__session *base, const uint8_t *bytes, size_t n,
                         uint64_t now_ns);

/* frames.c, requests.c, replies.c: take a frame's body, of which `n` bytes are there. Each returns
 * how many it took (the rest is set up as message bytes or to be skipped), -EAGAIN when it needs
 * more of them, or what breaks. */

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

/** A frame with `n_message` message bytes for a call that has ended: skipped, the credit goes back.
 */
ssize_t bow__native_take_late(struct bow__native *session, const struct bow__frame *frame,
                              size_t n_message);
/** The header block at the front of a body, behind its length. */
ssize_t bow__native_take_block(struct bow__native *session, const struct bow__frame *frame,
                               const uint8_t *body, size_t n, struct bow_slice *ret_block);
int bow__native_break_block(struct bow__native *session, const struct bow__frame *frame,
                            const struct bow__header_error *error);
/** Whether the flags of a frame with `n` message bytes go together. Returns 0 or what breaks. */
int bow__native_check_flags(struct bow__native *session, const struct bow__frame *frame, size_t n);
/**
 * Take a message of `len` bytes that is all in `frame`; `n` of them are there. It is
 * said to the host at once as it lies, or assembled.
 */
ssize_t bow__native_take_whole_message(struct bow__native *session,
                                       struct bow__native_stream *stream,
                                       const struct bow__frame *frame, const uint8_t *bytes,
                                       size_t n, size_t len);
/** END alone, after whole messages: the host is told unless it has answered. */
void bow__native_take_half_close(struct bow__native *session, struct bow__native_stream *stream);
/** All message bytes of the frame under way have come. */
int bow__native_end_body(struct bow__native *session);
/** End a call that the session itself refuses: the peer and the host are told. Returns 0, or what
 * breaks. */
int bow__native_refuse(struct bow__native *session, struct bow__native_stream *stream,
                       const struct bow_status *why);
/** As refuse(), for a call the host does not know. */
int bow__native_refuse_id(struct bow__native *session, uint64_t id, const struct bow_status *why);
/** Server: end a call without an answer; the host is told unless it has answered. */
void bow__native_end_with_reset(struct bow__native *session, struct bow__native_stream *stream,
                                const struct bow_status *why);
/** Client: the message inside a STATUS is whole, so the call has ended. */
void bow__native_end_with_kept_status(struct bow__native *session,
                                      struct bow__native_stream *stream);

#define BOW__NATIVE_STATUS_TEXT_BYTES (BOW_LIMIT_STATUS_MESSAGE_BYTES + 1)
/** A status that came; its message is copied to `text`. */
struct bow_status bow__native_status_of(const struct bow__header_status *wire, char *text);

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
/** Drop what has arrived of it. */
void bow__native_message_drop(struct bow__native *session, struct bow__native_stream *stream);

/* metadata.c */

struct bow__native_metadata {
    struct bow__block *chunk; /* NULL: there is none */
    struct bow_metadata list;
};

int bow__native_metadata_copy(struct bow__native *session, struct bow__header_entries entries,
                              struct bow__native_metadata *ret_metadata);

/** The entries that keep the rules. Returns 0, or -ENOMEM and none. */
static inline int bow__native_metadata_take(struct bow__native *session,
                                            const struct bow__header_entries *entries,
                                            struct bow__native_metadata *ret_metadata)
{
    *ret_metadata = (struct bow__native_metadata){NULL, BOW_METADATA_INIT};
    return entries->n == 0 ? 0 : bow__native_metadata_copy(session, *entries, ret_metadata);
}

/** Nobody looks at it any more. */
static inline void bow__native_metadata_give(struct bow__native *session,
                                             struct bow__native_metadata *metadata)
{
    if (metadata->chunk != NULL) {
        bow__pool_put(session->out.pool, metadata->chunk);
    }
}

/* control.c */

ssize_t bow__native_take_settings(struct bow__native *session, const struct bow__frame *frame,
                                  const uint8_t *body, size_t n);
ssize_t bow__native_take_window(struct bow__native *session, const struct bow__frame *frame,
                                const uint8_t *body, size_t n);
ssize_t bow__native_take_ping(struct bow__native *session, const struct bow__frame *frame,
                              const uint8_t *body, size_t n);
ssize_t bow__native_take_goaway(struct bow__native *session, const struct bow__frame *frame,
                                const uint8_t *body, size_t n);
#endif
