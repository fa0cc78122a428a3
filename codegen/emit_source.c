/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * x.bow.c: the tables of the services, and for each method the function that finds
 * its handler. Nothing but an #include for a file without services.
 */

#include "codegen/emit.h"

#include <inttypes.h>

static void emit_invoke(struct printer *out, const struct model_service *service,
                        const struct model_method *method)
{
    const struct printer_var vars[] = {
        {"service", service->lower},
        {"method", method->lower},
        {"member", method->member},
        {"call", method->is_streaming ? "handle" : "call"},
        {"request", method->proto->client_streaming ? "" : " request,"},
        {NULL, NULL},
    };

    printer_template(out, vars,
                     "\n"
                     "static bool\n"
                     "$method$__invoke(struct bow_call *call, const void *request,\n"
                     "    const void *handlers, void *user)\n"
                     "{\n"
                     "    const struct $service$__handlers *typed = handlers;\n");
    if (method->is_streaming) {
        printer_template(out, vars, "    struct $method$__call handle = {call};\n");
    }
    printer_text(out, "\n");
    if (method->proto->client_streaming) {
        printer_text(out, "    (void)request;\n");
    }
    printer_template(out, vars,
                     "    if (typed->$member$ == NULL) {\n"
                     "        return false;\n"
                     "    }\n"
                     "    typed->$member$($call$,$request$ user);\n"
                     "    return true;\n"
                     "}\n");
}

/* The flags of the table, as C spells them; "0" for none. */
static const char *flags_of(struct memory *memory, const struct model_method *method)
{
    const Google__Protobuf__MethodDescriptorProto *proto = method->proto;
    const Google__Protobuf__MethodOptions *options = proto->options;
    struct printer flags;

    printer_init(&flags, memory);
    if (proto->client_streaming) {
        printer_text(&flags, " | BOW_METHOD_CLIENT_STREAMING");
    }
    if (proto->server_streaming) {
        printer_text(&flags, " | BOW_METHOD_SERVER_STREAMING");
    }
    if (options != NULL && options->idempotency_level ==
                               GOOGLE__PROTOBUF__METHOD_OPTIONS__IDEMPOTENCY_LEVEL__IDEMPOTENT) {
        printer_text(&flags, " | BOW_METHOD_IDEMPOTENT");
    }
    if (options != NULL &&
        options->idempotency_level ==
            GOOGLE__PROTOBUF__METHOD_OPTIONS__IDEMPOTENCY_LEVEL__NO_SIDE_EFFECTS) {
        printer_text(&flags, " | BOW_METHOD_NO_SIDE_EFFECTS");
    }
    if (options != NULL && options->deprecated) {
        printer_text(&flags, " | BOW_METHOD_DEPRECATED");
    }
    if (options_method_blocks(options)) {
        printer_text(&flags, " | BOW_METHOD_BLOCKING");
    }
    return flags.len > 0 ? printer_finish(&flags) + 3 : "0";
}

static void emit_method(struct printer *out, const struct emit *emit,
                        const struct model_service *service, const struct model_method *method)
{
    struct memory *memory = out->memory;
    const char *path = memory_printf(memory, "/%s/%s", service->full_name, method->name);
    const struct printer_var vars[] = {
        {"path", path},
        {"name", method->name},
        {"input", method->input->lower},
        {"output", method->output->lower},
        {"method", method->lower},
        {"flags", flags_of(memory, method)},
        {NULL, NULL},
    };

    printer_template(out, vars,
                     "    {\n"
                     "        .path = \"$path$\",\n"
                     "        .name = \"$name$\",\n"
                     "        .input = &$input$__descriptor,\n"
                     "        .output = &$output$__descriptor,\n");
    if (!emit->parameters->client_only) {
        printer_template(out, vars, "        .invoke = $method$__invoke,\n");
    }
    if (method->is_streaming && !emit->parameters->client_only) {
        printer_template(out, vars, "        .call_thunks = &$method$__call_thunks,\n");
    }
    if (method->is_streaming && !emit->parameters->server_only) {
        printer_template(out, vars, "        .stream_thunks = &$method$__stream_thunks,\n");
    }
    printer_template(out, vars,
                     "        .flags = $flags$,\n"
                     "    },\n");
}

static void emit_functions(struct printer *out, const struct emit *emit,
                           const struct model_service *service)
{
    for (size_t i = 0; i < service->n_methods; i++) {
        if (!emit->parameters->client_only) {
            emit_invoke(out, service, &service->methods[i]);
        }
        if (service->methods[i].is_streaming) {
            emit_thunks(out, emit, &service->methods[i]);
        }
    }
}

static void emit_service(struct printer *out, const struct emit *emit,
                         const struct model_service *service)
{
    bool empty = service->n_methods == 0;
    struct memory *memory = out->memory;
    const char *size = memory_printf(memory, "sizeof(struct %s__handlers)", service->lower);
    const struct printer_var vars[] = {
        {"service", service->lower},
        {"name", service->full_name},
        {"methods", empty ? "NULL" : memory_printf(memory, "%s__methods", service->lower)},
        {"n_methods", memory_printf(memory, "%zu", service->n_methods)},
        {"hash", memory_printf(memory, "0x%016" PRIx64, service->hash)},
        {"size", emit->parameters->client_only ? "0" : size},
        {"file", service->file->symbol},
        {NULL, NULL},
    };

    emit_functions(out, emit, service);
    if (!empty) {
        printer_template(out, vars, "\nstatic const struct bow_method $service$__methods[] = {\n");
        for (size_t i = 0; i < service->n_methods; i++) {
            emit_method(out, emit, service, &service->methods[i]);
        }
        printer_text(out, "};\n");
    }
    printer_template(out, vars,
                     "\n"
                     "const struct bow_service $service$__service = {\n"
                     "    .abi = BOW_SERVICE_ABI,\n"
                     "    .name = \"$name$\",\n"
                     "    .methods = $methods$,\n"
                     "    .n_methods = $n_methods$,\n"
                     "    .hash = UINT64_C($hash$),\n"
                     "    .handlers_size = $size$,\n"
                     "    .file = &$file$,\n"
                     "};\n");
}

void emit_source(struct printer *out, const struct emit *emit)
{
    const struct model_file *file = emit->file;

    emit_banner(out, file);
    if (!emit->parameters->no_messages) {
        printer_text(out, "#define BOW_NO_MESSAGES /* none is called here */\n");
    }
    emit_include(out, emit, file, EMIT_HEADER_ENDING);
    for (size_t i = 0; i < file->n_services; i++) {
        emit_service(out, emit, &file->services[i]);
    }
}
