/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Members of the emitted structs. protobuf-c puts members of its own beside a
 * message's fields (base, n_x, has_x, x_case), and lower-cases what it makes of a
 * field's name, so two may meet.
 */

#include "codegen/check.h"
#include "codegen/names.h"

#include <string.h>

struct member {
    const char *what;   /* "field 'x'" */
    const char *remedy; /* what else can be done about it than to rename something; or NULL */
};

struct members {
    struct memory *memory;
    struct errors *errors;
    struct bow__bytes_map by_name;
    const char *owner; /* the struct */
};

static void members_init(struct members *members, struct memory *memory, struct errors *errors)
{
    *members = (struct members){.memory = memory, .errors = errors};
    bow__bytes_map_init(&members->by_name, memory->context, 0);
}

static void add(struct members *members, struct place place, const char *name, struct member given)
{
    struct bow_slice key = {.data = (const uint8_t *)name, .len = strlen(name)};
    const struct member *there = bow__bytes_map_get(&members->by_name, key);

    if (there != NULL) {
        errors_add(members->errors, place,
                   "%s would be the member '%s' of struct %s, and so would %s: %s", given.what,
                   name, members->owner, there->what,
                   there->remedy != NULL ? there->remedy : "rename one of them");
        return;
    }
    struct member *member = memory_alloc(members->memory, sizeof(*member));
    *member = given;
    memory_check(bow__bytes_map_put(&members->by_name, key, member));
}

static bool has_presence_member(const struct model_file *file, const struct model_field *field)
{
    const Google__Protobuf__FieldDescriptorProto *proto = field->proto;
    bool is_proto3 = file->proto->syntax != NULL && strcmp(file->proto->syntax, "proto3") == 0;

    return !is_proto3 && !proto->has_oneof_index &&
           proto->label == GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__LABEL__LABEL_OPTIONAL &&
           proto->type != GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_STRING &&
           field->message == NULL;
}

static void add_field(struct members *members, const struct model_message *message,
                      const struct model_field *field)
{
    struct memory *memory = members->memory;
    const char *what = memory_printf(memory, "field '%s'", field->proto->name);

    /* The one keyword of C that is none of C++, which protoc-gen-c's list is made from. */
    if (strcmp(field->member, "restrict") == 0) {
        errors_add(
            members->errors, field->place,
            "field 'restrict' would be a member of that name, a keyword of C that protobuf-c "
            "does not avoid: rename the field");
        return;
    }
    if (field->is_repeated) {
        add(members, field->place, memory_printf(memory, "n_%s", field->member),
            (struct member){.what = memory_printf(memory, "the count of %s", what)});
    } else if (has_presence_member(message->file, field)) {
        add(members, field->place, memory_printf(memory, "has_%s", field->member),
            (struct member){.what = memory_printf(memory, "the presence of %s", what)});
    }
    add(members, field->place, field->member, (struct member){.what = what});
}

static void check_message(struct memory *memory, struct errors *errors,
                          const struct model_message *message)
{
    struct members members;
    const Google__Protobuf__DescriptorProto *proto = message->proto;

    members_init(&members, memory, errors);
    members.owner = message->c_name;
    add(&members, message->place, options_base_field(memory, proto->options),
        (struct member){
            .what = "protobuf-c's own first member",
            .remedy = "rename that one with option (pb_c_msg).base_field_name, or the field",
        });
    for (size_t i = 0; i < proto->n_oneof_decl; i++) {
        const char *name = proto->oneof_decl[i]->name;
        add(&members, message->place, memory_printf(memory, "%s_case", names_lower(memory, name)),
            (struct member){.what = memory_printf(memory, "the case of oneof '%s'", name)});
    }
    for (size_t i = 0; i < message->n_fields; i++) {
        add_field(&members, message, &message->fields[i]);
    }
    bow__bytes_map_fini(&members.by_name);
}

static void check_service(struct memory *memory, struct errors *errors,
                          const struct model_service *service)
{
    struct members members;

    members_init(&members, memory, errors);
    members.owner = memory_printf(memory, "%s__handlers", service->lower);
    for (size_t i = 0; i < service->n_methods; i++) {
        const struct model_method *method = &service->methods[i];
        add(&members, method->place, method->member,
            (struct member){
                .what = memory_printf(memory, "method '%s'", method->name),
                .remedy = "give one of them another name in C with option (bowline.c_name)",
            });
    }
    bow__bytes_map_fini(&members.by_name);
}

static void check_file(struct memory *memory, struct errors *errors, const struct model_file *file)
{
    for (size_t i = 0; i < file->n_messages; i++) {
        check_message(memory, errors, &file->messages[i]);
    }
    for (size_t i = 0; i < file->n_services; i++) {
        check_service(memory, errors, &file->services[i]);
    }
}

void check_members(const struct model *model, struct errors *errors)
{
    for (size_t i = 0; i < model->n_files; i++) {
        if (model_is_generated(&model->files[i])) {
            check_file(model->memory, errors, &model->files[i]);
        }
    }
}
