/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVICES_REFLECTION_INDEX_H
#define BOWLINE_RPC_SERVICES_REFLECTION_INDEX_H

/*
 * The files of a server's services and of all that those import, and what is declared in them, by
 * name. Made before the server starts, and constant from then on: all loops read it.
 *
 *     init ──► add, for each service ──► seal ──► find… ──► fini
 *
 * Of a file that is not linked (one that has only options, say) nothing is known. Whoever imports
 * it for the sake of options, so that all types that it names are known without it, is shown
 * without that import: clients build what they are shown, and want each import.
 */

#include "base/arena.h"
#include "base/map.h"
#include <bowline/service.h>

struct bow__reflected_file {
    struct bow__reflected_file *next; /* in the order of adding */
    const struct bow_file *file;
    struct bow_slice bytes; /* as it is shown */
    uint32_t index;         /* in that order */
    uint32_t n_imports;
    const struct bow__reflected_file **imports; /* those that are known */
    bool misses_import;
};

struct bow__reflected_symbol {
    const struct bow__reflected_file *file;
    bool is_message;
};

struct bow__reflected_extension {
    struct bow__reflected_extension *next;
    struct bow_slice extendee; /* "package.Type" */
    int32_t number;
    const struct bow__reflected_file *file;
};

struct bow__reflection_index {
    struct bow_context *context; /* NULL: there is nothing to free */
    struct bow__arena arena;
    struct bow__bytes_map files;   /* name → struct bow__reflected_file */
    struct bow__bytes_map symbols; /* full name → struct bow__reflected_symbol */
    struct bow__reflected_file *first_file;
    struct bow__reflected_file **last_link;
    struct bow__reflected_extension *extensions;
    uint32_t n_files;
    uint32_t n_extensions;
};

void bow__reflection_index_init(struct bow__reflection_index *index, struct bow_context *context);
void bow__reflection_index_fini(struct bow__reflection_index *index);

/** Add `file` and what it imports. Returns 0 or -ENOMEM. */
int bow__reflection_index_add(struct bow__reflection_index *index, const struct bow_file *file);
/** Look into all of them. Returns 0; -ENOMEM; -EBADMSG with the name of the file whose descriptor
 * cannot be read. */
int bow__reflection_index_seal(struct bow__reflection_index *index, const char **ret_bad);

/** NULL: not known. Thread: any. */
const struct bow__reflected_file *
bow__reflection_index_file(const struct bow__reflection_index *index, const char *name);
const struct bow__reflected_symbol *
bow__reflection_index_symbol(const struct bow__reflection_index *index, const char *name);
const struct bow__reflected_extension *
bow__reflection_index_extension(const struct bow__reflection_index *index, const char *extendee,
                                int32_t number);

#endif
