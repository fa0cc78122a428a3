/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CALL_CALL_STREAM_SEND_H
#define BOWLINE_RPC_CORE_CALL_CALL_STREAM_SEND_H

/*
 * What was posted to a streaming call, and the loop's turn with it.
 */

#include "rpc/core/call/call_stream.h"

/** Send what other threads have posted, and give the events that are due; never from inside a
 * function of the call. Loop. */
void bow__call_stream_run(struct bow_call *call);
/** The event on the executor is done, or the handler was entered there: go on, with what else is
 * due. Loop, or the executor once nothing runs on that any more. */
void bow__call_stream_go_on(struct bow_call *call);

/** Send what was posted, and give the answer if that was. Returns 0, or why the answer was dropped.
 * Loop. */
int bow__call_stream_take_posted(struct bow_call *call);
/** Have the loop look at what was posted. Returns 0 or -ECANCELED. Thread: any. */
int bow__call_stream_wake(struct bow_call *call);

#endif
