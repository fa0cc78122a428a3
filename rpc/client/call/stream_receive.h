/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_CALL_STREAM_RECEIVE_H
#define BOWLINE_RPC_CLIENT_CALL_STREAM_RECEIVE_H

/*
 * Messages into a stream. On the loop, but for decoding.
 */

#include "rpc/client/call/stream.h"

/** The server's initial metadata has come, before any message. */
void bow__stream_take_headers(struct bow_stream *stream, const struct bow_metadata *initial);
/** Deliver `message`, or let it wait. Its credit goes back when it has been taken. */
void bow__stream_take_message(struct bow_stream *stream, struct bow__message *message);
/** Deliver what waits, unless paused. */
void bow__stream_deliver(struct bow_stream *stream);
/** Give credit back for what was taken elsewhere. */
void bow__stream_return_credit(struct bow_stream *stream);
/** Whether messages wait, which the call's end comes after. */
bool bow__stream_has_waiting(struct bow_stream *stream);
/** Decode a message that waited into the stream's arena; it is freed. Returns as bow__decode(),
 * with the reason. Thread: the one that receives. */
int bow__stream_decode_queued(struct bow_stream *stream, struct bow__queued_message *queued,
                              ProtobufCMessage **ret_message, struct bow__text *reason);

#endif
