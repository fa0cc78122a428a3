/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the peer's frames are, before nghttp2 sees them: it says nothing of those that it
 * skips, and they cost as much as others. So this is also where it is said how many bytes of
 * them it may see in one go, for it stops for a turn's end in few places of its own. Looks at
 * frame headers alone.
 */

#include "rpc/http2/internal.h"

#include <string.h>

#define HEADER_BYTES sizeof(((struct bow__http2_frame_reader *)0)->header)

#define FIRST_UNKNOWN_TYPE 10u

/* Of header blocks in one go: a byte of them may be a field, and those are counted only as nghttp2
 * finds them. */
#define BLOCK_BYTES ((size_t)1 << 10)

/* Beside its messages, that a peer may have sent to a call before it heard of its end: the header
 * and the trailers of an answer; or DATA without bytes, which ends a request. */
#define LATE_FRAMES 2u

static uint32_t get_u32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* Work that moves nothing on. */
static bool is_empty(uint8_t type, uint8_t flags, size_t len)
{
    bool ends = (flags & NGHTTP2_FLAG_END_STREAM) != 0;

    return (type == NGHTTP2_DATA && len == 0 && !ends) || type == NGHTTP2_PRIORITY ||
           (type == NGHTTP2_CONTINUATION && len == 0) || type >= FIRST_UNKNOWN_TYPE;
}

/* A stream that opens within the same bytes is above the last id that is known. */
static bool is_late(struct bow__http2_session *session, uint8_t type, int32_t id)
{
    int32_t last = session->base.server ? nghttp2_session_get_last_proc_stream_id(session->ng)
                                        : (int32_t)nghttp2_session_get_next_stream_id(session->ng);

    if ((type != NGHTTP2_DATA && type != NGHTTP2_HEADERS) || id > last) {
        return false;
    }
    const struct bow__http2_stream *stream = bow__http2_stream_of_id(session, id);
    return stream == NULL || !stream->open;
}

void bow__http2_expect_refused(struct bow__http2_session *session, int32_t id)
{
    int32_t window = nghttp2_session_get_stream_local_window_size(session->ng, id);
    size_t credit = session->late_credit + (window > 0 ? (size_t)window : 0);

    /* No more than that is on its way. */
    session->late_credit = credit < session->window.size ? credit : session->window.size;
    bow__frames_expect(&session->lates_due, LATE_FRAMES);
}

void bow__http2_expect_late(struct bow__http2_session *session,
                            const struct bow__http2_stream *stream)
{
    if (stream->remote_ended || stream->closed || stream->id == 0 || session->broken) {
        return;
    }
    bow__http2_expect_refused(session, stream->id);
}

/* Whether it was sent before the peer can have known. */
static bool is_forgiven(struct bow__http2_session *session, uint8_t type, size_t len)
{
    if (type != NGHTTP2_DATA || len == 0) {
        return bow__frames_take(&session->lates_due);
    }
    if (len > session->late_credit) {
        return false;
    }
    session->late_credit -= len;
    return true;
}

static void judge(struct bow__http2_session *session, size_t len)
{
    const uint8_t *header = session->frames.header;
    uint8_t type = header[3];
    int32_t id = (int32_t)(get_u32(header + 5) & INT32_MAX);

    if (is_empty(type, header[4], len)) {
        bow__http2_count(session, &session->empties, BOW_LIMIT_EMPTY_FRAMES_PER_SECOND,
                         "empty frames", "BOW_LIMIT_EMPTY_FRAMES_PER_SECOND");
    }
    if (is_late(session, type, id) && !is_forgiven(session, type, len)) {
        bow__http2_count(session, &session->lates, BOW_LIMIT_LATE_FRAMES_PER_SECOND,
                         "frames for calls that have ended", "BOW_LIMIT_LATE_FRAMES_PER_SECOND");
    }
}

void bow__http2_inspect_init(struct bow__http2_session *session)
{
    session->frames = (struct bow__http2_frame_reader){
        .n_skip = session->base.server ? NGHTTP2_CLIENT_MAGIC_LEN : 0,
    };
}

static bool is_block(uint8_t type)
{
    return type == NGHTTP2_HEADERS || type == NGHTTP2_CONTINUATION;
}

/* What the frame takes of a turn, beside its fields. A call begins with one and is carried out with
 * another, and a read may be all of the one or of the other kind. Of some the time grows with the
 * calls. */
static size_t work_of(const struct bow__http2_session *session, uint8_t type, uint8_t flags)
{
    switch (type) {
    case NGHTTP2_HEADERS:
        return BOW__WORK_CALL_BYTES / 2 + BOW__WORK_FRAME_BYTES;
    case NGHTTP2_DATA:
        return BOW__WORK_FRAME_BYTES +
               ((flags & NGHTTP2_FLAG_END_STREAM) != 0 ? BOW__WORK_CALL_BYTES : 0);
    case NGHTTP2_RST_STREAM:
        return BOW__WORK_CALL_BYTES;
    case NGHTTP2_SETTINGS:
    case NGHTTP2_GOAWAY:
        return BOW__WORK_FRAME_BYTES + session->n_live * (BOW__WORK_FRAME_BYTES / 16);
    default:
        return BOW__WORK_FRAME_BYTES;
    }
}

/* Both return how many of the bytes were that. */

static size_t read_header(struct bow__http2_frame_reader *reader, const uint8_t *bytes, size_t n)
{
    size_t len = HEADER_BYTES - reader->n_header < n ? HEADER_BYTES - reader->n_header : n;

    memcpy(reader->header + reader->n_header, bytes, len);
    reader->n_header += len;
    return len;
}

static size_t skip(struct bow__http2_frame_reader *reader, size_t n, size_t *n_block)
{
    size_t skipped = reader->n_skip < n ? reader->n_skip : n;

    if (is_block(reader->header[3])) {
        skipped = skipped < BLOCK_BYTES - *n_block ? skipped : BLOCK_BYTES - *n_block;
        *n_block += skipped;
    }
    reader->n_skip -= skipped;
    return skipped;
}

size_t bow__http2_inspect(struct bow__http2_session *session, const uint8_t *bytes, size_t n)
{
    struct bow__http2_frame_reader *reader = &session->frames;
    size_t n_block = 0;
    size_t at = 0;

    while (at < n && n_block < BLOCK_BYTES && !session->broken) {
        if (reader->n_skip > 0) {
            at += skip(reader, n - at, &n_block);
            continue;
        }
        if (at > 0 && reader->n_header == 0 && bow__work_is_enough(&session->base.work)) {
            break;
        }
        at += read_header(reader, bytes + at, n - at);
        if (reader->n_header == HEADER_BYTES) {
            reader->n_header = 0;
            reader->n_skip = get_u32(reader->header) >> 8;
            bow__work_spend(&session->base.work,
                            work_of(session, reader->header[3], reader->header[4]));
            judge(session, reader->n_skip);
        }
    }
    return at;
}
