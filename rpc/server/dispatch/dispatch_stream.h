/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_DISPATCH_DISPATCH_STREAM_H
#define BOWLINE_RPC_SERVER_DISPATCH_DISPATCH_STREAM_H

/*
 * What only streaming calls do.
 */

#include "rpc/server/dispatch/server_call.h"

/** Make the call just begun a streaming one. Returns 0 or -ENOMEM. */
int bow__dispatch_stream_begin(struct bow__server_call *server_call);
/** An event of a streaming call whose handler was entered. */
void bow__dispatch_stream_message(struct bow__server_call *server_call,
                                  struct bow__message *message, bool end);

/* Members of struct bow__call_ops. */
void bow__dispatch_stream_sent(struct bow_call *call, size_t n_bytes);
void bow__dispatch_stream_undecodable(struct bow_call *call);
void bow__dispatch_stream_defer(struct bow_call *call);
void bow__dispatch_stream_closed(struct bow_call *call);

#endif
