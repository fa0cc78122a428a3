/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CODEGEN_NAMES_RESERVED_H
#define BOWLINE_CODEGEN_NAMES_RESERVED_H

/*
 * Words of C, of C++, of GNU C and of the C library's headers, which no name that is
 * emitted may be.
 */

#include <stdbool.h>

/** A keyword, or a macro without parameters. */
bool names_is_reserved(const char *word);

/** A macro with parameters, which is expanded where its name is called. */
bool names_is_called_macro(const char *word);

#endif
