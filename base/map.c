/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The map from a u64. Deletion shifts the following entries of the run back, so
 * there are no tombstones and a lookup never gets slower by what was once there.
 * Knows nothing of what the keys are.
 */

#include "base/map.h"
#include "base/alloc.h"

#include <assert.h>
#include <errno.h>

#define MIN_CAP ((size_t)16)

/* The finalizer of splitmix64: every bit of the key reaches the low bits, which choose the place.
 */
static uint64_t hash_key(uint64_t key)
{
    key = (key ^ (key >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    key = (key ^ (key >> 27)) * UINT64_C(0x94d049bb133111eb);
    return key ^ (key >> 31);
}

static size_t home_of(const struct bow__map *map, uint64_t key)
{
    return (size_t)hash_key(key) & (map->cap - 1);
}

static size_t place_after(const struct bow__map *map, size_t at)
{
    return (at + 1) & (map->cap - 1);
}

/* The place of `key`, or the free one where it would go. The table is not empty and never full. */
static size_t find(const struct bow__map *map, uint64_t key)
{
    size_t at = home_of(map, key);

    while (map->entries[at].value != NULL && map->entries[at].key != key) {
        at = place_after(map, at);
    }
    return at;
}

void bow__map_init(struct bow__map *map, struct bow_context *context)
{
    *map = (struct bow__map){.context = context};
}

static void free_table(struct bow__map *map)
{
    bow__free(map->context, map->entries, map->cap * sizeof(*map->entries));
    map->entries = NULL;
    map->cap = 0;
}

void bow__map_fini(struct bow__map *map)
{
    if (map->entries != NULL) {
        free_table(map);
    }
    *map = (struct bow__map){0};
}

void *bow__map_get(const struct bow__map *map, uint64_t key)
{
    if (map->n_items == 0) {
        return NULL;
    }
    return map->entries[find(map, key)].value;
}

static int rehash(struct bow__map *map, size_t cap)
{
    struct bow__map old = *map;
    struct bow__map_entry *entries = bow__alloc_array(map->context, cap, sizeof(*entries));
    if (entries == NULL) {
        return -ENOMEM;
    }
    map->entries = entries;
    map->cap = cap;
    for (size_t i = 0; i < old.cap; i++) {
        if (old.entries[i].value != NULL) {
            map->entries[find(map, old.entries[i].key)] = old.entries[i];
        }
    }
    if (old.entries != NULL) {
        free_table(&old);
    }
    return 0;
}

int bow__map_put(struct bow__map *map, uint64_t key, void *value)
{
    assert(value != NULL);
    if (map->n_items + 1 > map->cap / 4 * 3) {
        int rc = rehash(map, map->cap == 0 ? MIN_CAP : map->cap * 2);
        if (rc < 0) {
            return rc;
        }
    }
    struct bow__map_entry *entry = &map->entries[find(map, key)];
    assert(entry->value == NULL);
    *entry = (struct bow__map_entry){.key = key, .value = value};
    map->n_items++;
    return 0;
}

/* An entry may fill the hole when its home is not behind the hole on the way to where it lies. */
static bool may_move_to(const struct bow__map *map, size_t from, size_t hole)
{
    size_t home = home_of(map, map->entries[from].key);
    size_t mask = map->cap - 1;

    return ((from - home) & mask) >= ((from - hole) & mask);
}

static void close_hole(struct bow__map *map, size_t hole)
{
    size_t at = place_after(map, hole);

    while (map->entries[at].value != NULL) {
        if (may_move_to(map, at, hole)) {
            map->entries[hole] = map->entries[at];
            hole = at;
        }
        at = place_after(map, at);
    }
    map->entries[hole].value = NULL;
}

void *bow__map_remove(struct bow__map *map, uint64_t key)
{
    if (map->n_items == 0) {
        return NULL;
    }
    size_t at = find(map, key);
    void *value = map->entries[at].value;
    if (value == NULL) {
        return NULL;
    }
    close_hole(map, at);
    map->n_items--;
    return value;
}

void bow__map_shrink(struct bow__map *map)
{
    size_t cap = MIN_CAP;

    if (map->cap <= MIN_CAP || map->n_items > map->cap / 8) {
        return;
    }
    if (map->n_items == 0) {
        free_table(map);
        return;
    }
    /* At most half full, so that the next put does not grow it again. */
    while (map->n_items > cap / 2) {
        cap *= 2;
    }
    /* Out of memory leaves the large table, which is as correct. */
    (void)rehash(map, cap);
}

bool bow__map_next(const struct bow__map *map, size_t *cursor, uint64_t *ret_key, void **ret_value)
{
    while (*cursor < map->cap) {
        const struct bow__map_entry *entry = &map->entries[(*cursor)++];
        if (entry->value != NULL) {
            *ret_key = entry->key;
            *ret_value = entry->value;
            return true;
        }
    }
    return false;
}
