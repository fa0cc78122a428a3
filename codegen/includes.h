/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CODEGEN_INCLUDES_H
#define BOWLINE_CODEGEN_INCLUDES_H

/*
 * Which imports of a file have to be in its header: those that declare types which it
 * uses, by themselves or through their public imports, and its own public imports.
 * One that is imported for its options only need not exist in C.
 */

#include "codegen/model.h"

struct includes {
    const struct model_file **files; /* in the order of the imports */
    size_t n_files;
};

void includes_find(const struct model *model, const struct model_file *file,
                   struct includes *ret_includes);

#endif
