/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_METADATA_H
#define BOWLINE_METADATA_H

/*
 * What travels beside the messages of a call: keys and values, from the client with
 * the call, from the server before its first message (initial) and with the
 * status (trailing). The rules are gRPC's
 * (https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md#requests), over
 * every protocol: keys are lower-case letters, digits, '-', '_' and '.'; values are
 * printable ASCII, but for keys that end in "-bin", whose values are any bytes.
 * Blanks at the ends of a text are no part of it: refused here, stripped from what a
 * gRPC peer sends. Keys may repeat; their order is kept.
 *
 * Some keys are the protocols' own, and refused over each of them: those that begin with
 * "grpc-" or ':', and of HTTP accept-encoding, connection, content-length, content-type,
 * host, keep-alive, proxy-connection, te, trailer, transfer-encoding, upgrade and
 * user-agent. What a peer sends of these is no metadata, and left out.
 *
 * What is received is borrowed: it lives as long as what it came with (the call, the
 * result, the event), and a NUL follows each value, so that one of ASCII is a string.
 */

#include <bowline/slice.h>
#include <bowline/visibility.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One key with its value. */
struct bow_metadata_entry {
    const char *key;
    struct bow_slice value;
};

/** All keys and values of one direction, in order. */
struct bow_metadata {
    const struct bow_metadata_entry *entries;
    size_t n;
};

#define BOW_METADATA_INIT                                                                          \
    {                                                                                              \
        NULL, 0                                                                                    \
    }

/** The first value of `key` (in lower case), or NULL. Thread: any that may read `metadata`. */
BOW_EXPORT const struct bow_slice *bow_metadata_find(const struct bow_metadata *metadata,
                                                     const char *key);

#ifdef __cplusplus
}
#endif
#endif
