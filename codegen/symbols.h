/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CODEGEN_SYMBOLS_H
#define BOWLINE_CODEGEN_SYMBOLS_H

/*
 * Whether two things of a request would get the same name in C: of protoc-gen-c's
 * symbols and of ours. Some clash because different names become the same
 * (FooBar and Foo_Bar), and a compiler's message would not say why.
 */

#include "codegen/model.h"

void symbols_check(const struct model *model, struct errors *errors);

#endif
