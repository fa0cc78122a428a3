/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_JSON_JSON_TYPES_H
#define BOWLINE_RPC_JSON_JSON_TYPES_H

/*
 * The types that an Any may hold: those of the files that the options name, and of all that these
 * import. A list of the files is made when the first Any comes.
 */

#include "base/arena.h"
#include "base/text.h"
#include <bowline/json.h>
#include <bowline/service.h>
#include <string.h>

struct bow__json_types {
    const struct bow_file *const *given;
    size_t n_given;
    const struct bow_file **files; /* with their imports, each once; NULL: not made yet, or none */
    size_t n_files;
};

/**
 * Find the type by its full name. The list's memory comes from `arena`, or (NULL) from malloc(), to
 * be given back with bow__json_types_fini(). Returns 0; -ENOENT; -ENOMEM.
 */
int bow__json_types_find(struct bow__json_types *types, struct bow__arena *arena, const char *name,
                         const ProtobufCMessageDescriptor **ret_type);

/** The URL of an Any for a reason: it is a peer's text, so it is escaped and cut. */
static inline struct bow__text bow__json_shown_url(const char *url)
{
    struct bow__text shown;
    bow__text_clear(&shown);
    bow__text_escape(&shown, (struct bow_slice){(const uint8_t *)url, strlen(url)}, 200);
    return shown;
}

/** Free a list that came from malloc(). */
void bow__json_types_fini(struct bow__json_types *types);

#endif
