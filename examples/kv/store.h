/* SPDX-License-Identifier: 0BSD */
/* Keys and values in the order of their last change. Knows nothing of calls. */
#ifndef BOWLINE_EXAMPLES_KV_STORE_H
#define BOWLINE_EXAMPLES_KV_STORE_H

#include <stddef.h>
#include <stdint.h>

#define STORE_MAX_ENTRIES 10000

struct entry {
    struct entry *older;
    struct entry *newer;
    char *key;
    char *value;
    uint64_t revision;
};

struct store {
    struct entry *oldest;
    struct entry *newest;
    uint64_t revision; /* one more with each change */
    size_t n_entries;
};

/** NULL: there is none. */
struct entry *store_find(const struct store *store, const char *key);

/** Copies both. NULL: no memory, or STORE_MAX_ENTRIES keys are there already. */
struct entry *store_put(struct store *store, const char *key, const char *value);

/** The oldest change after `revision`; those behind it are its `newer` ones. NULL: none. */
struct entry *store_after(const struct store *store, uint64_t revision);

void store_clear(struct store *store);

#endif
