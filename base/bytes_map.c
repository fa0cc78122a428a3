/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The map from bytes, which may be a peer's: hashed with SipHash-1-3 (Aumasson and
 * Bernstein, "SipHash: a fast short-input PRF"), keyed, so that collisions cannot
 * be aimed at. Entries are never removed. Knows nothing of what the keys are.
 */

#include "base/alloc.h"
#include "base/map.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define MIN_CAP ((size_t)16)

struct sip {
    uint64_t v0, v1, v2, v3;
};

static uint64_t rotate(uint64_t x, unsigned bits)
{
    return (x << bits) | (x >> (64 - bits));
}

static void sip_round(struct sip *s)
{
    s->v0 += s->v1;
    s->v2 += s->v3;
    s->v1 = rotate(s->v1, 13) ^ s->v0;
    s->v3 = rotate(s->v3, 16) ^ s->v2;
    s->v0 = rotate(s->v0, 32) + s->v3;
    s->v2 += s->v1;
    s->v1 = rotate(s->v1, 17) ^ s->v2;
    s->v3 = rotate(s->v3, 21) ^ s->v0;
    s->v2 = rotate(s->v2, 32);
}

static void sip_word(struct sip *s, uint64_t word)
{
    s->v3 ^= word;
    sip_round(s);
    s->v0 ^= word;
}

/* The last word: what is left of the bytes, and their number in the top byte. */
static uint64_t last_word(const uint8_t *rest, size_t n_rest, size_t len)
{
    uint64_t word = (uint64_t)len << 56;

    for (size_t i = 0; i < n_rest; i++) {
        word |= (uint64_t)rest[i] << (8 * i);
    }
    return word;
}

static uint64_t hash_bytes(struct bow_slice key, uint64_t seed)
{
    uint64_t seed_high = seed ^ UINT64_C(0x9e3779b97f4a7c15);
    struct sip s = {
        .v0 = seed ^ UINT64_C(0x736f6d6570736575),
        .v1 = seed_high ^ UINT64_C(0x646f72616e646f6d),
        .v2 = seed ^ UINT64_C(0x6c7967656e657261),
        .v3 = seed_high ^ UINT64_C(0x7465646279746573),
    };
    size_t at = 0;

    for (; key.len - at >= sizeof(uint64_t); at += sizeof(uint64_t)) {
        uint64_t word = 0;
        /* in the machine's order: the hash never leaves the process */
        memcpy(&word, key.data + at, sizeof(word));
        sip_word(&s, word);
    }
    sip_word(&s, last_word(key.len > at ? key.data + at : NULL, key.len - at, key.len));
    s.v2 ^= 0xff;
    sip_round(&s);
    sip_round(&s);
    sip_round(&s);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

static bool is_entry_of(const struct bow__bytes_map_entry *entry, struct bow_slice key,
                        uint64_t hash)
{
    return entry->hash == hash && entry->key.len == key.len &&
           (key.len == 0 || memcmp(entry->key.data, key.data, key.len) == 0);
}

/* The entry of `key`, or the free one where it would go. The table is not empty and never full. */
static struct bow__bytes_map_entry *find(const struct bow__bytes_map *map, struct bow_slice key,
                                         uint64_t hash)
{
    size_t at = (size_t)hash & (map->cap - 1);

    while (map->entries[at].value != NULL && !is_entry_of(&map->entries[at], key, hash)) {
        at = (at + 1) & (map->cap - 1);
    }
    return &map->entries[at];
}

void bow__bytes_map_init(struct bow__bytes_map *map, struct bow_context *context, uint64_t seed)
{
    *map = (struct bow__bytes_map){.context = context, .seed = seed};
}

void bow__bytes_map_fini(struct bow__bytes_map *map)
{
    if (map->entries != NULL) {
        bow__free(map->context, map->entries, map->cap * sizeof(*map->entries));
    }
    *map = (struct bow__bytes_map){0};
}

void *bow__bytes_map_get(const struct bow__bytes_map *map, struct bow_slice key)
{
    if (map->n_items == 0) {
        return NULL;
    }
    return find(map, key, hash_bytes(key, map->seed))->value;
}

static int grow(struct bow__bytes_map *map)
{
    size_t cap = map->cap == 0 ? MIN_CAP : map->cap * 2;
    struct bow__bytes_map old = *map;
    struct bow__bytes_map_entry *entries = bow__alloc_array(map->context, cap, sizeof(*entries));
    if (entries == NULL) {
        return -ENOMEM;
    }
    map->entries = entries;
    map->cap = cap;
    for (size_t i = 0; i < old.cap; i++) {
        const struct bow__bytes_map_entry *entry = &old.entries[i];
        if (entry->value != NULL) {
            *find(map, entry->key, entry->hash) = *entry;
        }
    }
    bow__free(old.context, old.entries, old.cap * sizeof(*old.entries));
    return 0;
}

int bow__bytes_map_put(struct bow__bytes_map *map, struct bow_slice key, void *value)
{
    assert(value != NULL);
    if (map->n_items + 1 > map->cap / 4 * 3) {
        int rc = grow(map);
        if (rc < 0) {
            return rc;
        }
    }
    uint64_t hash = hash_bytes(key, map->seed);
    struct bow__bytes_map_entry *entry = find(map, key, hash);
    assert(entry->value == NULL);
    *entry = (struct bow__bytes_map_entry){.key = key, .hash = hash, .value = value};
    map->n_items++;
    return 0;
}
