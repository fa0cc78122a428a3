/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Frames that need no credit, into the output. Knows streams by id only, and not why a frame is
 * sent.
 */

#include "rpc/core/codec/wire.h"
#include "rpc/native/internal.h"

#include <bowline/limits.h>
#include <errno.h>
#include <string.h>

int bow__native_put_frame(struct bow__native *session, const struct bow__frame *frame,
                          const void *body)
{
    size_t n = BOW__FRAME_HEADER_BYTES + frame->length;
    size_t cap = 0;

    bow__native_drop_room(session);
    uint8_t *at = bow__outbuf_reserve(&session->out, n, &cap);
    if (at == NULL) {
        session->out_of_memory = true;
        return -ENOMEM;
    }
    bow__frame_encode(at, frame);
    if (frame->length > 0) {
        memcpy(at + BOW__FRAME_HEADER_BYTES, body, frame->length);
    }
    bow__outbuf_commit(&session->out, n);
    return 0;
}

size_t bow__native_status_body_size(const struct bow__header_status *wire)
{
    size_t n = bow__header_status_size(wire);

    return bow__wire_varint_size(n) + n;
}

void bow__native_encode_status_body(uint8_t *to, const struct bow__header_status *wire)
{
    to = bow__wire_write_varint(to, bow__header_status_size(wire));
    bow__header_status_encode(to, wire);
}

int bow__native_put_status(struct bow__native *session, uint64_t id,
                           const struct bow_status *status)
{
    struct bow__header_status wire = bow__header_of_status(status, session->peer.max_header_bytes);
    struct bow__frame frame = {
        .length = (uint32_t)bow__native_status_body_size(&wire),
        .type = BOW__FRAME_STATUS,
        .flags = BOW__FRAME_END,
        .stream = id,
    };
    size_t n = BOW__FRAME_HEADER_BYTES + frame.length;
    size_t cap = 0;

    bow__native_drop_room(session);
    uint8_t *at = bow__outbuf_reserve(&session->out, n, &cap);
    if (at == NULL) {
        return -ENOMEM;
    }
    bow__frame_encode(at, &frame);
    session->n_moved++;
    bow__native_encode_status_body(at + BOW__FRAME_HEADER_BYTES, &wire);
    bow__outbuf_commit(&session->out, n);
    return 0;
}

int bow__native_put_goaway(struct bow__native *session, uint64_t last,
                           const struct bow_status *status)
{
    struct bow__header_status wire = bow__header_of_status(status, BOW__NATIVE_GOAWAY_BYTES);
    uint8_t body[6 + BOW__NATIVE_GOAWAY_BYTES];
    struct bow__frame frame = {.type = BOW__FRAME_GOAWAY};

    frame.length = (uint32_t)(6 + bow__header_status_size(&wire));
    bow__put_u48(body, last);
    bow__header_status_encode(body + 6, &wire);
    return bow__native_put_frame(session, &frame, body);
}

int bow__native_put_ping(struct bow__native *session, uint8_t flags, uint64_t opaque)
{
    struct bow__frame frame = {.length = 8, .type = BOW__FRAME_PING, .flags = flags};
    uint8_t body[8];

    if ((flags & BOW__FRAME_ACK) == 0) {
        bow__frames_expect(&session->acks_due, 1);
    }
    bow__put_u64(body, opaque);
    return bow__native_put_frame(session, &frame, body);
}
