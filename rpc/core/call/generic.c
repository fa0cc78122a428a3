/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What stands where generated code stands for a method that is known: from events with messages to
 * events with bytes. Calls nothing of a call.
 */

#include "rpc/core/call/generic.h"

#include <string.h>

/* The server's */

static bool invoke(struct bow_call *call, const void *request, const void *handlers, void *user)
{
    bow_generic_fn const *handler = handlers;

    (void)request;
    (*handler)(call, user);
    return true;
}

static void on_call_message(struct bow_call *call, const void *message, const void *events,
                            void *user)
{
    const struct bow_generic_call_events *typed = events;

    if (typed->on_message != NULL) {
        typed->on_message(call, bow__raw_message_bytes(message), user);
    }
}

static void on_call_half_close(struct bow_call *call, const void *events, void *user)
{
    const struct bow_generic_call_events *typed = events;

    if (typed->on_half_close != NULL) {
        typed->on_half_close(call, user);
    }
}

static void on_call_writable(struct bow_call *call, const void *events, void *user)
{
    const struct bow_generic_call_events *typed = events;

    if (typed->on_writable != NULL) {
        typed->on_writable(call, user);
    }
}

static void on_call_closed(struct bow_call *call, const struct bow_status *status,
                           const void *events, void *user)
{
    const struct bow_generic_call_events *typed = events;

    if (typed->on_closed != NULL) {
        typed->on_closed(call, status, user);
    }
}

static const struct bow_call_thunks call_thunks = {
    .on_message = on_call_message,
    .on_half_close = on_call_half_close,
    .on_writable = on_call_writable,
    .on_closed = on_call_closed,
};

/* The client's */

static void on_stream_headers(struct bow_stream *stream, const struct bow_metadata *initial,
                              const void *events, void *user)
{
    const struct bow_generic_stream_events *typed = events;

    if (typed->on_headers != NULL) {
        typed->on_headers(stream, initial, user);
    }
}

static void on_stream_message(struct bow_stream *stream, const void *message, const void *events,
                              void *user)
{
    const struct bow_generic_stream_events *typed = events;

    if (typed->on_message != NULL) {
        typed->on_message(stream, bow__raw_message_bytes(message), user);
    }
}

static void on_stream_writable(struct bow_stream *stream, const void *events, void *user)
{
    const struct bow_generic_stream_events *typed = events;

    if (typed->on_writable != NULL) {
        typed->on_writable(stream, user);
    }
}

static void on_stream_closed(struct bow_stream *stream, struct bow_result *result,
                             const void *events, void *user)
{
    const struct bow_generic_stream_events *typed = events;

    if (typed->on_closed != NULL) {
        typed->on_closed(stream, result, user);
    }
}

static const struct bow_stream_thunks stream_thunks = {
    .on_headers = on_stream_headers,
    .on_message = on_stream_message,
    .on_writable = on_stream_writable,
    .on_closed = on_stream_closed,
};

/* Both */

const struct bow_method bow__generic_method = {
    .path = "an unknown method",
    .name = "an unknown method",
    .input = &bow__raw_message__descriptor,
    .output = &bow__raw_message__descriptor,
    .invoke = invoke,
    .call_thunks = &call_thunks,
    .stream_thunks = &stream_thunks,
    .flags = BOW_METHOD_CLIENT_STREAMING | BOW_METHOD_SERVER_STREAMING,
};

struct bow_method bow__generic_method_of(const char *path)
{
    struct bow_method method = bow__generic_method;

    method.path = path;
    method.name = strrchr(path, '/') + 1;
    return method;
}

struct bow_method *bow__generic_method_new(struct bow__arena *arena, struct bow_slice path)
{
    struct bow_method *method = bow__arena_alloc(arena, sizeof(*method));
    const char *copy = method != NULL ? bow__arena_dup(arena, path.data, path.len) : NULL;

    if (copy == NULL) {
        return NULL;
    }
    *method = bow__generic_method_of(copy);
    return method;
}
