/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Services and methods of the model: their names in C, their types, and the hash
 * by which header and source of different .proto files are told apart.
 */

#include "codegen/model_service.h"
#include "codegen/names.h"

#include <string.h>

enum { SERVICE_METHODS = 2 }; /* of ServiceDescriptorProto, for places */

static bool check_c_name(struct errors *errors, struct place place, const char *option,
                         const char *c_name)
{
    if (c_name != NULL && !names_is_identifier(c_name)) {
        errors_add(errors, place, "option (bowline.%s) = \"%s\" is not a name in C", option,
                   c_name);
        return false;
    }
    return true;
}

static const struct model_message *resolve(struct model *model, struct errors *errors,
                                           struct place place, const char *type_name)
{
    const struct model_message *message = model_find_message(model, type_name);

    if (message == NULL) {
        errors_add(errors, place, "type '%s' is not declared in the request",
                   type_name != NULL ? type_name : "");
    }
    return message;
}

static bool add_method(struct model *model, struct errors *errors, struct place place,
                       const Google__Protobuf__MethodDescriptorProto *proto,
                       struct model_method *ret_method)
{
    struct memory *memory = model->memory;
    const char *c_name = options_method_c_name(memory, proto->options);

    if (!model_check_name(errors, place, proto->name) ||
        !check_c_name(errors, place, "c_name", c_name)) {
        return false;
    }
    const struct model_message *input = resolve(model, errors, place, proto->input_type);
    const struct model_message *output = resolve(model, errors, place, proto->output_type);
    if (input == NULL || output == NULL) {
        return false;
    }
    const char *piece = c_name != NULL ? c_name : names_lower(memory, proto->name);
    *ret_method = (struct model_method){
        .proto = proto,
        .place = place,
        .name = proto->name,
        .piece = piece,
        .input = input,
        .output = output,
        .is_streaming = proto->client_streaming || proto->server_streaming,
    };
    return true;
}

/* The lower-case prefix, its last piece replaced when an option says so. */
static const char *service_prefix(struct memory *memory, const struct model_file *file,
                                  const char *full_name, const char *c_name)
{
    const char *effective = model_effective_name(memory, file, full_name);
    const char *last_dot = strrchr(effective, '.');

    if (c_name == NULL) {
        return names_full_lower(memory, effective);
    }
    if (last_dot == NULL) {
        return c_name;
    }
    const char *scope = memory_dup(memory, effective, (size_t)(last_dot - effective));
    return memory_printf(memory, "%s__%s", names_full_lower(memory, scope), c_name);
}

bool model_add_service(struct model *model, struct errors *errors, const struct model_file *file,
                       struct place place, const Google__Protobuf__ServiceDescriptorProto *proto,
                       struct model_service *ret_service)
{
    struct memory *memory = model->memory;
    const char *c_name = options_service_c_name(memory, proto->options);

    if (!model_check_name(errors, place, proto->name) ||
        !check_c_name(errors, place, "c_service_name", c_name)) {
        return false;
    }
    const char *dot = *file->package != '\0' ? "." : "";
    const char *full_name = memory_printf(memory, "%s%s%s", file->package, dot, proto->name);
    *ret_service = (struct model_service){
        .proto = proto,
        .file = file,
        .place = place,
        .full_name = full_name,
        .lower = service_prefix(memory, file, full_name, c_name),
        .methods = memory_array(memory, proto->n_method, sizeof(*ret_service->methods)),
    };
    for (size_t i = 0; i < proto->n_method; i++) {
        struct model_method *method = &ret_service->methods[ret_service->n_methods];
        struct place at = place_within(memory, place, SERVICE_METHODS, i);
        if (add_method(model, errors, at, proto->method[i], method)) {
            ret_service->n_methods++;
        }
    }
    return true;
}

/* FNV-1a, 64 bits; the NUL keeps "ab","c" and "a","bc" apart. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    do {
        hash = (hash ^ (uint8_t)*text) * UINT64_C(0x100000001b3);
    } while (*text++ != '\0');
    return hash;
}

uint64_t model_hash_service(const struct model_service *service)
{
    uint64_t hash = hash_text(UINT64_C(0xcbf29ce484222325), service->full_name);

    for (size_t i = 0; i < service->n_methods; i++) {
        const struct model_method *method = &service->methods[i];
        hash = hash_text(hash, method->name);
        hash = hash_text(hash, method->member);
        hash = hash_text(hash, method->input->c_name);
        hash = hash_text(hash, method->output->c_name);
        hash = hash_text(hash, method->proto->client_streaming ? "stream" : "");
        hash = hash_text(hash, method->proto->server_streaming ? "stream" : "");
    }
    return hash;
}
