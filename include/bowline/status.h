/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_STATUS_H
#define BOWLINE_STATUS_H

/*
 * How a remote call ended: a code, a text for people, and optional bytes for
 * programs. The codes and their numbers are gRPC's
 * (https://github.com/grpc/grpc/blob/master/doc/statuscodes.md).
 */

#include <bowline/metadata.h>
#include <bowline/slice.h>
#include <bowline/visibility.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/** gRPC's status codes. */
enum bow_code {
    BOW_OK = 0,
    BOW_CANCELLED = 1,
    BOW_UNKNOWN = 2,
    BOW_INVALID_ARGUMENT = 3,
    BOW_DEADLINE_EXCEEDED = 4,
    BOW_NOT_FOUND = 5,
    BOW_ALREADY_EXISTS = 6,
    BOW_PERMISSION_DENIED = 7,
    BOW_RESOURCE_EXHAUSTED = 8,
    BOW_FAILED_PRECONDITION = 9,
    BOW_ABORTED = 10,
    BOW_OUT_OF_RANGE = 11,
    BOW_UNIMPLEMENTED = 12,
    BOW_INTERNAL = 13,
    BOW_UNAVAILABLE = 14,
    BOW_DATA_LOSS = 15,
    BOW_UNAUTHENTICATED = 16,
};

/** A status: what it points at is borrowed from whatever it came with. */
struct bow_status {
    enum bow_code code;
    const char *message; /* UTF-8, never NULL; "" when there is none */
    /** A serialized google.rpc.Status, or empty. Empty with a retry_after_ns, one with a
     * google.rpc.RetryInfo goes over gRPC. */
    struct bow_slice details;
    bool not_processed;      /* certainly no handler ran, so the call may be sent again: the server
                                says so, or it never left the client */
    uint64_t retry_after_ns; /* the peer asks to wait that long before another try; 0: says nothing;
                                BOW_NEVER (<bowline/system.h>): asks for no other */
    struct bow_metadata metadata; /* trailing: what travels with the status */
};

#define BOW_STATUS_OK_INIT                                                                         \
    {                                                                                              \
        BOW_OK, "", {NULL, 0}, false, 0,                                                           \
        {                                                                                          \
            NULL, 0                                                                                \
        }                                                                                          \
    }

/** The code's name as gRPC writes it ("DEADLINE_EXCEEDED"); "UNKNOWN_CODE" for a number that is
 * none. Thread: any. */
BOW_EXPORT const char *bow_code_name(enum bow_code code);

#ifdef __cplusplus
}
#endif
#endif
