/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Of x.bow.h: the typed handles of a streaming method, by value (one pointer), their
 * events, and the functions that take them. Where a side sends one message only,
 * what is for more of them is left out.
 */

#include "codegen/emit.h"

/* The server's side */

static const char call_text[] =
    "\n"
    "/** A call as the server's handler sees it: <bowline/call_stream.h>. */\n"
    "struct $method$__call {\n"
    "    struct bow_call *call;\n"
    "};\n"
    "\n"
    "/** What happens to a call; a member that is NULL is not called. */\n"
    "struct $method$__call_events {\n";

static const char call_message_member[] =
    "    void (*on_message)(struct $method$__call call, const $input$ *message,\n"
    "        void *user);\n"
    "    void (*on_half_close)(struct $method$__call call, void *user);\n";

static const char call_writable_member[] =
    "    void (*on_writable)(struct $method$__call call, void *user);\n";

static const char call_closed_member[] =
    "    /** The last one: `call` is gone when it returns, but for who has bow_call_ref(). */\n"
    "    void (*on_closed)(struct $method$__call call, const struct bow_status *status,\n"
    "        void *user);\n"
    "};\n"
    "\n"
    "/** Receive the call's events: bow_call_listen(). `events` and `user` are kept. */\n"
    "static inline int\n"
    "$method$__listen(struct $method$__call call,\n"
    "    const struct $method$__call_events *events, void *user)\n"
    "{\n"
    "    return bow_call_listen(call.call, events, user);\n"
    "}\n";

static const char call_send_text[] =
    "\n"
    "/** Send one message: bow_call_send(). */\n"
    "BOW_MUST_USE static inline int\n"
    "$method$__send(struct $method$__call call, const $output$ *message)\n"
    "{\n"
    "    return bow_call_send(call.call, (const ProtobufCMessage *)message);\n"
    "}\n"
    "\n"
    "/** End the call with OK: bow_call_finish(). */\n"
    "static inline int\n"
    "$method$__finish(struct $method$__call call)\n"
    "{\n"
    "    return bow_call_finish(call.call);\n"
    "}\n";

static const char call_reply_text[] =
    "\n"
    "/** Answer with `reply`: bow_call_reply(). */\n"
    "static inline int\n"
    "$method$__reply(struct $method$__call call, const $output$ *reply)\n"
    "{\n"
    "    return bow_call_reply(call.call, (const ProtobufCMessage *)reply);\n"
    "}\n";

static void emit_call_handle(struct printer *out, const struct printer_var *vars,
                             const struct model_method *method)
{
    printer_template(out, vars, call_text);
    if (method->proto->client_streaming) {
        printer_template(out, vars, call_message_member);
    }
    if (method->proto->server_streaming) {
        printer_template(out, vars, call_writable_member);
    }
    printer_template(out, vars, call_closed_member);
    printer_template(out, vars, method->proto->server_streaming ? call_send_text : call_reply_text);
}

/* The client's side */

static const char stream_text[] =
    "\n"
    "/** A call as the client sees it: <bowline/stream.h>. */\n"
    "struct $method$__stream {\n"
    "    struct bow_stream *stream;\n"
    "};\n"
    "\n"
    "/** What happens to it; a member that is NULL is not called. */\n"
    "struct $method$__stream_events {\n"
    "    void (*on_headers)(struct $method$__stream stream,\n"
    "        const struct bow_metadata *initial, void *user);\n";

static const char stream_message_member[] =
    "    void (*on_message)(struct $method$__stream stream, const $output$ *message,\n"
    "        void *user);\n";

static const char stream_writable_member[] =
    "    void (*on_writable)(struct $method$__stream stream, void *user);\n";

static const char stream_closed_member[] =
    "    /** The last one: `stream` is gone when it returns, but for who has a reference. */\n"
    "    void (*on_closed)(struct $method$__stream stream, struct bow_result *result,\n"
    "        void *user);\n"
    "};\n";

static const char stream_reply_member[] =
    "    /** The last one: `stream` is gone when it returns, but for who has a reference.\n"
    "     * `reply` is NULL unless `result->status.code` is BOW_OK. */\n"
    "    void (*on_closed)(struct $method$__stream stream, struct bow_result *result,\n"
    "        const $output$ *reply, void *user);\n"
    "};\n";

static const char stream_open_text[] =
    "\n"
    "/** Begin a call: bow_client_open(). Without `events` it is for the blocking style; with "
    "them\n"
    " * `ret_stream` may be NULL. */\n"
    "BOW_MUST_USE static inline int\n"
    "$method$__open(struct bow_client *client,\n"
    "    const struct bow_call_options *options,\n"
    "    const struct $method$__stream_events *events, void *user,\n"
    "    struct $method$__stream *ret_stream)\n"
    "{\n"
    "    return bow_client_open(client, $method$__method(), NULL, options,\n"
    "        events, user, ret_stream != NULL ? &ret_stream->stream : NULL);\n"
    "}\n"
    "\n"
    "/** Send one message: bow_stream_send(). */\n"
    "BOW_MUST_USE static inline int\n"
    "$method$__stream_send(struct $method$__stream stream, const $input$ *message)\n"
    "{\n"
    "    return bow_stream_send(stream.stream, (const ProtobufCMessage *)message);\n"
    "}\n"
    "\n"
    "/** Send one message, waiting while the server is not ready for it: bow_stream_write(). */\n"
    "BOW_MUST_USE static inline int\n"
    "$method$__stream_write(struct $method$__stream stream, const $input$ *message,\n"
    "    uint64_t timeout_ns)\n"
    "{\n"
    "    return bow_stream_write(stream.stream, (const ProtobufCMessage *)message, timeout_ns);\n"
    "}\n";

static const char stream_open_with_request_text[] =
    "\n"
    "/** Begin a call: bow_client_open(). Without `events` it is for the blocking style; with "
    "them\n"
    " * `ret_stream` may be NULL. */\n"
    "BOW_MUST_USE static inline int\n"
    "$method$__open(struct bow_client *client,\n"
    "    const $input$ *request, const struct bow_call_options *options,\n"
    "    const struct $method$__stream_events *events, void *user,\n"
    "    struct $method$__stream *ret_stream)\n"
    "{\n"
    "    return bow_client_open(client, $method$__method(),\n"
    "        (const ProtobufCMessage *)request, options, events, user,\n"
    "        ret_stream != NULL ? &ret_stream->stream : NULL);\n"
    "}\n";

static const char stream_receive_text[] =
    "\n"
    "/** Wait for the next message: bow_stream_receive(). */\n"
    "BOW_MUST_USE static inline int\n"
    "$method$__stream_receive(struct $method$__stream stream, uint64_t timeout_ns,\n"
    "    const $output$ **ret_message)\n"
    "{\n"
    "    const ProtobufCMessage *message = NULL;\n"
    "    int rc = bow_stream_receive(stream.stream, timeout_ns, &message);\n"
    "\n"
    "    *ret_message = (const $output$ *)message;\n"
    "    return rc;\n"
    "}\n"
    "\n"
    "/** Wait for the end and let go of the stream: bow_stream_finish(). */\n"
    "static inline int\n"
    "$method$__stream_finish(struct $method$__stream stream,\n"
    "    struct bow_result *ret_result)\n"
    "{\n"
    "    return bow_stream_finish(stream.stream, ret_result);\n"
    "}\n";

static const char stream_finish_reply_text[] =
    "\n"
    "/** Wait for the reply and let go of the stream: bow_stream_finish(). The reply lives in\n"
    " * `*ret_result`; it is NULL unless the status there is OK. */\n"
    "static inline const $output$ *\n"
    "$method$__stream_finish(struct $method$__stream stream,\n"
    "    struct bow_result *ret_result)\n"
    "{\n"
    "    if (bow_stream_finish(stream.stream, ret_result) < 0) {\n"
    "        return NULL;\n"
    "    }\n"
    "    return (const $output$ *)ret_result->reply;\n"
    "}\n";

static void emit_stream_events(struct printer *out, const struct printer_var *vars,
                               const struct model_method *method)
{
    printer_template(out, vars, stream_text);
    if (method->proto->server_streaming) {
        printer_template(out, vars, stream_message_member);
    }
    if (method->proto->client_streaming) {
        printer_template(out, vars, stream_writable_member);
    }
    printer_template(out, vars,
                     method->proto->server_streaming ? stream_closed_member : stream_reply_member);
}

static void emit_stream_handle(struct printer *out, const struct printer_var *vars,
                               const struct model_method *method)
{
    emit_stream_events(out, vars, method);
    printer_template(out, vars,
                     method->proto->client_streaming ? stream_open_text
                                                     : stream_open_with_request_text);
    printer_template(out, vars,
                     method->proto->server_streaming ? stream_receive_text
                                                     : stream_finish_reply_text);
}

void emit_stream_handles(struct printer *out, const struct emit *emit,
                         const struct printer_var *vars, const struct model_method *method)
{
    if (!emit->parameters->client_only) {
        emit_call_handle(out, vars, method);
    }
    if (!emit->parameters->server_only) {
        emit_stream_handle(out, vars, method);
    }
}
