/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Services as clients have them, and the way of a stream's events to a program that knows its
 * method by the schema alone.
 */
#include "rpc/schema/service_type.h"

#include <errno.h>
#include <stdio.h>

/* google.protobuf.MethodOptions.IdempotencyLevel */
enum { NO_SIDE_EFFECTS = 1, IDEMPOTENT = 2 };

/* Events */

static void on_headers(struct bow_stream *stream, const struct bow_metadata *initial,
                       const void *events, void *user)
{
    const struct bow_schema_stream_events *to = events;

    if (to->on_headers != NULL) {
        to->on_headers(stream, initial, user);
    }
}

static void on_message(struct bow_stream *stream, const void *message, const void *events,
                       void *user)
{
    const struct bow_schema_stream_events *to = events;

    if (to->on_message != NULL) {
        to->on_message(stream, message, user);
    }
}

static void on_writable(struct bow_stream *stream, const void *events, void *user)
{
    const struct bow_schema_stream_events *to = events;

    if (to->on_writable != NULL) {
        to->on_writable(stream, user);
    }
}

static void on_closed(struct bow_stream *stream, struct bow_result *result, const void *events,
                      void *user)
{
    const struct bow_schema_stream_events *to = events;

    if (to->on_closed != NULL) {
        to->on_closed(stream, result, user);
    }
}

static const struct bow_stream_thunks stream_thunks = {
    .on_headers = on_headers,
    .on_message = on_message,
    .on_writable = on_writable,
    .on_closed = on_closed,
};

/* Where the server sends one message, that is the result's. */
static const struct bow_stream_thunks one_reply_thunks = {
    .on_headers = on_headers,
    .on_writable = on_writable,
    .on_closed = on_closed,
};

/* Methods */

static uint32_t flags_of(const Bow__Schema__Method *proto)
{
    const Bow__Schema__MethodOptions *options = proto->options;
    uint32_t flags = 0;

    flags |= proto->client_streaming ? (uint32_t)BOW_METHOD_CLIENT_STREAMING : 0u;
    flags |= proto->server_streaming ? (uint32_t)BOW_METHOD_SERVER_STREAMING : 0u;
    if (options != NULL) {
        flags |= options->idempotency_level == IDEMPOTENT ? (uint32_t)BOW_METHOD_IDEMPOTENT : 0u;
        flags |= options->idempotency_level == NO_SIDE_EFFECTS
                     ? (uint32_t)BOW_METHOD_NO_SIDE_EFFECTS
                     : 0u;
        flags |= options->deprecated ? (uint32_t)BOW_METHOD_DEPRECATED : 0u;
        flags |= options->blocking ? (uint32_t)BOW_METHOD_BLOCKING : 0u;
    }
    return flags;
}

static const struct bow_stream_thunks *thunks_of(const Bow__Schema__Method *proto)
{
    if (proto->server_streaming) {
        return &stream_thunks;
    }
    return proto->client_streaming ? &one_reply_thunks : NULL;
}

/* "/package.Service/Method" */
static const char *make_path(struct bow_schema *schema, const char *service, const char *method)
{
    size_t size = strlen(service) + strlen(method) + 3;
    char *path = bow__arena_alloc_bytes(&schema->arena, size);

    if (path != NULL) {
        (void)snprintf(path, size, "/%s/%s", service, method);
    }
    return path;
}

static int make_method(struct bow_schema *schema, const struct bow__schema_symbol *service,
                       const Bow__Schema__Method *proto, struct bow_method *method,
                       struct bow__text *reason)
{
    struct bow__schema_symbol *input = NULL;
    struct bow__schema_symbol *output = NULL;
    char element[BOW__TEXT_BYTES];

    (void)snprintf(element, sizeof(element), "%s.%s", service->full_name, proto->name);
    int rc = bow__schema_resolve(schema, service->file, element, proto->input_type,
                                 BOW__SYMBOL_MESSAGE, reason, &input);
    if (rc == 0) {
        rc = bow__schema_resolve(schema, service->file, element, proto->output_type,
                                 BOW__SYMBOL_MESSAGE, reason, &output);
    }
    if (rc < 0) {
        return rc;
    }
    const char *path = make_path(schema, service->full_name, proto->name);
    if (path == NULL) {
        return bow__schema_no_memory(schema, reason);
    }
    *method = (struct bow_method){
        .path = path,
        .name = strrchr(path, '/') + 1,
        .input = input->made.message,
        .output = output->made.message,
        .stream_thunks = thunks_of(proto),
        .flags = flags_of(proto),
    };
    return 0;
}

int bow__schema_make_service(struct bow_schema *schema, struct bow__schema_symbol *symbol,
                             struct bow__text *reason)
{
    const Bow__Schema__Service *proto = symbol->proto.service;
    struct bow_method *methods = bow__schema_array(schema, proto->n_method, sizeof(*methods));
    char name[BOW__TEXT_BYTES * 4];
    int rc = 0;

    if (methods == NULL) {
        return bow__schema_no_memory(schema, reason);
    }
    for (size_t i = 0; i < proto->n_method && rc == 0; i++) {
        rc = make_method(schema, symbol, proto->method[i], &methods[i], reason);
        (void)snprintf(name, sizeof(name), "%s.%s", symbol->full_name, proto->method[i]->name);
        struct bow__schema_symbol *method = bow__schema_find(schema, name);
        if (method != NULL) {
            method->made.method = &methods[i];
        }
    }
    *symbol->made.service = (struct bow_service){
        .abi = BOW_SERVICE_ABI,
        .name = symbol->full_name,
        .methods = methods,
        .n_methods = (uint32_t)proto->n_method,
        .file = &symbol->file->file,
    };
    return rc;
}
