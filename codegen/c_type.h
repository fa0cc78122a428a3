/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CODEGEN_C_TYPE_H
#define BOWLINE_CODEGEN_C_TYPE_H

/*
 * What a field is in C: the type of its member, what protobuf-c calls that type, and
 * what the member holds in a message that nobody has touched.
 */

#include "codegen/model.h"

/** The type of one value: "int32_t ", "char *", "Demo__Point *"; a name can follow directly. */
const char *c_type_of(struct memory *memory, const struct model_file *file,
                      const struct model_field *field);

/** "PROTOBUF_C_TYPE_INT32". */
const char *c_type_constant(const struct model_field *field);

/** The size of one value: 16 for bytes, 8 for a pointer, for they are so on the widest machines. */
size_t c_type_size(const struct model_field *field);

/** Whether values of it may be sent one behind the other: numbers, bools and enums. */
bool c_type_is_packable(const struct model_field *field);

/** The default that the .proto gives a number, bool or enum, as C. */
const char *c_type_default(struct memory *memory, const struct model_field *field);

/** The bytes of the default that the .proto gives a string or bytes field. */
struct bow_slice c_type_default_bytes(struct memory *memory, const struct model_field *field);

/** What initializes the member, of a field that is in no oneof. */
const char *c_type_initial(struct memory *memory, const struct model_file *file,
                           const struct model_field *field);

/** What initializes the union of a oneof whose first member is `first`: all zero. */
const char *c_type_zero_union(struct memory *memory, const struct model_field *first);

#endif
