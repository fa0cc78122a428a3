/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Of x.bow.c: the functions between the library, which knows no types, and the typed
 * events of a streaming method.
 */

#include "codegen/emit.h"

/* `$side$`: call or stream. What follows the handle, typed here and there, is in `$given$` and
 * `$passed$`. */
static const char thunk_text[] = "\n"
                                 "static void\n"
                                 "$method$__$side$_$event$(struct bow_$side$ *$side$,$given$\n"
                                 "    const void *events, void *user)\n"
                                 "{\n"
                                 "    const struct $method$__$side$_events *typed = events;\n"
                                 "    struct $method$__$side$ handle = {$side$};\n"
                                 "\n"
                                 "    if (typed->$event$ != NULL) {\n"
                                 "        typed->$event$(handle,$passed$ user);\n"
                                 "    }\n"
                                 "}\n";

static void emit_thunk(struct printer *out, const struct model_method *method, const char *side,
                       const char *event, const char *given, const char *passed)
{
    const struct printer_var vars[] = {
        {"method", method->lower}, {"side", side},     {"event", event},
        {"given", given},          {"passed", passed}, {NULL, NULL},
    };

    printer_template(out, vars, thunk_text);
}

static void emit_call_thunks(struct printer *out, const struct model_method *method)
{
    const struct printer_var vars[] = {{"method", method->lower}, {NULL, NULL}};

    if (method->proto->client_streaming) {
        emit_thunk(out, method, "call", "on_message", " const void *message,", " message,");
        emit_thunk(out, method, "call", "on_half_close", "", "");
    }
    if (method->proto->server_streaming) {
        emit_thunk(out, method, "call", "on_writable", "", "");
    }
    emit_thunk(out, method, "call", "on_closed", " const struct bow_status *status,", " status,");
    printer_template(out, vars,
                     "\n"
                     "static const struct bow_call_thunks $method$__call_thunks = {\n");
    if (method->proto->client_streaming) {
        printer_template(out, vars,
                         "    .on_message = $method$__call_on_message,\n"
                         "    .on_half_close = $method$__call_on_half_close,\n");
    }
    if (method->proto->server_streaming) {
        printer_template(out, vars, "    .on_writable = $method$__call_on_writable,\n");
    }
    printer_template(out, vars, "    .on_closed = $method$__call_on_closed,\n};\n");
}

static void emit_stream_thunks(struct printer *out, const struct model_method *method)
{
    const struct printer_var vars[] = {{"method", method->lower}, {NULL, NULL}};
    const char *reply =
        memory_printf(out->memory, " result, (const %s *)result->reply,", method->output->c_name);

    emit_thunk(out, method, "stream", "on_headers", " const struct bow_metadata *initial,",
               " initial,");
    if (method->proto->server_streaming) {
        emit_thunk(out, method, "stream", "on_message", " const void *message,", " message,");
    }
    if (method->proto->client_streaming) {
        emit_thunk(out, method, "stream", "on_writable", "", "");
    }
    emit_thunk(out, method, "stream", "on_closed", " struct bow_result *result,",
               method->proto->server_streaming ? " result," : reply);
    printer_template(out, vars,
                     "\n"
                     "static const struct bow_stream_thunks $method$__stream_thunks = {\n"
                     "    .on_headers = $method$__stream_on_headers,\n");
    if (method->proto->server_streaming) {
        printer_template(out, vars, "    .on_message = $method$__stream_on_message,\n");
    }
    if (method->proto->client_streaming) {
        printer_template(out, vars, "    .on_writable = $method$__stream_on_writable,\n");
    }
    printer_template(out, vars, "    .on_closed = $method$__stream_on_closed,\n};\n");
}

void emit_thunks(struct printer *out, const struct emit *emit, const struct model_method *method)
{
    if (!emit->parameters->client_only) {
        emit_call_thunks(out, method);
    }
    if (!emit->parameters->server_only) {
        emit_stream_thunks(out, method);
    }
}
