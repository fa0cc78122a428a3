/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_HTTP1_PARSER_H
#define BOWLINE_RPC_HTTP1_PARSER_H

/*
 * Requests of HTTP/1.1 (RFC 9112), out of the bytes of a connection as they come: one request
 * behind the other, each
 *
 *     HEAD  BODY* END          BODY as often as bytes of it arrive; END with the trailers, if any
 *
 * The parser holds no bytes and allocates nothing. Who owns it keeps those that were not consumed
 * and gives them again, with more behind them; no byte is looked at twice for all that. It pulls:
 * who does not ask for the next event has a pipeline that waits, be it because the request before
 * is not answered yet.
 *
 *     struct bow__http1_event event;
 *     while ((n = bow__http1_next(&parser, bytes, &event)) >= 0) {
 *         ... event.kind ...
 *         bytes.data += n, bytes.len -= n;
 *     }
 *     n == -EAGAIN: go on with more bytes; -EBADMSG: answer parser.error.status, and close
 *
 * What the RFC lets a server read in more than one way is refused, for a proxy before it may have
 * read it in the other (request smuggling): bare LF and CR, blanks before a colon, folded lines,
 * two lengths, sizes of chunks that are no plain number, NUL.
 */

#include "rpc/http1/request.h"

#include <sys/types.h>

/** What a request may be; BOW__HTTP1_LIMITS_INIT for the defaults. */
struct bow__http1_limits {
    size_t max_line_bytes;    /* of the request line: 414 */
    size_t max_head_bytes;    /* of a head, and of trailers: 431 */
    uint64_t max_body_bytes;  /* of a body, without what frames its chunks: 413 */
    size_t max_framing_bytes; /* extensions of a body's chunks, all together: 400 */
};

#define BOW__HTTP1_LIMITS_INIT                                                                     \
    {                                                                                              \
        .max_line_bytes = BOW_LIMIT_HTTP1_REQUEST_LINE_BYTES,                                      \
        .max_head_bytes = BOW_LIMIT_HEADER_BYTES, .max_body_bytes = BOW_LIMIT_MESSAGE_BYTES,       \
        .max_framing_bytes = BOW_LIMIT_HTTP1_CHUNK_EXTENSION_BYTES,                                \
    }

enum bow__http1_kind {
    BOW__HTTP1_FRAMING, /* nothing to see: a chunk's line, an empty line before a request */
    BOW__HTTP1_HEAD,
    BOW__HTTP1_BODY,
    BOW__HTTP1_END,
};

/** What has arrived. It refers to the bytes that were given, and is good as long as they are. */
struct bow__http1_event {
    enum bow__http1_kind kind;
    struct bow_slice body; /* BODY: at least one byte */
    /** HEAD: all of it. END: in `fields` the trailers, which are not to be taken for fields of the
     * head (RFC 9112 section 7.1.2); the rest means nothing. */
    struct bow__http1_request request;
};

enum bow__http1_state {
    BOW__HTTP1_IN_HEAD,
    BOW__HTTP1_IN_LENGTH,
    BOW__HTTP1_IN_CHUNK_SIZE,
    BOW__HTTP1_IN_CHUNK,
    BOW__HTTP1_BEHIND_CHUNK,
    BOW__HTTP1_IN_TRAILERS,
    BOW__HTTP1_AT_END,
    BOW__HTTP1_BROKEN,
};

struct bow__http1_parser {
    struct bow__http1_limits limits;
    enum bow__http1_state state;
    size_t n_scanned;              /* of what is not consumed yet: looked through for its end */
    size_t line_start;             /* where its last line begins */
    uint64_t n_left;               /* bytes of the body or of the chunk that are to come */
    uint64_t n_body;               /* bytes of the body so far, of a chunked one */
    size_t n_framing;              /* bytes of chunk extensions so far */
    bool skipped_line;             /* an empty line was skipped before this request */
    bool is_begun;                 /* bytes of a request have come that has not ended */
    struct bow__http1_error error; /* once it is broken */
};

/** `limits` NULL means the defaults. */
void bow__http1_parser_init(struct bow__http1_parser *parser,
                            const struct bow__http1_limits *limits);

/**
 * Take the next event off the front of `bytes`, which begin with the first that was not consumed.
 *
 * Returns how many bytes it consumed (0 is possible: the END of a request without a body), -EAGAIN
 * when more are needed (nothing was consumed), or -EBADMSG, from then on always, with
 * `parser->error`: answer it and close, for where the next request begins is not known.
 */
ssize_t bow__http1_next(struct bow__http1_parser *parser, struct bow_slice bytes,
                        struct bow__http1_event *ret_event);

/** Another size for the bodies to come: by the head's path, after HEAD and before the next event. A
 * Content-Length above it is refused then. Returns 0, or -EBADMSG with `parser->error`. */
int bow__http1_parser_limit_body(struct bow__http1_parser *parser, uint64_t max_bytes);

/** Nothing of a request has come that has not ended: where a connection may end without loss. */
static inline bool bow__http1_parser_is_idle(const struct bow__http1_parser *parser)
{
    return !parser->is_begun;
}

#endif
