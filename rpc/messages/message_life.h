/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_MESSAGES_MESSAGE_LIFE_H
#define BOWLINE_RPC_MESSAGES_MESSAGE_LIFE_H

/*
 * Freeing what a message of the heap has. Its parts are no trees for recursion: those that wait to
 * be freed are a list through their own memory, so that any depth needs no stack.
 */

#include <bowline/message.h>

/** Free the value of `field`, all of a repeated one, as far as it is no default. The member is left
 * as it was, to be set anew. Not of a field that is not selected in its oneof. */
void bow__message_drop_field(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);

#endif
