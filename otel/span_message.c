/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Spans as OTLP's messages. Of what does not come from this program texts are made UTF-8, for a
 * receiver refuses a whole batch for one that is not.
 */

#include "otel/span_message.h"
#include "otel/attributes.h"
#include "rpc/core/codec/utf8.h"

#include <stdlib.h>
#include <string.h>

/* rpc.system, rpc.service, rpc.method, rpc.grpc.status_code, error.type, and address and port of a
 * server, of a peer, with its transport and its type. */
#define MAX_ATTRIBUTES 11u
#define MAX_EVENT_ATTRIBUTES 4u

/* Of Span.flags: whether the parent is another process's is known, and it is. */
#define HAS_IS_REMOTE 0x100u
#define IS_REMOTE 0x200u

/* Texts */

static char *copy(struct bow_arena *arena, const char *text, size_t len)
{
    char *made = bow_arena_alloc(arena, len + 1);

    if (made != NULL) {
        memcpy(made, text, len);
        made[len] = '\0';
    }
    return made;
}

/* NULL out of memory. */
static const char *utf8(struct bow_arena *arena, const char *text)
{
    size_t len = strlen(text);

    if (bow__utf8_prefix((struct bow_slice){(const uint8_t *)text, len}, false) == len) {
        return text;
    }
    char *made = copy(arena, text, len);
    for (size_t i = 0; made != NULL && i < len; i++) {
        made[i] = (made[i] & 0x80) != 0 ? '?' : made[i];
    }
    return made;
}

/* Who is at the other end */

enum family { FAMILY_NONE, FAMILY_IPV4, FAMILY_IPV6, FAMILY_NAME };

struct peer {
    const char *transport; /* NULL: a kind that has no name there */
    const char *address;
    int64_t port; /* 0: none */
    enum family family;
};

static enum family family_of(const char *host, size_t len)
{
    if (memchr(host, ':', len) != NULL) {
        return FAMILY_IPV6;
    }
    return strspn(host, "0123456789.") >= len ? FAMILY_IPV4 : FAMILY_NAME;
}

/* "HOST:PORT", "[v6]:PORT"; else it is taken as it is. */
static bool split(struct bow_arena *arena, const char *text, struct peer *peer)
{
    const char *colon = strrchr(text, ':');
    size_t len = colon != NULL ? (size_t)(colon - text) : strlen(text);

    if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
        text++;
        len -= 2;
    }
    peer->transport = "tcp";
    peer->family = family_of(text, len);
    peer->port = colon != NULL ? strtol(colon + 1, NULL, 10) : 0;
    peer->address = copy(arena, text, len);
    return peer->address != NULL;
}

/* False: out of memory. */
static bool read_peer(struct bow_arena *arena, const char *text, struct peer *ret_peer)
{
    *ret_peer = (struct peer){.address = ""};
    text = utf8(arena, text);
    if (text == NULL) {
        return false;
    }
    if (strncmp(text, "unix:", 5) == 0) {
        ret_peer->transport = "unix";
        ret_peer->address = text + 5;
        return true;
    }
    if (strncmp(text, "unix-abstract:", 14) == 0) {
        ret_peer->transport = "unix";
        ret_peer->address = text + 14;
        return true;
    }
    if (strncmp(text, "inproc:", 7) == 0) {
        ret_peer->address = text + 7;
        return true;
    }
    return split(arena, text, ret_peer);
}

static void add_place(struct bow__otel_attributes *list, const char *address_key,
                      const char *port_key, const struct peer *peer)
{
    if (*peer->address != '\0') {
        bow__otel_add_text(list, address_key, peer->address);
    }
    if (peer->port > 0) {
        bow__otel_add_number(list, port_key, peer->port);
    }
}

static void add_network(struct bow__otel_attributes *list, const struct peer *peer)
{
    if (peer->transport != NULL) {
        bow__otel_add_text(list, "network.transport", peer->transport);
    }
    if (peer->family == FAMILY_IPV4 || peer->family == FAMILY_IPV6) {
        bow__otel_add_text(list, "network.type", peer->family == FAMILY_IPV4 ? "ipv4" : "ipv6");
    }
}

/* A client's target may be a name, and no address of the network. */
static bool add_peer(struct bow_arena *arena, struct bow__otel_attributes *list,
                     const struct bow_span *span)
{
    struct peer peer;

    if (!read_peer(arena, span->peer, &peer)) {
        return false;
    }
    if (span->kind == BOW_SPAN_CLIENT) {
        add_place(list, "server.address", "server.port", &peer);
    }
    if (peer.family != FAMILY_NAME) {
        add_place(list, "network.peer.address", "network.peer.port", &peer);
    }
    add_network(list, &peer);
    return true;
}

/* Attributes */

static bool is_error(const struct bow_span *span)
{
    switch (span->code) {
    case BOW_OK:
        return false;
    case BOW_UNKNOWN:
    case BOW_DEADLINE_EXCEEDED:
    case BOW_UNIMPLEMENTED:
    case BOW_INTERNAL:
    case BOW_UNAVAILABLE:
    case BOW_DATA_LOSS:
        return true;
    default:
        return span->kind == BOW_SPAN_CLIENT; /* the server has done as it should */
    }
}

/* As the semantic conventions have them; ours are in none. */
static const char *system_of(const char *protocol)
{
    if (strcmp(protocol, "native") == 0) {
        return "bowline";
    }
    return strcmp(protocol, "connect") == 0 ? "connect_rpc" : "grpc";
}

/* "/package.Service/Method" */
static bool add_method(struct bow_arena *arena, struct bow__otel_attributes *list,
                       const struct bow_span *span)
{
    const char *service = span->path + (span->path[0] == '/');
    const char *slash = strrchr(service, '/');
    size_t len = slash != NULL ? (size_t)(slash - service) : strlen(service);
    const char *name = copy(arena, service, len);

    bow__otel_add_text(list, "rpc.system", system_of(span->protocol));
    bow__otel_add_text(list, "rpc.service", name);
    if (slash != NULL) {
        bow__otel_add_text(list, "rpc.method", slash + 1);
    }
    return name != NULL;
}

static bool add_attributes(struct bow_arena *arena, const struct bow_span *span,
                           Bow__Otel__Span *to)
{
    struct bow__otel_attributes list;

    if (bow__otel_attributes_init(&list, arena, MAX_ATTRIBUTES) < 0 ||
        !add_method(arena, &list, span) || !add_peer(arena, &list, span)) {
        return false;
    }
    bow__otel_add_number(&list, "rpc.grpc.status_code", span->code);
    if (is_error(span)) {
        bow__otel_add_text(&list, "error.type", bow_code_name(span->code));
    }
    to->n_attributes = list.n;
    to->attributes = list.list;
    return true;
}

/* Events */

static bool fill_event(struct bow_arena *arena, const struct bow_span_event *event,
                       Bow__Otel__Span__Event *to)
{
    struct bow__otel_attributes list;

    if (bow__otel_attributes_init(&list, arena, MAX_EVENT_ATTRIBUTES) < 0) {
        return false;
    }
    *to = (Bow__Otel__Span__Event)BOW__OTEL__SPAN__EVENT__INIT;
    to->time_unix_nano = event->unix_ns;
    if (event->kind == BOW_SPAN_RETRY) {
        to->name = "retry";
        bow__otel_add_number(&list, "rpc.grpc.status_code", event->code);
    } else {
        to->name = "rpc.message";
        bow__otel_add_text(&list, "rpc.message.type",
                           event->kind == BOW_SPAN_MESSAGE_SENT ? "SENT" : "RECEIVED");
        bow__otel_add_number(&list, "rpc.message.id", (int64_t)event->number);
        bow__otel_add_number(&list, "rpc.message.uncompressed_size", (int64_t)event->bytes);
    }
    to->n_attributes = list.n;
    to->attributes = list.list;
    return true;
}

static bool add_events(struct bow_arena *arena, const struct bow_span *span, Bow__Otel__Span *to)
{
    to->dropped_events_count = span->n_events_dropped;
    if (span->n_events == 0) {
        return true;
    }
    Bow__Otel__Span__Event *events = bow_arena_alloc(arena, span->n_events * sizeof(*events));
    to->events = bow_arena_alloc(arena, span->n_events * sizeof(Bow__Otel__Span__Event *));
    if (events == NULL || to->events == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < span->n_events; i++) {
        if (!fill_event(arena, &span->events[i], &events[i])) {
            return false;
        }
        to->events[i] = &events[i];
    }
    to->n_events = span->n_events;
    return true;
}

/* Spans */

struct made {
    Bow__Otel__Span span;
    Bow__Otel__Status status;
};

static ProtobufCBinaryData bytes_of(const uint8_t *bytes, size_t len)
{
    return (ProtobufCBinaryData){len, (uint8_t *)(uintptr_t)bytes};
}

static bool has_parent(const struct bow_span *span)
{
    static const uint8_t none[sizeof(span->parent_id)];

    return memcmp(span->parent_id, none, sizeof(none)) != 0;
}

static bool set_status(struct bow_arena *arena, const struct bow_span *span, struct made *made)
{
    made->status = (Bow__Otel__Status)BOW__OTEL__STATUS__INIT;
    made->span.status = &made->status;
    if (!is_error(span)) {
        return true;
    }
    made->status.code = BOW__OTEL__STATUS__STATUS_CODE__STATUS_CODE_ERROR;
    made->status.message = utf8(arena, span->message);
    return made->status.message != NULL;
}

static bool fill_span(struct bow_arena *arena, const struct bow_span *span, struct made *made)
{
    bool is_server = span->kind == BOW_SPAN_SERVER;
    Bow__Otel__Span *to = &made->span;

    *to = (Bow__Otel__Span)BOW__OTEL__SPAN__INIT;
    to->trace_id = bytes_of(span->context.trace_id, sizeof(span->context.trace_id));
    to->span_id = bytes_of(span->context.span_id, sizeof(span->context.span_id));
    to->trace_state = span->tracestate;
    to->flags = span->context.flags;
    if (has_parent(span)) {
        to->parent_span_id = bytes_of(span->parent_id, sizeof(span->parent_id));
        to->flags |= is_server ? HAS_IS_REMOTE | IS_REMOTE : 0; /* of a client's it may be either */
    }
    to->name = span->path + (span->path[0] == '/');
    to->kind = is_server ? BOW__OTEL__SPAN__SPAN_KIND__SPAN_KIND_SERVER
                         : BOW__OTEL__SPAN__SPAN_KIND__SPAN_KIND_CLIENT;
    to->start_time_unix_nano = span->start_unix_ns;
    to->end_time_unix_nano = span->end_unix_ns;
    return set_status(arena, span, made) && add_attributes(arena, span, to) &&
           add_events(arena, span, to);
}

static size_t count(const struct bow__otel_parcel *parcels)
{
    size_t n = 0;

    for (; parcels != NULL; parcels = parcels->next) {
        n += parcels->n;
    }
    return n;
}

static bool fill_spans(struct bow_arena *arena, const struct bow__otel_parcel *parcels,
                       Bow__Otel__ScopeSpans *to)
{
    size_t n = count(parcels);

    to->spans = bow_arena_alloc(arena, n * sizeof(Bow__Otel__Span *));
    if (to->spans == NULL) {
        return false;
    }
    for (; parcels != NULL; parcels = parcels->next) {
        for (size_t i = 0; i < parcels->n; i++) {
            struct made *made = bow_arena_alloc(arena, sizeof(*made));
            if (made == NULL || !fill_span(arena, &parcels->spans[i], made)) {
                return false;
            }
            to->spans[to->n_spans++] = &made->span;
        }
    }
    return true;
}

/* All that is there once in a request. */
struct frame {
    Bow__Otel__ExportTraceServiceRequest request;
    Bow__Otel__ResourceSpans resource_spans;
    Bow__Otel__ResourceSpans *resource_list[1];
    Bow__Otel__ScopeSpans scope_spans;
    Bow__Otel__ScopeSpans *scope_list[1];
    Bow__Otel__InstrumentationScope scope;
};

Bow__Otel__ExportTraceServiceRequest *bow__otel_span_message(struct bow_arena *arena,
                                                             Bow__Otel__Resource *resource,
                                                             const struct bow__otel_parcel *parcels)
{
    struct frame *frame = bow_arena_alloc(arena, sizeof(*frame));

    if (frame == NULL) {
        return NULL;
    }
    *frame = (struct frame){
        .request = BOW__OTEL__EXPORT_TRACE_SERVICE_REQUEST__INIT,
        .resource_spans = BOW__OTEL__RESOURCE_SPANS__INIT,
        .resource_list = {&frame->resource_spans},
        .scope_spans = BOW__OTEL__SCOPE_SPANS__INIT,
        .scope_list = {&frame->scope_spans},
        .scope = BOW__OTEL__INSTRUMENTATION_SCOPE__INIT,
    };
    frame->scope.name = "bowline";
    frame->scope.version = BOW__VERSION;
    frame->scope_spans.scope = &frame->scope;
    frame->scope_spans.schema_url = BOW__OTEL_SCHEMA_URL;
    frame->resource_spans.resource = resource;
    frame->resource_spans.n_scope_spans = 1;
    frame->resource_spans.scope_spans = frame->scope_list;
    frame->resource_spans.schema_url = BOW__OTEL_SCHEMA_URL;
    frame->request.n_resource_spans = 1;
    frame->request.resource_spans = frame->resource_list;
    return fill_spans(arena, parcels, &frame->scope_spans) ? &frame->request : NULL;
}
