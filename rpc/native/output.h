/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_NATIVE_OUTPUT_H
#define BOWLINE_RPC_NATIVE_OUTPUT_H

/*
 * Frames into the output: those without credit at once; others where they will lie, in room that
 * is held for one message. Each put_ function appends to it or does nothing.
 */

#include "rpc/native/state.h"

/** One frame that is not under credit. Returns 0, or -ENOMEM and sets `out_of_memory`. */
int bow__native_put_frame(struct bow__native *session, const struct bow__frame *frame,
                          const void *body);
/** STATUS without a message. Returns 0 or -ENOMEM. */
int bow__native_put_status(struct bow__native *session, uint64_t id,
                           const struct bow_status *status);
/** The body of a STATUS without a message: varint and header block. */
size_t bow__native_status_body_size(const struct bow__header_status *wire);
void bow__native_encode_status_body(uint8_t *to, const struct bow__header_status *wire);
/** GOAWAY with `last`; what of `status` fits. Returns 0 or -ENOMEM. */
int bow__native_put_goaway(struct bow__native *session, uint64_t last,
                           const struct bow_status *status);
int bow__native_put_ping(struct bow__native *session, uint8_t flags, uint64_t opaque);

/** Forget a reservation that was not committed. */
static inline void bow__native_drop_room(struct bow__native *session)
{
    if (session->room.key != 0) {
        session->room.key = 0;
        bow__outbuf_commit(&session->out, 0);
    }
}

/** Room at the end of the output for a frame with up to `n_prefix` bytes before its message. False:
 * no memory. */
static inline bool bow__native_make_room(struct bow__native *session,
                                         const struct bow__native_stream *stream,
                                         enum bow__frame_type type, size_t n_prefix)
{
    size_t in_chunk = n_prefix + BOW__IN_PLACE_BYTES;
    size_t cap = 0;

    in_chunk = in_chunk < BOW__CHUNK_BYTES / 2 ? in_chunk : BOW__CHUNK_BYTES / 2;
    /* Behind such a header the message waits as a block of its own. */
    size_t want = in_chunk < n_prefix ? n_prefix : in_chunk;
    uint8_t *at = bow__outbuf_reserve(&session->out, want, &cap);
    if (at == NULL) {
        return false;
    }
    size_t room = want - n_prefix;
    size_t n_body = session->peer.max_frame_bytes - (n_prefix - BOW__FRAME_HEADER_BYTES);
    size_t credit =
        stream->send_credit < session->send_credit ? stream->send_credit : session->send_credit;
    room = room < n_body ? room : n_body;
    if (credit < BOW__FRAME_MESSAGE_COST ||
        session->out.n_bytes >= BOW__NATIVE_IN_PLACE_AHEAD_BYTES) {
        credit = 0;
    }
    session->room.key = stream->id;
    session->room.at = at;
    session->room.n_prefix = n_prefix;
    session->room.cap = room < credit ? room : credit;
    session->room.type = type;
    return true;
}

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
    session->n_moved++;
    bow__outbuf_commit(&session->out, room->n_prefix + len);
}

#endif
