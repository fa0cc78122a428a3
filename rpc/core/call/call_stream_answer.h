/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CALL_CALL_STREAM_ANSWER_H
#define BOWLINE_RPC_CORE_CALL_CALL_STREAM_ANSWER_H

/*
 * The answer to a streaming call.
 */

#include "rpc/core/call/call_stream.h"

/* What bow_call_reply() and the like are for a streaming call. Thread: any that holds a reference.
 */

int bow__call_stream_reply(struct bow_call *call, const ProtobufCMessage *reply);
int bow__call_stream_fail(struct bow_call *call, const struct bow_status *status);
int bow__call_stream_vfail(struct bow_call *call, enum bow_code code, const char *format,
                           va_list args) BOW_PRINTF(3, 0);

#endif
