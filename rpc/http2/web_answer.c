/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Answers to calls that are not gRPC's own: what rpc/web/ says of them goes into nghttp2 and the
 * stream's queue. Their end is part of the body, or of the head before it, and no trailers of
 * HTTP's, which browsers do not show.
 */

#include "rpc/http2/internal.h"
#include "rpc/web/answer.h"

#include <errno.h>

/* Takes the reference to the block, if it succeeds. */
static int push(struct bow__http2_session *session, struct bow__http2_stream *stream,
                struct bow__http2_outgoing *what, const uint8_t *prefix, uint8_t n_prefix)
{
    for (size_t i = 0; i < n_prefix; i++) {
        what->prefix[i] = prefix[i];
    }
    what->n_prefix_framed = (uint8_t)(sizeof(what->prefix) - n_prefix);
    if (n_prefix == 0 && what->len == 0) {
        bow__block_unref(what->block);
        return 0;
    }
    return bow__http2_queue_push(session, stream, what);
}

/* What cannot be queued the caller lets go of. */
static int push_body(struct bow__http2_session *session, struct bow__http2_stream *stream,
                     struct bow__web_output *output)
{
    struct bow__http2_outgoing body = {
        .block = output->block, .offset = output->offset, .len = output->len};
    struct bow__http2_outgoing tail = {.block = output->tail, .len = output->n_tail};

    if (stream->web->is_head) {
        bow__web_output_fini(output);
        return 0;
    }
    if (output->block != NULL) {
        int rc = push(session, stream, &body, output->prefix, output->n_prefix);
        if (rc < 0) {
            return rc;
        }
        output->block = NULL;
    }
    if (output->tail != NULL) {
        int rc = push(session, stream, &tail, NULL, 0);
        if (rc < 0) {
            return rc;
        }
        output->tail = NULL;
    }
    return 0;
}

static int submit_head(struct bow__http2_session *session, struct bow__http2_stream *stream,
                       const struct bow__web_output *output)
{
    bool has_body = stream->n_queued > 0 || !output->is_last;

    return bow__http2_submit_fields(session, stream, output->http_status, output->fields,
                                    output->n_fields, has_body);
}

static int put(struct bow__http2_session *session, struct bow__http2_stream *stream,
               struct bow__web_output *output)
{
    int rc = push_body(session, stream, output);

    if (rc == 0 && output->http_status != NULL) {
        rc = submit_head(session, stream, output);
    }
    if (rc < 0) {
        bow__web_output_fini(output);
        return rc;
    }
    if (output->is_last) {
        bow__http2_end_local(session, stream);
    }
    bow__http2_resume(session, stream);
    return 0;
}

int bow__http2_web_respond(struct bow__http2_session *session, struct bow__http2_stream *stream,
                           const struct bow_metadata *metadata, enum bow__encoding encoding)
{
    struct bow__web_output output;

    int rc = bow__web_respond(stream->web, metadata, encoding, &output);
    return rc == 0 ? put(session, stream, &output) : rc;
}

int bow__http2_web_send(struct bow__http2_session *session, struct bow__http2_stream *stream,
                        uint32_t flags, struct bow__block *block, size_t offset, size_t len)
{
    struct bow__web_output output;

    int rc = bow__web_send(stream->web, flags, block, offset, len, &output, &session->base.failure);
    if (rc < 0) {
        return rc;
    }
    /* The block is taken, and the answer may be half said. */
    if (put(session, stream, &output) < 0) {
        bow__http2_stream_reset(session, stream, NGHTTP2_ENHANCE_YOUR_CALM);
    }
    return 0;
}

int bow__http2_web_end(struct bow__http2_session *session, struct bow__http2_stream *stream,
                       const struct bow_status *status)
{
    struct bow__web_output output;
    struct bow_status sent = *status;

    if (bow__http2_fields_bytes(&sent.metadata) > bow__http2_header_room(session) ||
        !bow__http2_fits_values(&sent.metadata)) {
        sent.metadata = (struct bow_metadata)BOW_METADATA_INIT;
    }
    int rc = bow__web_end(stream->web, &sent, &output);
    return rc == 0 ? put(session, stream, &output) : rc;
}

int bow__http2_web_refuse(struct bow__http2_session *session, struct bow__http2_stream *stream)
{
    struct bow__web_output output;

    int rc = bow__web_refuse(stream->web, &output);
    return rc == 0 ? put(session, stream, &output) : rc;
}
