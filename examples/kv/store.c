/* SPDX-License-Identifier: 0BSD */
/* A list, newest change last: what a watcher has not seen is always its end. */

#include "store.h"
#include <stdlib.h>
#include <string.h>

static char *copy(const char *text)
{
    size_t size = strlen(text) + 1;
    char *mine = malloc(size);

    return mine != NULL ? memcpy(mine, text, size) : NULL;
}

static void unlink_entry(struct store *store, struct entry *entry)
{
    *(entry->older != NULL ? &entry->older->newer : &store->oldest) = entry->newer;
    *(entry->newer != NULL ? &entry->newer->older : &store->newest) = entry->older;
}

static void append(struct store *store, struct entry *entry)
{
    entry->older = store->newest;
    entry->newer = NULL;
    *(store->newest != NULL ? &store->newest->newer : &store->oldest) = entry;
    store->newest = entry;
    entry->revision = ++store->revision;
}

/* A store for more than an example has a hash table beside its list. */
struct entry *store_find(const struct store *store, const char *key)
{
    struct entry *entry = store->newest;

    while (entry != NULL && strcmp(entry->key, key) != 0) {
        entry = entry->older;
    }
    return entry;
}

static struct entry *new_entry(struct store *store, const char *key)
{
    struct entry *entry = store->n_entries < STORE_MAX_ENTRIES ? calloc(1, sizeof(*entry)) : NULL;

    if (entry == NULL || (entry->key = copy(key)) == NULL) {
        free(entry);
        return NULL;
    }
    store->n_entries++;
    return entry;
}

struct entry *store_put(struct store *store, const char *key, const char *value)
{
    struct entry *entry = store_find(store, key);
    char *mine = copy(value);

    if (mine == NULL) {
        return NULL;
    }
    if (entry != NULL) {
        unlink_entry(store, entry);
    } else if ((entry = new_entry(store, key)) == NULL) {
        free(mine);
        return NULL;
    }
    free(entry->value);
    entry->value = mine;
    append(store, entry);
    return entry;
}

struct entry *store_after(const struct store *store, uint64_t revision)
{
    struct entry *after = NULL;

    for (struct entry *at = store->newest; at != NULL && at->revision > revision; at = at->older) {
        after = at;
    }
    return after;
}

void store_clear(struct store *store)
{
    while (store->oldest != NULL) {
        struct entry *entry = store->oldest;
        unlink_entry(store, entry);
        free(entry->key);
        free(entry->value);
        free(entry);
    }
}
