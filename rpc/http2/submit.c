/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What goes to nghttp2 to be sent on a stream: header blocks of requests, answers and trailers,
 * metadata in them, and whence the DATA behind them comes. Constant names
 * and values are lent to nghttp2, others it copies.
 */

#include "base/alloc.h"
#include "base/base64.h"
#include "rpc/core/compression/encodings.h"
#include "rpc/core/header_limit.h"
#include "rpc/core/metadata.h"
#include "rpc/http2/internal.h"
#include "rpc/web/grpc_text.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/** What a block's own fields take, without path, authority and the status's texts, generously. */
#define BLOCK_SPARE_BYTES ((size_t)1 << 10)

#define MAX_PUSHBACK_BYTES ((size_t)24)

/* Metadata: one allocation, with room in front for the fields that gRPC itself puts there, so that
 * all of them stand together. */

bool bow__http2_is_binary(const char *key, size_t len)
{
    return len >= 4 && memcmp(key + len - 4, "-bin", 4) == 0;
}

static size_t value_size(const struct bow_metadata_entry *entry, size_t key_len)
{
    bool is_binary = bow__http2_is_binary(entry->key, key_len);

    return is_binary ? bow__base64_size(entry->value.len) : entry->value.len;
}

size_t bow__http2_fields_bytes(const struct bow_metadata *metadata)
{
    size_t n = 0;

    for (size_t i = 0; i < metadata->n; i++) {
        const struct bow_metadata_entry *entry = &metadata->entries[i];
        size_t key_len = strlen(entry->key);
        n += key_len + value_size(entry, key_len) + BOW__METADATA_ENTRY_BYTES;
    }
    return n;
}

static size_t longest_value(const struct bow_metadata *metadata)
{
    size_t n = 0;

    for (size_t i = 0; i < metadata->n; i++) {
        const struct bow_metadata_entry *entry = &metadata->entries[i];
        size_t n_value = value_size(entry, strlen(entry->key));
        n = n_value > n ? n_value : n;
    }
    return n;
}

bool bow__http2_fits_values(const struct bow_metadata *metadata)
{
    return longest_value(metadata) <= BOW__HTTP2_VALUE_BYTES;
}

/* Writes the entry's texts at `*at`, which moves behind them. */
static nghttp2_nv put_entry(const struct bow_metadata_entry *entry, char **at)
{
    struct bow_slice value = entry->value;
    nghttp2_nv field = {.name = (uint8_t *)*at, .namelen = strlen(entry->key)};

    memcpy(*at, entry->key, field.namelen);
    *at += field.namelen;
    field.value = (uint8_t *)*at;
    field.valuelen = value.len;
    if (bow__http2_is_binary(entry->key, field.namelen)) {
        field.valuelen = bow__base64_encode(value, *at);
    } else if (value.len > 0) {
        memcpy(*at, value.data, value.len);
    }
    *at += field.valuelen;
    return field;
}

int bow__http2_fields_new(struct bow__http2_session *session, const struct bow_metadata *metadata,
                          struct bow__http2_fields **ret_fields)
{
    size_t size = sizeof(struct bow__http2_fields) + metadata->n * sizeof(nghttp2_nv) +
                  bow__http2_fields_bytes(metadata);

    *ret_fields = NULL;
    if (metadata->n == 0) {
        return 0;
    }
    struct bow__http2_fields *fields = bow__alloc(session->base.context, size);
    if (fields == NULL) {
        return -ENOMEM;
    }
    fields->size = size;
    fields->n = metadata->n;
    char *at = (char *)(fields->own + metadata->n);
    for (size_t i = 0; i < metadata->n; i++) {
        fields->own[i] = put_entry(&metadata->entries[i], &at);
    }
    *ret_fields = fields;
    return 0;
}

struct bow__http2_fields *bow__http2_fields_free(struct bow__http2_session *session,
                                                 struct bow__http2_fields *fields)
{
    if (fields != NULL) {
        bow__free(session->base.context, fields, fields->size);
    }
    return NULL;
}

struct bow__http2_trailers *bow__http2_trailers_free(struct bow__http2_session *session,
                                                     struct bow__http2_trailers *trailers)
{
    if (trailers != NULL) {
        bow__http2_fields_free(session, trailers->fields);
        bow__free(session->base.context, trailers, trailers->size);
    }
    return NULL;
}

/* Blocks. */

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
        long long ms =
            trailers->retry_after_ms > INT64_MAX ? -1 : (long long)trailers->retry_after_ms;
        int len = snprintf(block->pushback, sizeof(block->pushback), "%lld", ms);
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

/*
 * nghttp2's data provider of a stream: it counts what waits; nghttp2_send.c writes it. The trailers
 * are submitted when the last of it is asked for.
 */
static ssize_t read_data(nghttp2_session *ng, int32_t id, uint8_t *bytes, size_t len,
                         uint32_t *data_flags, nghttp2_data_source *source, void *user)
{
    struct bow__http2_session *session = user;
    struct bow__http2_stream *stream = source->ptr;
    size_t n = stream->n_queued < len ? stream->n_queued : len;

    (void)ng;
    (void)id;
    (void)bytes;
    if (n == 0 && (!stream->local_ended || stream->has_ended)) {
        return NGHTTP2_ERR_DEFERRED;
    }
    if (n > 0) {
        *data_flags |= NGHTTP2_DATA_FLAG_NO_COPY;
    }
    if (n < stream->n_queued || !stream->local_ended) {
        return (ssize_t)n;
    }
    *data_flags |= NGHTTP2_DATA_FLAG_EOF;
    if (session->base.server && stream->web == NULL) {
        /* Queued now, they follow this frame. */
        *data_flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        if (bow__http2_submit_trailers(session, stream) < 0) {
            bow__http2_check(session, NGHTTP2_ERR_NOMEM);
            return NGHTTP2_ERR_CALLBACK_FAILURE;
        }
    }
    return (ssize_t)n;
}

void bow__http2_resume(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    /* It refuses when the data was not deferred, and then nothing is to be done. */
    bow__http2_check(session, nghttp2_session_resume_data(session->ng, stream->id));
}

int bow__http2_submit_request(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    nghttp2_data_provider provider = {{.ptr = stream}, read_data};
    char timeout[BOW__GRPC_TIMEOUT_BYTES];
    char attempts[12];
    struct block block = {.n_fields = 0};

    add_constant(&block, ":method", "POST");
    add_constant(&block, ":scheme", session->scheme);
    add_lent(&block, ":path", stream->path, stream->path_len);
    add_constant(&block, ":authority", session->authority);
    add_constant(&block, "te", "trailers");
    add_constant(&block, "content-type", "application/grpc");
    add_constant(&block, "user-agent", session->user_agent);
    add_constant(&block, "grpc-accept-encoding", session->accept_encoding);
    add_encoding(&block, stream->encoding);
    if (stream->time_left_ns != BOW_NEVER) {
        size_t len = bow__grpc_timeout_encode(stream->time_left_ns, timeout);
        /* Hardly two calls have the same: the peer's table is for better things. */
        add(&block, "grpc-timeout", timeout, len, NGHTTP2_NV_FLAG_NO_INDEX);
    }
    if (stream->previous_attempts > 0) {
        int len = snprintf(attempts, sizeof(attempts), "%u", stream->previous_attempts);
        add(&block, "grpc-previous-rpc-attempts", attempts, (size_t)len, 0);
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
    nghttp2_data_provider provider = {{.ptr = stream}, read_data};
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

/* nghttp2 copies what it is given. */
static nghttp2_nv field_of(struct bow_slice name, struct bow_slice value)
{
    return (nghttp2_nv){
        .name = (uint8_t *)(uintptr_t)name.data,
        .value = (uint8_t *)(uintptr_t)value.data,
        .namelen = name.len,
        .valuelen = value.len,
    };
}

int bow__http2_submit_fields(struct bow__http2_session *session, struct bow__http2_stream *stream,
                             const char *http_status, const struct bow__web_field *fields,
                             size_t n_fields, bool has_body)
{
    nghttp2_data_provider provider = {{.ptr = stream}, read_data};
    size_t size = (n_fields + 1) * sizeof(nghttp2_nv);
    nghttp2_nv *block = bow__pool_alloc(session->out.pool, size);

    if (block == NULL) {
        return -ENOMEM;
    }
    block[0] = field_of(bow__web_text(":status"), bow__web_text(http_status));
    for (size_t i = 0; i < n_fields; i++) {
        block[i + 1] = field_of(fields[i].name, fields[i].value);
    }
    int rv = nghttp2_submit_response(session->ng, stream->id, block, n_fields + 1,
                                     has_body ? &provider : NULL);
    bow__pool_free(session->out.pool, block, size);
    stream->has_begun = stream->has_begun || rv == 0;
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

/* What a peer takes that has not said it yet may be less, or more. */
static size_t max_header_bytes(const struct bow__http2_session *session)
{
    return session->has_settings ? bow__header_limit_to_send(nghttp2_session_get_remote_settings(
                                       session->ng, NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE))
                                 : BOW_LIMIT_HEADER_BYTES;
}

int bow__http2_check_header(struct bow__http2_session *session, size_t n_own,
                            const struct bow_metadata *metadata)
{
    size_t n = n_own + bow__http2_fields_bytes(metadata) + BLOCK_SPARE_BYTES;
    size_t max = max_header_bytes(session);

    if (n > max && !session->has_settings && n <= BOW_LIMIT_HEADER_BYTES_MAX) {
        session->needs_settings = true;
        return -EAGAIN;
    }
    if (n > max) {
        return bow__header_limit_refuse(&session->base, n, max);
    }
    n = longest_value(metadata);
    n = n > n_own ? n : n_own;
    if (n > BOW__HTTP2_VALUE_BYTES) {
        session->base.excess = (struct bow__header_excess){
            .n_bytes = n, .max_bytes = BOW__HTTP2_VALUE_BYTES, .is_value = true};
        return -EMSGSIZE;
    }
    return 0;
}

size_t bow__http2_header_room(const struct bow__http2_session *session)
{
    size_t room = max_header_bytes(session);

    return room > BLOCK_SPARE_BYTES ? room - BLOCK_SPARE_BYTES : 0;
}
