/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The order of a run. What each stage does is its own file's.
 */

#include "codegen/plugin.h"
#include "codegen/check.h"
#include "codegen/child.h"
#include "codegen/child_request.h"
#include "codegen/emit.h"
#include "codegen/symbols.h"

#define FEATURE_PROTO3_OPTIONAL 1

struct run {
    struct memory *memory;
    const struct plugin_options *options;
    const Bowline__Codegen__Request *request;
    struct parameters parameters;
    struct model model;
    Bowline__Codegen__Response *response;
};

static void fail(struct run *run, const char *why)
{
    run->response->n_file = 0;
    run->response->error = memory_printf(run->memory, "%s", why);
}

static void add_file(struct run *run, const struct model_file *file, const char *ending,
                     void (*emit)(struct printer *out, const struct model_file *file))
{
    Bowline__Codegen__Response__File *added = memory_alloc(run->memory, sizeof(*added));
    struct printer out;

    printer_init(&out, run->memory);
    emit(&out, file);
    *added = (Bowline__Codegen__Response__File)BOWLINE__CODEGEN__RESPONSE__FILE__INIT;
    added->name = memory_printf(run->memory, "%s%s", file->stem, ending);
    added->has_content = true;
    added->content = (ProtobufCBinaryData){.len = out.len, .data = (uint8_t *)out.bytes};
    run->response->file[run->response->n_file++] = added;
}

static void emit_files(struct run *run, const Bowline__Codegen__Response *from_child)
{
    size_t n_child = from_child != NULL ? from_child->n_file : 0;
    size_t n_files = n_child + 2 * run->model.n_files;

    run->response->file =
        memory_array(run->memory, n_files, sizeof(Bowline__Codegen__Response__File *));
    for (size_t i = 0; i < n_child; i++) {
        run->response->file[run->response->n_file++] = from_child->file[i];
    }
    for (size_t i = 0; i < run->model.n_files; i++) {
        if (model_is_generated(&run->model.files[i])) {
            add_file(run, &run->model.files[i], EMIT_HEADER_ENDING, emit_header);
            add_file(run, &run->model.files[i], EMIT_SOURCE_ENDING, emit_source);
        }
    }
}

static void generate(struct run *run)
{
    const char *program = run->parameters.protoc_gen_c != NULL ? run->parameters.protoc_gen_c
                                                               : run->options->protoc_gen_c;
    const char *error = NULL;

    Bowline__Codegen__Request *cut = child_request(&run->model, run->request, &run->parameters);
    if (run->options->without_child) {
        emit_files(run, NULL);
        return;
    }
    Bowline__Codegen__Response *from_child = child_run(run->memory, program, cut, &error);
    if (from_child != NULL && from_child->error != NULL) {
        error = memory_printf(run->memory, "%s: %s", program, from_child->error);
    } else if (from_child != NULL) {
        error = child_check_files(run->memory, program, from_child);
    }
    if (error != NULL) {
        fail(run, error);
        return;
    }
    emit_files(run, from_child);
}

static void check_and_generate(struct run *run, struct errors *errors)
{
    for (size_t i = 0; i < run->model.n_files; i++) {
        run->model.files[i].has_functions = !run->parameters.no_messages;
    }
    if (errors->n_errors == 0) {
        check_model(&run->model, errors);
        check_members(&run->model, errors);
        symbols_check(&run->model, errors);
    }
    if (errors->n_errors > 0) {
        fail(run, errors_finish(errors));
        return;
    }
    generate(run);
}

Bowline__Codegen__Response *plugin_run(struct memory *memory, const struct plugin_options *options,
                                       struct bow_slice request)
{
    struct errors errors;
    struct run run = {
        .memory = memory,
        .options = options,
        .request = request_decode(memory, request),
        .response = memory_alloc(memory, sizeof(*run.response)),
    };

    if (run.request == NULL) {
        return NULL;
    }
    *run.response = (Bowline__Codegen__Response)BOWLINE__CODEGEN__RESPONSE__INIT;
    run.response->has_supported_features = true;
    run.response->supported_features = FEATURE_PROTO3_OPTIONAL;
    const char *wrong = request_read_parameters(memory, run.request->parameter, &run.parameters);
    if (wrong != NULL) {
        fail(&run, wrong);
        return run.response;
    }
    errors_init(&errors, memory);
    model_build(&run.model, memory, run.request, &errors);
    check_and_generate(&run, &errors);
    model_fini(&run.model);
    return run.response;
}
