/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_INTERCEPTOR_H
#define BOWLINE_INTERCEPTOR_H

/*
 * Interceptors: what every call passes on its way, on a server or on a client, whatever
 * its kind and protocol. They let calls in or refuse them, add metadata, and see how it ends.
 *
 *     registered        a        b        c
 *     on_start          a  ───►  b  ───►  c  ───►  the handler; or the connection
 *     on_message        a  ───►  b  ───►  c        received by a server, sent by a client
 *                       a  ◄───  b  ◄───  c        sent by a server, received by a client
 *     on_end            a  ◄───  b  ◄───  c        those whose on_start has begun, once each
 *
 * An interceptor whose on_start does nothing lets the call go on. It may refuse it instead: then
 * no handler runs, or nothing is sent. Or it holds it, and says later whether it
 * proceeds:
 *
 *     on_start ──► hold ──► (loop) ──► proceed or refuse
 *                    └────► on_end: the call was cancelled, its deadline passed, its
 *                           connection was lost. It is not held any more.
 *
 * While a call is held its messages wait, and their credit is withheld: of what its client
 * sends the server keeps at most the stream's window and one message; a sender on the client
 * is asked to stop at BOW_STREAM_WRITABLE_BYTES. The deadline goes on, and a cancel ends the call
 * at once. A client's held calls are bounded by max_queued_calls.
 *
 * Everything happens on the loop of the call, and each function here is for that thread. A
 * client's on_start may run inside the function that starts the call; completions never do.
 * What an interceptor returns or is given is borrowed until its callback returns, but for
 * the struct bow_interception, which lasts until its on_end has returned, and its state.
 *
 * The state lasts as long as the call, and handlers may read it: who calls, a request's id, a
 * span. They find it by the interceptor's state_key:
 *
 *     extern const char caller_key[];                     in the interceptor's header
 *     static inline const struct caller *caller_of(const struct bow_call *call)
 *     {
 *         return bow_call_state(call, caller_key);        NULL: no such interceptor
 *     }
 *
 * A handler may hold its call, on another thread too, after on_end was told of a cancel or the
 * deadline. So what handlers read is within the state or from bow_interception_alloc(), is
 * written in on_start or while the call is held, and is left alone from then on.
 *
 * A server's calls that never come to be one pass nobody: to unknown methods, after their deadline,
 * refused by a limit, for want of memory or because the server is draining, or streams both ways
 * over HTTP/1.1. Interceptors are told with on_refused, and the metrics count them
 * (<bowline/metrics.h>), but for those of a drain, which their clients make elsewhere, those whose
 * header block is too large, and those of HTTP/1.1. What HTTP alone refuses, as a method that is
 * neither GET nor POST, is no call.
 */

#include <bowline/metadata.h>
#include <bowline/status.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_call;
struct bow_loop;
struct bow_method;
struct bow_server;

/** What an interceptor may ask for as its state_bytes. */
#define BOW_INTERCEPTOR_STATE_BYTES ((size_t)4 << 10)

/** One interceptor's view of one call. */
struct bow_interception;

/** A message that passes. */
struct bow_intercepted_message {
    bool sent;              /* by this side; else received */
    bool compressed;        /* `bytes` are still: what a blocking receive will inflate */
    struct bow_slice bytes; /* encoded; the types are in bow_interception_method() */
};

/** How a call ended. Bytes are those of messages, encoded, and before compression. */
struct bow_intercepted_end {
    const struct bow_status *status; /* with the trailing metadata */
    struct bow_metadata initial;     /* client: what the server sent first */
    uint64_t messages_received;
    uint64_t messages_sent;
    uint64_t bytes_received;
    uint64_t bytes_sent;
    uint64_t elapsed_ns;       /* since the call arrived, or was started */
    uint64_t deadline_left_ns; /* 0: it has passed; BOW_NEVER: there is none */
    bool refused;              /* by an interceptor, before the call went on */
};

/** A call that a server refused before it began. Borrowed, with all that is in it. */
struct bow_refused_call {
    struct bow_slice path; /* as the client sent it, maybe any bytes; empty: nobody has read it */
    const char *peer;
    const char *protocol;            /* "native", "grpc", "connect", "grpc-web" */
    const struct bow_status *status; /* what the client is told */
    const char *limit; /* the name of what refused it, as "max_server_calls"; or "unknown_method",
                          "expired", "draining", "memory", "http_version" */
    struct bow_metadata metadata; /* of the request; empty: nobody has read it */
    struct bow_loop *loop;
};

/** An interceptor; begin with BOW_INTERCEPTOR_INIT. Members that are NULL are not called. */
struct bow_interceptor {
    size_t size;        /* sizeof this struct, set by the INIT */
    const char *name;   /* for messages; copied, cut to 31 bytes */
    size_t state_bytes; /* memory for each call, zeroed, aligned to 16: see
                           bow_interception_state(); at most BOW_INTERCEPTOR_STATE_BYTES */
    /** A call begins. */
    void (*on_start)(struct bow_interception *at, void *user);
    /** A message is about to be delivered, or sent. */
    void (*on_message)(struct bow_interception *at, const struct bow_intercepted_message *message,
                       void *user);
    /** The call has ended; `at` is gone afterwards. */
    void (*on_end)(struct bow_interception *at, const struct bow_intercepted_end *end, void *user);
    /** The server or client has gone: nothing is called any more. Thread: any. */
    void (*release)(void *user);
    void *user;            /* kept until release */
    const void *state_key; /* an address by which handlers find the state, see bow_call_state(), and
                              other interceptors (bow_interception_find()); no two of a server or
                              client have the same; NULL: they do not */
    /** Server: a call was refused before it began. Whoever writes or allocates for each is for
     * bounding that: a peer has as many refused as it likes. */
    void (*on_refused)(const struct bow_refused_call *call, void *user);
    /** Client: the call is sent once more, for no handler has seen it or its policy says so
     * (<bowline/retry.h>). `status`, borrowed, is what came of the attempt before; OK: none has
     * ended, and another is sent beside it. */
    void (*on_retry)(struct bow_interception *at, const struct bow_status *status, void *user);
};

#define BOW_INTERCEPTOR_INIT BOW__INIT(struct bow_interceptor, )

/**
 * Have the calls of `server` pass `interceptor`, after those that were registered before. Before
 * start only. (A client is given its interceptors in its options.)
 *
 * Thread:  any, not concurrently
 * Owns:    copies `*interceptor`; takes its `user` on success: release is called once
 * Returns: 0; -ENOMEM; -EBUSY after start; -EINVAL for an unknown size, too many
 *          state_bytes, no name, or the state_key of another one; bow_server_error() says which
 */
BOW_EXPORT BOW_MUST_USE int bow_server_intercept(struct bow_server *server,
                                                 const struct bow_interceptor *interceptor);

/* What the call is. */

/** The interceptor's memory of this call; NULL when it asked for none. */
BOW_EXPORT void *bow_interception_state(const struct bow_interception *at);
/**
 * Memory that lasts as long as the state does, aligned to 16, not zeroed. In on_start, or while the
 * interceptor holds the call.
 *
 * Returns: NULL when the call's cap or the context's ceiling is reached, or at another time
 */
BOW_EXPORT void *bow_interception_alloc(struct bow_interception *at, size_t size);
/** What the interceptor with `state_key`, another one, keeps of the call. Also in on_end, whether
 * or not that one has been told of it. Returns: NULL when there is none, or it has no state. */
BOW_EXPORT void *bow_interception_find(const struct bow_interception *at, const void *state_key);
/** The method that is called: <bowline/service.h> says what is in it. Lives for ever. */
BOW_EXPORT const struct bow_method *bow_interception_method(const struct bow_interception *at);
/** On a server the client's address; on a client its target, of a list: the server that the call
 * has gone to, or the first. */
BOW_EXPORT const char *bow_interception_peer(const struct bow_interception *at);
/** "native", "grpc", "connect" or "grpc-web". */
BOW_EXPORT const char *bow_interception_protocol(const struct bow_interception *at);
/** Whether the connection is secured, or will be. */
BOW_EXPORT bool bow_interception_is_secure(const struct bow_interception *at);
/** When the call's deadline passes, on the clock of bow_loop_now(); BOW_NEVER for none. */
BOW_EXPORT uint64_t bow_interception_deadline(const struct bow_interception *at);
/** The loop that all of the call happens on. */
BOW_EXPORT struct bow_loop *bow_interception_loop(const struct bow_interception *at);
/** The server's call, to ask it more (bow_call_peer_subject() say), never to answer it; NULL on a
 * client. */
BOW_EXPORT const struct bow_call *bow_interception_call(const struct bow_interception *at);
/** The metadata of the request: received by a server, to be sent by a client. */
BOW_EXPORT struct bow_metadata bow_interception_metadata(const struct bow_interception *at);

/* What is to become of it. */

/**
 * Client: send `key` and `value` along with the request. Both are copied. In on_start, or while
 * the interceptor holds the call.
 *
 * Returns: 0; -EINVAL on a server, for a key or value that the rules of <bowline/metadata.h>
 *          forbid, or at another time; -EMSGSIZE above BOW_LIMIT_HEADER_BYTES_MAX; -ENOMEM
 */
BOW_EXPORT BOW_MUST_USE int bow_interception_add_request(struct bow_interception *at,
                                                         const char *key, struct bow_slice value);
/** The same in place of all that the request has of `key`, whoever brought it; with data NULL the
 * request has none of it then. */
BOW_EXPORT BOW_MUST_USE int bow_interception_set_request(struct bow_interception *at,
                                                         const char *key, struct bow_slice value);
/** Server: send `key` and `value` along before the first message. Otherwise as
 * bow_interception_add_request(). */
BOW_EXPORT BOW_MUST_USE int bow_interception_add_initial(struct bow_interception *at,
                                                         const char *key, struct bow_slice value);
/** Server: send `key` and `value` along with the status, also one of refusal. Otherwise as
 * bow_interception_add_request(). */
BOW_EXPORT BOW_MUST_USE int bow_interception_add_trailing(struct bow_interception *at,
                                                          const char *key, struct bow_slice value);

/**
 * Server: have the calls that are made for this one (`parent` of <bowline/client.h>) carry `trace`
 * as their trace context, in place of the one that came with it: entries of the keys traceparent
 * and tracestate. In on_start, or while the interceptor holds the call.
 *
 * Owns:    keeps `trace` and all in it, which lies in the state or in bow_interception_alloc()
 * Returns: 0; -EINVAL on a client, or at another time
 */
BOW_EXPORT int bow_interception_set_trace(struct bow_interception *at,
                                          const struct bow_metadata *trace);

/** In on_start: keep the call from going on until bow_interception_proceed() or
 * bow_interception_refuse(), or its end. Returns: 0; -EINVAL at another time. */
BOW_EXPORT BOW_MUST_USE int bow_interception_hold(struct bow_interception *at);

/** Let a held call go on, later in this turn of the loop. Returns: 0; -EINVAL when the
 * interceptor does not hold it (any more). */
BOW_EXPORT int bow_interception_proceed(struct bow_interception *at);

/**
 * End the call with an error: in on_start, while the interceptor holds it, or in on_message of a
 * received message, which is not delivered then. on_end comes afterwards, never inside this.
 * `code` BOW_OK is sent as INTERNAL.
 *
 * Returns: 0; -EINVAL at another time
 */
BOW_EXPORT int bow_interception_refuse(struct bow_interception *at, enum bow_code code,
                                       const char *format, ...) BOW_PRINTF(3, 4);
/** The same with a whole status (borrowed), of which on_message takes code and message alone. */
BOW_EXPORT int bow_interception_refuse_status(struct bow_interception *at,
                                              const struct bow_status *status);

#ifdef __cplusplus
}
#endif
#endif
