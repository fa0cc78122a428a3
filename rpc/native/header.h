/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_NATIVE_HEADER_H
#define BOWLINE_RPC_NATIVE_HEADER_H

/*
 * The header blocks of the native protocol, as wire.proto defines them, read and
 * written by hand: into slices of the block, without allocation. Knows nothing of
 * frames and streams.
 */

#include "rpc/core/session.h"
#include <bowline/limits.h>
#include <bowline/metadata.h>

struct bow__header_settings {
    uint32_t max_frame_bytes;
    uint32_t stream_window_bytes;
    uint32_t connection_window_bytes;
    uint32_t max_calls;
    uint32_t max_message_bytes;
    uint32_t max_bound_methods;
    uint64_t min_ping_interval_us;
    uint32_t encodings; /* a set; identity is in it or not */
    bool unattended;
    uint32_t max_header_bytes;
};

/** What holds until the peer's SETTINGS arrive, and for fields absent in them. */
#define BOW__HEADER_SETTINGS_INIT                                                                  \
    {                                                                                              \
        .max_frame_bytes = 64u << 10, .stream_window_bytes = 64u << 10,                            \
        .connection_window_bytes = 1u << 20, .max_calls = 100, .max_message_bytes = 4u << 20,      \
        .max_bound_methods = 64, .max_header_bytes = 16u << 10,                                    \
    }

/** Metadata that was read: how much it is, and where to walk it. */
struct bow__header_entries {
    struct bow_slice block; /* what is left to walk */
    uint32_t field;
    uint32_t n;
    size_t n_bytes; /* as bow__metadata_bytes() counts; the session judges it */
};

struct bow__header_entry {
    struct bow_slice key;
    struct bow_slice value;
};

struct bow__header_request {
    uint32_t method;
    struct bow_slice path;
    bool has_time_left;
    uint64_t time_left_us;
    struct bow_metadata metadata;       /* written */
    struct bow__header_entries entries; /* read */
    struct bow_slice encoding;
};

struct bow__header_response {
    struct bow_metadata metadata;       /* written */
    struct bow__header_entries entries; /* read */
    struct bow_slice encoding;
};

struct bow__header_status {
    uint32_t code;
    struct bow_slice message;
    struct bow_slice details;
    bool not_processed;
    uint64_t retry_after_us;
    struct bow_metadata metadata;       /* written */
    struct bow__header_entries entries; /* read */
    struct bow_slice encoding;
};

/** Why a block could not be read. Both live for ever. */
struct bow__header_error {
    const char *field; /* its name in wire.proto, or "tag" */
    const char *what;
};

/*
 * For each message: the size of its block, writing it (returns the place behind), and
 * reading it: 0, or -EBADMSG with `*ret_error` filled in. Slices read point into `block`.
 * Fields with their default value are not written.
 */

size_t bow__header_settings_size(const struct bow__header_settings *settings);
uint8_t *bow__header_settings_encode(uint8_t *to, const struct bow__header_settings *settings);
int bow__header_settings_decode(struct bow_slice block, struct bow__header_settings *ret_settings,
                                struct bow__header_error *ret_error);

size_t bow__header_request_size(const struct bow__header_request *request);
uint8_t *bow__header_request_encode(uint8_t *to, const struct bow__header_request *request);
int bow__header_request_decode(struct bow_slice block, struct bow__header_request *ret_request,
                               struct bow__header_error *ret_error);

size_t bow__header_response_size(const struct bow__header_response *response);
uint8_t *bow__header_response_encode(uint8_t *to, const struct bow__header_response *response);
int bow__header_response_decode(struct bow_slice block, struct bow__header_response *ret_response,
                                struct bow__header_error *ret_error);

size_t bow__header_status_size(const struct bow__header_status *status);
uint8_t *bow__header_status_encode(uint8_t *to, const struct bow__header_status *status);
int bow__header_status_decode(struct bow_slice block, struct bow__header_status *ret_status,
                              struct bow__header_error *ret_error);

/** The next entry, as it lies in the block, which was read without an error; false behind the last.
 */
bool bow__header_entry_next(struct bow__header_entries *entries,
                            struct bow__header_entry *ret_entry);

/** The header that `status` is sent as to a peer that takes `max_bytes`: what is too long is cut or
 * left out. */
struct bow__header_status bow__header_of_status(const struct bow_status *status, size_t max_bytes);
#define BOW__STATUS_TEXT_BYTES (BOW_LIMIT_STATUS_MESSAGE_BYTES + 1)
/** A status that came; its message is copied to `text`. Without its metadata. */
struct bow_status bow__status_of_header(const struct bow__header_status *wire, char *text);

/** Empty for identity. */
struct bow_slice bow__header_encoding_name(enum bow__encoding encoding);
enum bow__encoding bow__header_encoding_of(struct bow_slice name);

#endif
