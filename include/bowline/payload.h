/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_PAYLOAD_H
#define BOWLINE_PAYLOAD_H

/*
 * A message that is encoded once and sent many times: to any number of streams, over
 * any protocol, from any thread. Its bytes are shared, not copied. Streams that compress
 * share as much: the first that needs it in an encoding and level compresses it, and it is kept so,
 * in memory of the payload's context, until the payload goes. (Two loops that need it at once may
 * both compress it; streams of another context than the payload's do so for themselves.)
 *
 *     new ──► send to as many as you like ──► unref; the last stream that sent it frees it
 */

#include <bowline/visibility.h>
#include <protobuf-c/protobuf-c.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_context;
struct bow_payload;

/**
 * Encode `message`.
 *
 * Thread:  any
 * Owns:    borrows `message`; gives `*ret_payload`, to be let go of by bow_payload_unref()
 * Returns: 0; -EINVAL when the message cannot be encoded (a pointer is NULL where a value is
 *          needed, it is nested too deep or too large); -ENOMEM. Whether strings are UTF-8 is for
 *          who receives them to check.
 */
BOW_EXPORT BOW_MUST_USE int bow_payload_new(struct bow_context *context,
                                            const ProtobufCMessage *message,
                                            struct bow_payload **ret_payload);

/** Take one more reference. Thread: any. */
BOW_EXPORT struct bow_payload *bow_payload_ref(struct bow_payload *payload);
/** Drop a reference; NULL is allowed. Thread: any. */
BOW_EXPORT void bow_payload_unref(struct bow_payload *payload);

#ifdef __cplusplus
}
#endif
#endif
