/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_HTTP2_CODES_H
#define BOWLINE_RPC_HTTP2_CODES_H

/*
 * How HTTP's and HTTP/2's error numbers and gRPC's codes stand for each other
 * (http-grpc-status-mapping.md and "Errors" in PROTOCOL-HTTP2.md of gRPC).
 */

#include <bowline/status.h>
#include <stdint.h>

/** The code of a call whose stream the peer reset with `http2_error`. */
enum bow_code bow__http2_code_of_reset(uint32_t http2_error);

/** The code of an answer that has an HTTP status but no grpc-status. */
enum bow_code bow__http2_code_of_http_status(int http_status);

/** What RST_STREAM says when a call is given up with `code`. */
uint32_t bow__http2_reset_of_code(enum bow_code code);

#endif
