/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CODEGEN_PLACE_H
#define BOWLINE_CODEGEN_PLACE_H

/*
 * Where in a .proto something stands, as protoc numbers it: a path of field
 * numbers and indexes from the FileDescriptorProto down. Lines and comments are
 * looked up when they are needed; errors are collected with their line.
 */

#include "codegen/printer.h"

#include "descriptor.pb-c.h"

struct place {
    const Google__Protobuf__FileDescriptorProto *file; /* NULL: nowhere */
    const int32_t *path;
    size_t n_path;
};

/** The place one step further down: field `number` of the descriptor, element `index`. */
struct place place_within(struct memory *memory, struct place parent, int32_t number, size_t index);

/** Line and column, from 1; those of what surrounds it when it has none of its own. */
void place_position(struct place place, int *ret_line, int *ret_column);

/** The comment before it, or else the one after it on its line; NULL when there is none. */
const char *place_comment(struct place place);

struct errors {
    struct printer text; /* one "file:line:column: what" a line */
    size_t n_errors;
};

void errors_init(struct errors *errors, struct memory *memory);
void errors_add(struct errors *errors, struct place place, const char *format, ...)
    BOW_PRINTF(3, 4);

/** All of it, the first ones in full and the others counted. */
const char *errors_finish(struct errors *errors);

#endif
