/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_WEB_RETRY_INFO_H
#define BOWLINE_RPC_WEB_RETRY_INFO_H

/*
 * When to come again, as gRPC's richer error model says it (AIP-193): a google.rpc.Status with a
 * google.rpc.RetryInfo in its details. Clients of OTLP look for nothing else, and take a refusal
 * without it for final. Pure functions over slices.
 *
 *     Status     1: code   2: message   3: Any, repeated
 *     Any        1: type_url   2: value
 *     RetryInfo  1: Duration
 *     Duration   1: seconds   2: nanos
 */

#include <bowline/limits.h>
#include <bowline/slice.h>
#include <bowline/status.h>
#include <stddef.h>
#include <stdint.h>

/** Room for any that bow__retry_info_encode() writes. */
#define BOW__RETRY_INFO_BYTES (BOW_LIMIT_STATUS_MESSAGE_BYTES + 128)

/** Write one with the status's code and its message, of at most BOW_LIMIT_STATUS_MESSAGE_BYTES, for
 * readers hold both against the trailers beside it. Returns the length. */
size_t bow__retry_info_encode(enum bow_code code, struct bow_slice message, uint64_t delay_ms,
                              uint8_t out[BOW__RETRY_INFO_BYTES]);

/** The wait that the first RetryInfo of a serialized google.rpc.Status asks for, in nanoseconds. 0:
 * there is none, it is malformed, or none that can be meant (24 days and more, as in
 * grpc-retry-pushback-ms). */
uint64_t bow__retry_info_find(struct bow_slice status);

#endif
