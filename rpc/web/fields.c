/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A list of header fields in an arena. */

#include "rpc/web/fields.h"
#include "base/base64.h"
#include "rpc/web/grpc_text.h"

#include <stdint.h>
#include <string.h>

#define FIRST_ITEMS 12u

struct bow_slice bow__web_text(const char *text)
{
    return (struct bow_slice){(const uint8_t *)text, strlen(text)};
}

static bool make_room(struct bow__web_fields *fields, struct bow__arena *arena)
{
    size_t cap = fields->cap > 0 ? 2 * fields->cap : FIRST_ITEMS;

    if (fields->n < fields->cap) {
        return true;
    }
    struct bow__web_field *items = bow__arena_alloc(arena, cap * sizeof(*items));
    if (items == NULL) {
        return false;
    }
    if (fields->n > 0) {
        memcpy(items, fields->items, fields->n * sizeof(*items));
    }
    fields->items = items;
    fields->cap = cap;
    return true;
}

static void add(struct bow__web_fields *fields, struct bow__arena *arena, struct bow_slice name,
                struct bow_slice value)
{
    if (make_room(fields, arena)) {
        fields->items[fields->n++] = (struct bow__web_field){name, value};
    }
}

void bow__web_fields_add(struct bow__web_fields *fields, struct bow__arena *arena, const char *name,
                         struct bow_slice value)
{
    add(fields, arena, bow__web_text(name), value);
}

static bool is_binary(const char *key)
{
    size_t len = strlen(key);

    return len >= 4 && memcmp(key + len - 4, "-bin", 4) == 0;
}

struct bow_slice bow__web_value(struct bow__arena *arena, const struct bow_metadata_entry *entry)
{
    bool binary = is_binary(entry->key);
    size_t len = binary ? bow__base64_size(entry->value.len) : entry->value.len;
    char *text = bow__arena_alloc_bytes(arena, len);

    if (text == NULL) {
        return (struct bow_slice){NULL, 0};
    }
    if (binary) {
        len = bow__base64_encode(entry->value, text);
    } else if (len > 0) {
        memcpy(text, entry->value.data, len);
    }
    return (struct bow_slice){(const uint8_t *)text, len};
}

static struct bow_slice join(struct bow__arena *arena, const char *prefix, const char *key)
{
    size_t n_prefix = strlen(prefix);
    size_t n_key = strlen(key);
    char *text = bow__arena_alloc_bytes(arena, n_prefix + n_key);

    if (text == NULL) {
        return (struct bow_slice){NULL, 0};
    }
    memcpy(text, prefix, n_prefix);
    memcpy(text + n_prefix, key, n_key);
    return (struct bow_slice){(const uint8_t *)text, n_prefix + n_key};
}

void bow__web_fields_add_metadata(struct bow__web_fields *fields, struct bow__arena *arena,
                                  const char *prefix, const struct bow_metadata *metadata)
{
    for (size_t i = 0; i < metadata->n; i++) {
        struct bow_slice name = join(arena, prefix, metadata->entries[i].key);
        struct bow_slice value = bow__web_value(arena, &metadata->entries[i]);
        if (name.data != NULL && value.data != NULL) {
            add(fields, arena, name, value);
        }
    }
}
