/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_METADATA_H
#define BOWLINE_RPC_CORE_METADATA_H

/*
 * Metadata in an arena: checked, copied, gathered. Which header block or frame it
 * travels in is the session's business.
 */

#include "base/arena.h"
#include <bowline/metadata.h>

/** What one entry counts for beside its key and value, as RFC 9113 (6.5.2) counts. */
#define BOW__METADATA_ENTRY_BYTES ((size_t)32)

/** Whether a key is the protocols' own, so that no user's metadata may have it. */
bool bow__metadata_is_reserved(struct bow_slice key);

/** Whether the rules of <bowline/metadata.h> permit the entry. */
bool bow__metadata_is_valid(const char *key, struct bow_slice value);

/** All of it as it counts against limits of headers. */
size_t bow__metadata_bytes(const struct bow_metadata *metadata);

/** Check what a user gives. Returns 0, -EINVAL, or -EMSGSIZE above BOW_LIMIT_HEADER_BYTES_MAX. */
int bow__metadata_check(const struct bow_metadata *metadata);

/** Copy it all; a NUL follows each value. Returns 0, or -ENOMEM and an empty one. */
int bow__metadata_copy(struct bow__arena *arena, const struct bow_metadata *metadata,
                       struct bow_metadata *ret_copy);

/** Metadata that grows; zeroed at first. Its memory is the arena's. */
struct bow__metadata_list {
    struct bow_metadata_entry *entries;
    size_t n;
    size_t cap;
    size_t n_bytes;
};

/** Append a copy. Returns 0, -EINVAL, -EMSGSIZE, or -ENOMEM. */
int bow__metadata_add(struct bow__metadata_list *list, struct bow__arena *arena, const char *key,
                      struct bow_slice value);

static inline struct bow_metadata bow__metadata_of(const struct bow__metadata_list *list)
{
    return (struct bow_metadata){list->entries, list->n};
}

#endif
