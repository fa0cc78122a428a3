/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The order of a run. What each stage does is its own file's.
 */

#include "codegen/plugin.h"
#include "codegen/check.h"
#include "codegen/emit.h"
#include "codegen/model_members.h"
#include "codegen/symbols.h"

#define FEATURE_PROTO3_OPTIONAL 1

/* What option `list` writes: the names of the other files, one a line. */
#define LIST_NAME "bowline.files"

struct run {
    struct memory *memory;
    struct request request;
    struct parameters parameters;
    struct model model;
    Bowline__Codegen__Response *response;
};

/* The files of a .proto, each with who writes it. */
static const struct {
    const char *ending;
    void (*emit)(struct printer *out, const struct emit *emit);
} outputs[] = {
    {EMIT_MESSAGE_HEADER_ENDING, emit_message_header},
    {EMIT_MESSAGE_SOURCE_ENDING, emit_message_source},
    {EMIT_HEADER_ENDING, emit_header},
    {EMIT_SOURCE_ENDING, emit_source},
};

#define N_OUTPUTS (sizeof(outputs) / sizeof(outputs[0]))

static void fail(struct run *run, const char *why)
{
    run->response->n_file = 0;
    run->response->error = memory_printf(run->memory, "%s", why);
}

static const char *output_name(struct run *run, const struct model_file *file, size_t output)
{
    return memory_printf(run->memory, "%s%s", file->stem, outputs[output].ending);
}

static void add_file(struct run *run, const char *name, const struct printer *text)
{
    Bowline__Codegen__Response__File *added = memory_alloc(run->memory, sizeof(*added));

    *added = (Bowline__Codegen__Response__File)BOWLINE__CODEGEN__RESPONSE__FILE__INIT;
    added->name = memory_printf(run->memory, "%s", name);
    added->has_content = true;
    added->content = (ProtobufCBinaryData){.len = text->len, .data = (uint8_t *)text->bytes};
    run->response->file[run->response->n_file++] = added;
}

static void add_list(struct run *run)
{
    struct printer out;

    printer_init(&out, run->memory);
    for (size_t i = 0; i < run->model.n_files; i++) {
        for (size_t j = 0; j < N_OUTPUTS && model_is_generated(&run->model.files[i]); j++) {
            printer_printf(&out, "%s\n", output_name(run, &run->model.files[i], j));
        }
    }
    add_file(run, LIST_NAME, &out);
}

static void add_files(struct run *run, const struct model_file *file)
{
    const struct emit emit = {
        .model = &run->model,
        .file = file,
        .parameters = &run->parameters,
    };

    for (size_t i = 0; i < N_OUTPUTS; i++) {
        struct printer out;
        printer_init(&out, run->memory);
        outputs[i].emit(&out, &emit);
        add_file(run, output_name(run, file, i), &out);
    }
}

static void generate(struct run *run)
{
    run->response->file = memory_array(run->memory, N_OUTPUTS * run->model.n_files + 1,
                                       sizeof(Bowline__Codegen__Response__File *));
    if (run->parameters.list) {
        add_list(run);
        return;
    }
    for (size_t i = 0; i < run->model.n_files; i++) {
        if (model_is_generated(&run->model.files[i])) {
            add_files(run, &run->model.files[i]);
        }
    }
}

static void name_and_check(struct run *run, struct errors *errors)
{
    if (errors->n_errors == 0) {
        model_members_name(&run->model);
        symbols_name(&run->model, errors);
        check_model(&run->model, errors);
    }
}

Bowline__Codegen__Response *plugin_run(struct memory *memory, struct bow_slice request)
{
    struct errors errors;
    struct run run = {
        .memory = memory,
        .response = memory_alloc(memory, sizeof(*run.response)),
    };

    if (!request_decode(memory, request, &run.request)) {
        return NULL;
    }
    *run.response = (Bowline__Codegen__Response)BOWLINE__CODEGEN__RESPONSE__INIT;
    run.response->has_supported_features = true;
    run.response->supported_features = FEATURE_PROTO3_OPTIONAL;
    const char *wrong =
        request_read_parameters(memory, run.request.message->parameter, &run.parameters);
    if (wrong != NULL) {
        fail(&run, wrong);
        return run.response;
    }
    errors_init(&errors, memory);
    model_build(&run.model, memory, &run.request, run.parameters.imports, &errors);
    name_and_check(&run, &errors);
    if (errors.n_errors > 0) {
        fail(&run, errors_finish(&errors));
    } else {
        generate(&run);
    }
    model_fini(&run.model);
    return run.response;
}
