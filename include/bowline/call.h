/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CALL_H
#define BOWLINE_CALL_H

/*
 * A call as the server's handler sees it.
 *
 *     handler entered ──► reply or fail, exactly once ──► the call is gone
 *            │                   ▲
 *            └── kept, answered later, from any thread
 *
 * The call and its request belong to the handler from entry until it replies or
 * fails: also when the peer cancelled or the deadline passed meanwhile (the
 * reply is then dropped and says so). A unary call is gone with its answer, and with it its request
 * and all that lay in its memory: a second answer is as wrong as a second free(), and so is
 * whatever else is asked of it then. What is done about it:
 *
 *     build, or context        seen                             then
 *     NDEBUG                   until a call takes the memory    an error in the log, -EINVAL
 *     with assertions          the same                         abort()
 *     -O0, libbowline-testing  for 64 calls of that loop more   abort()
 *     AddressSanitizer         also reads of the request        its report, or abort()
 *
 * The line says which method it was, and what was done; functions without a result do nothing then,
 * those that return memory return NULL. Do not depend on -EINVAL: it comes when you are lucky.
 *
 * The call's memory has one user at a time:
 * whoever holds the call. A handler that never answers keeps the call in the
 * gauge `calls_unanswered` of <bowline/metrics.h>; its peer gets
 * DEADLINE_EXCEEDED in time all the same.
 */

#include <bowline/status.h>
#include <protobuf-c/protobuf-c.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_arena;
struct bow_call;
struct bow_channel;
struct bow_loop;
struct bow_peer_credentials;

/** What the client sent along. Lives as long as the call. Thread: any that holds the call. */
BOW_EXPORT const struct bow_metadata *bow_call_metadata(const struct bow_call *call);

/**
 * Send `key` and `value` along before the first message. Both are copied.
 *
 * Thread:  any; the call's memory is the caller's
 * Returns: 0; -EINVAL for a key or value that the rules of <bowline/metadata.h> forbid; -EMSGSIZE
 *          when all of it would exceed BOW_LIMIT_HEADER_BYTES_MAX; -EALREADY for initial metadata
 *          after the first message; -ENOMEM
 *
 * A client may take less than that, as its max_header_bytes says. The call then cannot be answered
 * but with an error: replies, messages and finish give -EMSGSIZE, and the client
 * RESOURCE_EXHAUSTED, which says so. With an error of the handler's own the metadata is left out.
 */
BOW_EXPORT BOW_MUST_USE int bow_call_add_initial(struct bow_call *call, const char *key,
                                                 struct bow_slice value);
/** Send `key` and `value` along with the status. Thread and results as bow_call_add_initial(), but
 * at any time before the call is answered. */
BOW_EXPORT BOW_MUST_USE int bow_call_add_trailing(struct bow_call *call, const char *key,
                                                  struct bow_slice value);

/**
 * Whether the call's messages are compressed from now on, instead of what the server's option
 * `compression` says: in an encoding that its client takes, whatever their size (as
 * BOW_COMPRESSION_ON). Turn it off for a reply in which a secret stands beside something that the
 * client chose.
 *
 * On a stream it may be said before each message. The encoding is named before the first one, if
 * the server's option compresses, or this function was called by then, be it with false.
 *
 * Thread:  any that holds the call
 * Returns: 0; -EALREADY when a stream has sent its first message without naming an encoding
 */
BOW_EXPORT BOW_MUST_USE int bow_call_compress(struct bow_call *call, bool on);

/**
 * Whether the request came compressed; of a stream, the message that is being given to its
 * on_message, or was given last.
 *
 * Thread:  any that holds the call; of a stream, in its events
 */
BOW_EXPORT bool bow_call_request_was_compressed(const struct bow_call *call);

/**
 * Answer with OK and `reply`, which is encoded before this returns.
 *
 * Thread:  any; the call is the caller's until then
 * Owns:    takes `call`, also on failure; borrows `reply`
 * Returns: 0; -ECANCELED when the peer cancelled, the deadline passed or the
 *          connection was lost, and the reply was dropped; -EINVAL when `reply`
 *          is not of the method's type or cannot be encoded, or be JSON for a peer
 *          that asked for it (the peer gets INTERNAL that says why); -ENOMEM when memory ran out
 * (the peer gets RESOURCE_EXHAUSTED); -EMSGSIZE for initial metadata that the peer does not take
 * (likewise)
 */
BOW_EXPORT int bow_call_reply(struct bow_call *call, const ProtobufCMessage *reply);

/**
 * Answer with an error. `code` BOW_OK is sent as INTERNAL: an answer of a
 * unary call needs a message.
 *
 * Thread:  any
 * Owns:    takes `call`
 * Returns: 0, or -ECANCELED as bow_call_reply()
 */
BOW_EXPORT int bow_call_fail(struct bow_call *call, enum bow_code code, const char *format, ...)
    BOW_PRINTF(3, 4);

/** Answer with a whole status (details, retry_after, trailing metadata). Borrows `status`. Thread,
 * ownership and results otherwise as bow_call_fail(); or what bow_call_add_trailing() says of the
 * metadata, and the peer gets INTERNAL that says so. */
BOW_EXPORT int bow_call_fail_status(struct bow_call *call, const struct bow_status *status);

/**
 * Memory of the call, aligned to 16, not zeroed; it lives until the call is answered.
 *
 * Thread:  any; the call is the caller's
 * Returns: NULL when the call's cap or the context's ceiling is reached: any
 *          later reply then becomes RESOURCE_EXHAUSTED that names the cap, so
 *          a handler need not check before it replies
 */
BOW_EXPORT void *bow_call_alloc(struct bow_call *call, size_t size);

/**
 * The call's memory as an arena, to build messages in (<bowline/message.h>): the reply, for
 * instance.
 *
 * What fails there is remembered as by bow_call_alloc(), so that the reply then becomes
 * RESOURCE_EXHAUSTED, also for a `reply` that is NULL because it could not be allocated. On a
 * stream bow_call_send() then returns -ENOMEM.
 *
 * Thread:  any; the call is the caller's
 * Owns:    it is the call's, and goes with it
 */
BOW_EXPORT struct bow_arena *bow_call_arena(struct bow_call *call);

/** Print into the call's memory as printf() does. Thread and NULL as bow_call_alloc(). */
BOW_EXPORT char *bow_call_printf(struct bow_call *call, const char *format, ...) BOW_PRINTF(2, 3);

/** Copy a text into the call's memory. Thread and NULL as bow_call_alloc(). */
BOW_EXPORT char *bow_call_strdup(struct bow_call *call, const char *text);

/**
 * What the interceptor with `state_key` keeps of the call (<bowline/interceptor.h>): its own type,
 * behind an inline function of its own. It lives as long as the call; on_end of the interceptor
 * may have come before.
 *
 * Thread:  any that holds the call
 * Returns: NULL when the server has no such interceptor, or that has no state
 */
BOW_EXPORT void *bow_call_state(const struct bow_call *call, const void *state_key);

/** "/package.Service/Method". Lives as long as the call. Thread: any. */
BOW_EXPORT const char *bow_call_path(const struct bow_call *call);

/** The peer's address as text ("127.0.0.1:40312", "unix:"). Lives as long as the call. Thread: any.
 */
BOW_EXPORT const char *bow_call_peer(const struct bow_call *call);

/** When the call's deadline passes, on the clock of bow_loop_now(); BOW_NEVER for none. Thread:
 * any. */
BOW_EXPORT uint64_t bow_call_deadline(const struct bow_call *call);

/** Whether nobody waits for the answer any more: cancelled, expired or lost. Thread: any. */
BOW_EXPORT bool bow_call_is_cancelled(const struct bow_call *call);

/** The channel of the call's connection, to ask it more: bow_channel_peer_credentials() of a Unix
 * socket, bow_tls_of(). NULL once nobody waits for the answer. Thread: loop. */
BOW_EXPORT struct bow_channel *bow_call_channel(const struct bow_call *call);

/**
 * Who the peer was proved to be: the subject of its certificate, as "CN=alice,O=Example".
 *
 * Thread:  loop
 * Returns: 0; -ENODATA when it did not prove anything, or nobody waits any more; -ENOSPC when it
 *          does not fit
 */
BOW_EXPORT BOW_MUST_USE int bow_call_peer_subject(const struct bow_call *call, char *text,
                                                  size_t size);

/**
 * Which process is at the other end of a Unix socket, as the kernel knew when it connected.
 *
 * Thread:  any that holds the call
 * Owns:    fills `*ret_credentials` (<bowline/channel.h>)
 * Returns: 0; -ENOTSUP when the call came by another kind of socket
 */
BOW_EXPORT BOW_MUST_USE int bow_call_peer_credentials(const struct bow_call *call,
                                                      struct bow_peer_credentials *ret_credentials);

/** The loop of the call's connection. Thread: any. */
BOW_EXPORT struct bow_loop *bow_call_loop(const struct bow_call *call);

/** Told that nobody waits for the answer any more. Thread: loop. */
typedef void (*bow_call_cancel_fn)(struct bow_call *call, enum bow_code why, void *user);

/**
 * Be told once when nobody waits for the answer any more: BOW_CANCELLED,
 * BOW_DEADLINE_EXCEEDED or BOW_UNAVAILABLE (connection lost). The call still
 * has to be answered. `fn` runs on the call's loop, never inside this function, also when
 * the call had been cancelled before. Of a streaming call it comes together with on_closed.
 *
 * Thread:  loop
 */
BOW_EXPORT void bow_call_on_cancel(struct bow_call *call, bow_call_cancel_fn fn, void *user);

#ifdef __cplusplus
}
#endif
#endif
