/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Names only; knows no text of a function.
 */

#include "codegen/message_names.h"
#include "codegen/model_service.h"
#include "codegen/names.h"

#include <stdlib.h>
#include <string.h>

#define MOST_OF_A_FIELD 4 /* functions */

struct ending {
    enum message_function_kind kind;
    const char *ending;
};

static const struct ending message_endings[] = {
    {MESSAGE_NEW, "new"},       {MESSAGE_CLONE, "clone"},
    {MESSAGE_EQUAL, "equal"},   {MESSAGE_CLEAR, "clear"},
    {MESSAGE_FREE, "free"},     {MESSAGE_DECODE, "decode"},
    {MESSAGE_ENCODE, "encode"}, {MESSAGE_ENCODE_NEW, "encode_new"},
};

#define N_MESSAGE_ENDINGS (sizeof(message_endings) / sizeof(message_endings[0]))

/* Of protobuf-c's own functions of a message, the one that begins with a verb of ours. */
static const char taken_by_protobuf_c[] = "get_packed_size";

struct naming {
    struct memory *memory;
    const struct model_message *message;
    struct bow__bytes_map taken; /* what follows `lower`__ */
    struct message_functions *functions;
};

static struct bow_slice key_of(const char *text)
{
    return (struct bow_slice){.data = (const uint8_t *)text, .len = strlen(text)};
}

static void take(struct naming *naming, const char *ending)
{
    memory_check(bow__bytes_map_put(&naming->taken, key_of(ending), naming));
}

static void append(struct naming *naming, enum message_function_kind kind, const char *ending,
                   const struct model_field *field, size_t index)
{
    naming->functions->functions[naming->functions->n_functions++] = (struct message_function){
        .kind = kind,
        .name = memory_printf(naming->memory, "%s__%s", naming->message->lower, ending),
        .field = field,
        .index = index,
    };
}

static char *lower_case(struct memory *memory, const char *name)
{
    char *lower = memory_dup(memory, name, strlen(name));

    for (char *c = lower; *c != '\0'; c++) {
        if (*c >= 'A' && *c <= 'Z') {
            *c = (char)(*c - 'A' + 'a');
        }
    }
    return lower;
}

/* A field, or a oneof, and what its functions share. */
struct named {
    const struct model_field *field;
    const char *lower;
    size_t index;
};

static void add(struct naming *naming, const struct named *named, enum message_function_kind kind,
                const char *verb, const char *behind)
{
    char *ending = memory_printf(naming->memory, "%s_%s%s", verb, named->lower, behind);

    while (bow__bytes_map_get(&naming->taken, key_of(ending)) != NULL) {
        ending = memory_printf(naming->memory, "%s_", ending);
    }
    take(naming, ending);
    append(naming, kind, ending, named->field, named->index);
}

static void add_singular(struct naming *naming, const struct named *named)
{
    enum message_value value = message_value_of(named->field);

    add(naming, named, MESSAGE_SET, "set", "");
    if (value == MESSAGE_VALUE_STRING || value == MESSAGE_VALUE_BYTES) {
        add(naming, named, MESSAGE_SET_REF, "set", "_ref");
    } else if (value == MESSAGE_VALUE_MESSAGE) {
        add(naming, named, MESSAGE_MUTABLE, "mutable", "");
    }
    if (message_has_presence(naming->message, named->field)) {
        add(naming, named, MESSAGE_HAS, "has", "");
        add(naming, named, MESSAGE_CLEAR_FIELD, "clear", "");
    }
}

static void add_field(struct naming *naming, const struct model_field *field, size_t index)
{
    const struct named named = {
        .field = field,
        .lower = lower_case(naming->memory, field->proto->name),
        .index = index,
    };

    if (!field->is_repeated) {
        add_singular(naming, &named);
        return;
    }
    if (field->is_map) {
        add(naming, &named, MESSAGE_PUT, "put", "");
        add(naming, &named, MESSAGE_GET, "get", "");
        add(naming, &named, MESSAGE_REMOVE, "remove", "");
    } else {
        add(naming, &named, MESSAGE_ADD, "add", "");
    }
    add(naming, &named, MESSAGE_CLEAR_FIELD, "clear", "");
}

/* That of a proto3 optional is no oneof in the .proto. */
static void add_oneof(struct naming *naming, size_t index)
{
    const struct model_message *message = naming->message;
    const struct named named = {
        .lower = lower_case(naming->memory, message->proto->oneof_decl[index]->name),
        .index = index,
    };

    for (size_t i = 0; i < message->n_fields; i++) {
        if (message->fields[i].oneof_index == (int32_t)index) {
            add(naming, &named, MESSAGE_CLEAR_ONEOF, "clear", "");
            return;
        }
    }
}

static int compare_numbers(const void *a, const void *b)
{
    int32_t x = (*(const struct model_field *const *)a)->proto->number;
    int32_t y = (*(const struct model_field *const *)b)->proto->number;

    return (x > y) - (x < y);
}

static const struct model_field **by_number(struct memory *memory,
                                            const struct model_message *message)
{
    const struct model_field **sorted =
        memory_array(memory, message->n_fields, sizeof(const struct model_field *));

    for (size_t i = 0; i < message->n_fields; i++) {
        sorted[i] = &message->fields[i];
    }
    if (message->n_fields > 0) {
        qsort(sorted, message->n_fields, sizeof(const struct model_field *), compare_numbers);
    }
    return sorted;
}

void message_functions_of(struct memory *memory, const struct model_message *message,
                          struct message_functions *ret_functions)
{
    struct naming naming = {.memory = memory, .message = message, .functions = ret_functions};
    const Google__Protobuf__MessageOptions *options = message->proto->options;

    *ret_functions = (struct message_functions){0};
    if (options != NULL && options->map_entry) {
        return;
    }
    ret_functions->functions = memory_array(
        memory,
        N_MESSAGE_ENDINGS + MOST_OF_A_FIELD * message->n_fields + message->proto->n_oneof_decl,
        sizeof(*ret_functions->functions));
    for (size_t i = 0; i < N_MESSAGE_ENDINGS; i++) {
        append(&naming, message_endings[i].kind, message_endings[i].ending, NULL, 0);
    }
    const struct model_field **sorted = by_number(memory, message);
    bow__bytes_map_init(&naming.taken, memory->context, 0);
    take(&naming, taken_by_protobuf_c);
    for (size_t i = 0; i < message->n_fields; i++) {
        add_field(&naming, sorted[i], i);
    }
    for (size_t i = 0; i < message->proto->n_oneof_decl; i++) {
        add_oneof(&naming, i);
    }
    bow__bytes_map_fini(&naming.taken);
}

enum message_value message_value_of(const struct model_field *field)
{
    switch (field->proto->type) {
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_STRING:
        return options_string_as_bytes(field->proto->options) ? MESSAGE_VALUE_BYTES
                                                              : MESSAGE_VALUE_STRING;
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_BYTES:
        return MESSAGE_VALUE_BYTES;
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_MESSAGE:
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_GROUP:
        return MESSAGE_VALUE_MESSAGE;
    default:
        return MESSAGE_VALUE_SCALAR;
    }
}

static const char *enum_type(struct memory *memory, const struct model_field *field)
{
    const char *full_name = field->proto->type_name + 1; /* behind the dot in front */

    return names_full_camel(memory, model_effective_name(memory, field->type_file, full_name));
}

const char *message_scalar_type(struct memory *memory, const struct model_field *field)
{
    switch (field->proto->type) {
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_DOUBLE:
        return "double";
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_FLOAT:
        return "float";
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_INT64:
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_SINT64:
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_SFIXED64:
        return "int64_t";
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_UINT64:
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_FIXED64:
        return "uint64_t";
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_UINT32:
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_FIXED32:
        return "uint32_t";
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_BOOL:
        return "bool";
    case GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__TYPE__TYPE_ENUM:
        return enum_type(memory, field);
    default:
        return "int32_t";
    }
}

const char *message_member(const struct model_field *field)
{
    return field->member;
}

const char *message_case_member(struct memory *memory, const struct model_message *message,
                                size_t oneof_index)
{
    const char *name = message->proto->oneof_decl[oneof_index]->name;

    return memory_printf(memory, "%s_case", names_lower(memory, name));
}

bool message_has_presence(const struct model_message *message, const struct model_field *field)
{
    const Google__Protobuf__FieldDescriptorProto *proto = field->proto;
    const char *syntax = message->file->proto->syntax;
    bool is_proto3 = syntax != NULL && strcmp(syntax, "proto3") == 0;

    if (field->message != NULL || proto->has_oneof_index) {
        return true;
    }
    return !is_proto3 &&
           proto->label == GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__LABEL__LABEL_OPTIONAL;
}

const char *message_enum_name(struct memory *memory, const struct model_enum *type)
{
    return memory_printf(memory, "%s__name", type->lower);
}

const char *message_enum_parse(struct memory *memory, const struct model_enum *type)
{
    return memory_printf(memory, "%s__parse", type->lower);
}
