/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The header blocks that we send: requests, answers, trailers. Constant names
 * and values are lent to nghttp2, others it copies.
 */

#include "base/alloc.h"
#include "rpc/core/compress.h"
#include "rpc/http2/codes.h"
#include "rpc/http2/grpc_text.h"
#include "rpc/http2/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define USER_AGENT "grpc-c-bowline/" BOW__VERSION

/** Left for a block's other fields when the status texts are measured. */
#define BLOCK_SPARE_BYTES ((size_t)1 << 10)

#define MAX_FIELDS ((size_t)12)
/* The smallest field counts for 33 bytes, and all together for no more than the header limit. */
#define MAX_ALL_FIELDS (MAX_FIELDS + BOW_LIMIT_HEADER_BYTES / 33)
#define MAX_PUSHBACK_BYTES ((size_t)24)

struct block {
    nghttp2_nv fields[MAX_ALL_FIELDS];
    size_t n_fields;
    char pushback[MAX_PUSHBACK_BYTES];
};

static void add(struct block *block, const char *name, const void *value, size_t len,
                unsigned flags)
{
    assert(block->n_fields < MAX_ALL_FIELDS);
    /* nghttp2_nv has no const form; nothing writes through it */
    block->fields[block->n_fields++] = (nghttp2_nv){
        .name = (uint8_t *)(uintptr_t)name,
        .value = (uint8_t *)(uintptr_t)value,
        .namelen = strlen(name),
        .valuelen = len,
        .flags = (uint8_t)(NGHTTP2_NV_FLAG_NO_COPY_NAME | flags),
    };
}

/* A value that stays where it is for as long as the stream lives. */
static void add_lent(struct block *block, const char *name, const char *value, size_t len)
{
    add(block, name, value, len, NGHTTP2_NV_FLAG_NO_COPY_VALUE);
}

static void add_constant(struct block *block, const char *name, const char *value)
{
    add_lent(block, name, value, strlen(value));
}

/* nghttp2 copies it. */
static void add_metadata(struct block *block, const struct bow__http2_fields *fields)
{
    for (size_t i = 0; fields != NULL && i < fields->n; i++) {
        assert(block->n_fields < MAX_ALL_FIELDS);
        block->fields[block->n_fields++] = fields->nvs[i];
    }
}

static void add_encoding(struct block *block, enum bow__encoding encoding)
{
    if (encoding != BOW__ENCODING_IDENTITY) {
        add_constant(block, "grpc-encoding", bow__encoding_name(encoding));
    }
}

static int result_of(int rv)
{
    return rv < 0 ? -ENOMEM : 0;
}

int bow__http2_submit_request(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    nghttp2_data_provider provider = {{.ptr = stream}, bow__http2_read_data};
    char timeout[BOW__GRPC_TIMEOUT_BYTES];
    struct block block;

    block.n_fields = 0;
    add_constant(&block, ":method", "POST");
    add_constant(&block, ":scheme", "http");
    add_lent(&block, ":path", stream->path, stream->path_len);
    add_constant(&block, ":authority", session->authority);
    add_constant(&block, "te", "trailers");
    add_constant(&block, "content-type", "application/grpc");
    add_constant(&block, "user-agent", USER_AGENT);
    add_constant(&block, "grpc-accept-encoding", session->accept_encoding);
    add_encoding(&block, stream->encoding);
    if (stream->time_left_ns != BOW_NEVER) {
        size_t len = bow__grpc_timeout_encode(stream->time_left_ns, timeout);
        /* Hardly two calls have the same: the peer's table is for better things. */
        add(&block, "grpc-timeout", timeout, len, NGHTTP2_NV_FLAG_NO_INDEX);
    }
    add_metadata(&block, stream->fields);
    int32_t id =
        nghttp2_submit_request(session->ng, NULL, block.fields, block.n_fields, &provider, stream);
    if (id < 0) {
        return -ENOMEM;
    }
    stream->id = id;
    bow__http2_fields_free(session, stream->fields);
    stream->fields = NULL;
    session->are_ids_used_up = nghttp2_session_get_next_stream_id(session->ng) > INT32_MAX;
    return 0;
}

static void add_answer(const struct bow__http2_session *session, struct block *block)
{
    block->n_fields = 0;
    add_constant(block, ":status", "200");
    add_constant(block, "content-type", "application/grpc");
    add_constant(block, "grpc-accept-encoding", session->accept_encoding);
}

int bow__http2_submit_response(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    nghttp2_data_provider provider = {{.ptr = stream}, bow__http2_read_data};
    struct block block;

    add_answer(session, &block);
    add_encoding(&block, stream->encoding);
    add_metadata(&block, stream->fields);
    int rv =
        nghttp2_submit_response(session->ng, stream->id, block.fields, block.n_fields, &provider);
    if (rv == 0) {
        stream->has_begun = true;
        bow__http2_fields_free(session, stream->fields);
        stream->fields = NULL;
    }
    return result_of(rv);
}

int bow__http2_submit_http_error(struct bow__http2_session *session,
                                 struct bow__http2_stream *stream, const char *http_status)
{
    struct block block;

    block.n_fields = 0;
    add_constant(&block, ":status", http_status);
    int rv = nghttp2_submit_response(session->ng, stream->id, block.fields, block.n_fields, NULL);
    if (rv == 0) {
        stream->has_begun = true;
        stream->local_ended = true;
    }
    return rv;
}

static const char *number_of_code(enum bow_code code)
{
    static const char *const numbers[] = {"0", "1",  "2",  "3",  "4",  "5",  "6",  "7", "8",
                                          "9", "10", "11", "12", "13", "14", "15", "16"};
    size_t number = (size_t)code;

    return number < sizeof(numbers) / sizeof(numbers[0]) ? numbers[number] : numbers[BOW_UNKNOWN];
}

static void add_trailers(struct block *block, const struct bow__http2_trailers *trailers)
{
    add_constant(block, "grpc-status", number_of_code(trailers != NULL ? trailers->code : BOW_OK));
    if (trailers == NULL) {
        return;
    }
    if (trailers->message_len > 0) {
        add(block, "grpc-message", trailers->texts, trailers->message_len,
            NGHTTP2_NV_FLAG_NO_INDEX);
    }
    if (trailers->details_len > 0) {
        add(block, "grpc-status-details-bin", trailers->texts + trailers->message_len,
            trailers->details_len, NGHTTP2_NV_FLAG_NO_INDEX);
    }
    if (trailers->retry_after_ms > 0) {
        int len = snprintf(block->pushback, sizeof(block->pushback), "%llu",
                           (unsigned long long)trailers->retry_after_ms);
        add(block, "grpc-retry-pushback-ms", block->pushback, (size_t)len, 0);
    }
    add_metadata(block, trailers->fields);
}

void bow__http2_trailers_free(struct bow__http2_session *session,
                              struct bow__http2_trailers *trailers)
{
    if (trailers != NULL) {
        bow__http2_fields_free(session, trailers->fields);
        bow__free(session->base.context, trailers, trailers->size);
    }
}

int bow__http2_submit_trailers(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    struct block block;

    block.n_fields = 0;
    add_trailers(&block, stream->trailers);
    int rv = nghttp2_submit_trailer(session->ng, stream->id, block.fields, block.n_fields);
    stream->has_ended = rv == 0;
    return result_of(rv);
}

/* An answer that is nothing but its status ("Trailers-Only"). */
static int submit_status(struct bow__http2_session *session, struct bow__http2_stream *stream,
                         const struct bow__http2_trailers *trailers)
{
    struct block block;

    add_answer(session, &block);
    add_metadata(&block, stream->fields);
    add_trailers(&block, trailers);
    int rv = nghttp2_submit_response(session->ng, stream->id, block.fields, block.n_fields, NULL);
    if (rv == 0) {
        stream->has_begun = true;
    }
    return result_of(rv);
}

/* The message, cut to what we send and to what the peer says it takes. */
static struct bow_slice message_of(const struct bow_status *status, size_t room)
{
    struct bow_slice text = {(const uint8_t *)status->message, strlen(status->message)};

    text.len = bow__grpc_text_cut(text, BOW_LIMIT_STATUS_MESSAGE_BYTES);
    if (bow__grpc_percent_size(text) > room) {
        text.len = bow__grpc_text_cut(text, room / 3);
    }
    return text;
}

static size_t room_for_texts(const struct bow__http2_session *session)
{
    size_t room =
        nghttp2_session_get_remote_settings(session->ng, NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE);

    room = room < BOW_LIMIT_HEADER_BYTES ? room : BOW_LIMIT_HEADER_BYTES;
    return room > BLOCK_SPARE_BYTES ? room - BLOCK_SPARE_BYTES : 0;
}

/* Encode the status; NULL stands for OK without a text. Details, and metadata, that do not fit are
 * left out. */
static int encode_trailers(struct bow__http2_session *session, const struct bow_status *status,
                           struct bow__http2_trailers **ret_trailers)
{
    size_t room = room_for_texts(session);
    struct bow_slice message = message_of(status, room);
    struct bow_slice details = status->details;
    size_t message_size = bow__grpc_percent_size(message);

    if (status->code == BOW_OK && message.len == 0 && details.len == 0 && status->metadata.n == 0) {
        *ret_trailers = NULL;
        return 0;
    }
    if (details.len > room || bow__base64_size(details.len) > room - message_size) {
        details.len = 0;
    }
    size_t size = sizeof(struct bow__http2_trailers) + message_size + bow__base64_size(details.len);
    struct bow__http2_trailers *trailers = bow__alloc_zero(session->base.context, size);
    if (trailers == NULL) {
        return -ENOMEM;
    }
    trailers->size = size;
    trailers->code = status->code;
    trailers->retry_after_ms =
        status->retry_after_ns / 1000000 + (status->retry_after_ns % 1000000 != 0);
    trailers->message_len = bow__grpc_percent_encode(message, trailers->texts);
    trailers->details_len = bow__base64_encode(details, trailers->texts + message_size);
    size_t n_texts = message_size + trailers->details_len;
    bool fits = bow__http2_wire_bytes(&status->metadata) <= (room > n_texts ? room - n_texts : 0);
    if (fits && bow__http2_fields_new(session, &status->metadata, &trailers->fields) < 0) {
        bow__http2_trailers_free(session, trailers);
        return -ENOMEM;
    }
    *ret_trailers = trailers;
    return 0;
}

/* With messages that wait, the last of them brings the trailers. Without, they need no window. */
static int end_begun(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    if (stream->n_queued == 0) {
        int rc = bow__http2_submit_trailers(session, stream);
        if (rc < 0) {
            return rc;
        }
    }
    bow__http2_end_local(session, stream);
    bow__http2_resume(session, stream);
    return 0;
}

int bow__http2_end_answer(struct bow__http2_session *session, struct bow__http2_stream *stream,
                          const struct bow_status *status)
{
    struct bow__http2_trailers *trailers = NULL;

    if (session->broken || stream->closed || stream->local_ended) {
        return 0;
    }
    int rc = encode_trailers(session, status, &trailers);
    if (rc < 0) {
        return rc;
    }
    if (stream->has_begun) {
        stream->trailers = trailers;
        return end_begun(session, stream);
    }
    rc = submit_status(session, stream, trailers);
    bow__http2_trailers_free(session, trailers);
    stream->local_ended = rc == 0;
    return rc;
}

int bow__http2_respond(struct bow__session *base, uint64_t key, const struct bow_metadata *metadata,
                       enum bow__encoding encoding)
{
    struct bow__http2_session *session = (struct bow__http2_session *)base;
    struct bow__http2_stream *stream = bow__http2_stream_find(session, key);

    if (stream == NULL || stream->local_ended || stream->closed || session->broken) {
        return -ENOENT;
    }
    assert(base->server && !stream->has_begun);
    if (bow__http2_wire_bytes(metadata) > room_for_texts(session)) {
        return -EMSGSIZE;
    }
    stream->encoding = encoding;
    if (metadata->n == 0) {
        return 0;
    }
    int rc = bow__http2_fields_new(session, metadata, &stream->fields);
    return rc < 0 ? rc : bow__http2_submit_response(session, stream);
}

/* Nobody waits any more, so nothing that only the client could move along may hold the end up. */
static bool drops_messages(const struct bow_status *status)
{
    return status->code == BOW_DEADLINE_EXCEEDED || status->code == BOW_CANCELLED;
}

static int finish_open(struct bow__http2_session *session, struct bow__http2_stream *stream,
                       const struct bow_status *status)
{
    /* The only way that HTTP/2 has to say so, and clients then try elsewhere by themselves. */
    if (status->not_processed && status->code == BOW_UNAVAILABLE && !stream->has_begun) {
        bow__http2_stream_reset(session, stream, NGHTTP2_REFUSED_STREAM);
        return 0;
    }
    if (drops_messages(status)) {
        bow__http2_drop_queue(session, stream);
    }
    int rc = bow__http2_end_answer(session, stream, status);
    if (rc < 0) {
        bow__http2_stream_reset(session, stream, bow__http2_reset_of_code(status->code));
    }
    return rc;
}

int bow__http2_finish(struct bow__session *base, uint64_t key, const struct bow_status *status)
{
    struct bow__http2_session *session = (struct bow__http2_session *)base;
    struct bow__http2_stream *stream = bow__http2_stream_find(session, key);

    if (stream == NULL) {
        return -ENOENT;
    }
    /* Whatever comes of it, the host has said its last word on the call and hears no more of it. */
    if (!bow__http2_stream_drop(session, stream) || session->broken) {
        return -ENOENT;
    }
    return finish_open(session, stream, status);
}
