/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CALL_CALL_STREAM_EVENTS_H
#define BOWLINE_RPC_CORE_CALL_CALL_STREAM_EVENTS_H

/*
 * The events of a streaming call, from what the host says to the handler.
 */

#include "rpc/core/call/call_stream.h"

/* What the host says, on the loop, once the handler was entered. */

/** A message came, the last one with `end`. */
void bow__call_stream_take(struct bow_call *call, struct bow__message *message, bool end);
/** The client ended its side. */
void bow__call_stream_half_close(struct bow_call *call);
/** The session's queue is low again. */
void bow__call_stream_writable(struct bow_call *call);

/** Give the events that are due; never from inside a function of the call. Loop. */
void bow__call_stream_deliver_due(struct bow_call *call);

/* Where the executor's part is. */

/** Give the event that was handed over, on the executor. */
void bow__call_stream_deliver_event(struct bow_call *call);
/** It is done, or the handler was entered. Loop, or the executor once nothing runs on that any
 * more. */
void bow__call_stream_event_done(struct bow_call *call);

#endif
