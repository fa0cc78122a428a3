/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Empty messages whose generator wrote no init function. Knows nothing of where they lie.
 */
#include "rpc/core/codec/message_init.h"
#include "rpc/core/codec/value.h"
#include <stdbool.h>
#include <string.h>

void bow__message_set_default(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    void *member = (char *)message + field->offset;
    if (field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE) {
        memcpy(member, &field->default_value, sizeof field->default_value);
        return;
    }
    if (field->default_value == NULL) {
        memset(member, 0, bow__value_size(field->type));
        return;
    }
    memcpy(member, field->default_value, bow__value_size(field->type));
}

void bow__message_init_plain(const ProtobufCMessageDescriptor *type, ProtobufCMessage *message)
{
    memset(message, 0, type->sizeof_message);
    message->descriptor = type;
    for (unsigned i = 0; i < type->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &type->fields[i];
        bool is_own = field->label != PROTOBUF_C_LABEL_REPEATED &&
                      (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) == 0;
        if (is_own && field->default_value != NULL) {
            bow__message_set_default(message, field);
        }
    }
}
