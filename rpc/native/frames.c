/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the frames of calls have in common: late ones, header blocks, metadata, flags, a
 * message inside, a call's end; and MESSAGE, which both sides send. After an event the
 * stream may have ended by what the host did in it, so only `open` is looked at then.
 */

#include "rpc/core/codec/wire.h"
#include "rpc/core/header_limit.h"
#include "rpc/core/metadata.h"
#include "rpc/native/internal.h"

#include <bowline/limits.h>
#include <errno.h>
#include <string.h>

/* A call that we ended may have had many messages on their way: those are no fault of the peer's.
 */
static int count_late(struct bow__native *session, const struct bow__frame *frame, size_t n_message)
{
    size_t cost = bow__frame_cost((frame->flags & BOW__FRAME_HAS_MESSAGE) != 0, n_message);

    if (cost > 0 && cost <= session->late_credit) {
        session->late_credit -= cost;
        return 0;
    }
    if (cost == 0 && bow__frames_take(&session->late_frames_due)) {
        return 0;
    }
    return bow__native_count(session, frame, &session->late_frames,
                             BOW_LIMIT_LATE_FRAMES_PER_SECOND, "BOW_LIMIT_LATE_FRAMES_PER_SECOND");
}

/* A frame for a call that has ended: its bytes are skipped, their credit goes back. */
ssize_t bow__native_take_late(struct bow__native *session, const struct bow__frame *frame,
                              size_t n_message)
{
    if (frame->stream > session->highest_id) {
        return bow__native_break_at(session, frame, "the stream was never opened");
    }
    int rc = count_late(session, frame, n_message);
    if (rc < 0) {
        return rc;
    }
    rc = bow__native_receive_credit_spend(session, frame, NULL, n_message);
    if (rc < 0) {
        return rc;
    }
    session->target = NULL;
    session->n_body_left = frame->length;
    return 0;
}

/* Header blocks. */

int bow__native_break_block(struct bow__native *session, const struct bow__frame *frame,
                            const struct bow__header_error *error)
{
    return bow__native_break_at(session, frame, "header block: %s: %s", error->field, error->what);
}

/* The block at the front of a body, behind its length. Returns bytes used, -EAGAIN, or what breaks.
 */
ssize_t bow__native_take_block(struct bow__native *session, const struct bow__frame *frame,
                               const uint8_t *body, size_t n, struct bow_slice *ret_block)
{
    uint64_t len = 0;

    int n_len = bow__wire_decode_varint((struct bow_slice){body, n}, &len);
    if (n_len == -EAGAIN && n < frame->length) {
        return -EAGAIN;
    }
    if (n_len < 0) {
        return bow__native_break_at(session, frame, "header block: its length is not a varint");
    }
    if (len > session->own.max_header_bytes) {
        return bow__native_break_at(session, frame,
                                    "header block of %llu bytes exceeds max_header_bytes (%u)",
                                    (unsigned long long)len, session->own.max_header_bytes);
    }
    if ((size_t)n_len + len > frame->length) {
        return bow__native_break_at(session, frame,
                                    "header block of %llu bytes runs past the frame (%u bytes)",
                                    (unsigned long long)len, frame->length);
    }
    if ((size_t)n_len + len > n ||
        (frame->length <= BOW__NATIVE_WHOLE_BYTES && n < frame->length)) {
        return -EAGAIN;
    }
    *ret_block = (struct bow_slice){body + n_len, (size_t)len};
    return n_len + (ssize_t)len;
}

/* As the peer counts it: block, or metadata. */
static size_t header_bytes(size_t n_block, const struct bow__header_entries *entries)
{
    return n_block > entries->n_bytes ? n_block : entries->n_bytes;
}

void bow__native_describe_header(const struct bow__native *session, size_t n_block,
                                 const struct bow__header_entries *entries, struct bow__text *text)
{
    bow__header_limit_received(text, session->base.server, header_bytes(n_block, entries),
                               session->max_header_bytes);
}

/* More than was said breaks; more than is wanted, of a peer that was promised the protocol's own
 * limit, ends its call. */
int bow__native_check_large_header(struct bow__native *session, const struct bow__frame *frame,
                                   size_t n_block, const struct bow__header_entries *entries,
                                   bool *ret_too_large)
{
    size_t n = header_bytes(n_block, entries);

    *ret_too_large = n > session->max_header_bytes;
    if (n <= session->own.max_header_bytes) {
        return 0;
    }
    return bow__native_break_at(session, frame,
                                "header block: metadata: exceeds max_header_bytes (%u) with %zu "
                                "bytes, 32 counted for each entry",
                                session->own.max_header_bytes, n);
}

/*
 * Metadata that came, as the host is lent it: strings in a chunk of the loop's pool, which goes
 * back when the event has returned, so that a connection holds none of it; in a block of their own
 * when they are more than a chunk holds. What breaks the rules of metadata is left out, entry by
 * entry: the call is not the worse for it.
 */

/* `bytes` with a NUL behind them, at `*at`, which moves on. */
static const char *put_string(char **at, struct bow_slice bytes)
{
    char *string = *at;

    if (bytes.len > 0) {
        memcpy(string, bytes.data, bytes.len);
    }
    string[bytes.len] = '\0';
    *at += bytes.len + 1;
    return string;
}

static bool put_entry(char **at, const struct bow__header_entry *from,
                      struct bow_metadata_entry *to)
{
    char *begin = *at;

    to->key = put_string(at, from->key);
    to->value.data = (const uint8_t *)put_string(at, from->value);
    to->value.len = from->value.len;
    if (strlen(to->key) == from->key.len && bow__metadata_is_valid(to->key, to->value)) {
        return true;
    }
    *at = begin;
    return false;
}

int bow__native_metadata_copy(struct bow__native *session, struct bow__header_entries entries,
                              struct bow__native_metadata *ret_metadata)
{
    struct bow__header_entry entry;
    /* Of each entry its place, and two NULs where 32 bytes were counted. */
    size_t size = entries.n * sizeof(struct bow_metadata_entry) + entries.n_bytes;
    struct bow__block *chunk = size <= BOW__CHUNK_BYTES
                                   ? bow__pool_get(session->out.pool)
                                   : bow__block_new(session->base.context, size);

    if (chunk == NULL) {
        return -ENOMEM;
    }
    struct bow_metadata_entry *list = (void *)chunk->data;
    char *at = (char *)(list + entries.n);
    size_t n = 0;
    while (bow__header_entry_next(&entries, &entry)) {
        n += put_entry(&at, &entry, &list[n]) ? 1 : 0;
    }
    *ret_metadata = (struct bow__native_metadata){chunk, {list, n}};
    return 0;
}

int bow__native_check_rare_flags(struct bow__native *session, const struct bow__frame *frame,
                                 size_t n)
{
    uint8_t flags = frame->flags;

    if ((flags & BOW__FRAME_MORE) != 0 && frame->type != BOW__FRAME_MESSAGE) {
        return bow__native_break_at(session, frame, "flag MORE: its message must be whole");
    }
    if ((flags & BOW__FRAME_MORE) != 0 && (flags & BOW__FRAME_END) != 0) {
        return bow__native_break_at(session, frame, "flags MORE and END contradict each other");
    }
    if ((flags & BOW__FRAME_HAS_MESSAGE) != 0) {
        return 0;
    }
    if ((flags & BOW__FRAME_COMPRESSED) != 0) {
        return bow__native_break_at(session, frame, "flag COMPRESSED without HAS_MESSAGE");
    }
    if (n > 0 && frame->type != BOW__FRAME_MESSAGE) {
        return bow__native_break_at(session, frame, "%zu message bytes without HAS_MESSAGE", n);
    }
    return 0;
}

/* Take a message that is all in `frame`, behind what its handler took: as it lies, if it is there.
 * Returns how many bytes of it. */
ssize_t bow__native_take_whole_message(struct bow__native *session,
                                       struct bow__native_stream *stream,
                                       const struct bow__frame *frame, const uint8_t *bytes,
                                       size_t n, size_t len)
{
    bool compressed = (frame->flags & BOW__FRAME_COMPRESSED) != 0;
    bool end = (frame->flags & BOW__FRAME_END) != 0;

    if (len <= n && len <= session->max_message_bytes) {
        session->target = NULL;
        session->n_body_left = 0;
        bow__native_message_borrowed(session, stream, (struct bow_slice){bytes, len}, compressed,
                                     end);
        return (ssize_t)len;
    }
    session->frame = *frame;
    session->target = stream;
    session->n_body_left = len;
    /* A refusal takes the stream away and leaves the bytes to be skipped. */
    return bow__native_message_begin(session, stream, len, compressed);
}

/* The end of a client's call. A STATUS whose message is still arriving keeps its header block until
 * the message is whole. */

void bow__native_end_call(struct bow__native *session, struct bow__native_stream *stream,
                          const struct bow__header_status *wire)
{
    char text[BOW__STATUS_TEXT_BYTES];
    struct bow_status status = bow__status_of_header(wire, text);
    struct bow__block *block = stream->status_block;
    struct bow__native_metadata metadata;

    /* A status without its metadata is better than none. */
    (void)bow__native_metadata_take(session, &wire->entries, &metadata);
    status.metadata = metadata.list;
    /* What the status points to lives in the block. */
    stream->status_block = NULL;
    stream->peer_ended = true;
    stream->peer_done = true;
    bow__native_stream_end(session, stream);
    session->base.events->on_status(session->base.owner, stream->id, stream->user, &status);
    bow__native_metadata_give(session, &metadata);
    bow__block_unref(block);
}

static void end_with_kept_status(struct bow__native *session, struct bow__native_stream *stream)
{
    struct bow__header_status wire;
    struct bow__header_error error;
    struct bow_slice block = {stream->status_block->data, stream->status_len};

    /* It was read before, when it came. */
    (void)bow__header_status_decode(block, &wire, &error);
    bow__native_end_call(session, stream, &wire);
}

/* MESSAGE. */

static int check_order(struct bow__native *session, const struct bow__frame *frame,
                       const struct bow__native_stream *stream)
{
    bool begins = (frame->flags & BOW__FRAME_HAS_MESSAGE) != 0;

    if (stream->peer_ended) {
        return bow__native_break_at(session, frame, "came after END");
    }
    if (begins && stream->assembling) {
        return bow__native_break_at(session, frame, "begins a message inside another");
    }
    if (begins || stream->assembling) {
        return 0;
    }
    if (frame->length > 0 || (frame->flags & BOW__FRAME_END) == 0) {
        return bow__native_break_at(session, frame, "goes on with a message that never began");
    }
    return 0;
}

/* The first frame of a split message, behind whose announced length bytes may follow. */
static ssize_t begin_split(struct bow__native *session, struct bow__native_stream *stream,
                           const struct bow__frame *frame, const uint8_t *body)
{
    bool compressed = (frame->flags & BOW__FRAME_COMPRESSED) != 0;

    session->frame = *frame;
    session->target = stream;
    session->n_body_left = frame->length - 4;
    int rc = bow__native_message_begin(session, stream, bow__get_u32(body), compressed);
    if (rc < 0) {
        return rc;
    }
    if (session->n_body_left == 0 && session->target != NULL) {
        rc = bow__native_end_body(session);
    }
    return rc < 0 ? rc : 4;
}

static ssize_t take_rest(struct bow__native *session, struct bow__native_stream *stream,
                         const struct bow__frame *frame)
{
    session->frame = *frame;
    session->target = stream;
    session->n_body_left = frame->length;
    return frame->length == 0 ? bow__native_end_body(session) : 0;
}

void bow__native_take_half_close(struct bow__native *session, struct bow__native_stream *stream)
{
    stream->peer_ended = true;
    if (session->base.server && !stream->out_ended) {
        session->base.events->on_half_close(session->base.owner, stream->id, stream->user);
    }
}

/* What goes on with a message, or just ends. */
static ssize_t take_without_begin(struct bow__native *session, struct bow__native_stream *stream,
                                  const struct bow__frame *frame)
{
    if (stream->assembling) {
        return take_rest(session, stream, frame);
    }
    bow__native_take_half_close(session, stream);
    return 0;
}

/* What spends no credit and ends nothing is held back by nothing else. */
static int count_if_empty(struct bow__native *session, const struct bow__frame *frame, size_t n)
{
    if (n > 0 || (frame->flags & (BOW__FRAME_END | BOW__FRAME_HAS_MESSAGE)) != 0) {
        return 0;
    }
    return bow__native_count(session, frame, &session->empty_frames,
                             BOW_LIMIT_EMPTY_FRAMES_PER_SECOND,
                             "BOW_LIMIT_EMPTY_FRAMES_PER_SECOND");
}

static int charge(struct bow__native *session, struct bow__native_stream *stream,
                  const struct bow__frame *frame, size_t len)
{
    int rc = check_order(session, frame, stream);
    if (rc == 0) {
        rc = bow__native_receive_credit_spend(session, frame, stream, len);
    }
    return rc < 0 ? rc : count_if_empty(session, frame, len);
}

ssize_t bow__native_take_message(struct bow__native *session, const struct bow__frame *frame,
                                 const uint8_t *body, size_t n)
{
    bool begins = (frame->flags & BOW__FRAME_HAS_MESSAGE) != 0;
    bool split = begins && (frame->flags & BOW__FRAME_MORE) != 0;
    bool is_small = begins && !split && frame->length <= BOW__NATIVE_WHOLE_BYTES;

    if (split && frame->length < 4) {
        return bow__native_break_at(
            session, frame, "length %u has no room for the announced length", frame->length);
    }
    if ((split && n < 4) || (is_small && n < frame->length)) {
        return -EAGAIN;
    }
    size_t len = frame->length - (split ? 4 : 0);
    int rc = bow__native_check_flags(session, frame, len);
    if (rc < 0) {
        return rc;
    }
    struct bow__native_stream *stream = bow__native_stream_find(session, frame->stream);
    if (stream == NULL) {
        return bow__native_take_late(session, frame, len);
    }
    rc = charge(session, stream, frame, len);
    if (rc < 0) {
        return rc;
    }
    stream->responded = true;
    /* It lets the call be carried out: a read may be all of those, of calls that came before. */
    if ((frame->flags & BOW__FRAME_END) != 0) {
        bow__work_spend(&session->base.work, BOW__WORK_CALL_BYTES);
    }
    if (split) {
        return begin_split(session, stream, frame, body);
    }
    if (begins) {
        return bow__native_take_whole_message(session, stream, frame, body, n, len);
    }
    return take_without_begin(session, stream, frame);
}

int bow__native_end_body(struct bow__native *session)
{
    struct bow__native_stream *stream = session->target;
    uint8_t flags = session->frame.flags;

    session->target = NULL;
    if ((flags & BOW__FRAME_MORE) != 0) {
        bow__native_return_stream_credit(session, stream);
        return 0;
    }
    bow__native_message_end(session, stream, (flags & BOW__FRAME_END) != 0);
    if (stream->open && stream->status_block != NULL) {
        end_with_kept_status(session, stream);
    }
    return 0;
}
