/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which file brings a type is decided as protoc resolves names: what is imported, and
 * what that imports publicly.
 */

#include "codegen/includes.h"

#include <string.h>

#define MAX_DEPTH 1000

struct search {
    const struct model *model;
    bool *is_used;    /* by file: a type is taken from it */
    bool *is_visited; /* by file: already looked through for one import */
};

static void use(struct search *search, const struct model_file *file)
{
    if (file != NULL) {
        search->is_used[file - search->model->files] = true;
    }
}

static void find_used(struct search *search, const struct model_file *file)
{
    for (size_t i = 0; i < file->n_services; i++) {
        const struct model_service *service = &file->services[i];
        for (size_t j = 0; j < service->n_methods; j++) {
            use(search, service->methods[j].input->file);
            use(search, service->methods[j].output->file);
        }
    }
    for (size_t i = 0; i < file->n_messages; i++) {
        const struct model_message *message = &file->messages[i];
        for (size_t j = 0; j < message->n_fields; j++) {
            use(search, message->fields[j].type_file);
        }
    }
}

/* A chain of public imports longer than MAX_DEPTH is followed no further: the import is taken. */
static bool brings_used(const struct search *search, const struct model_file *file, int depth)
{
    size_t index = (size_t)(file - search->model->files);
    const Google__Protobuf__FileDescriptorProto *proto = file->proto;

    if (search->is_used[index] || depth > MAX_DEPTH) {
        return true;
    }
    if (search->is_visited[index]) {
        return false;
    }
    search->is_visited[index] = true;
    for (size_t i = 0; i < proto->n_public_dependency; i++) {
        int32_t import = proto->public_dependency[i];
        if (import >= 0 && (size_t)import < file->n_imports &&
            brings_used(search, file->imports[import], depth + 1)) {
            return true;
        }
    }
    return false;
}

static bool is_public(const struct model_file *file, size_t import)
{
    for (size_t i = 0; i < file->proto->n_public_dependency; i++) {
        if (file->proto->public_dependency[i] == (int32_t)import) {
            return true;
        }
    }
    return false;
}

void includes_find(const struct model *model, const struct model_file *file,
                   struct includes *ret_includes)
{
    struct memory *memory = model->memory;
    struct search search = {
        .model = model,
        .is_used = memory_array(memory, model->n_files, sizeof(*search.is_used)),
        .is_visited = memory_array(memory, model->n_files, sizeof(*search.is_visited)),
    };

    *ret_includes = (struct includes){
        .files = memory_array(memory, file->n_imports, sizeof(*ret_includes->files)),
    };
    find_used(&search, file);
    for (size_t i = 0; i < file->n_imports; i++) {
        const struct model_file *import = file->imports[i];
        memset(search.is_visited, 0, model->n_files * sizeof(*search.is_visited));
        if (!import->options.no_generate &&
            (is_public(file, i) || brings_used(&search, import, 0))) {
            ret_includes->files[ret_includes->n_files++] = import;
        }
    }
}
