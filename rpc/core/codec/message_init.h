/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CODEC_MESSAGE_INIT_H
#define BOWLINE_RPC_CORE_CODEC_MESSAGE_INIT_H

/*
 * What an empty message looks like.
 */

#include <protobuf-c/protobuf-c.h>

/** Set `field`, which is not repeated, to its default, without saying that it is there. */
void bow__message_set_default(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);

/** Initialise a message by its descriptor alone, as its __INIT would. */
void bow__message_init_plain(const ProtobufCMessageDescriptor *type, ProtobufCMessage *message);

/** Make an empty message of `type` in sizeof_message bytes of memory. */
static inline void bow__message_init(const ProtobufCMessageDescriptor *type,
                                     ProtobufCMessage *message)
{
    if (type->message_init != NULL) {
        type->message_init(message);
    } else {
        bow__message_init_plain(type, message);
    }
}

#endif
