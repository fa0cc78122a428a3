/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_WEB_FIELDS_H
#define BOWLINE_RPC_WEB_FIELDS_H

/*
 * The header fields of an answer as it is put together, in an arena: HTTP's own and metadata, whose
 * binary values are base64. Names are in lower case.
 */

#include "base/arena.h"
#include <bowline/metadata.h>
#include <bowline/slice.h>

struct bow__web_field {
    struct bow_slice name;
    struct bow_slice value;
};

struct bow__web_fields {
    struct bow__web_field *items; /* in the arena */
    size_t n;
    size_t cap;
};

/** A slice of a text with its NUL. */
struct bow_slice bow__web_text(const char *text);

/** Add a field whose texts live on. Without memory the arena remembers it. */
void bow__web_fields_add(struct bow__web_fields *fields, struct bow__arena *arena, const char *name,
                         struct bow_slice value);
/** Add metadata, each key behind `prefix`; texts are copied. Without memory, likewise. */
void bow__web_fields_add_metadata(struct bow__web_fields *fields, struct bow__arena *arena,
                                  const char *prefix, const struct bow_metadata *metadata);

/** A value as it is written: base64 without padding for keys that end in -bin. Data NULL without
 * memory. */
struct bow_slice bow__web_value(struct bow__arena *arena, const struct bow_metadata_entry *entry);

#endif
