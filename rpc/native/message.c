/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Messages coming in. One that is whole where it was fed is lent to the host as it
 * lies; any other is assembled in a block that grows with what has arrived, not with
 * what was announced: a claim costs nothing, only bytes do. Where much of one is missing, the host
 * may put it into that block itself, frame by frame. What the host has consumed gives credit back.
 * Knows nothing of frames.
 */

#include "rpc/native/internal.h"

#include <bowline/limits.h>
#include <errno.h>
#include <string.h>

/* A copy of less than this costs no more than a system call. */
#define ROOM_BYTES ((size_t)32 << 10)
/* What may be read behind a frame: a record of TLS. */
#define BEHIND_BYTES ((size_t)16 << 10)

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static struct bow_status refusal(const struct bow__text *text)
{
    return (struct bow_status){.code = BOW_RESOURCE_EXHAUSTED, .message = text->bytes};
}

/* What there is no room for now may have some after `wait_ns`, which a server says. */
static struct bow_status refusal_for_now(const struct bow__native *session,
                                         const struct bow__text *text, uint64_t wait_ns)
{
    struct bow_status why = refusal(text);

    why.retry_after_ns = session->base.server ? wait_ns : 0;
    return why;
}

static int refuse_too_large(struct bow__native *session, struct bow__native_stream *stream,
                            size_t n, const char *verb)
{
    struct bow__text text;

    bow__text_clear(&text);
    bow__text_printf(&text, "%s %s %zu bytes, above the %s's max_message_bytes (%zu)",
                     session->base.server ? "request" : "reply", verb, n,
                     session->base.server ? "server" : "client", session->max_message_bytes);
    struct bow_status why = refusal(&text);
    return bow__native_refuse(session, stream, &why);
}

static int refuse_buffered(struct bow__native *session, struct bow__native_stream *stream, size_t n)
{
    struct bow__text text;

    bow__text_clear(&text);
    bow__text_printf(&text,
                     "message of %zu bytes, with %zu of others held on this connection, is above "
                     "BOW_LIMIT_BYTES_IN_FLIGHT (%zu)",
                     n, session->n_buffered + session->n_missing, BOW_LIMIT_BYTES_IN_FLIGHT);
    struct bow_status why = refusal_for_now(session, &text, BOW__CROWDED_RETRY_AFTER_NS);
    return bow__native_refuse(session, stream, &why);
}

static int refuse_flight(struct bow__native *session, struct bow__native_stream *stream, size_t n)
{
    struct bow__text text;

    bow__text_clear(&text);
    bow__text_printf(&text, "no room for a message of %zu bytes: ", n);
    bow__in_flight_describe(session->base.in_flight->in_flight, &text);
    struct bow_status why = refusal_for_now(session, &text, session->base.retry_after_ns);
    return bow__native_refuse(session, stream, &why);
}

static int refuse_no_memory(struct bow__native *session, struct bow__native_stream *stream)
{
    struct bow__text text;

    bow__text_clear(&text);
    bow__text_printf(&text, "out of memory for a message of %zu bytes, %zu have arrived",
                     stream->n_announced, stream->n_arrived);
    struct bow_status why = refusal_for_now(session, &text, session->base.retry_after_ns);
    return bow__native_refuse(session, stream, &why);
}

/* Messages that wait for their rest must all fit below the cap together, or none of them could
 * ever be finished. A single one is bounded by max_message_bytes alone. */
static bool may_buffer(const struct bow__native *session, size_t n)
{
    size_t n_others = session->n_buffered + session->n_missing;

    return n_others == 0 ||
           (n_others < BOW_LIMIT_BYTES_IN_FLIGHT && n <= BOW_LIMIT_BYTES_IN_FLIGHT - n_others);
}

static bool reserve(struct bow__native *session, struct bow__native_stream *stream, size_t n)
{
    if (!bow__in_flight_take_message(session->base.in_flight, n)) {
        return false;
    }
    stream->n_reserved += n;
    return true;
}

int bow__native_message_begin(struct bow__native *session, struct bow__native_stream *stream,
                              size_t announced, bool compressed)
{
    if (announced > session->max_message_bytes) {
        return refuse_too_large(session, stream, announced, "announces");
    }
    if (!may_buffer(session, announced)) {
        return refuse_buffered(session, stream, announced);
    }
    if (!reserve(session, stream, announced)) {
        return refuse_flight(session, stream, announced);
    }
    stream->assembling = true;
    stream->compressed = compressed;
    stream->n_announced = announced;
    stream->n_arrived = 0;
    session->n_missing += announced;
    /* It may have been kept back while none was under way. */
    bow__native_return_connection_credit(session);
    return 0;
}

int bow__native_message_add(struct bow__native *session, struct bow__native_stream *stream,
                            const uint8_t *bytes, size_t n)
{
    size_t total = stream->n_arrived + n;

    if (total > session->max_message_bytes) {
        return refuse_too_large(session, stream, total, "goes on to");
    }
    if (total > stream->n_announced && !may_buffer(session, n)) {
        return refuse_buffered(session, stream, total);
    }
    if (total > stream->n_reserved && !reserve(session, stream, total - stream->n_reserved)) {
        return refuse_flight(session, stream, total);
    }
    if (bow__block_make_room(session->base.context, &stream->block, total, stream->n_announced) <
        0) {
        return refuse_no_memory(session, stream);
    }
    memcpy(stream->block->data + stream->n_arrived, bytes, n);
    bow__native_message_arrived(session, stream, n);
    return 0;
}

void bow__native_message_arrived(struct bow__native *session, struct bow__native_stream *stream,
                                 size_t n)
{
    session->n_missing -= bow__native_stream_missing(stream);
    stream->n_arrived += n;
    session->n_missing += bow__native_stream_missing(stream);
    session->n_buffered += n;
    bow__native_pace_count(session, n);
}

uint8_t *bow__native_message_room(struct bow__native *session, struct bow__native_stream *stream,
                                  size_t n, size_t *ret_len, size_t *ret_behind)
{
    /* What goes beyond its announcement has to be checked, and add() says what is wrong. */
    if (n > bow__native_stream_missing(stream) || n < ROOM_BYTES) {
        return NULL;
    }
    /* As for add(): the block grows by the next bytes, not by all that the frame claims. */
    if (bow__block_make_room(session->base.context, &stream->block, stream->n_arrived + ROOM_BYTES,
                             stream->n_announced) < 0) {
        return NULL;
    }
    size_t n_free = stream->block->cap - stream->n_arrived;
    *ret_len = min_size(n, n_free);
    *ret_behind = min_size(n_free - *ret_len, BEHIND_BYTES);
    return stream->block->data + stream->n_arrived;
}

/* Of a message that came before END, for after it there is no credit to be kept back. */
static void add_overhead(struct bow__native *session, struct bow__native_stream *stream, size_t n)
{
    size_t overhead = bow__frame_cost(true, n) - n;

    stream->n_overhead += overhead;
    session->n_buffered += overhead;
}

static void emit(struct bow__native *session, struct bow__native_stream *stream,
                 struct bow__message *message, bool end)
{
    stream->peer_ended = end;
    if (session->base.server && stream->out_ended) {
        /* Answered already: nobody wants it. */
        bow__native_release_buffered(session, message->bytes.len);
        bow__block_unref(message->block);
        return;
    }
    size_t n = bow__consumed_bytes(message->bytes.len);
    stream->n_unread += n;
    session->n_buffered += n - message->bytes.len;
    if (!end) {
        add_overhead(session, stream, n);
    }
    session->base.events->on_message(session->base.owner, stream->id, stream->user, message, end);
    bow__block_unref(message->block);
}

void bow__native_message_end(struct bow__native *session, struct bow__native_stream *stream,
                             bool end)
{
    struct bow__message message = {
        .bytes = {stream->block != NULL ? stream->block->data : NULL, stream->n_arrived},
        .block = stream->block,
        .compressed = stream->compressed,
        .encoding = (enum bow__encoding)stream->in_encoding,
    };

    session->n_missing -= bow__native_stream_missing(stream);
    stream->assembling = false;
    stream->block = NULL;
    stream->n_arrived = 0;
    /* From here on it is its owner's to count. */
    bow__native_stream_give_reserved(session, stream);
    emit(session, stream, &message, end);
}

void bow__native_message_borrowed(struct bow__native *session, struct bow__native_stream *stream,
                                  struct bow_slice bytes, bool compressed, bool end)
{
    struct bow__message message = {
        .bytes = bytes,
        .compressed = compressed,
        .encoding = (enum bow__encoding)stream->in_encoding,
    };

    session->n_buffered += bytes.len;
    bow__native_note_message(session, bytes.len);
    emit(session, stream, &message, end);
}

/* The host counts bytes, not messages: of what they cost beside, it has done with as large a part.
 */
static size_t overhead_of(const struct bow__native_stream *stream, size_t n)
{
    if (n == stream->n_unread) {
        return stream->n_overhead;
    }
    return (size_t)((uint64_t)stream->n_overhead * n / stream->n_unread);
}

void bow__native_consumed(struct bow__session *base, uint64_t key, size_t n)
{
    struct bow__native *session = bow__native_of(base);
    struct bow__native_stream *stream = bow__native_stream_find(session, key);

    if (stream == NULL) {
        return;
    }
    if (n > stream->n_unread) {
        n = stream->n_unread;
    }
    size_t part = stream->n_overhead > 0 ? overhead_of(stream, n) : 0;
    stream->n_unread -= n;
    stream->n_overhead -= part;
    bow__native_release_buffered(session, n + part);
    bow__native_return_stream_credit(session, stream);
}
