/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_MAP_H
#define BOWLINE_BASE_MAP_H

/*
 * Open-addressing maps (linear probing, backward-shift deletion, at most 3/4
 * full) from a u64 or from bytes to a pointer. Byte keys are borrowed: they live
 * in what the value points to. The hash of byte keys is keyed by a seed, so a
 * peer cannot aim for collisions. A map that grew empty holds no memory beyond its initial table
 * after bow__map_shrink().
 */

#include <bowline/context.h>
#include <bowline/slice.h>

struct bow__map {
    struct bow_context *context;
    struct bow__map_entry *entries;
    size_t cap; /* 0 or a power of two */
    size_t n_items;
};

struct bow__map_entry {
    uint64_t key;
    void *value; /* NULL: free */
};

void bow__map_init(struct bow__map *map, struct bow_context *context);
void bow__map_fini(struct bow__map *map);
void *bow__map_get(const struct bow__map *map, uint64_t key); /* NULL: absent */
/** Insert; the key must be absent and `value` not NULL. Returns 0 or -ENOMEM. */
int bow__map_put(struct bow__map *map, uint64_t key, void *value);
/** Take out and return the value, or NULL. */
void *bow__map_remove(struct bow__map *map, uint64_t key);
/** Give back memory when the map is much emptier than its table. Never fails. */
void bow__map_shrink(struct bow__map *map);
/** Visit the entries: start with `*cursor` 0; false at the end. No changes meanwhile. */
bool bow__map_next(const struct bow__map *map, size_t *cursor, uint64_t *ret_key, void **ret_value);

struct bow__bytes_map_entry {
    struct bow_slice key;
    uint64_t hash;
    void *value;
};

struct bow__bytes_map {
    struct bow_context *context;
    struct bow__bytes_map_entry *entries;
    size_t cap;
    size_t n_items;
    uint64_t seed;
};

void bow__bytes_map_init(struct bow__bytes_map *map, struct bow_context *context, uint64_t seed);
void bow__bytes_map_fini(struct bow__bytes_map *map);
void *bow__bytes_map_get(const struct bow__bytes_map *map, struct bow_slice key);
int bow__bytes_map_put(struct bow__bytes_map *map, struct bow_slice key, void *value);

#endif
