/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * x.bow.h: handlers structs and the typed functions (those of streams: emit_stream.c). The
 * functions are inline, so that a program links only that part of the library which it calls.
 */

#include "codegen/emit.h"

#include <inttypes.h>

static void emit_handler(struct printer *out, const struct model_method *method)
{
    const struct printer_var vars[] = {
        {"member", method->member},
        {"method", method->lower},
        {"input", method->input->c_name},
        {NULL, NULL},
    };

    emit_doc(out, "    ", method->place);
    if (method->proto->client_streaming) {
        printer_template(out, vars,
                         "    void (*$member$)(struct $method$__call call, void *user);\n");
        return;
    }
    if (method->proto->server_streaming) {
        printer_template(
            out, vars,
            "    void (*$member$)(struct $method$__call call, const $input$ *request,\n"
            "        void *user);\n");
        return;
    }
    printer_template(
        out, vars,
        "    void (*$member$)(struct bow_call *call, const $input$ *request, void *user);\n");
}

static void emit_heading(struct printer *out, const struct model_service *service)
{
    const struct printer_var vars[] = {
        {"service", service->lower},
        {"name", service->full_name},
        {NULL, NULL},
    };

    printer_template(out, vars,
                     "\n"
                     "/*\n"
                     " * Service $name$\n"
                     " */\n"
                     "\n"
                     "extern const struct bow_service $service$__service;\n");
}

static void emit_handlers(struct printer *out, const struct model_service *service)
{
    const struct printer_var vars[] = {
        {"service", service->lower},
        {NULL, NULL},
    };

    printer_text(out, "\n");
    emit_doc(out, "", service->place);
    printer_template(out, vars, "struct $service$__handlers {\n");
    for (size_t i = 0; i < service->n_methods; i++) {
        emit_handler(out, &service->methods[i]);
    }
    if (service->n_methods == 0) {
        printer_text(out, "    void (*reserved)(void); /* C has no empty structs */\n");
    }
    printer_text(out, "};\n");
}

static void emit_serve(struct printer *out, const struct model_service *service)
{
    const struct printer_var vars[] = {
        {"service", service->lower},
        {"name", service->full_name},
        {"hash", memory_printf(out->memory, "0x%016" PRIx64, service->hash)},
        {NULL, NULL},
    };
    printer_template(out, vars,
                     "\n"
                     "/** Add $name$ to `server`: bow_server_add_service(). A member of `handlers` "
                     "that is NULL\n"
                     " * answers UNIMPLEMENTED; `user` is passed to each. */\n"
                     "BOW_MUST_USE static inline int\n"
                     "$service$__serve(struct bow_server *server,\n"
                     "    const struct $service$__handlers *handlers, void *user)\n"
                     "{\n"
                     "    return bow_server_add_service(server, &$service$__service, handlers,\n"
                     "        sizeof(*handlers), UINT64_C($hash$), user);\n"
                     "}\n");
}

static const char method_text[] = "\n"
                                  "/* $path$ */\n"
                                  "\n"
                                  "static inline const struct bow_method *\n"
                                  "$method$__method(void)\n"
                                  "{\n"
                                  "    return &$service$__service.methods[$index$];\n"
                                  "}\n";

static const char reply_text[] =
    "\n"
    "/** Answer with `reply`: bow_call_reply(). */\n"
    "static inline int\n"
    "$method$__reply(struct bow_call *call, const $output$ *reply)\n"
    "{\n"
    "    return bow_call_reply(call, (const ProtobufCMessage *)reply);\n"
    "}\n";

static const char call_text[] =
    "\n"
    "/** Call and wait: bow_client_call(). The reply lives in `*ret_result`. */\n"
    "static inline const $output$ *\n"
    "$method$__call(struct bow_client *client,\n"
    "    const $input$ *request, const struct bow_call_options *options,\n"
    "    struct bow_result *ret_result)\n"
    "{\n"
    "    return (const $output$ *)bow_client_call(client,\n"
    "        $method$__method(), (const ProtobufCMessage *)request, options,\n"
    "        ret_result);\n"
    "}\n"
    "\n"
    "/** `reply` is NULL unless `result->status.code` is BOW_OK. */\n"
    "typedef void (*$method$__fn)(struct bow_result *result,\n"
    "    const $output$ *reply, void *user);\n"
    "\n"
    "static inline void\n"
    "$method$__on_done(struct bow_result *result, bow_any_fn fn, void *user)\n"
    "{\n"
    "    (($method$__fn)fn)(result, (const $output$ *)result->reply, user);\n"
    "}\n"
    "\n"
    "/** Call; `fn` runs once, later: bow_client_start(). */\n"
    "BOW_MUST_USE static inline int\n"
    "$method$__start(struct bow_client *client,\n"
    "    const $input$ *request, const struct bow_call_options *options,\n"
    "    $method$__fn fn, void *user, uint64_t *ret_id)\n"
    "{\n"
    "    return bow_client_start(client, $method$__method(),\n"
    "        (const ProtobufCMessage *)request, options, $method$__on_done,\n"
    "        (bow_any_fn)fn, user, ret_id);\n"
    "}\n";

static void emit_method(struct printer *out, const struct emit *emit,
                        const struct model_service *service, size_t index)
{
    const struct model_method *method = &service->methods[index];
    struct memory *memory = out->memory;
    const struct printer_var vars[] = {
        {"service", service->lower},
        {"method", method->lower},
        {"path", memory_printf(memory, "%s/%s", service->full_name, method->name)},
        {"index", memory_printf(memory, "%zu", index)},
        {"input", method->input->c_name},
        {"output", method->output->c_name},
        {NULL, NULL},
    };

    printer_template(out, vars, method_text);
    if (method->is_streaming) {
        emit_stream_handles(out, emit, vars, method);
        return;
    }
    printer_template(out, vars, emit->parameters->client_only ? "" : reply_text);
    printer_template(out, vars, emit->parameters->server_only ? "" : call_text);
}

static void emit_service(struct printer *out, const struct emit *emit,
                         const struct model_service *service)
{
    emit_heading(out, service);
    for (size_t i = 0; i < service->n_methods; i++) {
        emit_method(out, emit, service, i);
    }
    if (!emit->parameters->client_only) {
        emit_handlers(out, service);
        emit_serve(out, service);
    }
}

static bool has_streams(const struct model_file *file)
{
    for (size_t i = 0; i < file->n_services; i++) {
        for (size_t j = 0; j < file->services[i].n_methods; j++) {
            if (file->services[i].methods[j].is_streaming) {
                return true;
            }
        }
    }
    return false;
}

/* With one side only, none of the other's headers. */
static void emit_service_includes(struct printer *out, const struct emit *emit)
{
    bool streams = has_streams(emit->file);
    bool serves = !emit->parameters->client_only;
    bool calls = !emit->parameters->server_only;

    printer_text(out, serves ? "#include <bowline/call.h>\n" : "");
    printer_text(out, serves && streams ? "#include <bowline/call_stream.h>\n" : "");
    printer_text(out, calls ? "#include <bowline/client.h>\n" : "");
    printer_text(out, serves ? "#include <bowline/server.h>\n" : "");
    printer_text(out, "#include <bowline/service.h>\n");
    printer_text(out, calls && streams ? "#include <bowline/stream.h>\n" : "");
}

static void emit_includes(struct printer *out, const struct emit *emit)
{
    emit_include(out, emit, emit->file, EMIT_MESSAGE_HEADER_ENDING);
    printer_text(out, "\n");
    if (emit->file->n_services > 0) {
        emit_service_includes(out, emit);
    } else {
        printer_text(out, "#include <bowline/service.h>\n");
    }
    emit_message_includes(out, emit);
    emit_abi_check(out);
}

void emit_header(struct printer *out, const struct emit *emit)
{
    const struct model_file *file = emit->file;

    emit_banner(out, file);
    printer_printf(out, "#ifndef BOWLINE_%s_INCLUDED\n#define BOWLINE_%s_INCLUDED\n\n", file->id,
                   file->id);
    emit_includes(out, emit);
    printer_text(out, "\n"
                      "#ifdef __cplusplus\n"
                      "extern \"C\" {\n"
                      "#endif\n"
                      "\n");
    printer_printf(out, "extern const struct bow_file %s;\n", file->symbol);
    for (size_t i = 0; i < file->n_services; i++) {
        emit_service(out, emit, &file->services[i]);
    }
    emit_message_functions(out, emit);
    printer_text(out, "\n"
                      "#ifdef __cplusplus\n"
                      "}\n"
                      "#endif\n"
                      "#endif\n");
}
