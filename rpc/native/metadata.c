/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Metadata that came, as the host is lent it: strings in a chunk of the loop's pool, which goes
 * back when the event has returned, so that a connection holds none of it. What
 * breaks the rules of metadata is left out, entry by entry: the call is not the worse for it.
 */

#include "rpc/native/receive.h"

#include "rpc/core/metadata.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* As many as BOW_LIMIT_HEADER_BYTES permits, and what their bytes and NULs take. */
#define MAX_ENTRIES (BOW_LIMIT_HEADER_BYTES / BOW__METADATA_ENTRY_BYTES)
#define MAX_BYTES (MAX_ENTRIES * (sizeof(struct bow_metadata_entry) + 2) + BOW_LIMIT_HEADER_BYTES)
_Static_assert(MAX_BYTES <= BOW__CHUNK_BYTES, "metadata fits a chunk");

/* `bytes` with a NUL behind them, at `*at`, which moves on. */
static const char *put_string(char **at, struct bow_slice bytes)
{
    char *string = *at;

    if (bytes.len > 0) {
        memcpy(string, bytes.data, bytes.len);
    }
    string[bytes.len] = '\0';
    *at += bytes.len + 1;
    return string;
}

static bool put_entry(char **at, const struct bow__header_entry *from,
                      struct bow_metadata_entry *to)
{
    char *begin = *at;

    to->key = put_string(at, from->key);
    to->value.data = (const uint8_t *)put_string(at, from->value);
    to->value.len = from->value.len;
    if (strlen(to->key) == from->key.len && bow__metadata_is_valid(to->key, to->value)) {
        return true;
    }
    *at = begin;
    return false;
}

int bow__native_metadata_copy(struct bow__native *session, struct bow__header_entries entries,
                              struct bow__native_metadata *ret_metadata)
{
    struct bow__header_entry entry;
    struct bow__block *chunk = bow__pool_get(session->out.pool);

    if (chunk == NULL) {
        return -ENOMEM;
    }
    assert(entries.n <= MAX_ENTRIES);
    struct bow_metadata_entry *list = (void *)chunk->data;
    char *at = (char *)(list + entries.n);
    size_t n = 0;
    while (bow__header_entry_next(&entries, &entry)) {
        n += put_entry(&at, &entry, &list[n]) ? 1 : 0;
    }
    *ret_metadata = (struct bow__native_metadata){chunk, {list, n}};
    return 0;
}
