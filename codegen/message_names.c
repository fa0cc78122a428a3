/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Names only; knows no text of a function.
 */

#include "codegen/message_names.h"

#include <string.h>

#define MOST_OF_A_FIELD 5 /* functions */

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

struct naming {
    struct memory *memory;
    struct model_message *message;
};

static void append(struct naming *naming, enum message_function_kind kind, const char *ending,
                   const struct model_field *field, size_t index)
{
    struct model_message *message = naming->message;

    message->functions[message->n_functions++] = (struct message_function){
        .kind = kind,
        .name = memory_printf(naming->memory, "%s__%s", message->lower, ending),
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
    append(naming, kind, memory_printf(naming->memory, "%s_%s%s", verb, named->lower, behind),
           named->field, named->index);
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
        if (message_value_of(model_map_value(field)) == MESSAGE_VALUE_MESSAGE) {
            add(naming, &named, MESSAGE_MUTABLE, "mutable", "");
        }
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
        .lower = lower_case(naming->memory, message->oneofs[index].proto->name),
        .index = index,
    };

    for (size_t i = 0; i < message->n_fields; i++) {
        if (message->fields[i].oneof_index == (int32_t)index) {
            add(naming, &named, MESSAGE_CLEAR_ONEOF, "clear", "");
            return;
        }
    }
}

void message_functions_name(struct memory *memory, struct model_message *message)
{
    struct naming naming = {.memory = memory, .message = message};

    if (message->is_map_entry) {
        return;
    }
    message->functions = memory_array(
        memory, N_MESSAGE_ENDINGS + MOST_OF_A_FIELD * message->n_fields + message->n_oneofs,
        sizeof(*message->functions));
    for (size_t i = 0; i < N_MESSAGE_ENDINGS; i++) {
        append(&naming, message_endings[i].kind, message_endings[i].ending, NULL, 0);
    }
    const struct model_field **sorted = model_fields_by_number(memory, message);
    for (size_t i = 0; i < message->n_fields; i++) {
        add_field(&naming, sorted[i], i);
    }
    for (size_t i = 0; i < message->n_oneofs; i++) {
        add_oneof(&naming, i);
    }
}

enum message_value message_value_of(const struct model_field *field)
{
    if (field->message != NULL) {
        return MESSAGE_VALUE_MESSAGE;
    }
    if (field->is_string) {
        return MESSAGE_VALUE_STRING;
    }
    return field->is_bytes ? MESSAGE_VALUE_BYTES : MESSAGE_VALUE_SCALAR;
}

bool message_has_presence(const struct model_message *message, const struct model_field *field)
{
    if (field->message != NULL || field->oneof != NULL) {
        return true;
    }
    return !message->file->is_proto3 &&
           field->proto->label == GOOGLE__PROTOBUF__FIELD_DESCRIPTOR_PROTO__LABEL__LABEL_OPTIONAL;
}

void message_functions_name_enum(struct memory *memory, struct model_enum *type)
{
    type->name_function = memory_printf(memory, "%s__name", type->lower);
    type->parse_function = memory_printf(memory, "%s__parse", type->lower);
}
