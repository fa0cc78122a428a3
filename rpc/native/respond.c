/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What precedes the messages of an answer: RESPONSE, when there is something to say.
 * An encoding alone is held back until it is known whether the one reply travels
 * inside its STATUS, whose header names it as well.
 */

#include "rpc/core/metadata.h"
#include "rpc/native/send.h"

#include <assert.h>
#include <bowline/limits.h>
#include <errno.h>

static int put_response(struct bow__native *session, struct bow__native_stream *stream,
                        const struct bow__header_response *header)
{
    struct bow__frame frame = {
        .length = (uint32_t)bow__header_response_size(header),
        .type = BOW__FRAME_RESPONSE,
        .stream = stream->id,
    };
    size_t n = BOW__FRAME_HEADER_BYTES + frame.length;
    size_t cap = 0;

    bow__native_drop_room(session);
    uint8_t *at = bow__outbuf_reserve(&session->out, n, &cap);
    if (at == NULL) {
        return -ENOMEM;
    }
    bow__frame_encode(at, &frame);
    bow__header_response_encode(at + BOW__FRAME_HEADER_BYTES, header);
    bow__outbuf_commit(&session->out, n);
    stream->response_due = false;
    return 0;
}

static struct bow_slice encoding_name(const struct bow__native_stream *stream)
{
    return bow__header_encoding_name((enum bow__encoding)stream->out_encoding);
}

int bow__native_respond(struct bow__session *base, uint64_t key,
                        const struct bow_metadata *metadata, enum bow__encoding encoding)
{
    struct bow__native *session = bow__native_of(base);
    struct bow__native_stream *stream = bow__native_stream_find(session, key);
    struct bow__header_response header = {
        .metadata = *metadata,
        .encoding = bow__header_encoding_name(encoding),
    };

    if (stream == NULL || stream->out_ended) {
        return -ENOENT;
    }
    assert(base->server && stream->queue == NULL);
    if (bow__metadata_bytes(metadata) > BOW_LIMIT_HEADER_BYTES ||
        bow__header_response_size(&header) > BOW_LIMIT_HEADER_BYTES) {
        return -EMSGSIZE;
    }
    int rc = metadata->n > 0 ? put_response(session, stream, &header) : 0;
    if (rc < 0) {
        return rc;
    }
    stream->out_encoding = (uint8_t)encoding;
    stream->response_due = metadata->n == 0 && encoding != BOW__ENCODING_IDENTITY;
    return 0;
}

int bow__native_put_due_response(struct bow__native *session, struct bow__native_stream *stream)
{
    struct bow__header_response header = {.encoding = encoding_name(stream)};

    return put_response(session, stream, &header);
}

size_t bow__native_due_block(const struct bow__native_stream *stream, uint8_t *to)
{
    struct bow__header_status status = {.encoding = encoding_name(stream)};

    size_t n = bow__header_status_size(&status);
    *to = (uint8_t)n;
    bow__header_status_encode(to + 1, &status);
    return n + 1;
}
