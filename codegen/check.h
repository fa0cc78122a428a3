/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CODEGEN_CHECK_H
#define BOWLINE_CODEGEN_CHECK_H

/*
 * What a .proto may hold and no C can be made of: said with its line and a way out. Only
 * files that are to be generated are checked.
 */

#include "codegen/model.h"

/** Syntax, and types and services of files that protobuf-c's options exclude. */
void check_model(const struct model *model, struct errors *errors);

#endif
