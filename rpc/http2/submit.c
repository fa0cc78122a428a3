/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The header blocks that we send: requests, answers, trailers. Constant names
 * and values are lent to nghttp2, others it copies.
 */

#include "rpc/core/compression/compress.h"
#include "rpc/http2/grpc_text.h"
#include "rpc/http2/internal.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define USER_AGENT "grpc-c-bowline/" BOW__VERSION

/** What a block's own fields take, without path, authority and the status's texts, generously. */
#define BLOCK_SPARE_BYTES ((size_t)1 << 10)

#define MAX_PUSHBACK_BYTES ((size_t)24)

struct block {
    nghttp2_nv fields[BOW__HTTP2_MAX_FIELDS];
    size_t n_fields;
    char pushback[MAX_PUSHBACK_BYTES];
};

static void add(struct block *block, const char *name, const void *value, size_t len,
                unsigned flags)
{
    assert(block->n_fields < BOW__HTTP2_MAX_FIELDS);
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

/* The block's fields with those of the metadata behind them. */
static const nghttp2_nv *join(const struct block *block, struct bow__http2_fields *metadata,
                              size_t *ret_n)
{
    *ret_n = block->n_fields;
    if (metadata == NULL) {
        return block->fields;
    }
    nghttp2_nv *first = metadata->own - block->n_fields;
    memcpy(first, block->fields, block->n_fields * sizeof(*first));
    *ret_n += metadata->n;
    return first;
}

int bow__http2_submit_request(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    nghttp2_data_provider provider = {{.ptr = stream}, bow__http2_read_data};
    char timeout[BOW__GRPC_TIMEOUT_BYTES];
    struct block block = {.n_fields = 0};

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
    size_t n = 0;
    const nghttp2_nv *fields = join(&block, stream->fields, &n);
    int32_t id = nghttp2_submit_request(session->ng, NULL, fields, n, &provider, stream);
    if (id < 0) {
        return -ENOMEM;
    }
    stream->id = id;
    stream->fields = bow__http2_fields_free(session, stream->fields);
    session->are_ids_used_up = nghttp2_session_get_next_stream_id(session->ng) > INT32_MAX;
    return 0;
}

static void add_answer(const struct bow__http2_session *session, struct block *block)
{
    add_constant(block, ":status", "200");
    add_constant(block, "content-type", "application/grpc");
    add_constant(block, "grpc-accept-encoding", session->accept_encoding);
}

int bow__http2_submit_response(struct bow__http2_session *session, struct bow__http2_stream *stream,
                               struct bow__http2_fields *metadata)
{
    nghttp2_data_provider provider = {{.ptr = stream}, bow__http2_read_data};
    struct block block = {.n_fields = 0};
    size_t n = 0;

    add_answer(session, &block);
    add_encoding(&block, stream->encoding);
    const nghttp2_nv *fields = join(&block, metadata, &n);
    int rv = nghttp2_submit_response(session->ng, stream->id, fields, n, &provider);
    if (rv == 0) {
        stream->has_begun = true;
    }
    return result_of(rv);
}

int bow__http2_submit_http_error(struct bow__http2_session *session,
                                 struct bow__http2_stream *stream, const char *http_status)
{
    struct block block = {.n_fields = 0};

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
}

int bow__http2_submit_trailers(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    struct bow__http2_trailers *trailers = stream->trailers;
    struct block block = {.n_fields = 0};
    size_t n = 0;

    add_trailers(&block, trailers);
    const nghttp2_nv *fields = join(&block, trailers != NULL ? trailers->fields : NULL, &n);
    int rv = nghttp2_submit_trailer(session->ng, stream->id, fields, n);
    stream->has_ended = rv == 0;
    return result_of(rv);
}

int bow__http2_submit_status(struct bow__http2_session *session, struct bow__http2_stream *stream,
                             const struct bow__http2_trailers *trailers)
{
    struct block block = {.n_fields = 0};
    size_t n = 0;

    add_answer(session, &block);
    add_trailers(&block, trailers);
    const nghttp2_nv *fields = join(&block, trailers != NULL ? trailers->fields : NULL, &n);
    int rv = nghttp2_submit_response(session->ng, stream->id, fields, n, NULL);
    if (rv == 0) {
        stream->has_begun = true;
    }
    return result_of(rv);
}

size_t bow__http2_header_room(const struct bow__http2_session *session)
{
    size_t room =
        nghttp2_session_get_remote_settings(session->ng, NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE);

    room = room < BOW_LIMIT_HEADER_BYTES ? room : BOW_LIMIT_HEADER_BYTES;
    return room > BLOCK_SPARE_BYTES ? room - BLOCK_SPARE_BYTES : 0;
}
