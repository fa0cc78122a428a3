/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_NATIVE_STREAM_H
#define BOWLINE_RPC_NATIVE_STREAM_H

/*
 * The streams of a connection and how they end.
 */

#include "rpc/native/state.h"

/** Open stream `id`. NULL: no memory. */
struct bow__native_stream *bow__native_stream_new(struct bow__native *session, uint64_t id,
                                                  void *user);
/** The open stream, or NULL, where it is not the last one. */
struct bow__native_stream *bow__native_stream_search(struct bow__native *session, uint64_t id);
/** The open stream, or NULL. A call's events and operations come one after the other. */
static inline struct bow__native_stream *bow__native_stream_find(struct bow__native *session,
                                                                 uint64_t id)
{
    struct bow__native_stream *last = session->last;

    return last != NULL && last->id == id ? last : bow__native_stream_search(session, id);
}
/** The same for one look, which does not make it the last one. */
const struct bow__native_stream *bow__native_stream_peek(const struct bow__native *session,
                                                         uint64_t id);
/** A call ends here before its peer has said its last word; `overdue_ns` is BOW_NEVER when it has
 * no deadline. */
void bow__native_expect_late(struct bow__native *session, uint64_t overdue_ns);
/** End it. Its memory stays until the frame being taken is done with. */
void bow__native_stream_end(struct bow__native *session, struct bow__native_stream *stream);
void bow__native_streams_recycle(struct bow__native *session);
/** Let go of structs kept for reuse. */
void bow__native_streams_trim(struct bow__native *session);
/** Append a message, or status, of `n` bytes. Takes the reference to `block`, which may be NULL, on
 * success. NULL: no memory. */
struct bow__native_outgoing *bow__native_outgoing_push(struct bow__native *session,
                                                       struct bow__native_stream *stream,
                                                       struct bow__block *block, size_t n);
void bow__native_outgoing_pop(struct bow__native *session, struct bow__native_stream *stream);

/** What is still to come of the message that is being assembled, as far as it was announced. */
static inline size_t bow__native_stream_missing(const struct bow__native_stream *stream)
{
    return stream->n_announced > stream->n_arrived ? stream->n_announced - stream->n_arrived : 0;
}
/** The message being assembled counts no longer as in flight in the server. */
void bow__native_stream_give_reserved(struct bow__native *session,
                                      struct bow__native_stream *stream);

/** End a call that the session itself refuses: the peer and the host are told. Returns 0, or what
 * breaks. */
int bow__native_refuse(struct bow__native *session, struct bow__native_stream *stream,
                       const struct bow_status *why);
/** As refuse(), for a call the host does not know. */
int bow__native_refuse_id(struct bow__native *session, uint64_t id, const struct bow_status *why);
/** Server: end a call without an answer; the host is told unless it has answered. */
void bow__native_end_with_reset(struct bow__native *session, struct bow__native_stream *stream,
                                const struct bow_status *why);

#endif
