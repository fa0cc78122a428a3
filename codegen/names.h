/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CODEGEN_NAMES_H
#define BOWLINE_CODEGEN_NAMES_H

/*
 * How names of a .proto become names of C: protobuf-c's rules to the letter, for
 * the names that protoc-gen-c makes, and the few of our own. ASCII only.
 *
 * A full name is split at its dots, empty pieces are dropped, each piece is
 * transformed by itself, and the pieces are joined with two underscores:
 *
 *                  piece transform    foo.bar_baz.HTTPRequest2
 *     full_camel   camel              Foo__BarBaz__HTTPRequest2
 *     full_lower   lower              foo__bar_baz__httprequest2
 *     full_upper   upper              FOO__BAR_BAZ__HTTPREQUEST2
 */

#include "codegen/memory.h"

/** Drop each '_'; the first character and those that followed one become upper case. */
char *names_camel(struct memory *memory, const char *piece);

/** Lower case, with '_' before an upper-case letter that follows something else ("GetX": get_x). */
char *names_lower(struct memory *memory, const char *piece);
char *names_upper(struct memory *memory, const char *piece);

char *names_full_camel(struct memory *memory, const char *full_name);
char *names_full_lower(struct memory *memory, const char *full_name);
char *names_full_upper(struct memory *memory, const char *full_name);

/** The struct member of a field: all lower case, with '_' after a reserved word. */
char *names_field(struct memory *memory, const char *field);

/** The member of a handlers struct: `lower` with '_' after a reserved word, or a macro that would
 * take a call of it for its own. */
char *names_handler(struct memory *memory, const char *lower);

/** A type's name: `camel` with '_' after a reserved word, and "X" in front where it begins with no
 * letter. */
char *names_type(struct memory *memory, const char *camel);

/** "dir/name.proto" as part of an identifier: dir_2fname_2eproto. */
char *names_file_id(struct memory *memory, const char *file);

/** "dir/name.proto" without its ending: dir/name. */
char *names_file_stem(struct memory *memory, const char *file);

/** Whether `name` can stand in C as an identifier by its characters. */
bool names_is_identifier(const char *name);

#endif
