/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_HTTP1_RESPONSE_H
#define BOWLINE_RPC_HTTP1_RESPONSE_H

/*
 * Responses of HTTP/1.1 (RFC 9112), written into memory of the caller:
 *
 *     begin  field*  (length | chunked | nothing)  end_head       the head
 *     the body's bytes, by the caller                             with a length
 *     chunk, the bytes, chunk_end  …  last_chunk field* end       chunked
 *
 * What was asked decides what may be answered: HEAD has no body, HTTP/1.0 no chunks, and a
 * connection that does not go on says so. A writer that has failed stays so: the calls need not be
 * looked at one by one. Knows no sockets.
 */

#include "rpc/http1/request.h"

struct bow__http1_writer {
    uint8_t *bytes;
    size_t size;
    size_t len;
    int error; /* 0; -ENOBUFS: more than `size`; -EINVAL: a name or value that would split the head
                */
};

/** How the body goes, as the head has said. */
enum bow__http1_framing {
    BOW__HTTP1_SENDS_NOTHING, /* HEAD, 1xx, 204, 304: a body that is there is not sent */
    BOW__HTTP1_SENDS_LENGTH,
    BOW__HTTP1_SENDS_CHUNKS,
    BOW__HTTP1_SENDS_TO_CLOSE, /* HTTP/1.0: the end of the connection ends it */
};

/** What a response needs of its request; the request itself may be gone by then. */
struct bow__http1_asked {
    bool is_head;    /* the method is HEAD */
    unsigned minor;  /* of its version */
    bool keep_alive; /* set it to false to close behind the response */
};

struct bow__http1_asked bow__http1_asked_of(const struct bow__http1_request *request);

/** What is known of a request that could not be read: answer it and close. */
static inline struct bow__http1_asked bow__http1_asked_of_nothing(void)
{
    return (struct bow__http1_asked){.minor = 1};
}

/** Write into `size` bytes of `bytes`, which stay the caller's. */
void bow__http1_writer_init(struct bow__http1_writer *writer, void *bytes, size_t size);

/** The status line. An unknown status has an empty reason, which is allowed (section 4). */
void bow__http1_write_status(struct bow__http1_writer *writer, int status);

/** A field of the head or of the trailers. */
void bow__http1_write_field(struct bow__http1_writer *writer, const char *name, const char *value);
void bow__http1_write_field_slice(struct bow__http1_writer *writer, struct bow_slice name,
                                  struct bow_slice value);

/**
 * End the head of a response with `status` whose body has `length` bytes. What is sent of the body
 * is what the returned value says.
 */
enum bow__http1_framing bow__http1_end_head(struct bow__http1_writer *writer, int status,
                                            const struct bow__http1_asked *asked, uint64_t length);

/** The same of a body whose length is not known yet: in chunks, or to the connection's end, which
 * makes `asked->keep_alive` false. */
enum bow__http1_framing bow__http1_end_head_open(struct bow__http1_writer *writer, int status,
                                                 struct bow__http1_asked *asked);

/** Before `n_bytes` of the body, at least one; behind them comes CRLF. */
void bow__http1_write_chunk(struct bow__http1_writer *writer, size_t n_bytes);
void bow__http1_write_chunk_end(struct bow__http1_writer *writer);

/** Behind the last chunk: then trailers as fields, then bow__http1_write_end(). */
void bow__http1_write_last_chunk(struct bow__http1_writer *writer);
void bow__http1_write_end(struct bow__http1_writer *writer);

/** 100 (Continue), for who expects it before a body. Constant. */
struct bow_slice bow__http1_continue(void);

#endif
