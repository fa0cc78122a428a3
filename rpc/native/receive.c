/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Bytes in: the preface, then frames. A frame's header and its header block are
 * taken when they are whole; message bytes as they come. What may be said of a
 * frame by its type alone stands in one table; its handler does the rest.
 */

#include "rpc/native/internal.h"

#include <assert.h>
#include <bowline/limits.h>
#include <errno.h>
#include <string.h>

typedef ssize_t (*take_fn)(struct bow__native *session, const struct bow__frame *frame,
                           const uint8_t *body, size_t n);

enum sender {
    FROM_BOTH,
    FROM_CLIENT,
    FROM_SERVER,
};

enum place {
    ON_STREAM,
    ON_CONNECTION,
    ON_ANY,
};

struct kind {
    take_fn take;
    uint8_t flags; /* those that exist for it */
    enum sender sender;
    enum place place;
    bool whole;         /* the handler wants all of the body at once */
    bool moves;         /* it may carry a call on */
    uint32_t min_bytes; /* of the body */
    uint32_t max_bytes; /* 0: the frame limit */
    uint32_t work;      /* of a turn's, as bytes; its entries of metadata are counted beside */
};

/* The body is a header block, as long as we take them. Below what any block has. */
#define OWN_HEADER_BYTES UINT32_C(1)
/* What a peer's may come to that knows more settings than we. */
#define SETTINGS_BYTES (UINT32_C(16) << 10)

#define MESSAGE_FLAGS                                                                              \
    (BOW__FRAME_END | BOW__FRAME_MORE | BOW__FRAME_COMPRESSED | BOW__FRAME_HAS_MESSAGE)

static const struct kind kinds[BOW__FRAME_N_TYPES] = {
    [BOW__FRAME_SETTINGS] = {bow__native_take_settings, 0, FROM_BOTH, ON_CONNECTION, true, false, 0,
                             SETTINGS_BYTES, BOW__WORK_FRAME_BYTES},
    [BOW__FRAME_REQUEST] = {bow__native_take_request, MESSAGE_FLAGS, FROM_CLIENT, ON_STREAM, false,
                            true, 1, 0, BOW__WORK_CALL_BYTES},
    [BOW__FRAME_RESPONSE] = {bow__native_take_response, 0, FROM_SERVER, ON_STREAM, true, true, 0,
                             OWN_HEADER_BYTES, BOW__WORK_FRAME_BYTES},
    [BOW__FRAME_MESSAGE] = {bow__native_take_message, MESSAGE_FLAGS, FROM_BOTH, ON_STREAM, false,
                            true, 0, 0, BOW__WORK_FRAME_BYTES},
    [BOW__FRAME_STATUS] = {bow__native_take_status, MESSAGE_FLAGS, FROM_SERVER, ON_STREAM, false,
                           true, 1, 0, BOW__WORK_CALL_BYTES},
    [BOW__FRAME_CANCEL] = {bow__native_take_cancel, 0, FROM_CLIENT, ON_STREAM, true, false, 4, 4,
                           BOW__WORK_CALL_BYTES},
    [BOW__FRAME_WINDOW] = {bow__native_take_window, 0, FROM_BOTH, ON_ANY, true, false, 4, 4,
                           BOW__WORK_FRAME_BYTES},
    [BOW__FRAME_PING] = {bow__native_take_ping, BOW__FRAME_ACK, FROM_BOTH, ON_CONNECTION, true,
                         false, 8, 8, BOW__WORK_FRAME_BYTES},
    [BOW__FRAME_GOAWAY] = {bow__native_take_goaway, 0, FROM_BOTH, ON_CONNECTION, true, false, 6,
                           BOW__NATIVE_GOAWAY_BYTES + 6, BOW__WORK_FRAME_BYTES},
};

/* The preface. A byte that is wrong is told at once, without waiting for the others. */

/* What is it, then? The first bytes that a server of that kind sends. */
static const char *likely(const uint8_t *bytes, size_t n)
{
    if (n >= 4 && bytes[0] == 0 && bytes[3] == 4) { /* SETTINGS, with fewer than 64 KiB */
        return ": it speaks HTTP/2; for a gRPC server put \"grpc:\" in front of the target";
    }
    if (n >= 2 && (bytes[0] == 0x15 || bytes[0] == 0x16) && bytes[1] == 3) {
        return ": it speaks TLS; give the client security (options.security, bow_tls_security())";
    }
    return n >= 4 ? ": is it the right port?" : "";
}

static int break_preface(struct bow__native *session, const uint8_t *bytes, size_t n)
{
    static const uint8_t ours[] = BOW__FRAME_PREFACE;
    struct bow__text seen;

    if (n >= sizeof(ours) && memcmp(bytes, ours, sizeof(ours) - 1) == 0) {
        return bow__native_break(session, BOW_UNIMPLEMENTED,
                                 "preface: the peer speaks version %u, we speak up to version %u",
                                 bytes[sizeof(ours) - 1], BOW__FRAME_VERSION);
    }
    bow__text_clear(&seen);
    bow__text_escape(&seen, (struct bow_slice){bytes, n}, 16);
    return bow__native_break(session, BOW_INTERNAL,
                             "preface: expected \\xb0OW\\x01, the peer began with \"%s\"%s",
                             seen.bytes, likely(bytes, n));
}

static ssize_t take_preface(struct bow__native *session, const uint8_t *bytes, size_t n)
{
    static const uint8_t ours[] = BOW__FRAME_PREFACE;
    size_t n_seen = n < sizeof(ours) ? n : sizeof(ours);

    if (memcmp(bytes, ours, n_seen) != 0) {
        return break_preface(session, bytes, n);
    }
    if (n_seen < sizeof(ours)) {
        return 0;
    }
    session->preface_seen = true;
    return (ssize_t)sizeof(ours);
}

/* Frames. */

static int check_place(struct bow__native *session, const struct kind *kind,
                       const struct bow__frame *frame)
{
    if (kind->place == ON_CONNECTION && frame->stream != 0) {
        return bow__native_break_at(session, frame, "belongs on stream 0");
    }
    if (kind->place == ON_STREAM && frame->stream == 0) {
        return bow__native_break_at(session, frame, "belongs on a call's stream");
    }
    if (frame->stream != 0 && frame->stream % 2 == 0) {
        return bow__native_break_at(session, frame, "stream ids of calls are odd");
    }
    return 0;
}

static uint32_t max_bytes(const struct bow__native *session, const struct kind *kind)
{
    return kind->max_bytes == OWN_HEADER_BYTES ? session->own.max_header_bytes : kind->max_bytes;
}

static int check_kind(struct bow__native *session, const struct kind *kind,
                      const struct bow__frame *frame)
{
    if (kind->sender == (session->base.server ? FROM_SERVER : FROM_CLIENT)) {
        return bow__native_break_at(session, frame, "is not sent by a %s",
                                    session->base.server ? "client" : "server");
    }
    if ((frame->flags & ~kind->flags) != 0) {
        return bow__native_break_at(session, frame, "unknown flags 0x%02x",
                                    (unsigned)(frame->flags & ~kind->flags));
    }
    if (frame->length < kind->min_bytes) {
        return bow__native_break_at(session, frame, "length %u is below %u", frame->length,
                                    kind->min_bytes);
    }
    if (kind->max_bytes != 0 && frame->length > kind->max_bytes &&
        frame->length > max_bytes(session, kind)) {
        return bow__native_break_at(session, frame, "length %u is above %u", frame->length,
                                    max_bytes(session, kind));
    }
    return check_place(session, kind, frame);
}

/* `kind` is NULL where we know of none. */
static int check_frame(struct bow__native *session, const struct kind *kind,
                       const struct bow__frame *frame)
{
    if (frame->length > session->own.max_frame_bytes) {
        return bow__native_break_at(session, frame, "length %u exceeds max_frame_bytes (%u)",
                                    frame->length, session->own.max_frame_bytes);
    }
    if (!session->settings_seen && frame->type != BOW__FRAME_SETTINGS) {
        return bow__native_break_at(session, frame, "came before SETTINGS");
    }
    if (kind != NULL) {
        return check_kind(session, kind, frame);
    }
    if (frame->type < BOW__FRAME_FIRST_SKIPPED) {
        return bow__native_break_at(session, frame, "unknown type below 128");
    }
    return bow__native_count(session, frame, &session->empty_frames,
                             BOW_LIMIT_EMPTY_FRAMES_PER_SECOND,
                             "BOW_LIMIT_EMPTY_FRAMES_PER_SECOND");
}

/* The body of a type we may skip. */
static ssize_t skip_frame(struct bow__native *session, const struct bow__frame *frame)
{
    session->frame = *frame;
    session->target = NULL;
    session->n_body_left = frame->length;
    bow__work_spend(&session->base.work, BOW__WORK_FRAME_BYTES);
    return (ssize_t)BOW__FRAME_HEADER_BYTES;
}

/* It carries a call on, if its kind can: no empty frame does. */
static bool is_moving(const struct bow__frame *frame)
{
    return frame->length > 0 || (frame->flags & (BOW__FRAME_END | BOW__FRAME_HAS_MESSAGE)) != 0;
}

static ssize_t take_frame(struct bow__native *session, const uint8_t *bytes, size_t n)
{
    if (n < BOW__FRAME_HEADER_BYTES) {
        return 0;
    }
    struct bow__frame frame = bow__frame_decode(bytes);
    const uint8_t *body = bytes + BOW__FRAME_HEADER_BYTES;
    size_t n_body = n - BOW__FRAME_HEADER_BYTES;
    const struct kind *kind = frame.type < BOW__FRAME_N_TYPES ? &kinds[frame.type] : NULL;

    /* Before its body is waited for: a wrong header is told at once. */
    int rc = check_frame(session, kind, &frame);
    if (rc < 0) {
        return rc;
    }
    if (kind == NULL) {
        return skip_frame(session, &frame);
    }
    if (n_body > frame.length) {
        n_body = frame.length;
    }
    if (kind->whole && n_body < frame.length) {
        return 0;
    }
    ssize_t used = kind->take(session, &frame, body, n_body);
    if (used == -EAGAIN) {
        return 0;
    }
    session->n_moved += kind->moves && is_moving(&frame) ? 1 : 0;
    bow__work_spend(&session->base.work, kind->work);
    return used < 0 ? used : used + (ssize_t)BOW__FRAME_HEADER_BYTES;
}

static int end_body_if_whole(struct bow__native *session)
{
    bool is_whole = session->n_body_left == 0 && session->target != NULL;

    return is_whole ? bow__native_end_body(session) : 0;
}

/* Message bytes of the frame under way, or bytes to skip. */
static ssize_t take_body(struct bow__native *session, const uint8_t *bytes, size_t n)
{
    size_t take = n < session->n_body_left ? n : session->n_body_left;

    session->n_body_left -= take;
    if (session->target != NULL) {
        int rc = bow__native_message_add(session, session->target, bytes, take);
        if (rc < 0) {
            return rc;
        }
    }
    int rc = end_body_if_whole(session);
    return rc < 0 ? rc : (ssize_t)take;
}

static ssize_t take_next(struct bow__native *session, const uint8_t *bytes, size_t n)
{
    if (session->n_body_left > 0) {
        return take_body(session, bytes, n);
    }
    if (session->preface_seen) {
        return take_frame(session, bytes, n);
    }
    return take_preface(session, bytes, n);
}

ssize_t bow__native_receive(struct bow__native *session, const uint8_t *bytes, size_t n)
{
    size_t at = 0;

    while (at < n) {
        ssize_t used = take_next(session, bytes + at, n - at);
        if (used < 0) {
            return used;
        }
        if (used == 0) {
            break;
        }
        at += (size_t)used;
        /* Nobody holds them any more, and the next call gets memory that is in the cache. */
        if (session->n_ended > 0) {
            bow__native_streams_recycle(session);
        }
        if (bow__work_is_enough(&session->base.work)) {
            break;
        }
    }
    return (ssize_t)at;
}

/* Into the message's block. */

uint8_t *bow__native_receive_room(struct bow__session *base, size_t *ret_len, size_t *ret_behind)
{
    struct bow__native *session = bow__native_of(base);

    if (session->broken || session->n_body_left == 0 || session->target == NULL) {
        return NULL;
    }
    return bow__native_message_room(session, session->target, session->n_body_left, ret_len,
                                    ret_behind);
}

int bow__native_receive_filled(struct bow__native *session, size_t n)
{
    assert(n > 0 && n <= session->n_body_left && session->target != NULL);
    session->n_body_left -= n;
    bow__native_message_arrived(session, session->target, n);
    int rc = end_body_if_whole(session);
    if (session->n_ended > 0) {
        bow__native_streams_trim(session);
    }
    return rc;
}
