/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_RPC_HTTP1_TRANSCRIPT_H
#define BOWLINE_TESTS_RPC_HTTP1_TRANSCRIPT_H

/*
 * What a parser of HTTP/1.1 makes of bytes that come in pieces, as text: one line an event, what a
 * body's pieces have put together. As a channel does, it keeps what was not consumed and gives it
 * again.
 *
 *     GET /a?b host=h keep fields=Host:h|X:y
 *     body=hello
 *     end X:trailer
 *     400 more than one Host            once it refuses
 */

#include "rpc/http1/parser.h"

struct http1_transcript {
    struct bow__http1_parser parser;
    size_t n_bytes; /* of the text */
    bool in_body;
    char text[32768];
};

void http1_transcript_init(struct http1_transcript *transcript,
                           const struct bow__http1_limits *limits);

/** Take what is in `bytes`, as far as it goes. Returns how many bytes were consumed. */
size_t http1_transcript_feed(struct http1_transcript *transcript, struct bow_slice bytes);

/** Feed all of `bytes` up to and at each of the ends of pieces of `step` bytes. */
void http1_transcript_feed_steps(struct http1_transcript *transcript, struct bow_slice bytes,
                                 size_t step);

#endif
