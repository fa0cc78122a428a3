/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A server's backlog: what all streams of a connection wait with for a peer that does not take it.
 * Long before it is full the server stops to read or takes no more calls; what comes for it
 * all the same, from calls that were taken before, is dropped, and its call ends with an
 * error, which is small.
 */

#include "rpc/http2/internal.h"

bool bow__http2_backlog_is_full(const struct bow__http2_session *session, size_t len)
{
    /* One message may be of any size. */
    return session->base.server && session->n_queued > 0 &&
           session->n_queued + len > BOW_LIMIT_QUEUED_REPLY_BYTES;
}

struct bow_status bow__http2_backlog_reason(const struct bow__http2_session *session,
                                            struct bow__text *text)
{
    bow__text_clear(text);
    bow__text_printf(text,
                     "the reply was dropped, for %zu bytes of others wait on this connection; "
                     "BOW_LIMIT_QUEUED_REPLY_BYTES (%zu)",
                     session->n_queued, BOW_LIMIT_QUEUED_REPLY_BYTES);
    return (struct bow_status){.code = BOW_RESOURCE_EXHAUSTED, .message = text->bytes};
}

int bow__http2_backlog_drop(struct bow__http2_session *session, struct bow__http2_stream *stream,
                            uint32_t flags)
{
    struct bow__text text;

    if ((flags & BOW__SEND_END) != 0) {
        struct bow_status why = bow__http2_backlog_reason(session, &text);
        return bow__http2_finish(&session->base, stream->key, &why);
    }
    /* The host goes on with a stream, so it has to hear of its end: not from inside what it does.
     */
    stream->overfull = true;
    bow__list_remove(&stream->overfull_link);
    bow__list_push_back(&session->overfull, &stream->overfull_link);
    return 0;
}

void bow__http2_backlog_end_streams(struct bow__http2_session *session)
{
    struct bow__link *link = NULL;
    struct bow__text text;

    while ((link = bow__list_pop_front(&session->overfull)) != NULL) {
        struct bow__http2_stream *stream =
            BOW__CONTAINER(link, struct bow__http2_stream, overfull_link);
        struct bow_status why = bow__http2_backlog_reason(session, &text);
        bow__http2_stream_refuse(session, stream, why.code, "%s", why.message);
    }
}
