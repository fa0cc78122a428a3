/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The native protocol's header blocks. The first byte chooses which, the rest is
 * the block; what is read must be the same when it is written and read again.
 */
#include "rpc/native/header.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t written[(size_t)1 << 20];

static void require(bool holds)
{
    if (!holds) {
        abort();
    }
}

static bool is_same(struct bow_slice a, struct bow_slice b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

/* As many as were counted, and as much. */
static void walk(struct bow__header_entries entries)
{
    struct bow__header_entry entry;

    while (bow__header_entry_next(&entries, &entry)) {
        require(entries.n > 0);
        entries.n--;
        entries.n_bytes -= entry.key.len + entry.value.len + 32;
    }
    require(entries.n == 0 && entries.n_bytes == 0);
}

static void try_settings(struct bow_slice block)
{
    struct bow__header_error error;
    struct bow__header_settings first;
    struct bow__header_settings again;

    if (bow__header_settings_decode(block, &first, &error) < 0) {
        return;
    }
    size_t len = (size_t)(bow__header_settings_encode(written, &first) - written);
    require(len == bow__header_settings_size(&first));
    struct bow_slice slice = {written, len};
    require(bow__header_settings_decode(slice, &again, &error) == 0);
    require(again.max_frame_bytes == first.max_frame_bytes);
    require(again.stream_window_bytes == first.stream_window_bytes);
    require(again.connection_window_bytes == first.connection_window_bytes);
    require(again.max_calls == first.max_calls);
    require(again.max_message_bytes == first.max_message_bytes);
    require(again.max_bound_methods == first.max_bound_methods);
    require(again.min_ping_interval_us == first.min_ping_interval_us);
    require((again.encodings | 1) == (first.encodings | 1));
    require(again.unattended == first.unattended);
    require(again.max_header_bytes == first.max_header_bytes);
}

static void try_request(struct bow_slice block)
{
    struct bow__header_error error;
    struct bow__header_request first;
    struct bow__header_request again;

    if (bow__header_request_decode(block, &first, &error) < 0) {
        return;
    }
    walk(first.entries);
    size_t len = (size_t)(bow__header_request_encode(written, &first) - written);
    require(len == bow__header_request_size(&first));
    struct bow_slice slice = {written, len};
    require(bow__header_request_decode(slice, &again, &error) == 0);
    require(again.method == first.method && is_same(again.path, first.path));
    require(again.has_time_left == first.has_time_left);
    require(again.time_left_us == first.time_left_us && is_same(again.encoding, first.encoding));
}

static void try_response(struct bow_slice block)
{
    struct bow__header_error error;
    struct bow__header_response first;
    struct bow__header_response again;

    if (bow__header_response_decode(block, &first, &error) < 0) {
        return;
    }
    walk(first.entries);
    size_t len = (size_t)(bow__header_response_encode(written, &first) - written);
    require(len == bow__header_response_size(&first));
    struct bow_slice slice = {written, len};
    require(bow__header_response_decode(slice, &again, &error) == 0);
    require(is_same(again.encoding, first.encoding));
}

static void try_status(struct bow_slice block)
{
    struct bow__header_error error;
    struct bow__header_status first;
    struct bow__header_status again;

    if (bow__header_status_decode(block, &first, &error) < 0) {
        return;
    }
    walk(first.entries);
    size_t len = (size_t)(bow__header_status_encode(written, &first) - written);
    require(len == bow__header_status_size(&first));
    struct bow_slice slice = {written, len};
    require(bow__header_status_decode(slice, &again, &error) == 0);
    require(again.code == first.code && is_same(again.message, first.message));
    require(is_same(again.details, first.details) && is_same(again.encoding, first.encoding));
    require(again.not_processed == first.not_processed);
    require(again.retry_after_us == first.retry_after_us);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const tries[])(struct bow_slice) = {try_request, try_status, try_settings,
                                                      try_response};

    if (size > 0 && size < sizeof(written)) {
        tries[data[0] % 4]((struct bow_slice){data + 1, size - 1});
    }
    return 0;
}
