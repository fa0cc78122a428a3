/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_MESSAGES_FIELD_H
#define BOWLINE_RPC_MESSAGES_FIELD_H

/*
 * What the functions of <bowline/message_field.h> ask first.
 */

#include "rpc/messages/member.h"

/** Whether `message` is one, and `field` a field of it that is not repeated. */
static inline bool bow__field_is_single(const ProtobufCMessage *message,
                                        const ProtobufCFieldDescriptor *field)
{
    return message != NULL && !bow__is_repeated(field);
}

/** Whether `message` is one, and `field` a repeated one of it. */
static inline bool bow__field_is_list(const ProtobufCMessage *message,
                                      const ProtobufCFieldDescriptor *field)
{
    return message != NULL && bow__is_repeated(field);
}

#endif
