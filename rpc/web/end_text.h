/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_WEB_END_TEXT_H
#define BOWLINE_RPC_WEB_END_TEXT_H

/*
 * How a call's end is written down: Connect's error and the last message of its streams, as JSON;
 * gRPC-Web's trailers. Pure functions into an arena; data NULL without memory.
 *
 *     {"code":"not_found","message":"no such order","details":[{"type":"a.B","value":"CAE"}]}
 *     {"error":{…},"metadata":{"x-cost":["7"]}}
 *     grpc-status: 5\r\ngrpc-message: no such order\r\nx-cost: 7\r\n
 */

#include "base/arena.h"
#include <bowline/slice.h>
#include <bowline/status.h>

struct bow_slice bow__connect_error_text(struct bow__arena *arena, const struct bow_status *status);
struct bow_slice bow__connect_end_text(struct bow__arena *arena, const struct bow_status *status);
struct bow_slice bow__grpc_web_trailers_text(struct bow__arena *arena,
                                             const struct bow_status *status);

#endif
