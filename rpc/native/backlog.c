/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A server's backlog: what all streams of a connection wait with for a peer that does not take it.
 * Long before it is full the server stops to read or takes no more calls; what comes for it
 * all the same, from calls that were taken before, is dropped, and its call ends with an
 * error, which is small.
 */

#include "rpc/native/receive.h"
#include "rpc/native/send.h"

#include <bowline/limits.h>
#include <errno.h>

bool bow__native_backlog_is_full(const struct bow__native *session, size_t len)
{
    /* One message may be of any size. */
    return session->base.server && session->n_queued > 0 &&
           session->n_queued + len > BOW_LIMIT_QUEUED_REPLY_BYTES;
}

static struct bow_status reason(const struct bow__native *session, struct bow__text *text)
{
    bow__text_clear(text);
    bow__text_printf(text,
                     "the reply was dropped, for %zu bytes of others wait on this connection; "
                     "BOW_LIMIT_QUEUED_REPLY_BYTES (%zu)",
                     session->n_queued, BOW_LIMIT_QUEUED_REPLY_BYTES);
    return (struct bow_status){.code = BOW_RESOURCE_EXHAUSTED, .message = text->bytes};
}

int bow__native_backlog_finish(struct bow__native *session, struct bow__native_stream *stream)
{
    struct bow__text text;
    struct bow_status why = reason(session, &text);

    int rc = bow__native_put_status(session, stream->id, &why);
    session->out_of_memory |= rc < 0;
    bow__native_stream_end(session, stream);
    return rc;
}

int bow__native_backlog_drop(struct bow__native *session, struct bow__native_stream *stream,
                             uint32_t flags)
{
    if ((flags & BOW__SEND_END) != 0) {
        return bow__native_backlog_finish(session, stream);
    }
    /* The host goes on with a stream, so it has to hear of its end: not from inside what it does.
     */
    stream->overfull = true;
    bow__list_remove(&stream->send_link);
    bow__list_push_back(&session->overfull, &stream->send_link);
    return 0;
}

void bow__native_backlog_end_streams(struct bow__native *session)
{
    struct bow__link *link = bow__list_pop_front(&session->overfull);
    struct bow__text text;

    while (link != NULL) {
        struct bow__native_stream *stream =
            BOW__CONTAINER(link, struct bow__native_stream, send_link);
        struct bow_status why = reason(session, &text);
        (void)bow__native_refuse(session, stream, &why);
        link = bow__list_pop_front(&session->overfull);
    }
}
