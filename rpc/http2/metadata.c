/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Metadata in header blocks: fields that are neither HTTP's nor gRPC's. Values of
 * keys that end in "-bin" travel as base64; a list of such values in one field is
 * several entries. What breaks the rules of metadata is left out. What was received
 * lives until the event that brings it has returned.
 */

#include "rpc/core/metadata.h"
#include "base/alloc.h"
#include "rpc/http2/grpc_text.h"
#include "rpc/http2/internal.h"

#include <errno.h>
#include <string.h>

#define FIRST_ENTRIES ((size_t)8)

/** Fields that are the protocol's own, beside those that begin with ':' or "grpc-". Every gRPC
 * client sends a user-agent, which is of the connection and would cost each call a copy. */
static const char *const reserved[] = {
    "te",      "content-type",      "content-length",  "host",       "connection",
    "trailer", "transfer-encoding", "accept-encoding", "user-agent",
};

static bool is_reserved(struct bow_slice name)
{
    if (name.len > 0 && name.data[0] == ':') {
        return true;
    }
    if (name.len >= 5 && memcmp(name.data, "grpc-", 5) == 0) {
        return true;
    }
    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
        if (name.len == strlen(reserved[i]) && memcmp(name.data, reserved[i], name.len) == 0) {
            return true;
        }
    }
    return false;
}

static bool is_binary(const char *key)
{
    size_t len = strlen(key);

    return len >= 4 && memcmp(key + len - 4, "-bin", 4) == 0;
}

/* In: each entry's key and value lie in one allocation, the key first. */

void bow__http2_metadata_fini(struct bow__http2_session *session,
                              struct bow__http2_metadata *metadata)
{
    for (size_t i = 0; i < metadata->n; i++) {
        /* The key begins what was allocated. */
        bow__free(session->base.context, (void *)(uintptr_t)metadata->entries[i].key,
                  metadata->sizes[i]);
    }
    bow__free(session->base.context, metadata->entries,
              metadata->cap * (sizeof(*metadata->entries) + sizeof(*metadata->sizes)));
    *metadata = (struct bow__http2_metadata){0};
}

static int grow(struct bow__http2_session *session, struct bow__http2_metadata *metadata)
{
    size_t unit = sizeof(*metadata->entries) + sizeof(*metadata->sizes);
    size_t cap = metadata->cap == 0 ? FIRST_ENTRIES : 2 * metadata->cap;

    struct bow_metadata_entry *entries = bow__alloc(session->base.context, cap * unit);
    if (entries == NULL) {
        return -ENOMEM;
    }
    size_t *sizes = (size_t *)(void *)(entries + cap);
    if (metadata->n > 0) {
        memcpy(entries, metadata->entries, metadata->n * sizeof(*entries));
        memcpy(sizes, metadata->sizes, metadata->n * sizeof(*sizes));
    }
    bow__free(session->base.context, metadata->entries, metadata->cap * unit);
    metadata->entries = entries;
    metadata->sizes = sizes;
    metadata->cap = cap;
    return 0;
}

/* A copy with room for `n_value` bytes of value, or NULL. */
static struct bow_metadata_entry *push(struct bow__http2_session *session,
                                       struct bow__http2_metadata *metadata, struct bow_slice name,
                                       size_t n_value)
{
    size_t size = name.len + 1 + n_value + 1;

    if (metadata->n == metadata->cap && grow(session, metadata) < 0) {
        return NULL;
    }
    char *memory = bow__alloc_zero(session->base.context, size);
    if (memory == NULL) {
        return NULL;
    }
    struct bow_metadata_entry *entry = &metadata->entries[metadata->n];
    memcpy(memory, name.data, name.len);
    *entry = (struct bow_metadata_entry){memory, {(uint8_t *)memory + name.len + 1, n_value}};
    metadata->sizes[metadata->n++] = size;
    return entry;
}

static void pop(struct bow__http2_session *session, struct bow__http2_metadata *metadata)
{
    metadata->n--;
    bow__free(session->base.context, (void *)(uintptr_t)metadata->entries[metadata->n].key,
              metadata->sizes[metadata->n]);
}

static int add(struct bow__http2_session *session, struct bow__http2_metadata *metadata,
               struct bow_slice name, struct bow_slice value)
{
    struct bow_metadata_entry *entry = push(session, metadata, name, value.len);
    bool keep = false;

    if (entry == NULL) {
        return -ENOMEM;
    }
    uint8_t *bytes = (uint8_t *)(uintptr_t)entry->value.data;
    if (is_binary(entry->key)) {
        keep = bow__base64_decode(value, bytes, &entry->value.len) == 0;
        bytes[entry->value.len] = '\0';
    } else if (value.len > 0) {
        memcpy(bytes, value.data, value.len);
    }
    keep = (keep || !is_binary(entry->key)) && bow__metadata_is_valid(entry->key, entry->value);
    if (!keep) {
        pop(session, metadata);
    }
    return 0;
}

static struct bow_slice trim(struct bow_slice text)
{
    while (text.len > 0 && text.data[0] == ' ') {
        text = (struct bow_slice){text.data + 1, text.len - 1};
    }
    while (text.len > 0 && text.data[text.len - 1] == ' ') {
        text.len--;
    }
    return text;
}

int bow__http2_metadata_read(struct bow__http2_session *session,
                             struct bow__http2_metadata *metadata, struct bow_slice name,
                             struct bow_slice value)
{
    bool binary = name.len >= 4 && memcmp(name.data + name.len - 4, "-bin", 4) == 0;

    if (is_reserved(name)) {
        return 0;
    }
    const uint8_t *comma = NULL;
    while (binary && (comma = memchr(value.data, ',', value.len)) != NULL) {
        size_t len = (size_t)(comma - value.data);
        int rc = add(session, metadata, name, trim((struct bow_slice){value.data, len}));
        if (rc < 0) {
            return rc;
        }
        value = (struct bow_slice){comma + 1, value.len - len - 1};
    }
    return add(session, metadata, name, binary ? trim(value) : value);
}

struct bow_metadata bow__http2_metadata_of(const struct bow__http2_metadata *metadata)
{
    return (struct bow_metadata){metadata->entries, metadata->n};
}

/* Out: a copy in one allocation, as it goes into a header block. */

static size_t wire_size(const struct bow_metadata_entry *entry)
{
    return is_binary(entry->key) ? bow__base64_size(entry->value.len) : entry->value.len;
}

size_t bow__http2_wire_bytes(const struct bow_metadata *metadata)
{
    size_t n = 0;

    for (size_t i = 0; i < metadata->n; i++) {
        n += strlen(metadata->entries[i].key) + wire_size(&metadata->entries[i]) +
             BOW__METADATA_ENTRY_BYTES;
    }
    return n;
}

/* Returns where the next one's texts go. */
static char *write_field(nghttp2_nv *nv, const struct bow_metadata_entry *entry, char *at)
{
    size_t key_len = strlen(entry->key);

    memcpy(at, entry->key, key_len);
    *nv = (nghttp2_nv){.name = (uint8_t *)at, .namelen = key_len};
    at += key_len;
    nv->value = (uint8_t *)at;
    if (is_binary(entry->key)) {
        nv->valuelen = bow__base64_encode(entry->value, at);
        while (nv->valuelen > 0 && at[nv->valuelen - 1] == '=') {
            nv->valuelen--; /* gRPC sends no padding */
        }
    } else if (entry->value.len > 0) {
        memcpy(at, entry->value.data, entry->value.len);
        nv->valuelen = entry->value.len;
    }
    return at + nv->valuelen;
}

int bow__http2_fields_new(struct bow__http2_session *session, const struct bow_metadata *metadata,
                          struct bow__http2_fields **ret_fields)
{
    size_t size = sizeof(struct bow__http2_fields) + metadata->n * sizeof(nghttp2_nv);
    size_t texts_at = size;

    *ret_fields = NULL;
    if (metadata->n == 0) {
        return 0;
    }
    for (size_t i = 0; i < metadata->n; i++) {
        size += strlen(metadata->entries[i].key) + wire_size(&metadata->entries[i]);
    }
    struct bow__http2_fields *fields = bow__alloc(session->base.context, size);
    if (fields == NULL) {
        return -ENOMEM;
    }
    fields->size = size;
    fields->n = metadata->n;
    char *at = (char *)fields + texts_at;
    for (size_t i = 0; i < metadata->n; i++) {
        at = write_field(&fields->nvs[i], &metadata->entries[i], at);
    }
    *ret_fields = fields;
    return 0;
}

void bow__http2_fields_free(struct bow__http2_session *session, struct bow__http2_fields *fields)
{
    if (fields != NULL) {
        bow__free(session->base.context, fields, fields->size);
    }
}
