/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CODEGEN_SYMBOLS_H
#define BOWLINE_CODEGEN_SYMBOLS_H

/*
 * The names that are seen everywhere in C: types, constants, functions, tables. Some
 * meet because different names become the same (FooBar and Foo_Bar). One rule: a name
 * that is taken gets '_' after it, until it is not.
 *
 * A file's names have to be the same whoever imports it, so taken is what the file itself
 * and those that it imports have before. Two files of which neither imports the other
 * can still meet where a third one brings them together: that is an error.
 */

#include "codegen/model.h"

/** Give all that is declared its last names, and each service its hash. */
void symbols_name(struct model *model, struct errors *errors);

#endif
