/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The metadata of the header block that is coming in, as the host is lent it: in a chunk of
 * the loop's pool, which goes back when the block's event has returned. What breaks the rules
 * of metadata is left out, field by field: the call is not the worse for it.
 */

#include "rpc/core/metadata.h"
#include "rpc/http2/grpc_text.h"
#include "rpc/http2/internal.h"

#include <string.h>

/* As many as BOW_LIMIT_HEADER_BYTES permits, for each is counted. */
#define MAX_ENTRIES (BOW_LIMIT_HEADER_BYTES / BOW__METADATA_ENTRY_BYTES)
#define ENTRIES_BYTES (MAX_ENTRIES * sizeof(struct bow_metadata_entry))
_Static_assert(ENTRIES_BYTES + BOW_LIMIT_HEADER_BYTES + 2 * MAX_ENTRIES <= BOW__CHUNK_BYTES,
               "metadata fits a chunk");

static struct bow_metadata_entry *entries_of(struct bow__http2_gathered *gathered)
{
    return (void *)gathered->chunk->data;
}

void bow__http2_gather_begin(struct bow__http2_session *session)
{
    session->gathered.n = 0;
    session->gathered.n_bytes = ENTRIES_BYTES;
}

void bow__http2_gather_end(struct bow__http2_session *session)
{
    if (session->gathered.chunk != NULL) {
        bow__pool_put(session->out.pool, session->gathered.chunk);
    }
    session->gathered = (struct bow__http2_gathered){0};
}

struct bow_metadata bow__http2_gathered(struct bow__http2_session *session)
{
    struct bow__http2_gathered *gathered = &session->gathered;

    if (gathered->n == 0) {
        return (struct bow_metadata)BOW_METADATA_INIT;
    }
    return (struct bow_metadata){entries_of(gathered), gathered->n};
}

/* Where the next text goes. */
static char *top_of(struct bow__http2_gathered *gathered)
{
    return (char *)gathered->chunk->data + gathered->n_bytes;
}

static bool has_chunk(struct bow__http2_session *session)
{
    struct bow__http2_gathered *gathered = &session->gathered;

    if (gathered->chunk == NULL) {
        gathered->chunk = bow__pool_get(session->out.pool);
    }
    if (gathered->chunk == NULL) {
        bow__http2_check(session, NGHTTP2_ERR_NOMEM);
        return false;
    }
    return true;
}

static const char *keep_key(struct bow__http2_gathered *gathered, struct bow_slice name)
{
    char *key = top_of(gathered);

    memcpy(key, name.data, name.len);
    key[name.len] = '\0';
    gathered->n_bytes += name.len + 1;
    return key;
}

/* The value lies at the top; it is kept if the rules permit it. */
static void keep_entry(struct bow__http2_gathered *gathered, const char *key, size_t len)
{
    char *text = top_of(gathered);
    struct bow_slice value = {(const uint8_t *)text, len};

    if (!bow__metadata_is_valid(key, value)) {
        return;
    }
    text[len] = '\0';
    entries_of(gathered)[gathered->n++] = (struct bow_metadata_entry){key, value};
    gathered->n_bytes += len + 1;
}

static void keep_binary(struct bow__http2_gathered *gathered, const char *key,
                        struct bow_slice text)
{
    size_t len = 0;

    text = bow__grpc_trim(text);
    if (bow__base64_decode(text, (uint8_t *)top_of(gathered), &len) == 0) {
        keep_entry(gathered, key, len);
    }
}

/* HTTP may have joined several fields of one name with commas, which base64 has none of. */
static void keep_binaries(struct bow__http2_session *session, struct bow__http2_header *header,
                          const char *key, struct bow_slice text)
{
    const uint8_t *comma = NULL;

    while (text.len > 0 && (comma = memchr(text.data, ',', text.len)) != NULL) {
        size_t len = (size_t)(comma - text.data);
        keep_binary(&session->gathered, key, (struct bow_slice){text.data, len});
        text = (struct bow_slice){comma + 1, text.len - len - 1};
        if (!bow__http2_count_field(session, header, strlen(key))) {
            return;
        }
    }
    keep_binary(&session->gathered, key, text);
}

void bow__http2_gather(struct bow__http2_session *session, struct bow__http2_header *header,
                       struct bow_slice name, struct bow_slice value)
{
    struct bow__http2_gathered *gathered = &session->gathered;

    /* Before anything is kept: every gRPC client's calls have a user-agent. */
    if (bow__metadata_is_reserved(name) || !has_chunk(session)) {
        return;
    }
    const char *key = keep_key(gathered, name);
    if (bow__http2_is_binary(key, name.len)) {
        keep_binaries(session, header, key, value);
        return;
    }
    value = bow__grpc_trim(value);
    if (value.len > 0) {
        memcpy(top_of(gathered), value.data, value.len);
    }
    keep_entry(gathered, key, value.len);
}
