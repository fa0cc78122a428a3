/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SCHEMA_LAYOUT_H
#define BOWLINE_RPC_SCHEMA_LAYOUT_H

/*
 * The struct of a message that no compiler has seen: where each of its fields lies. The kinds of
 * members are protobuf-c's, so that who goes by descriptors finds them; their order is ours.
 */

#include <protobuf-c/protobuf-c.h>

/** A oneof while its message is laid out. */
struct bow__layout_oneof {
    unsigned case_offset;
    unsigned value_offset;
    size_t value_size; /* of its largest field */
};

/**
 * Give each field its offset and quantifier_offset. `oneof_of` has, for each field, the index in
 * `oneofs` (zeroed) of the one that it is in, or -1. Returns sizeof the message.
 */
size_t bow__schema_layout(ProtobufCFieldDescriptor *fields, size_t n_fields,
                          const int32_t *oneof_of, struct bow__layout_oneof *oneofs,
                          size_t n_oneofs);

#endif
