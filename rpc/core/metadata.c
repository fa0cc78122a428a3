/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Keys and values of calls: rules, copies, lists.
 */

#include "rpc/core/metadata.h"
#include <bowline/limits.h>

#include <errno.h>
#include <string.h>

#define FIRST_ENTRIES ((size_t)8)
#define NAME(text)                                                                                 \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }

static bool is_key_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

static bool has_ending(const char *key, size_t len, const char *ending)
{
    size_t n = strlen(ending);

    return len >= n && memcmp(key + len - n, ending, n) == 0;
}

static bool is_text(struct bow_slice value)
{
    for (size_t i = 0; i < value.len; i++) {
        if (value.data[i] < 0x20 || value.data[i] > 0x7E) {
            return false;
        }
    }
    /* HTTP strips blanks at the ends, so they would not arrive. */
    return value.len == 0 || (value.data[0] != ' ' && value.data[value.len - 1] != ' ');
}

static bool begins_with(struct bow_slice key, const char *text)
{
    size_t len = strlen(text);

    return key.len >= len && memcmp(key.data, text, len) == 0;
}

bool bow__metadata_is_reserved(struct bow_slice key)
{
    /* They tell HTTP how to read what it carries, or are what a connection says of itself. */
    static const struct {
        const char *text;
        size_t len;
    } names[] = {
        NAME("accept-encoding"),   NAME("connection"), NAME("content-length"),
        NAME("content-type"),      NAME("host"),       NAME("keep-alive"),
        NAME("proxy-connection"),  NAME("te"),         NAME("trailer"),
        NAME("transfer-encoding"), NAME("upgrade"),    NAME("user-agent"),
    };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (key.len == names[i].len && memcmp(key.data, names[i].text, key.len) == 0) {
            return true;
        }
    }
    return begins_with(key, ":") || begins_with(key, "grpc-");
}

bool bow__metadata_is_valid(const char *key, struct bow_slice value)
{
    size_t len = strlen(key);

    for (size_t i = 0; i < len; i++) {
        if (!is_key_byte(key[i])) {
            return false;
        }
    }
    if (len == 0 || bow__metadata_is_reserved((struct bow_slice){(const uint8_t *)key, len})) {
        return false;
    }
    return has_ending(key, len, "-bin") || is_text(value);
}

static size_t entry_bytes(const char *key, struct bow_slice value)
{
    return strlen(key) + value.len + BOW__METADATA_ENTRY_BYTES;
}

size_t bow__metadata_bytes(const struct bow_metadata *metadata)
{
    size_t n = 0;

    for (size_t i = 0; i < metadata->n; i++) {
        n += entry_bytes(metadata->entries[i].key, metadata->entries[i].value);
    }
    return n;
}

int bow__metadata_check(const struct bow_metadata *metadata)
{
    for (size_t i = 0; i < metadata->n; i++) {
        if (!bow__metadata_is_valid(metadata->entries[i].key, metadata->entries[i].value)) {
            return -EINVAL;
        }
    }
    return bow__metadata_bytes(metadata) <= BOW_LIMIT_HEADER_BYTES_MAX ? 0 : -EMSGSIZE;
}

static int copy_entry(struct bow__arena *arena, const char *key, struct bow_slice value,
                      struct bow_metadata_entry *to)
{
    const char *own_key = bow__arena_dup(arena, key, strlen(key));
    const char *own_value = bow__arena_dup(arena, value.data, value.len);

    if (own_key == NULL || own_value == NULL) {
        return -ENOMEM;
    }
    *to = (struct bow_metadata_entry){own_key, {(const uint8_t *)own_value, value.len}};
    return 0;
}

int bow__metadata_copy(struct bow__arena *arena, const struct bow_metadata *metadata,
                       struct bow_metadata *ret_copy)
{
    struct bow_metadata_entry *entries = NULL;

    *ret_copy = (struct bow_metadata)BOW_METADATA_INIT;
    if (metadata->n == 0) {
        return 0;
    }
    entries = bow__arena_alloc(arena, metadata->n * sizeof(*entries));
    if (entries == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < metadata->n; i++) {
        const struct bow_metadata_entry *from = &metadata->entries[i];
        if (copy_entry(arena, from->key, from->value, &entries[i]) < 0) {
            return -ENOMEM;
        }
    }
    *ret_copy = (struct bow_metadata){entries, metadata->n};
    return 0;
}

static int make_room(struct bow__metadata_list *list, struct bow__arena *arena)
{
    size_t cap = list->cap == 0 ? FIRST_ENTRIES : 2 * list->cap;

    if (list->n < list->cap) {
        return 0;
    }
    struct bow_metadata_entry *entries = bow__arena_alloc(arena, cap * sizeof(*entries));
    if (entries == NULL) {
        return -ENOMEM;
    }
    if (list->n > 0) {
        memcpy(entries, list->entries, list->n * sizeof(*entries));
    }
    list->entries = entries;
    list->cap = cap;
    return 0;
}

int bow__metadata_add(struct bow__metadata_list *list, struct bow__arena *arena, const char *key,
                      struct bow_slice value)
{
    size_t n_bytes = list->n_bytes + entry_bytes(key, value);

    if (!bow__metadata_is_valid(key, value)) {
        return -EINVAL;
    }
    if (n_bytes > BOW_LIMIT_HEADER_BYTES_MAX) {
        return -EMSGSIZE;
    }
    if (make_room(list, arena) < 0 || copy_entry(arena, key, value, &list->entries[list->n]) < 0) {
        return -ENOMEM;
    }
    list->n++;
    list->n_bytes = n_bytes;
    return 0;
}

const struct bow_slice *bow_metadata_find(const struct bow_metadata *metadata, const char *key)
{
    for (size_t i = 0; i < metadata->n; i++) {
        if (strcmp(metadata->entries[i].key, key) == 0) {
            return &metadata->entries[i].value;
        }
    }
    return NULL;
}
