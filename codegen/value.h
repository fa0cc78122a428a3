/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CODEGEN_VALUE_H
#define BOWLINE_CODEGEN_VALUE_H

/*
 * A default value, as protoc spells it, as C text of exactly the same value: constant in
 * C11 and in C++17, and without a warning in either.
 */

#include "codegen/printer.h"

#include <bowline/slice.h>

/** `text` is what protoc made of a number: "-5", "1.5", "inf", "nan", "true". */
const char *value_int32(struct memory *memory, const char *text);
const char *value_int64(struct memory *memory, const char *text);
const char *value_uint32(struct memory *memory, const char *text);
const char *value_uint64(struct memory *memory, const char *text);
const char *value_double(struct memory *memory, const char *text);
const char *value_float(struct memory *memory, const char *text);
const char *value_bool(const char *text);

/** The bytes that protoc's C escapes in the default of a bytes field stand for. */
struct bow_slice value_unescape(struct memory *memory, const char *text);

/** Write `bytes` with a NUL after them as what initializes an array of `element` ("char"): a string
 * literal, or a list where that would be longer than compilers have to take. */
void value_emit_bytes(struct printer *out, const char *element, struct bow_slice bytes);

#endif
