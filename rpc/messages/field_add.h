/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_MESSAGES_FIELD_ADD_H
#define BOWLINE_RPC_MESSAGES_FIELD_ADD_H

/*
 * The one way to add to a repeated field.
 */

#include <bowline/message_field.h>

/** Put a value of the field's C type, a pointer to which is `value`, behind the others of a
 * repeated field; false out of memory. */
bool bow__field_append(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                       const void *value, struct bow_arena *arena);

#endif
