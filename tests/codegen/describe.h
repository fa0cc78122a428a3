/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_CODEGEN_DESCRIBE_H
#define BOWLINE_TESTS_CODEGEN_DESCRIBE_H

/*
 * All that a descriptor of protobuf-c says, and what a message holds that nobody has
 * touched, as text: what two generators made of one .proto can be compared by it.
 */

#include <protobuf-c/protobuf-c.h>

void describe_enum(const ProtobufCEnumDescriptor *type);

/** `initial` is a message that the INIT macro has made. */
void describe_message(const ProtobufCMessageDescriptor *type, const void *initial);

#endif
