/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Naming members. A field and what stands beside it (n_x, has_x) are named together:
 * a suffix goes to both.
 */

#include "codegen/model_members.h"
#include "codegen/names.h"
#include "codegen/names_reserved.h"

#include <string.h>

/* The names of one struct; the values are of no use. */
struct members {
    struct memory *memory;
    struct bow__bytes_map taken;
};

static void members_init(struct members *members, struct memory *memory)
{
    members->memory = memory;
    bow__bytes_map_init(&members->taken, memory->context, 0);
}

static void members_fini(struct members *members)
{
    bow__bytes_map_fini(&members->taken);
}

static struct bow_slice key_of(const char *name)
{
    return (struct bow_slice){.data = (const uint8_t *)name, .len = strlen(name)};
}

static bool is_free(const struct members *members, const char *name)
{
    return !names_is_reserved(name) && bow__bytes_map_get(&members->taken, key_of(name)) == NULL;
}

static void take(struct members *members, const char *name)
{
    memory_check(bow__bytes_map_put(&members->taken, key_of(name), members));
}

static const char *longer(struct members *members, const char *name)
{
    return memory_printf(members->memory, "%s_", name);
}

/* `name`, or what it becomes so that it is free; it is then taken. */
static const char *take_free(struct members *members, const char *name)
{
    while (!is_free(members, name)) {
        name = longer(members, name);
    }
    take(members, name);
    return name;
}

/* "n_", "has_", or NULL when nothing stands beside the field. */
static const char *quantifier_of(const struct model_file *file, const struct model_field *field)
{
    if (field->is_repeated) {
        return "n_";
    }
    /* A string or message that is not there is NULL. */
    bool has_presence =
        !file->is_proto3 && field->oneof == NULL &&
        field->proto->label == GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__LABEL__LABEL_OPTIONAL &&
        !field->is_string && field->message == NULL;
    return has_presence ? "has_" : NULL;
}

static void name_field(struct members *members, const struct model_file *file,
                       struct model_field *field)
{
    const char *prefix = quantifier_of(file, field);
    const char *member = names_field(members->memory, field->proto->name);
    const char *quantifier = NULL;

    for (;;) {
        if (prefix != NULL) {
            quantifier = memory_printf(members->memory, "%s%s", prefix, member);
        }
        if (is_free(members, member) && (quantifier == NULL || is_free(members, quantifier))) {
            break;
        }
        member = longer(members, member);
    }
    take(members, member);
    if (quantifier != NULL) {
        take(members, quantifier);
    }
    field->member = member;
    field->quantifier = quantifier;
}

static void name_message(struct memory *memory, struct model_message *message)
{
    struct members members;

    members_init(&members, memory);
    message->base = take_free(&members, options_base_field(memory, message->proto->options));
    for (size_t i = 0; i < message->n_oneofs; i++) {
        const char *piece = names_lower(memory, message->oneofs[i].proto->name);
        message->oneofs[i].member = take_free(&members, memory_printf(memory, "%s_case", piece));
    }
    for (size_t i = 0; i < message->n_fields; i++) {
        name_field(&members, message->file, &message->fields[i]);
    }
    members_fini(&members);
}

static void name_service(struct memory *memory, struct model_service *service)
{
    struct members members;

    members_init(&members, memory);
    for (size_t i = 0; i < service->n_methods; i++) {
        struct model_method *method = &service->methods[i];
        method->member = take_free(&members, names_handler(memory, method->piece));
    }
    members_fini(&members);
}

void model_members_name(struct model *model)
{
    for (size_t i = 0; i < model->n_files; i++) {
        struct model_file *file = &model->files[i];
        for (size_t j = 0; j < file->n_messages; j++) {
            name_message(model->memory, &file->messages[j]);
        }
        for (size_t j = 0; j < file->n_services; j++) {
            name_service(model->memory, &file->services[j]);
        }
    }
}
