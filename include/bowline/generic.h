/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_GENERIC_H
#define BOWLINE_GENERIC_H

/*
 * Calls whose messages nobody decodes: what proxies, gateways and recorders are made of. gRPC has
 * them as generic services and unknown-service handlers.
 *
 *     server   a call whose path no method has ──► the fallback handler ──► listen, send, finish
 *     client   bow_client_open_generic(path) ──► send, half_close; on_headers, on_message, …
 *
 * Whatever the method is, the call is a stream both ways here: of a unary method one message comes,
 * then the half-close; one goes back, then the status. Flow control, deadlines, cancelling,
 * metadata, statuses with their details and interceptors are those of every stream
 * (<bowline/call_stream.h>, <bowline/stream.h>), and so are the functions but the ones below.
 *
 * Messages are as an encoder gave them: already inflated, whatever encoding they travelled in, and
 * compressed anew as the connection they leave on says. So limits count what they count for every
 * call, interceptors see what they always see, and two peers that have no encoding in common can
 * talk through a gateway. A message that came in a block of its own is lent from there, not copied.
 *
 * A handler that hands a call on:
 *
 *     static void serve(struct bow_call *call, void *user)
 *     {
 *         bow_client_open_generic(client, bow_call_path(call), &options, &up, call, &stream);
 *         bow_call_listen(call, &down, stream);
 *     }
 *
 * examples/gateway has the whole of it.
 */

#include <bowline/call_stream.h>
#include <bowline/client.h>
#include <bowline/server.h>
#include <bowline/slice.h>
#include <bowline/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The server */

/** Of a call that a fallback handler has, for bow_call_listen(). Members that are NULL are not
 * called. */
struct bow_generic_call_events {
    /** A message. `bytes` are lent until this returns. */
    void (*on_message)(struct bow_call *call, struct bow_slice bytes, void *user);
    /** The client has sent its last one. */
    void (*on_half_close)(struct bow_call *call, void *user);
    void (*on_writable)(struct bow_call *call, void *user);
    /** The last event: nobody waits for the call any more, or it was answered. */
    void (*on_closed)(struct bow_call *call, const struct bow_status *status, void *user);
};

/** Enters a call of any path. It listens and answers, as the handler of a stream does. */
typedef void (*bow_generic_fn)(struct bow_call *call, void *user);

/** Names the fallback's calls for bow_server_limit_calls() and bow_server_bind(). */
#define BOW_FALLBACK_NAME "*"

/**
 * Have `handler` take the calls whose path no method of the server has; without one they are
 * refused with UNIMPLEMENTED.
 *
 * That holds for methods, too, that a service which was added does not have. Paths are those of
 * methods: "/service/method", in visible ASCII; others stay refused, for a program could not tell
 * where they end. The calls are counted as one method, "*", whatever their paths: a peer must not
 * choose how many counters there are. What limits, interceptors, the access log, traces and
 * bow_server_dump() say has the path itself.
 *
 * Over native and gRPC they are streams both ways. Over HTTP/1.1 (Connect, gRPC-Web) a call is as
 * its protocol has it, one direction after the other; a unary call of Connect takes the last
 * message that was sent before its status as its reply. JSON is refused (415), for it takes a
 * descriptor to read it, and so is Connect's GET (405).
 *
 * options.max_deadline_ns does not hold for them, as for no stream.
 *
 * Thread:  any, not concurrently; before start
 * Owns:    keeps `user` as long as the server
 * Returns: 0; -EINVAL without `handler`; -EALREADY when there is one; -EBUSY after start
 */
BOW_EXPORT BOW_MUST_USE int bow_server_set_fallback(struct bow_server *server,
                                                    bow_generic_fn handler, void *user);

/** Send one message, of so many bytes as they are, on a call that a fallback handler has. Thread
 * and results as bow_call_send(); -EINVAL for another call. */
BOW_EXPORT BOW_MUST_USE int bow_call_send_bytes(struct bow_call *call, struct bow_slice bytes);

/* The client */

/** Of a stream by bow_client_open_generic(). Members that are NULL are not called. */
struct bow_generic_stream_events {
    void (*on_headers)(struct bow_stream *stream, const struct bow_metadata *initial, void *user);
    /** A message. `bytes` are lent until this returns. */
    void (*on_message)(struct bow_stream *stream, struct bow_slice bytes, void *user);
    void (*on_writable)(struct bow_stream *stream, void *user);
    /** The last event. `result` has no reply: what came, came as messages. */
    void (*on_closed)(struct bow_stream *stream, struct bow_result *result, void *user);
};

/**
 * Begin a call of the method at `path`, whichever kind that is.
 *
 * It is counted with the others of the client's metrics, "*". As with every stream there is no
 * deadline unless `options` have one.
 *
 * Thread:  any; the creating thread when the client is confined
 * Owns:    borrows `path`; keeps `events` and `user` until on_closed has returned; gives
 *          `*ret_stream`, as bow_client_open()
 * Returns: 0; -EINVAL for a path that is not "/service/method" in visible ASCII, or without
 *          `events`; or as bow_client_open()
 */
BOW_EXPORT BOW_MUST_USE int bow_client_open_generic(struct bow_client *client, const char *path,
                                                    const struct bow_call_options *options,
                                                    const struct bow_generic_stream_events *events,
                                                    void *user, struct bow_stream **ret_stream);

/** Send one message, of so many bytes as they are, on a stream of bow_client_open_generic(). Thread
 * and results as bow_stream_send(); -EINVAL for another stream. */
BOW_EXPORT BOW_MUST_USE int bow_stream_send_bytes(struct bow_stream *stream,
                                                  struct bow_slice bytes);

#ifdef __cplusplus
}
#endif
#endif
