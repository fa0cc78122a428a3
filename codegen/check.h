/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CODEGEN_CHECK_H
#define BOWLINE_CODEGEN_CHECK_H

/*
 * What a .proto may hold and C through protobuf-c may not: found before protoc-gen-c
 * crashes on it or makes C that does not compile, and said with its line and a
 * way out. Only files that are to be generated are checked.
 */

#include "codegen/model.h"

/** Syntax, groups, defaults, and protobuf-c's own options. */
void check_model(const struct model *model, struct errors *errors);

/** Names of the members of each struct: of the messages, and of the handlers. */
void check_members(const struct model *model, struct errors *errors);

#endif
