/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What heads of requests mean: which protocol and codec, whether the method may be called so, from
 * which page; and messages out of bodies.
 */

#include "rpc/web/request.h"
#include "base/base64.h"
#include "rpc/core/compression/compression.h"
#include "rpc/core/registry.h"
#include "rpc/web/content_type.h"
#include "rpc/web/message_json.h"
#include "rpc/web/origins.h"
#include "rpc/web/page.h"
#include "rpc/web/query.h"
#include <bowline/server.h>

#include <errno.h>
#include <stdint.h>
#include <string.h>

#define SHOWN_BYTES 64

/* Connect's, at most. */
#define TIMEOUT_DIGITS 10
#define NS_PER_MS UINT64_C(1000000)

/* Of a preflight, in seconds: the most that browsers keep it. */
#define PREFLIGHT_AGE "7200"

static bool is_text(struct bow_slice slice, const char *text)
{
    return slice.len == strlen(text) && memcmp(slice.data, text, slice.len) == 0;
}

/* Refusing */

static int refuse_http(struct bow__web_call *call, const char *status)
{
    call->kind = BOW__WEB_NONE;
    call->http_status = status;
    return -EPROTO;
}

static int refuse_method(struct bow__web_call *call, const char *allowed)
{
    bow__web_fields_add(&call->fields, &call->arena, "allow", bow__web_text(allowed));
    return refuse_http(call, "405");
}

static int refuse_type(struct bow__web_call *call)
{
    bow__web_fields_add(&call->fields, &call->arena, "accept-post",
                        bow__web_text(bow__web_content_types()));
    return refuse_http(call, "415");
}

static int refuse(struct bow__web_call *call, enum bow_code code)
{
    call->code = code;
    return -EPROTO;
}

/* The fields of the head that are no metadata */

struct own_fields {
    struct bow_slice version;
    struct bow_slice timeout;
    struct bow_slice content_encoding;
    struct bow_slice stream_encoding;
    struct bow_slice stream_accepts;
    struct bow_slice origin;
    struct bow_slice asked_method;
    struct bow_slice asked_headers;
};

/* Where the field goes that has this name; NULL: it is metadata. */
static struct bow_slice *find_own(struct own_fields *own, const char *name, bool *ret_is_kept)
{
    const struct {
        const char *name;
        struct bow_slice *value;
        bool is_kept;
    } names[] = {
        {"connect-protocol-version", &own->version, false},
        {"connect-timeout-ms", &own->timeout, false},
        {"connect-content-encoding", &own->stream_encoding, false},
        {"connect-accept-encoding", &own->stream_accepts, false},
        {"content-encoding", &own->content_encoding, false},
        {"origin", &own->origin, true},
        {"access-control-request-method", &own->asked_method, false},
        {"access-control-request-headers", &own->asked_headers, false},
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(names[i].name, name) == 0) {
            *ret_is_kept = names[i].is_kept;
            return names[i].value;
        }
    }
    return NULL;
}

static void take_own(struct bow__web_head *head, struct own_fields *own)
{
    size_t n = 0;

    for (size_t i = 0; i < head->n_entries; i++) {
        bool is_kept = true;
        struct bow_slice *value = find_own(own, head->entries[i].key, &is_kept);
        if (value != NULL) {
            *value = head->entries[i].value;
        }
        if (is_kept) {
            head->entries[n++] = head->entries[i];
        }
    }
    head->n_entries = n;
}

/* Pages of other origins */

static void allow_origin(struct bow__web_call *call, const struct own_fields *own)
{
    struct bow__arena *arena = &call->arena;

    if (!bow__web_origins_have(call->web->origins, own->origin)) {
        return;
    }
    char *origin = bow__arena_dup(arena, own->origin.data, own->origin.len);
    if (origin == NULL) {
        return;
    }
    call->origin = (struct bow_slice){(const uint8_t *)origin, own->origin.len};
    bow__web_fields_add(&call->fields, arena, "access-control-allow-origin", call->origin);
    bow__web_fields_add(&call->fields, arena, "vary", bow__web_text("origin"));
}

/* Metadata is the page's to choose, and what it may read. */
static int answer_preflight(struct bow__web_call *call, const struct own_fields *own)
{
    struct bow__arena *arena = &call->arena;

    if (own->asked_method.len == 0) {
        return refuse_method(call, "GET, POST");
    }
    if (call->origin.len == 0) {
        return refuse_http(call, "403");
    }
    bow__web_fields_add(&call->fields, arena, "access-control-allow-methods",
                        bow__web_text("GET, POST"));
    if (own->asked_headers.len > 0) {
        char *headers = bow__arena_dup(arena, own->asked_headers.data, own->asked_headers.len);
        bow__web_fields_add(&call->fields, arena, "access-control-allow-headers",
                            (struct bow_slice){(const uint8_t *)headers, own->asked_headers.len});
    }
    bow__web_fields_add(&call->fields, arena, "access-control-max-age",
                        bow__web_text(PREFLIGHT_AGE));
    return refuse_http(call, "204");
}

/* Connect's fields */

static int read_timeout(struct bow__web_call *call, struct bow_slice text)
{
    uint64_t ms = 0;
    size_t i = 0;

    while (i < text.len && i < TIMEOUT_DIGITS && text.data[i] >= '0' && text.data[i] <= '9') {
        ms = ms * 10 + (uint64_t)(text.data[i++] - '0');
    }
    if (i == 0 || i < text.len) {
        bow__text_printf(&call->reason, "connect-timeout-ms is malformed: \"");
        bow__text_escape(&call->reason, text, SHOWN_BYTES);
        bow__text_printf(&call->reason, "\"; it is milliseconds in at most 10 digits");
        return refuse(call, BOW_INVALID_ARGUMENT);
    }
    call->time_left_ns = ms * NS_PER_MS;
    return 0;
}

static int read_encoding(struct bow__web_call *call, struct bow_slice name, uint32_t encodings)
{
    if (name.len == 0) {
        return 0;
    }
    call->encoding = bow__encoding_of(name);
    if (call->encoding != BOW__ENCODING_UNKNOWN && (encodings >> call->encoding & 1u) != 0) {
        return 0;
    }
    bow__text_printf(&call->reason, "the request is compressed with \"");
    bow__text_escape(&call->reason, name, SHOWN_BYTES);
    bow__text_printf(&call->reason, "\", which is not supported (supported: ");
    bow__encodings_describe(&call->reason);
    bow__text_printf(&call->reason, ")");
    return refuse(call, BOW_UNIMPLEMENTED);
}

static int read_connect(struct bow__web_call *call, const struct own_fields *own,
                        struct bow_slice accept_encoding, uint32_t encodings)
{
    bool is_stream = call->kind == BOW__WEB_CONNECT_STREAM;
    int rc = 0;

    if (own->version.len > 0 && !is_text(own->version, "1")) {
        bow__text_printf(&call->reason, "connect-protocol-version is \"");
        bow__text_escape(&call->reason, own->version, SHOWN_BYTES);
        bow__text_printf(&call->reason, "\", and only 1 is spoken");
        return refuse(call, BOW_INVALID_ARGUMENT);
    }
    if (own->timeout.len > 0) {
        rc = read_timeout(call, own->timeout);
    }
    if (rc == 0) {
        rc = read_encoding(call, is_stream ? own->stream_encoding : own->content_encoding,
                           encodings);
    }
    call->accepts = bow__encodings_of(is_stream ? own->stream_accepts : accept_encoding, NULL);
    return rc;
}

/* The method */

static bool fits_kind(const struct bow__web_call *call)
{
    const uint32_t streams = BOW_METHOD_CLIENT_STREAMING | BOW_METHOD_SERVER_STREAMING;
    bool is_stream = (call->method->flags & streams) != 0;

    return (call->kind != BOW__WEB_CONNECT_UNARY || !is_stream) &&
           (call->kind != BOW__WEB_CONNECT_STREAM || is_stream);
}

/* Nobody knows of which kind it is; and JSON takes a descriptor to read it. */
static int find_fallback(struct bow__web_call *call)
{
    const struct bow__registered_method *entry =
        bow__registry_fallback(call->web->registry, call->path);

    if (entry == NULL) {
        return 0;
    }
    if (call->is_get) {
        return refuse_method(call, "POST");
    }
    if (call->is_json) {
        return refuse_type(call);
    }
    call->method = entry->method;
    return 0;
}

/* Whether it is there is for who dispatches calls to say. */
static int find_method(struct bow__web_call *call)
{
    const struct bow__registered_method *entry =
        bow__registry_find(call->web->registry, call->path);

    if (entry == NULL) {
        return find_fallback(call);
    }
    call->method = entry->method;
    if (!fits_kind(call)) {
        return call->is_get ? refuse_method(call, "POST") : refuse_type(call);
    }
    if (call->is_get && (call->method->flags & BOW_METHOD_NO_SIDE_EFFECTS) == 0) {
        return refuse_method(call, "POST");
    }
    return 0;
}

/* GET */

static int decode_parameter(struct bow__web_call *call, struct bow_slice value, bool is_base64)
{
    size_t len = SIZE_MAX;

    struct bow__block *block = bow__block_new(call->context, value.len > 0 ? value.len : 1);
    if (block == NULL) {
        return -ENOMEM;
    }
    call->reader.block = block;
    len = bow__query_decode(value, block->data);
    if (len != SIZE_MAX && is_base64) {
        struct bow_slice text = {block->data, len};
        len = bow__base64_decode(text, block->data, &len) == 0 ? len : SIZE_MAX;
    }
    if (len == SIZE_MAX) {
        bow__text_printf(&call->reason, "the URL's message is not %s",
                         is_base64 ? "base64" : "percent-encoded text");
        return refuse(call, BOW_INVALID_ARGUMENT);
    }
    call->reader.n_bytes = len;
    return 0;
}

static int read_query(struct bow__web_call *call, struct bow_slice query, uint32_t encodings)
{
    struct bow_slice message = {NULL, 0};
    struct bow_slice encoding = {NULL, 0};
    struct bow_slice compression = {NULL, 0};
    struct bow_slice base64 = {NULL, 0};

    if (!bow__query_find(query, "encoding", &encoding) ||
        !(is_text(encoding, "json") || is_text(encoding, "proto"))) {
        return refuse_type(call);
    }
    call->is_json = is_text(encoding, "json");
    if (!bow__query_find(query, "message", &message)) {
        bow__text_printf(&call->reason, "the URL has no message=");
        return refuse(call, BOW_INVALID_ARGUMENT);
    }
    (void)bow__query_find(query, "base64", &base64);
    (void)bow__query_find(query, "compression", &compression);
    int rc = read_encoding(call, compression, encodings);
    return rc == 0 ? decode_parameter(call, message, is_text(base64, "1")) : rc;
}

/* All together */

static bool is_spoken(const struct bow__web_options *options, enum bow__web_kind kind)
{
    bool is_connect = kind == BOW__WEB_CONNECT_UNARY || kind == BOW__WEB_CONNECT_STREAM;

    return (options->protocols & (is_connect ? BOW_PROTOCOL_CONNECT : BOW_PROTOCOL_GRPC_WEB)) != 0;
}

/* Which no interceptor sees, for it is no call. */
static int answer_page(struct bow__web_call *call)
{
    call->is_page = true;
    bow__web_page_describe(call->web->page, &call->fields, &call->arena);
    return refuse_http(call, "200");
}

/* Which protocol it is; or what HTTP has to say of it. */
static int read_kind(struct bow__web_call *call, const struct bow__web_options *options,
                     const struct bow__web_head *head, const struct own_fields *own)
{
    if (is_text(head->method, "OPTIONS")) {
        return answer_preflight(call, own);
    }
    call->is_head = is_text(head->method, "HEAD");
    if (bow__web_page_is_at(call->web->page, call->path) &&
        (call->is_head || is_text(head->method, "GET"))) {
        return answer_page(call);
    }
    if (is_text(head->method, "GET") && is_spoken(options, BOW__WEB_CONNECT_UNARY)) {
        call->kind = BOW__WEB_CONNECT_UNARY;
        call->is_get = true;
        return 0;
    }
    if (!is_text(head->method, "POST")) {
        return refuse_method(call, "GET, POST");
    }
    if (!bow__web_content_type_read(head->content_type, &call->kind, &call->is_json) ||
        !is_spoken(options, call->kind)) {
        return refuse_type(call);
    }
    return 0;
}

static enum bow__web_framing framing_of(const struct bow__web_call *call)
{
    switch (call->kind) {
    case BOW__WEB_NONE:
    case BOW__WEB_CONNECT_UNARY:
        return BOW__WEB_BARE;
    case BOW__WEB_CONNECT_STREAM:
    case BOW__WEB_GRPC:
        return BOW__WEB_PREFIXED;
    case BOW__WEB_GRPC_TEXT:
        return BOW__WEB_PREFIXED_BASE64;
    }
    return BOW__WEB_BARE;
}

static int read_head(struct bow__web_call *call, const struct bow__web_options *options,
                     struct bow__web_head *head)
{
    struct own_fields own;
    struct bow_slice query;

    memset(&own, 0, sizeof(own));
    take_own(head, &own);
    allow_origin(call, &own);
    bow__query_split(head->target, &call->path, &query);
    int rc = read_kind(call, options, head, &own);
    if (rc < 0) {
        return rc;
    }
    bow__web_reader_init(&call->reader, call->context, framing_of(call), options->in_flight,
                         options->max_message_bytes);
    rc = find_method(call);
    if (rc < 0) {
        return rc;
    }
    if (call->kind == BOW__WEB_GRPC || call->kind == BOW__WEB_GRPC_TEXT) {
        call->time_left_ns = head->time_left_ns;
        call->encoding = head->encoding;
        call->accepts = head->accepts;
        return 0;
    }
    rc = read_connect(call, &own, head->accept_encoding, options->encodings);
    return rc == 0 && call->is_get ? read_query(call, query, options->encodings) : rc;
}

int bow__web_begin(const struct bow__web_options *options, struct bow__web_head *head,
                   struct bow__web_call **ret_call)
{
    struct bow__web_call *call = bow__pool_alloc(options->pool, sizeof(*call));

    if (call == NULL) {
        return -ENOMEM;
    }
    memset(call, 0, offsetof(struct bow__web_call, slab));
    call->web = options->web;
    call->pool = options->pool;
    call->context = options->context;
    call->time_left_ns = BOW_NEVER;
    bow__text_clear(&call->reason);
    bow__arena_init(&call->arena, options->context, call->slab, sizeof(call->slab), SIZE_MAX);
    if (read_head(call, options, head) == -ENOMEM || bow__arena_has_failed(&call->arena)) {
        bow__web_call_free(call);
        return -ENOMEM;
    }
    *ret_call = call;
    return 0;
}

/* Bodies */

static int refuse_message(struct bow__web_call *call, int rc, enum bow_code code)
{
    call->reader.code = code;
    return rc;
}

/* What is to be inflated here, or behind the session. */
static int check_compressed(struct bow__web_call *call, const struct bow__message *message,
                            struct bow__text *why)
{
    if (!message->compressed) {
        return 0;
    }
    if (message->encoding == BOW__ENCODING_IDENTITY) {
        bow__text_printf(why, "message is marked compressed, and no encoding is named");
        return refuse_message(call, -EPROTO, BOW_INTERNAL);
    }
    if (message->encoding == BOW__ENCODING_UNKNOWN) {
        bow__text_printf(why, "message is compressed with what is not supported (supported: ");
        bow__encodings_describe(why);
        bow__text_printf(why, ")");
        return refuse_message(call, -EPROTO, BOW_UNIMPLEMENTED);
    }
    return 0;
}

static int open_message(struct bow__web_call *call, struct bow__message *message,
                        struct bow__text *why)
{
    struct bow__text reason;

    message->encoding = call->encoding;
    if (call->reader.framing == BOW__WEB_BARE) {
        message->compressed = call->encoding != BOW__ENCODING_IDENTITY;
    }
    int rc = check_compressed(call, message, why);
    if (rc < 0 || !call->is_json || call->method == NULL) {
        return rc;
    }
    bow__text_clear(&reason);
    rc = bow__message_from_json(call, message, &reason);
    if (rc < 0) {
        bow__text_printf(why, "the request of %s cannot be decoded: %s", call->method->path,
                         reason.bytes);
        return refuse_message(call, rc,
                              rc == -EMSGSIZE || rc == -ENOMEM ? BOW_RESOURCE_EXHAUSTED
                                                               : BOW_INVALID_ARGUMENT);
    }
    return 0;
}

static int finish_message(struct bow__web_call *call, int rc, struct bow__message *ret_message,
                          struct bow__text *why)
{
    if (rc <= 0) {
        return rc;
    }
    rc = open_message(call, ret_message, why);
    if (rc < 0) {
        ret_message->block = bow__block_unref(ret_message->block);
    }
    return rc < 0 ? rc : 1;
}

int bow__web_read(struct bow__web_call *call, struct bow_slice *bytes,
                  struct bow__message *ret_message, struct bow__text *why)
{
    if (call->is_get) {
        *bytes = (struct bow_slice){bytes->data + bytes->len, 0};
        return 0;
    }
    return finish_message(call, bow__web_reader_feed(&call->reader, bytes, ret_message, why),
                          ret_message, why);
}

int bow__web_read_end(struct bow__web_call *call, struct bow__message *ret_message,
                      struct bow__text *why)
{
    return finish_message(call, bow__web_reader_end(&call->reader, ret_message, why), ret_message,
                          why);
}
