/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CALL_CALL_STREAM_OUTPUT_H
#define BOWLINE_RPC_CORE_CALL_CALL_STREAM_OUTPUT_H

/*
 * From a streaming call to its session. All on the loop but where it says otherwise.
 */

#include "rpc/core/call/call_stream.h"

/** Whether a handler may send. Returns 0; -EINVAL: not by this method; -ECANCELED: it is over;
 * -EAGAIN. Thread: any that holds a reference. */
int bow__call_stream_check_send(const struct bow_call *call);
/** Look at the session's queue: whether on_writable is due. `n_handed` bytes of what was posted are
 * the session's now. */
void bow__call_stream_settle(struct bow_call *call, size_t n_handed);

/** Encode a message that waits. Returns 0, -ENOMEM, or -EINVAL with `reason`. Thread: any. */
int bow__call_stream_encode(struct bow_call *call, const ProtobufCMessage *message,
                            struct bow__queued_message **ret_queued, struct bow__text *reason);
/** Give the session a message. Returns 0 and its length as sent, and `queued` is gone; -ECANCELED;
 * -ENOMEM; -EMSGSIZE. */
int bow__call_stream_hand_over(struct bow_call *call, struct bow__queued_message *queued,
                               uint32_t flags, size_t *ret_len);
/** Encode a message where the session has room. Returns 0 and its length; 1 when it has to go as a
 * block; as hand_over(); or -EINVAL with `reason`, which may be NULL. */
int bow__call_stream_put_in_place(struct bow_call *call, const ProtobufCMessage *message,
                                  uint32_t flags, size_t *ret_len, struct bow__text *reason);
/** Copy a small payload there. Returns as put_in_place(); a large one has to go as a block. */
int bow__call_stream_copy_in_place(struct bow_call *call, struct bow_slice bytes);

/** End the call with an error of ours. */
void bow__call_stream_refuse(struct bow_call *call, enum bow_code code, const char *message);
/** The same because something that it was to send could not be: -ENOMEM or -EMSGSIZE, as
 * bow__call_describe_unsent(). */
void bow__call_stream_refuse_unsent(struct bow_call *call, int rc);
/** Give the session the answer that was posted. Returns 0; -ECANCELED after the deadline; -ENOMEM
 * or -EMSGSIZE when the client got that for an answer. */
int bow__call_stream_send_answer(struct bow_call *call);

#endif
