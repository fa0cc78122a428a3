/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CODEGEN_MESSAGE_NAMES_H
#define BOWLINE_CODEGEN_MESSAGE_NAMES_H

/*
 * The typed functions of messages and enums: which of them a message and each of its fields
 * gets, and how they are called. What they do is emit_messages.c's.
 *
 *     demo__hello_reply__ new             of the message
 *     demo__hello_reply__ set_ text       of its field `text`: the name in lower case
 *     demo__hello_reply__ set_ text _ref
 *
 * Two fields may ask for one name (`text` with its `_ref`, and a field `text_ref`): the lower
 * number has it, the other gets '_' behind. So has one that protobuf-c's own functions have.
 */

#include "codegen/model.h"

/** What a field holds, or each of its elements: what decides on the arguments. */
enum message_value {
    MESSAGE_VALUE_SCALAR, /* numbers, bools, enums */
    MESSAGE_VALUE_STRING,
    MESSAGE_VALUE_BYTES,
    MESSAGE_VALUE_MESSAGE,
};

enum message_function_kind {
    /* of the message */
    MESSAGE_NEW,
    MESSAGE_CLONE,
    MESSAGE_EQUAL,
    MESSAGE_CLEAR,
    MESSAGE_FREE,
    MESSAGE_DECODE,
    MESSAGE_ENCODE,
    MESSAGE_ENCODE_NEW,
    /* of a field */
    MESSAGE_SET,
    MESSAGE_SET_REF,
    MESSAGE_MUTABLE,
    MESSAGE_ADD,
    MESSAGE_PUT,
    MESSAGE_GET,
    MESSAGE_REMOVE,
    MESSAGE_HAS,
    MESSAGE_CLEAR_FIELD,
    /* of a oneof */
    MESSAGE_CLEAR_ONEOF,
};

struct message_function {
    enum message_function_kind kind;
    const char *name;                /* whole */
    const struct model_field *field; /* NULL: of the message or a oneof */
    size_t index;                    /* of the field in the descriptor: by number; of the oneof */
};

struct message_functions {
    struct message_function *functions; /* the message's, each field's by number, each oneof's */
    size_t n_functions;
};

/** Map entries get none. */
void message_functions_of(struct memory *memory, const struct model_message *message,
                          struct message_functions *ret_functions);

enum message_value message_value_of(const struct model_field *field);

/** The type of a scalar's value as an argument; a bool's is `bool`. */
const char *message_scalar_type(struct memory *memory, const struct model_field *field);

/** The struct member of `field`. */
const char *message_member(const struct model_field *field);

/** The struct member that tells which member of the oneof is selected. */
const char *message_case_member(struct memory *memory, const struct model_message *message,
                                size_t oneof_index);

/** Whether it can be told if `field`, which is not repeated, is set. */
bool message_has_presence(const struct model_message *message, const struct model_field *field);

/** The functions of an enum: its values' names, and back. */
const char *message_enum_name(struct memory *memory, const struct model_enum *type);
const char *message_enum_parse(struct memory *memory, const struct model_enum *type);

#endif
