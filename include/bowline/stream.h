/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_STREAM_H
#define BOWLINE_STREAM_H

/*
 * A streaming call as the client sees it. Programs use the typed functions that are
 * generated for each method; they stand on these. Two styles:
 *
 *   callbacks  open(events) ──► send*, half_close   [on_headers] on_message* on_writable*
 *                           └─► unref, any time     on_closed, the last event, once
 *   blocking   open(NULL) ──► write*, half_close, receive* ──► finish
 *
 * A stream is counted. Its opener has a reference, and lets go of it when it pleases: with
 * bow_stream_unref(), in the blocking style with bow_stream_finish(). The call does not depend on
 * it. An event lends its stream until it returns. Once the call has ended all that sends says
 * -ECANCELED. A stream without a reference, and a message after the event that lent it or the next
 * receive, are gone as after a free(): AddressSanitizer reports their use, nothing else does.
 *
 * On another thread than the loop's, the whole call may be over, on_closed included, before
 * bow_client_open() has returned. The opener's handle is good all the same; `user`, if on_closed
 * frees it, is not the opener's any more. So an opener there keeps its handle in a variable of
 * its own:
 *
 *     struct demo__room__join__stream stream;
 *     if (demo__room__join__open(client, NULL, &events, state, &stream) == 0) {
 *         (void)demo__room__join__stream_send(stream, &hello);    0, or -ECANCELED
 *         bow_stream_unref(stream.stream);
 *     }
 *
 * Events come on the client's loop, one at a time, never from inside a function of the
 * stream. Messages that are not taken (paused, or not received) hold the server back:
 * at most its stream's window and one message wait.
 *
 * A stream without a time-out of its own has no deadline. It is not tried a second time, but for
 * one that the server says it has not processed while nothing but what can be sent again was sent.
 */

#include <bowline/call_stream.h>
#include <bowline/client.h>
#include <bowline/metadata.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_stream;

/**
 * Begin a streaming call. `request` is the one message of a method whose client sends one, NULL
 * for others. `events` is the generated struct METHOD__stream_events of the method, or NULL for
 * the blocking style; that of a confined client takes in first what has come meanwhile, so other
 * calls' callbacks may run inside. With events `ret_stream` may be NULL: they bring the handle.
 *
 * Thread:  any; the creating thread when the client is confined
 * Owns:    borrows `request`; keeps `events` and `user` until on_closed has returned; gives
 *          `*ret_stream`, to be let go of with bow_stream_unref() or bow_stream_finish(); it is set
 *          before the first event can come, and not touched after that
 * Returns: 0; or as bow_client_start(), and no event comes
 */
BOW_EXPORT BOW_MUST_USE int
bow_client_open(struct bow_client *client, const struct bow_method *method,
                const ProtobufCMessage *request, const struct bow_call_options *options,
                const void *events, void *user, struct bow_stream **ret_stream);

/**
 * Send one message; it is encoded before this returns. Before the connection is there messages
 * wait like others.
 *
 * Thread:  any that holds a reference; the creating thread when confined
 * Owns:    borrows `message`
 * Returns: 0; -EAGAIN while BOW_STREAM_WRITABLE_BYTES or more wait to be sent (a message that
 *          waits counts for a little more than its bytes): nothing was done, and on_writable
 *          comes when it makes sense to try again; -ECANCELED once the call has ended; -EPIPE
 *          after bow_stream_half_close(); -EINVAL for a message of another type, one that cannot
 *          be encoded, or a method whose client sends one; -ENOMEM; -ECHILD as bow_client_start()
 */
BOW_EXPORT BOW_MUST_USE int bow_stream_send(struct bow_stream *stream,
                                            const ProtobufCMessage *message);

/** The same for a message that is encoded already, whose type is not checked. Takes no reference
 * of the caller's. Thread and results as bow_stream_send(). */
BOW_EXPORT BOW_MUST_USE int bow_stream_send_payload(struct bow_stream *stream,
                                                    struct bow_payload *payload);

/**
 * Whether what is sent from now on is compressed, message by message, whatever its size (as
 * BOW_COMPRESSION_ON): on a stream that was opened with a compression other than off, by its
 * options or its client's, whose encoding was named then.
 *
 * Thread:  any that holds a reference
 * Returns: 0; -EALREADY to compress on one that was opened without; -EINVAL for a method whose
 *          client sends one message
 */
BOW_EXPORT BOW_MUST_USE int bow_stream_compress(struct bow_stream *stream, bool on);

/** Whether bow_stream_send() would take a message now. Thread: any that holds a reference. */
BOW_EXPORT bool bow_stream_is_writable(const struct bow_stream *stream);

/** No further message follows. Returns: 0, -ECANCELED, -EPIPE (said before), -ECHILD. Thread: as
 * send. */
BOW_EXPORT int bow_stream_half_close(struct bow_stream *stream);

/** Give the call up: it ends with CANCELLED, later, unless it has ended; messages that had come
 * already may be delivered until then. Idempotent. Thread: any that holds a reference. */
BOW_EXPORT void bow_stream_cancel(struct bow_stream *stream);

/** Stop the delivery of messages, at once. Those that wait come before on_closed, when the server
 * has ended the call or was lost; a cancel, the deadline and the end of the client drop them.
 * Callback style. Thread: loop. */
BOW_EXPORT void bow_stream_pause(struct bow_stream *stream);
/** Go on with it, later. Thread: loop. */
BOW_EXPORT void bow_stream_resume(struct bow_stream *stream);

/** Whether the message came compressed that an event brings, or that was received last. Thread:
 * the event's, or the one that receives. */
BOW_EXPORT bool bow_stream_message_was_compressed(const struct bow_stream *stream);

/** The loop of the call's events. Thread: any. */
BOW_EXPORT struct bow_loop *bow_stream_loop(const struct bow_stream *stream);

/** One more who uses the stream. Thread: any that holds a reference. */
BOW_EXPORT struct bow_stream *bow_stream_ref(struct bow_stream *stream);
/** One fewer; NULL is allowed. Thread: any that holds a reference. */
BOW_EXPORT void bow_stream_unref(struct bow_stream *stream);

/* The blocking style. Thread: any but the client's loops' (-EDEADLK), one at a time that sends and
 * one that receives; the creating thread when confined. Of a confined client bytes move only inside
 * its functions: what bow_stream_write() took may lie until the next one. */

/**
 * Wait for the next message.
 *
 * Owns:    lends `*ret_message`
 * Returns: 1 and the message in `*ret_message`, which lives until the next receive or finish;
 *          0 at the end, behind all that had come: bow_stream_finish() says how it ended;
 *          -ETIMEDOUT after `timeout_ns`
 *          (BOW_NEVER: none; the call's own deadline ends the call); -EDEADLK; -ECHILD as
 *          bow_client_start(); -EINVAL for a stream with events, or the wrong thread
 */
BOW_EXPORT BOW_MUST_USE int bow_stream_receive(struct bow_stream *stream, uint64_t timeout_ns,
                                               const ProtobufCMessage **ret_message);

/** As bow_stream_send(), waiting at most `timeout_ns` while the stream is not writable; a
 * half-close by another thread ends the wait. Returns: as it, but -ETIMEDOUT for -EAGAIN; -EDEADLK
 * and -EINVAL as bow_stream_receive(). */
BOW_EXPORT BOW_MUST_USE int bow_stream_write(struct bow_stream *stream,
                                             const ProtobufCMessage *message, uint64_t timeout_ns);

/**
 * Half-close unless that was done, drop the messages not received, wait for the end, and let
 * go of the stream. Fills `*ret_result` (which must be empty) in every case; its reply is that of
 * a method whose server sends one, else NULL, also with OK. To give up instead of waiting,
 * bow_stream_cancel() before.
 *
 * Owns:    takes the opener's reference; the caller finishes `*ret_result` with bow_result_fini()
 * Returns: 0; -EDEADLK, -ECHILD and -EINVAL as bow_stream_receive(): the stream is the caller's
 *          still
 */
BOW_EXPORT int bow_stream_finish(struct bow_stream *stream, struct bow_result *ret_result);

#ifdef __cplusplus
}
#endif
#endif
