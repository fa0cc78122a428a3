/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The peer's header blocks while they come in: each field that gRPC knows has its
 * reader, all others are metadata. What is wrong with a block is noted; it is judged when it is
 * whole, so that the answer can say it.
 */

#include "base/alloc.h"
#include "base/base64.h"
#include "base/hints.h"
#include "rpc/core/compression/encodings.h"
#include "rpc/core/metadata.h"
#include "rpc/http2/internal.h"
#include "rpc/web/grpc_text.h"

#include <errno.h>
#include <string.h>

/** A block this many times over the limit, or the default if that is more, is no mistake: the
 * connection ends. */
#define HEADER_BOMB_FACTOR 16u

/* What the metadata of a header takes, and its entries of that: as many as its limit permits, for
 * each is counted. */
#define ENTRIES_BYTES(n_header)                                                                    \
    ((n_header) / BOW__METADATA_ENTRY_BYTES * sizeof(struct bow_metadata_entry))
#define METADATA_BYTES(n_header)                                                                   \
    (ENTRIES_BYTES(n_header) + (n_header) + 2 * ((n_header) / BOW__METADATA_ENTRY_BYTES))
_Static_assert(METADATA_BYTES(BOW_LIMIT_HEADER_BYTES) <= BOW__CHUNK_BYTES,
               "by default metadata fits a chunk");

typedef void (*read_fn)(struct bow__http2_session *session, struct bow__http2_header *header,
                        nghttp2_rcbuf *value);

struct bow__http2_field {
    const char *name;
    size_t len;
    read_fn read;
};

#define FIELD(name, read)                                                                          \
    {                                                                                              \
        name, sizeof(name) - 1, read                                                               \
    }

void bow__http2_header_init(struct bow__http2_header *header)
{
    *header = (struct bow__http2_header){.time_left_ns = BOW_NEVER, .grpc_status = -1};
}

static nghttp2_rcbuf *drop(nghttp2_rcbuf *buf)
{
    if (buf != NULL) {
        nghttp2_rcbuf_decref(buf);
    }
    return NULL;
}

void bow__http2_web_header_end(struct bow__http2_session *session)
{
    struct bow__http2_web_header *header = &session->web_header;

    header->method = drop(header->method);
    header->content_type = drop(header->content_type);
    header->accept_encoding = drop(header->accept_encoding);
}

void bow__http2_header_fini(struct bow__http2_session *session, struct bow__http2_header *header)
{
    header->path = drop(header->path);
    header->timeout = drop(header->timeout);
    header->unknown_encoding = drop(header->unknown_encoding);
    header->unusable_status = drop(header->unusable_status);
    bow__free(session->base.context, header->message, header->message_size);
    bow__free(session->base.context, header->details, header->details_size);
}

static nghttp2_rcbuf *keep(nghttp2_rcbuf *old, nghttp2_rcbuf *value)
{
    drop(old);
    nghttp2_rcbuf_incref(value);
    return value;
}

static bool is_text(struct bow_slice slice, const char *text)
{
    return slice.len == strlen(text) && memcmp(slice.data, text, slice.len) == 0;
}

static BOW__LONG_WAY void refuse_field(struct bow__http2_session *session,
                                       struct bow__http2_header *header)
{
    size_t max = session->max_header_bytes;

    bow__http2_raise_defect(header, BOW__HTTP2_DEFECT_TOO_LARGE);
    max = max > BOW_LIMIT_HEADER_BYTES ? max : BOW_LIMIT_HEADER_BYTES;
    if (header->n_bytes > HEADER_BOMB_FACTOR * max) {
        bow__http2_break(session, NGHTTP2_ENHANCE_YOUR_CALM, -EMSGSIZE, BOW_RESOURCE_EXHAUSTED,
                         "header block of more than %u times max_header_bytes (%zu)",
                         HEADER_BOMB_FACTOR, max);
    }
}

/* Count a field of `n` bytes. Returns whether the block is within the limit. */
static inline bool count_field(struct bow__http2_session *session, struct bow__http2_header *header,
                               size_t n)
{
    header->n_bytes += n + BOW__METADATA_ENTRY_BYTES;
    if (header->n_bytes <= session->max_header_bytes) {
        return true;
    }
    refuse_field(session, header);
    return false;
}

/* Fields that gRPC knows. */

static void read_method(struct bow__http2_session *session, struct bow__http2_header *header,
                        nghttp2_rcbuf *value)
{
    if (!is_text(bow__http2_slice_of(value), "POST")) {
        bow__http2_raise_defect(header, BOW__HTTP2_DEFECT_METHOD);
        session->web_header.method = keep(session->web_header.method, value);
    }
}

static void read_path(struct bow__http2_session *session, struct bow__http2_header *header,
                      nghttp2_rcbuf *value)
{
    (void)session;
    header->path = keep(header->path, value);
}

/* application/grpc, with +proto, with parameters, or both. */
static bool is_grpc(struct bow_slice type)
{
    static const char grpc[] = "application/grpc";
    static const char proto[] = "+proto";
    size_t at = sizeof(grpc) - 1;

    if (type.len < at || memcmp(type.data, grpc, at) != 0) {
        return false;
    }
    if (type.len - at >= sizeof(proto) - 1 &&
        memcmp(type.data + at, proto, sizeof(proto) - 1) == 0) {
        at += sizeof(proto) - 1;
    }
    return at == type.len || type.data[at] == ';';
}

static void read_content_type(struct bow__http2_session *session, struct bow__http2_header *header,
                              nghttp2_rcbuf *value)
{
    header->has_content_type = session->takes_grpc && is_grpc(bow__http2_slice_of(value));
    if (!header->has_content_type) {
        session->web_header.content_type = keep(session->web_header.content_type, value);
    }
}

static void read_timeout(struct bow__http2_session *session, struct bow__http2_header *header,
                         nghttp2_rcbuf *value)
{
    (void)session;
    if (bow__grpc_timeout_decode(bow__http2_slice_of(value), &header->time_left_ns) == 0) {
        /* Clients write the least there is when none is left: it is positive on the wire. */
        header->time_left_ns -= header->time_left_ns == 1;
        return;
    }
    bow__http2_raise_defect(header, BOW__HTTP2_DEFECT_TIMEOUT);
    header->timeout = keep(header->timeout, value);
}

static void read_encoding(struct bow__http2_session *session, struct bow__http2_header *header,
                          nghttp2_rcbuf *value)
{
    (void)session;
    header->encoding = bow__encoding_of(bow__http2_slice_of(value));
    if (header->encoding == BOW__ENCODING_UNKNOWN) {
        header->unknown_encoding = keep(header->unknown_encoding, value);
    }
}

static void read_accept_encoding(struct bow__http2_session *session,
                                 struct bow__http2_header *header, nghttp2_rcbuf *value)
{
    struct bow_slice list = bow__http2_slice_of(value);

    /* Most peers are built as we are. */
    if (list.len == session->n_accept_encoding &&
        memcmp(list.data, session->accept_encoding, list.len) == 0) {
        header->accepts |= session->encodings;
        return;
    }
    header->accepts |= bow__encodings_of(list, NULL);
}

/* A decimal number that is at most `max`; -1 for anything else. */
static int64_t read_number(nghttp2_rcbuf *value, int64_t max)
{
    struct bow_slice text = bow__http2_slice_of(value);
    int64_t number = 0;

    if (text.len == 0) {
        return -1;
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return -1;
        }
        number = number * 10 + (text.data[i] - '0');
        if (number > max) {
            return -1;
        }
    }
    return number;
}

static void read_http_status(struct bow__http2_session *session, struct bow__http2_header *header,
                             nghttp2_rcbuf *value)
{
    (void)session;
    header->http_status = (int)read_number(value, 999);
}

static void read_grpc_status(struct bow__http2_session *session, struct bow__http2_header *header,
                             nghttp2_rcbuf *value)
{
    int64_t number = read_number(value, BOW_UNAUTHENTICATED);

    (void)session;
    header->grpc_status = (int)number;
    if (number < 0) {
        header->grpc_status = BOW_UNKNOWN;
        header->unusable_status = keep(header->unusable_status, value);
    }
}

static void read_message(struct bow__http2_session *session, struct bow__http2_header *header,
                         nghttp2_rcbuf *value)
{
    struct bow_slice text = bow__http2_slice_of(value);
    size_t max = BOW_LIMIT_STATUS_MESSAGE_BYTES;
    size_t size = (text.len < max ? text.len : max) + 1;

    if (header->message != NULL) {
        return;
    }
    header->message = bow__alloc(session->base.context, size);
    if (header->message == NULL) {
        bow__http2_check(session, NGHTTP2_ERR_NOMEM);
        return;
    }
    header->message_size = size;
    bow__grpc_percent_decode(text, header->message, size);
}

/* Details that are no base64 are left out: the code and the message still count. */
static void read_details(struct bow__http2_session *session, struct bow__http2_header *header,
                         nghttp2_rcbuf *value)
{
    struct bow_slice text = bow__http2_slice_of(value);

    if (text.len == 0 || header->details != NULL) {
        return;
    }
    header->details = bow__alloc(session->base.context, text.len);
    if (header->details == NULL) {
        bow__http2_check(session, NGHTTP2_ERR_NOMEM);
        return;
    }
    header->details_size = text.len;
    if (bow__base64_decode(text, header->details, &header->details_len) < 0) {
        header->details_len = 0;
    }
}

static void read_pushback(struct bow__http2_session *session, struct bow__http2_header *header,
                          nghttp2_rcbuf *value)
{
    int64_t ms = read_number(value, INT32_MAX);

    (void)session;
    header->has_pushback = true;
    /* gRPC's A6: what is negative, or no number, asks for no other attempt. */
    header->retry_after_ns = ms < 0 ? BOW_NEVER : (uint64_t)ms * 1000000;
}

/* Nobody's metadata, and no concern of gRPC. */
static void read_web_accept_encoding(struct bow__http2_session *session,
                                     struct bow__http2_header *header, nghttp2_rcbuf *value)
{
    (void)header;
    session->web_header.accept_encoding = keep(session->web_header.accept_encoding, value);
}

#define REQUEST_FIELDS                                                                             \
    FIELD(":method", read_method), FIELD(":path", read_path),                                      \
        FIELD("content-type", read_content_type), FIELD("grpc-timeout", read_timeout),             \
        FIELD("grpc-encoding", read_encoding), FIELD("grpc-accept-encoding", read_accept_encoding)

static const struct bow__http2_field request_fields[] = {
    REQUEST_FIELDS,
    {NULL, 0, NULL},
};

static const struct bow__http2_field web_request_fields[] = {
    REQUEST_FIELDS,
    FIELD("accept-encoding", read_web_accept_encoding),
    {NULL, 0, NULL},
};

static const struct bow__http2_field response_fields[] = {
    FIELD(":status", read_http_status),
    FIELD("content-type", read_content_type),
    FIELD("grpc-encoding", read_encoding),
    FIELD("grpc-accept-encoding", read_accept_encoding),
    FIELD("grpc-status", read_grpc_status),
    FIELD("grpc-message", read_message),
    FIELD("grpc-status-details-bin", read_details),
    FIELD("grpc-retry-pushback-ms", read_pushback),
    {NULL, 0, NULL},
};

static const struct bow__http2_field *find_field(const struct bow__http2_field *fields,
                                                 struct bow_slice name)
{
    for (; fields->name != NULL; fields++) {
        if (fields->len == name.len && memcmp(fields->name, name.data, name.len) == 0) {
            return fields;
        }
    }
    return NULL;
}

/*
 * Metadata, as the host is lent it: in a chunk of the loop's pool, which goes back when the block's
 * event has returned; when more comes than that holds, in a block of its own. What breaks the rules
 * of metadata is left out, field by field: the call is not the worse for it.
 */

static struct bow_metadata_entry *entries_of(struct bow__http2_incoming_metadata *metadata)
{
    return (void *)metadata->chunk->data;
}

void bow__http2_metadata_begin(struct bow__http2_session *session)
{
    session->metadata.n = 0;
    session->metadata.n_bytes = ENTRIES_BYTES(session->metadata.max_bytes);
}

static void release(struct bow__http2_session *session, struct bow__block *chunk)
{
    if (chunk != NULL && chunk->cap == BOW__CHUNK_BYTES) {
        bow__pool_put(session->out.pool, chunk);
        return;
    }
    bow__block_unref(chunk);
}

void bow__http2_metadata_end(struct bow__http2_session *session)
{
    release(session, session->metadata.chunk);
    session->metadata = (struct bow__http2_incoming_metadata){0};
}

struct bow_metadata bow__http2_metadata(struct bow__http2_session *session)
{
    struct bow__http2_incoming_metadata *metadata = &session->metadata;

    if (metadata->n == 0) {
        return (struct bow_metadata)BOW_METADATA_INIT;
    }
    return (struct bow_metadata){entries_of(metadata), metadata->n};
}

/* Where the next text goes. */
static char *top_of(struct bow__http2_incoming_metadata *metadata)
{
    return (char *)metadata->chunk->data + metadata->n_bytes;
}

/* For a header of `n_header` bytes so far: with some more than it needs, for more will come. */
static struct bow__block *new_chunk(struct bow__http2_session *session, size_t n_header,
                                    size_t *ret_max_bytes)
{
    size_t max = session->max_header_bytes;

    if (METADATA_BYTES(max) > BOW__CHUNK_BYTES && n_header <= BOW_LIMIT_HEADER_BYTES) {
        max = BOW_LIMIT_HEADER_BYTES;
    }
    *ret_max_bytes = max;
    if (METADATA_BYTES(max) <= BOW__CHUNK_BYTES) {
        return bow__pool_get(session->out.pool);
    }
    *ret_max_bytes = max < 2 * n_header ? max : 2 * n_header;
    return bow__block_new(session->base.context, METADATA_BYTES(*ret_max_bytes));
}

/* What came so far, to a larger chunk. */
static void move_metadata(struct bow__http2_incoming_metadata *from, struct bow__block *chunk,
                          size_t max_bytes)
{
    const char *old_texts = (const char *)from->chunk->data + ENTRIES_BYTES(from->max_bytes);
    char *texts = (char *)chunk->data + ENTRIES_BYTES(max_bytes);
    size_t n_texts = from->n_bytes - ENTRIES_BYTES(from->max_bytes);
    struct bow_metadata_entry *entries = (void *)chunk->data;

    memcpy(texts, old_texts, n_texts);
    for (size_t i = 0; i < from->n; i++) {
        const struct bow_metadata_entry *entry = &entries_of(from)[i];
        entries[i].key = texts + (entry->key - old_texts);
        entries[i].value = entry->value;
        entries[i].value.data =
            (const uint8_t *)texts + ((const char *)entry->value.data - old_texts);
    }
}

/* Whether all of a header that has `n_header` bytes so far has room. */
static bool has_room(struct bow__http2_session *session, size_t n_header)
{
    struct bow__http2_incoming_metadata *metadata = &session->metadata;
    size_t max_bytes = 0;

    if (metadata->chunk != NULL && n_header <= metadata->max_bytes) {
        return true;
    }
    struct bow__block *chunk = new_chunk(session, n_header, &max_bytes);
    if (chunk == NULL) {
        bow__http2_check(session, NGHTTP2_ERR_NOMEM);
        return false;
    }
    size_t n_texts = 0;
    if (metadata->chunk != NULL) {
        n_texts = metadata->n_bytes - ENTRIES_BYTES(metadata->max_bytes);
        move_metadata(metadata, chunk, max_bytes);
        release(session, metadata->chunk);
    }
    metadata->chunk = chunk;
    metadata->max_bytes = max_bytes;
    metadata->n_bytes = ENTRIES_BYTES(max_bytes) + n_texts;
    return true;
}

static const char *keep_key(struct bow__http2_incoming_metadata *metadata, struct bow_slice name)
{
    char *key = top_of(metadata);

    memcpy(key, name.data, name.len);
    key[name.len] = '\0';
    metadata->n_bytes += name.len + 1;
    return key;
}

/* The value lies at the top; it is kept if the rules permit it. */
static void keep_entry(struct bow__http2_incoming_metadata *metadata, const char *key, size_t len)
{
    char *text = top_of(metadata);
    struct bow_slice value = {(const uint8_t *)text, len};

    if (!bow__metadata_is_valid(key, value)) {
        return;
    }
    text[len] = '\0';
    entries_of(metadata)[metadata->n++] = (struct bow_metadata_entry){key, value};
    metadata->n_bytes += len + 1;
}

static void keep_binary(struct bow__http2_incoming_metadata *metadata, const char *key,
                        struct bow_slice text)
{
    size_t len = 0;

    text = bow__text_trim(text);
    if (bow__base64_decode(text, (uint8_t *)top_of(metadata), &len) == 0) {
        keep_entry(metadata, key, len);
    }
}

/* HTTP may have joined several fields of one name with commas, which base64 has none of. Returns
 * whether all of them are within the limit. */
static bool count_joined(struct bow__http2_session *session, struct bow__http2_header *header,
                         size_t n_key, struct bow_slice text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == ',' && !count_field(session, header, n_key)) {
            return false;
        }
    }
    return true;
}

static void keep_binaries(struct bow__http2_incoming_metadata *metadata, const char *key,
                          struct bow_slice text)
{
    const uint8_t *comma = NULL;

    while (text.len > 0 && (comma = memchr(text.data, ',', text.len)) != NULL) {
        size_t len = (size_t)(comma - text.data);
        keep_binary(metadata, key, (struct bow_slice){text.data, len});
        text = (struct bow_slice){comma + 1, text.len - len - 1};
    }
    keep_binary(metadata, key, text);
}

/* A field that has been counted, if it is metadata. */
static void keep_metadata(struct bow__http2_session *session, struct bow__http2_header *header,
                          struct bow_slice name, struct bow_slice value)
{
    struct bow__http2_incoming_metadata *metadata = &session->metadata;

    /* Before anything is kept: every gRPC client's calls have a user-agent. */
    if (bow__metadata_is_reserved(name)) {
        return;
    }
    bow__work_spend(&session->base.work, BOW__WORK_FIELD_BYTES / 2);
    bool is_binary = bow__http2_is_binary((const char *)name.data, name.len);
    if ((is_binary && !count_joined(session, header, name.len, value)) ||
        !has_room(session, header->n_bytes)) {
        return;
    }
    const char *key = keep_key(metadata, name);
    if (is_binary) {
        keep_binaries(metadata, key, value);
        return;
    }
    value = bow__text_trim(value);
    if (value.len > 0) {
        memcpy(top_of(metadata), value.data, value.len);
    }
    keep_entry(metadata, key, value.len);
}

void bow__http2_choose_fields(struct bow__http2_session *session)
{
    session->fields = !session->base.server  ? response_fields
                      : session->web != NULL ? web_request_fields
                                             : request_fields;
}

static void read_field(struct bow__http2_session *session, struct bow__http2_stream *stream,
                       nghttp2_rcbuf *name, nghttp2_rcbuf *value)
{
    const struct bow__http2_field *field = find_field(session->fields, bow__http2_slice_of(name));

    if (field != NULL) {
        field->read(session, &stream->header, value);
        return;
    }
    keep_metadata(session, &stream->header, bow__http2_slice_of(name), bow__http2_slice_of(value));
}

int bow__http2_on_header(nghttp2_session *ng, const nghttp2_frame *frame, nghttp2_rcbuf *name,
                         nghttp2_rcbuf *value, uint8_t flags, void *user)
{
    struct bow__http2_session *session = user;
    struct bow__http2_stream *stream = bow__http2_stream_of_id(session, frame->hd.stream_id);
    size_t n_bytes = bow__http2_slice_of(name).len + bow__http2_slice_of(value).len;

    (void)ng;
    (void)flags;
    bow__work_spend(&session->base.work, BOW__WORK_FIELD_BYTES / 2 + n_bytes);
    if (stream != NULL && count_field(session, &stream->header, n_bytes)) {
        /* A client's trailers say nothing that we know. */
        bool skip = session->base.server && frame->headers.cat != NGHTTP2_HCAT_REQUEST;
        if (!skip) {
            read_field(session, stream, name, value);
        }
    }
    return session->broken ? NGHTTP2_ERR_CALLBACK_FAILURE : 0;
}
