/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CALL_STREAM_H
#define BOWLINE_CALL_STREAM_H

/*
 * A streaming call as the server's handler sees it: a struct bow_call with more than
 * one message on either side. Programs use the typed functions that are generated for
 * each method; they stand on these.
 *
 *     handler entered ──► listen ──► on_message* ──► on_half_close
 *            │                          │ on_writable*
 *            └── send* ──► finish, reply or fail, once ──► on_closed, the last event, once
 *
 * A streaming call is counted. The handler's own reference ends when on_closed has
 * returned (for a handler that never listens: when the call has ended); who uses the
 * call longer, or from another thread, takes one with bow_call_ref(). Once the
 * call has ended, by whichever side, all that sends says -ECANCELED. Sending and answering may
 * be done by several threads at a time; the call's memory (bow_call_alloc(), metadata) has one
 * user at a time, and lives until the last reference is dropped. What is asked of it after that is
 * misuse, and is answered as <bowline/call.h> says of a unary call after its answer; but without
 * libbowline-testing, in an optimised build, it is seen by AddressSanitizer alone.
 *
 * Events come on the call's loop, one at a time, never from inside a function
 * of the call. Messages that come before bow_call_listen(), or while the call is paused,
 * wait; the peer's credit does not come back meanwhile, so they are bounded by the
 * stream's window and one message. With the end of the call, whichever, they are dropped.
 */

#include <bowline/call.h>
#include <bowline/payload.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Bytes that wait on a stream before its producer is asked to stop. */
#define BOW_STREAM_WRITABLE_BYTES ((size_t)64 << 10)

/**
 * Receive the call's events by `events`, the generated struct METHOD__call_events of its
 * method; members that are NULL are not called.
 *
 * Thread:  loop; once
 * Owns:    keeps `events` and `user` until on_closed has returned
 * Returns: 0; -EALREADY; -EINVAL for a unary call; -ECANCELED when the call has ended and no event
 *          comes any more (not before the handler has returned)
 */
BOW_EXPORT int bow_call_listen(struct bow_call *call, const void *events, void *user);

/**
 * Send one message; it is encoded before this returns. What is sent by one thread keeps its
 * order.
 *
 * Thread:  any that holds a reference
 * Owns:    borrows `message`
 * Returns: 0; -EAGAIN while BOW_STREAM_WRITABLE_BYTES or more wait to be sent: nothing
 *          was done, and on_writable comes when it makes sense to try again;
 *          -ECANCELED once the call has ended or was answered; -EINVAL for a message of another
 *          type or one that cannot be encoded, and for a method whose server sends
 *          one message (use the reply); -ENOMEM, also once an allocation in the call's memory
 *          failed, for the message may lack something; -EMSGSIZE for initial metadata that
 *          the client does not take. After an error the call goes on; but a message that cannot
 *          be JSON, for a client that asked for it, ends the call with INTERNAL.
 */
BOW_EXPORT BOW_MUST_USE int bow_call_send(struct bow_call *call, const ProtobufCMessage *message);
/** Send a message that is encoded already; its type is not checked. Takes no reference of the
 * caller's. Thread and results as bow_call_send(). */
BOW_EXPORT BOW_MUST_USE int bow_call_send_payload(struct bow_call *call,
                                                  struct bow_payload *payload);

/** Whether bow_call_send() would take a message now. Thread: any that holds a reference. */
BOW_EXPORT bool bow_call_is_writable(const struct bow_call *call);

/**
 * End the call with OK, after all that was sent. (bow_call_reply() sends a last message and ends
 * it; bow_call_fail() ends it with an error, which may overtake messages that wait.)
 *
 * Thread:  any that holds a reference
 * Returns: 0; -ECANCELED as bow_call_send(); -EINVAL for a method whose server sends one message;
 *          -ENOMEM or -EMSGSIZE when what was sent before, or initial metadata, could not be sent,
 *          and the client got RESOURCE_EXHAUSTED that says so
 */
BOW_EXPORT int bow_call_finish(struct bow_call *call);

/** Stop the delivery of messages, at once. Thread: loop. */
BOW_EXPORT void bow_call_pause(struct bow_call *call);
/** Go on with it, later. Thread: loop. */
BOW_EXPORT void bow_call_resume(struct bow_call *call);

/** Take one more reference to a streaming call. Returns `call`. Thread: any that holds one. */
BOW_EXPORT struct bow_call *bow_call_ref(struct bow_call *call);
/** Drop a reference. Thread: any that holds it. */
BOW_EXPORT void bow_call_unref(struct bow_call *call);

#ifdef __cplusplus
}
#endif
#endif
