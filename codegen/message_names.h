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
 * number has it, for the order here is that in which symbols_name() gives names away.
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

/**
 * Give `message` its functions, by the names that they would like; symbols_name() makes them
 * different from all others. The message's come first, then each field's, by number, then each
 * oneof's. Map entries have none.
 */
void message_functions_name(struct memory *memory, struct model_message *message);

enum message_value message_value_of(const struct model_field *field);

/** Whether it can be told if `field`, which is not repeated, is set. */
bool message_has_presence(const struct model_message *message, const struct model_field *field);

/** Give an enum its functions, by the names that they would like. */
void message_functions_name_enum(struct memory *memory, struct model_enum *type);

#endif
