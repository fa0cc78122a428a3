/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * From DATA to messages, each behind its five bytes of prefix (a flag and a length). A message that
 * arrives in one piece is emitted where it lies; another gets a block that grows with what has
 * arrived, not with what was claimed; where much of it is missing, the host may put it there
 * itself. Knows nothing of frames, nor of how what came is granted anew (flow.c).
 */

#include "rpc/core/compression/encodings.h"
#include "rpc/http2/internal.h"

#include <string.h>

/* A copy of less than this costs no more than a system call. */
#define ROOM_BYTES ((size_t)64 << 10)
/* What may be read behind what belongs there: a record of TLS. */
#define BEHIND_BYTES ((size_t)16 << 10)

/* Of a name that the peer chose. */
#define SHOWN_BYTES 32

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static uint32_t get_u32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

bool bow__http2_is_mid_message(const struct bow__http2_stream *stream)
{
    return stream->incoming.n_prefix > 0;
}

static struct bow_slice name_of(const struct bow__http2_header *header)
{
    if (header->encoding != BOW__ENCODING_UNKNOWN) {
        const char *name = bow__encoding_name(header->encoding);
        return (struct bow_slice){(const uint8_t *)name, strlen(name)};
    }
    nghttp2_vec vec = nghttp2_rcbuf_get_buf(header->unknown_encoding);
    return (struct bow_slice){vec.base, vec.len};
}

/* Of a server's answers gRPC says that they are INTERNAL errors then. */
static void refuse_encoding(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    struct bow__text name;

    bow__text_clear(&name);
    bow__text_escape(&name, name_of(&stream->header), SHOWN_BYTES);
    bow__http2_stream_refuse(
        session, stream, session->base.server ? BOW_UNIMPLEMENTED : BOW_INTERNAL,
        "message is compressed with grpc-encoding \"%s\", which is not supported (supported: %s)",
        name.bytes, session->accept_encoding);
}

/* Of a message that is marked compressed; false when it is refused. */
static bool check_encoding(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    enum bow__encoding encoding = stream->header.encoding;

    if (encoding == BOW__ENCODING_IDENTITY) {
        bow__http2_stream_refuse(session, stream, BOW_INTERNAL,
                                 "message is marked compressed without a grpc-encoding in use");
        return false;
    }
    if (encoding == BOW__ENCODING_UNKNOWN || (session->encodings >> encoding & 1u) == 0) {
        refuse_encoding(session, stream);
        return false;
    }
    return true;
}

/* Returns false when the message is refused. */
static bool begin_message(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    struct bow__http2_incoming *incoming = &stream->incoming;
    uint8_t flag = incoming->prefix[0];

    incoming->len = get_u32(incoming->prefix + 1);
    if (flag > 1) {
        bow__http2_stream_refuse(session, stream, BOW_INTERNAL,
                                 "message prefix has flags 0x%02x, only 0x01 is known", flag);
        return false;
    }
    if (incoming->len > session->max_message_bytes) {
        bow__http2_stream_refuse(session, stream, BOW_RESOURCE_EXHAUSTED,
                                 "message of %u bytes exceeds the %s's max_message_bytes (%zu)",
                                 incoming->len, session->base.server ? "server" : "client",
                                 session->max_message_bytes);
        return false;
    }
    return flag == 0 || check_encoding(session, stream);
}

/* A message that comes in pieces finds its room reserved, or it is refused. */
static bool reserve(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    struct bow__http2_incoming *incoming = &stream->incoming;
    struct bow__text text;

    if (incoming->is_reserved) {
        return true;
    }
    if (!bow__in_flight_take_message(session->base.in_flight, incoming->len)) {
        bow__text_clear(&text);
        bow__in_flight_describe(session->base.in_flight->in_flight, &text);
        bow__http2_stream_refuse_for_now(session, stream, "no room for a message of %u bytes: %s",
                                         incoming->len, text.bytes);
        return false;
    }
    incoming->is_reserved = true;
    session->n_under_way++;
    return true;
}

static void emit(struct bow__http2_session *session, struct bow__http2_stream *stream,
                 const uint8_t *bytes, struct bow__block *block, bool end)
{
    struct bow__session *base = &session->base;
    struct bow__message message = {
        .bytes = {block != NULL ? block->data : bytes, stream->incoming.len},
        .block = block,
        .compressed = stream->incoming.prefix[0] == 1,
        .encoding = stream->header.encoding,
    };

    /* From here on it is its owner's to count. */
    bow__http2_incoming_give_reserved(session, &stream->incoming);
    stream->incoming = (struct bow__http2_incoming){0};
    stream->n_unread += bow__consumed_bytes(message.bytes.len);
    /* A client's last event is its status, which trailers bring. */
    end = end && base->server;
    stream->remote_ended = stream->remote_ended || end;
    base->events->on_message(base->owner, stream->key, stream->user, &message, end);
    bow__block_unref(message.block);
}

static bool keep(struct bow__http2_session *session, struct bow__http2_stream *stream,
                 const uint8_t *bytes, size_t n)
{
    struct bow__http2_incoming *incoming = &stream->incoming;

    if (!reserve(session, stream)) {
        return false;
    }
    if (bow__block_make_room(session->base.context, &incoming->block, incoming->n_bytes + n,
                             incoming->len) < 0) {
        bow__http2_stream_refuse_for_now(session, stream, "no memory for a message of %u bytes",
                                         incoming->len);
        return false;
    }
    uint8_t *at = incoming->block->data + incoming->n_bytes;
    if (bytes != at) {
        memcpy(at, bytes, n);
    }
    incoming->n_bytes += (uint32_t)n;
    return true;
}

uint8_t *bow__http2_message_room(struct bow__http2_session *session,
                                 struct bow__http2_stream *stream, size_t n, size_t *ret_len,
                                 size_t *ret_behind)
{
    struct bow__http2_incoming *incoming = &stream->incoming;

    if (!stream->open || !incoming->is_reserved || incoming->n_bytes == 0) {
        return NULL;
    }
    n = min_size(n, incoming->len - incoming->n_bytes);
    /* As for keep(): the block grows by the next bytes, not by all that the message claims. */
    if (n < ROOM_BYTES || bow__block_make_room(session->base.context, &incoming->block,
                                               incoming->n_bytes + ROOM_BYTES, incoming->len) < 0) {
        return NULL;
    }
    size_t n_free = incoming->block->cap - incoming->n_bytes;
    *ret_len = min_size(n, n_free);
    *ret_behind = min_size(n_free - *ret_len, BEHIND_BYTES);
    return incoming->block->data + incoming->n_bytes;
}

/* Takes from the front of `bytes` what belongs to the body. Returns how much; 0 with a length
 * left means that the stream is refused. */
static size_t take_body(struct bow__http2_session *session, struct bow__http2_stream *stream,
                        struct bow_slice bytes, bool last)
{
    struct bow__http2_incoming *incoming = &stream->incoming;
    size_t missing = incoming->len - incoming->n_bytes;
    size_t n = missing < bytes.len ? missing : bytes.len;

    if (n < missing) {
        bow__http2_charge(session, stream, n);
        return keep(session, stream, bytes.data, n) ? n : 0;
    }
    if (incoming->block != NULL && !keep(session, stream, bytes.data, n)) {
        return 0;
    }
    /* Before the event, in which the host may consume it. */
    stream->n_unreturned += n;
    emit(session, stream, bytes.data, incoming->block, last && n == bytes.len);
    return n;
}

static size_t take_prefix(struct bow__http2_session *session, struct bow__http2_stream *stream,
                          struct bow_slice bytes)
{
    struct bow__http2_incoming *incoming = &stream->incoming;
    size_t missing = sizeof(incoming->prefix) - incoming->n_prefix;
    size_t n = missing < bytes.len ? missing : bytes.len;

    memcpy(incoming->prefix + incoming->n_prefix, bytes.data, n);
    incoming->n_prefix = (uint8_t)(incoming->n_prefix + n);
    bow__http2_charge(session, stream, n);
    return n;
}

static struct bow_slice slice_from(struct bow_slice bytes, size_t n)
{
    return (struct bow_slice){bytes.data + n, bytes.len - n};
}

void bow__http2_take(struct bow__http2_session *session, struct bow__http2_stream *stream,
                     struct bow_slice bytes, bool last)
{
    struct bow__http2_incoming *incoming = &stream->incoming;

    if (stream->web != NULL) {
        bow__http2_web_take(session, stream, bytes);
        return;
    }
    while (bytes.len > 0 && stream->open && !session->broken) {
        if (incoming->n_prefix == sizeof(incoming->prefix)) {
            bytes = slice_from(bytes, take_body(session, stream, bytes, last));
            continue;
        }
        bytes = slice_from(bytes, take_prefix(session, stream, bytes));
        if (incoming->n_prefix < sizeof(incoming->prefix)) {
            return;
        }
        if (!begin_message(session, stream)) {
            return;
        }
        bow__quiet_note(&session->small_ns, incoming->len, session->now_ns);
        /* A message of no bytes is a message. */
        if (incoming->len == 0) {
            emit(session, stream, bytes.data, NULL, last && bytes.len == 0);
        }
    }
}

static void end_without_status(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    bow__http2_stream_reset(session, stream, NGHTTP2_NO_ERROR);
    bow__http2_stream_end_with(session, stream, BOW_UNKNOWN,
                               "the peer ended the stream without grpc-status");
}

void bow__http2_take_end(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    struct bow__session *base = &session->base;
    const struct bow__http2_incoming *incoming = &stream->incoming;

    if (!stream->open || stream->remote_ended) {
        return;
    }
    stream->remote_ended = true;
    if (!base->server) {
        end_without_status(session, stream);
        return;
    }
    if (stream->web != NULL) {
        bow__http2_web_take_end(session, stream);
        return;
    }
    if (bow__http2_is_mid_message(stream)) {
        bow__http2_stream_refuse(session, stream, BOW_INTERNAL,
                                 "the stream ended inside a message: %u of its 5 prefix bytes, "
                                 "%u of %u bytes came",
                                 incoming->n_prefix, incoming->n_bytes, incoming->len);
        return;
    }
    base->events->on_half_close(base->owner, stream->key, stream->user);
}
