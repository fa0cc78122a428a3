/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Cutting the request down for protoc-gen-c. Which files a file needs is decided
 * as protoc resolves names: what it imports, and what those import publicly.
 */

#include "codegen/child_request.h"

#include <string.h>

#define MAX_DEPTH 1000

struct cut {
    const struct model *model;
    bool *is_used;    /* by file: the file being cut takes a type from it */
    bool *is_visited; /* by file: already looked through for one import */
};

static void use_file(struct cut *cut, const struct model_file *file)
{
    if (file != NULL) {
        cut->is_used[file - cut->model->files] = true;
    }
}

/* Of extensions inside messages, which are not cut; the model does not hold them. */
static void use_type(struct cut *cut, const char *type_name)
{
    use_file(cut, model_find_type_file(cut->model, type_name));
}

static void use_extensions(struct cut *cut, Google__Protobuf__FieldDescriptorProto *const *list,
                           size_t n)
{
    for (size_t i = 0; i < n; i++) {
        use_type(cut, list[i]->extendee);
        use_type(cut, list[i]->type_name);
    }
}

/* The services are cut, but what stands in their place includes the headers of their messages
 * through protoc-gen-c's. */
static void use_service(struct cut *cut, const struct model_service *service)
{
    for (size_t i = 0; i < service->n_methods; i++) {
        use_file(cut, service->methods[i].input->file);
        use_file(cut, service->methods[i].output->file);
    }
}

static void find_used_files(struct cut *cut, const struct model_file *file)
{
    memset(cut->is_used, 0, cut->model->n_files * sizeof(*cut->is_used));
    for (size_t i = 0; i < file->n_services; i++) {
        use_service(cut, &file->services[i]);
    }
    for (size_t i = 0; i < file->n_messages; i++) {
        const struct model_message *message = &file->messages[i];
        use_extensions(cut, message->proto->extension, message->proto->n_extension);
        for (size_t j = 0; j < message->n_fields; j++) {
            use_file(cut, message->fields[j].type_file);
        }
    }
}

/* A chain of public imports longer than MAX_DEPTH is followed no further: the import is kept. */
static bool brings_used_file(const struct cut *cut, const struct model_file *file, int depth)
{
    size_t index = (size_t)(file - cut->model->files);
    const Google__Protobuf__FileDescriptorProto *proto = file->proto;

    if (cut->is_used[index] || depth > MAX_DEPTH) {
        return true;
    }
    if (cut->is_visited[index]) {
        return false;
    }
    cut->is_visited[index] = true;
    for (size_t i = 0; i < proto->n_public_dependency; i++) {
        int32_t import = proto->public_dependency[i];
        if (import >= 0 && (size_t)import < file->n_imports &&
            brings_used_file(cut, file->imports[import], depth + 1)) {
            return true;
        }
    }
    return false;
}

static bool is_among(int32_t index, const int32_t *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (list[i] == index) {
            return true;
        }
    }
    return false;
}

static void cut_imports(const struct cut *cut, const struct model_file *file,
                        Google__Protobuf__FileDescriptorProto *copy)
{
    const Google__Protobuf__FileDescriptorProto *proto = file->proto;
    struct memory *memory = cut->model->memory;

    copy->dependency = memory_array(memory, proto->n_dependency, sizeof(*copy->dependency));
    copy->public_dependency =
        memory_array(memory, proto->n_dependency, sizeof(*copy->public_dependency));
    copy->n_dependency = 0;
    copy->n_public_dependency = 0;
    copy->n_weak_dependency = 0;
    for (size_t i = 0; i < file->n_imports; i++) {
        bool is_public = is_among((int32_t)i, proto->public_dependency, proto->n_public_dependency);
        memset(cut->is_visited, 0, cut->model->n_files * sizeof(*cut->is_visited));
        if (!is_public && !brings_used_file(cut, file->imports[i], 0)) {
            continue;
        }
        if (is_public) {
            copy->public_dependency[copy->n_public_dependency++] = (int32_t)copy->n_dependency;
        }
        copy->dependency[copy->n_dependency++] = proto->dependency[i];
    }
}

Bowline__Codegen__Request *child_request(const struct model *model,
                                         const Bowline__Codegen__Request *request,
                                         const struct parameters *parameters)
{
    struct memory *memory = model->memory;
    Bowline__Codegen__Request *copy = memory_alloc(memory, sizeof(*copy));
    struct cut cut = {
        .model = model,
        .is_used = memory_array(memory, model->n_files, sizeof(*cut.is_used)),
        .is_visited = memory_array(memory, model->n_files, sizeof(*cut.is_visited)),
    };

    *copy = *request;
    copy->parameter = (char *)(uintptr_t)parameters->for_child;
    copy->proto_file =
        memory_array(memory, model->n_files, sizeof(Google__Protobuf__FileDescriptorProto *));
    for (size_t i = 0; i < model->n_files; i++) {
        Google__Protobuf__FileDescriptorProto *file = memory_alloc(memory, sizeof(*file));
        *file = *request->proto_file[i];
        file->n_service = 0;
        file->n_extension = 0;
        find_used_files(&cut, &model->files[i]);
        cut_imports(&cut, &model->files[i], file);
        copy->proto_file[i] = file;
    }
    return copy;
}
