/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Which encodings of messages a side decodes: grpc-accept-encoding, a list of names; and what is
 * said of others.
 */

#include "rpc/core/compression/compress.h"
#include "rpc/http2/grpc_text.h"
#include "rpc/http2/internal.h"

#include <string.h>

/* Of a name that the peer chose. */
#define SHOWN_BYTES 32

void bow__http2_accept_init(struct bow__http2_session *session, uint32_t encodings)
{
    size_t n = 0;

    session->encodings = (encodings & bow__encodings_built()) | 1u << BOW__ENCODING_IDENTITY;
    session->peer_encodings = 1u << BOW__ENCODING_IDENTITY;
    for (unsigned i = 0; i < BOW__N_ENCODINGS; i++) {
        const char *name = bow__encoding_name((enum bow__encoding)i);
        if ((session->encodings >> i & 1u) == 0) {
            continue;
        }
        if (n > 0) {
            session->accept_encoding[n++] = ',';
        }
        memcpy(session->accept_encoding + n, name, strlen(name));
        n += strlen(name);
    }
    session->accept_encoding[n] = '\0';
}

uint32_t bow__http2_accept_read(struct bow_slice list)
{
    uint32_t set = 0;

    while (list.len > 0) {
        const uint8_t *comma = memchr(list.data, ',', list.len);
        size_t len = comma != NULL ? (size_t)(comma - list.data) : list.len;
        enum bow__encoding encoding =
            bow__encoding_of(bow__grpc_trim((struct bow_slice){list.data, len}));
        if (encoding != BOW__ENCODING_UNKNOWN) {
            set |= 1u << encoding;
        }
        len += comma != NULL;
        list = (struct bow_slice){list.data + len, list.len - len};
    }
    return set;
}

static struct bow_slice name_of(const struct bow__http2_header *header)
{
    if (header->encoding != BOW__ENCODING_UNKNOWN) {
        const char *name = bow__encoding_name(header->encoding);
        return (struct bow_slice){(const uint8_t *)name, strlen(name)};
    }
    nghttp2_vec vec = nghttp2_rcbuf_get_buf(header->unknown_encoding);
    return (struct bow_slice){vec.base, vec.len};
}

/* Of a server's answers gRPC says that they are INTERNAL errors then. */
void bow__http2_refuse_encoding(struct bow__http2_session *session,
                                struct bow__http2_stream *stream)
{
    struct bow__text name;

    bow__text_clear(&name);
    bow__text_escape(&name, name_of(&stream->header), SHOWN_BYTES);
    bow__http2_stream_refuse(
        session, stream, session->base.server ? BOW_UNIMPLEMENTED : BOW_INTERNAL,
        "message is compressed with grpc-encoding \"%s\", which is not supported (supported: %s)",
        name.bytes, session->accept_encoding);
}

uint32_t bow__http2_encodings(const struct bow__session *base, uint64_t key)
{
    const struct bow__http2_session *session = (const struct bow__http2_session *)base;
    uint32_t identity = 1u << BOW__ENCODING_IDENTITY;

    if (!base->server) {
        return session->peer_encodings;
    }
    const struct bow__http2_stream *stream = bow__http2_stream_find(session, key);
    return identity | (stream != NULL ? stream->header.accepts : 0);
}
