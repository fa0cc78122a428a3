/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Trace contexts of any bytes, a line for each entry, the first of them the traceparent: what is
 * read is written as something that is read alike, and a tracestate that was kept stays as it is.
 */

#include "rpc/interceptors/trace_context.h"

#include <stdlib.h>
#include <string.h>

#define MAX_ENTRIES 40

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool is_true)
{
    if (!is_true) {
        abort();
    }
}

static size_t split(const uint8_t *data, size_t size, struct bow_metadata_entry *entries)
{
    const uint8_t *end = data + size;
    size_t n = 0;

    while (data < end && n < MAX_ENTRIES) {
        const uint8_t *stop = memchr(data, '\n', (size_t)(end - data));
        stop = stop != NULL ? stop : end;
        entries[n].key = n == 0 ? BOW__TRACEPARENT_KEY : BOW__TRACESTATE_KEY;
        entries[n].value = (struct bow_slice){data, (size_t)(stop - data)};
        n++;
        data = stop < end ? stop + 1 : end;
    }
    return n;
}

static bool is_zero(const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

static void check_parent(const struct bow_metadata *metadata)
{
    struct bow_span_context context;
    struct bow_span_context again;
    char text[BOW_TRACEPARENT_BYTES];

    if (bow__trace_context_find(metadata, &context) < 0) {
        return;
    }
    check(!is_zero(context.trace_id, sizeof(context.trace_id)));
    check(!is_zero(context.span_id, sizeof(context.span_id)));
    bow_span_context_write(&context, text);
    check(strlen(text) == BOW_TRACEPARENT_BYTES - 1);
    struct bow_slice slice = {(const uint8_t *)text, strlen(text)};
    check(bow_span_context_read(slice, &again) == 0);
    check(memcmp(&context, &again, sizeof(context)) == 0);
}

static void check_state(const struct bow_metadata *metadata)
{
    char text[BOW__TRACESTATE_BYTES];
    char again[BOW__TRACESTATE_BYTES];

    size_t len = bow__tracestate_read(metadata, text);
    check(len <= BOW_LIMIT_TRACESTATE_BYTES && strlen(text) == len);
    for (size_t i = 0; i < len; i++) {
        check(text[i] >= ' ' && text[i] <= '~');
    }
    const struct bow_metadata_entry entry = {BOW__TRACESTATE_KEY, {(const uint8_t *)text, len}};
    check(bow__tracestate_read(&(struct bow_metadata){&entry, 1}, again) == len);
    check(memcmp(text, again, len + 1) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bow_metadata_entry entries[MAX_ENTRIES];

    const struct bow_metadata metadata = {entries, split(data, size, entries)};
    check_parent(&metadata);
    check_state(&metadata);
    return 0;
}
