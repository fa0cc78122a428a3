/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Metadata as header fields that we send. They are one allocation each, with room in
 * front for the fields that gRPC itself puts there, so that all of them stand together.
 */

#include "base/alloc.h"
#include "rpc/core/metadata.h"
#include "rpc/http2/grpc_text.h"
#include "rpc/http2/internal.h"

#include <errno.h>
#include <string.h>

bool bow__http2_is_binary(const char *key, size_t len)
{
    return len >= 4 && memcmp(key + len - 4, "-bin", 4) == 0;
}

static size_t value_size(const struct bow_metadata_entry *entry, size_t key_len)
{
    bool is_binary = bow__http2_is_binary(entry->key, key_len);

    return is_binary ? bow__base64_size(entry->value.len) : entry->value.len;
}

size_t bow__http2_fields_bytes(const struct bow_metadata *metadata)
{
    size_t n = 0;

    for (size_t i = 0; i < metadata->n; i++) {
        const struct bow_metadata_entry *entry = &metadata->entries[i];
        size_t key_len = strlen(entry->key);
        n += key_len + value_size(entry, key_len) + BOW__METADATA_ENTRY_BYTES;
    }
    return n;
}

/* Writes the entry's texts at `*at`, which moves behind them. */
static nghttp2_nv put_entry(const struct bow_metadata_entry *entry, char **at)
{
    struct bow_slice value = entry->value;
    nghttp2_nv field = {.name = (uint8_t *)*at, .namelen = strlen(entry->key)};

    memcpy(*at, entry->key, field.namelen);
    *at += field.namelen;
    field.value = (uint8_t *)*at;
    field.valuelen = value.len;
    if (bow__http2_is_binary(entry->key, field.namelen)) {
        field.valuelen = bow__base64_encode(value, *at);
    } else if (value.len > 0) {
        memcpy(*at, value.data, value.len);
    }
    *at += field.valuelen;
    return field;
}

int bow__http2_fields_new(struct bow__http2_session *session, const struct bow_metadata *metadata,
                          struct bow__http2_fields **ret_fields)
{
    size_t size = sizeof(struct bow__http2_fields) + metadata->n * sizeof(nghttp2_nv) +
                  bow__http2_fields_bytes(metadata);

    *ret_fields = NULL;
    if (metadata->n == 0) {
        return 0;
    }
    struct bow__http2_fields *fields = bow__alloc(session->base.context, size);
    if (fields == NULL) {
        return -ENOMEM;
    }
    fields->size = size;
    fields->n = metadata->n;
    char *at = (char *)(fields->own + metadata->n);
    for (size_t i = 0; i < metadata->n; i++) {
        fields->own[i] = put_entry(&metadata->entries[i], &at);
    }
    *ret_fields = fields;
    return 0;
}

struct bow__http2_fields *bow__http2_fields_free(struct bow__http2_session *session,
                                                 struct bow__http2_fields *fields)
{
    if (fields != NULL) {
        bow__free(session->base.context, fields, fields->size);
    }
    return NULL;
}
