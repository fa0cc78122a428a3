/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_CALL_STREAM_SEND_H
#define BOWLINE_RPC_CLIENT_CALL_STREAM_SEND_H

/*
 * Messages out of a stream. On the loop, but for what <bowline/stream.h> says.
 */

#include "rpc/client/call/stream.h"

/** Directly after the session's open(): the first message, or the call's beginning. Returns as
 * those. */
int bow__stream_begin(struct bow_stream *stream, struct bow__session *session, uint64_t key);
/** The call is open now. */
void bow__stream_opened(struct bow_stream *stream);
/** Send what waits, if the call is open. */
void bow__stream_flush(struct bow_stream *stream);
/** Say that the stream is writable again, if it is. */
void bow__stream_check_writable(struct bow_stream *stream);
/** Nothing is sent any more. */
void bow__stream_seal(struct bow_stream *stream);
/** Keep what is sent from now on, so that it can be sent again; or no more, which lets go of what
 * was kept. Above BOW_LIMIT_RETRY_REQUEST_BYTES that is so by itself. */
void bow__stream_hold(struct bow_stream *stream, bool on);
/** Whether all that was sent can be sent again. */
bool bow__stream_may_retry(const struct bow_stream *stream);
/** The call goes back to the queue. */
void bow__stream_rewind(struct bow_stream *stream);

#endif
