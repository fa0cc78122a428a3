/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_HTTP1_REQUEST_H
#define BOWLINE_RPC_HTTP1_REQUEST_H

/*
 * The head of a request, whole:
 *
 *     POST /pkg.Service/Method?x=1 HTTP/1.1 CRLF      request line: method, target, version
 *     Host: example.org CRLF                          fields
 *     Content-Length: 12 CRLF
 *     CRLF
 *
 * What it says of the body that follows, and of the connection, is decided here and nowhere else,
 * so that two readings of one request cannot differ. Knows nothing of how it arrived.
 */

#include "rpc/http1/fields.h"

enum bow__http1_body {
    BOW__HTTP1_NO_BODY,
    BOW__HTTP1_LENGTH, /* as many bytes as `content_length`, which is not 0 */
    BOW__HTTP1_CHUNKED,
};

struct bow__http1_request {
    struct bow_slice method; /* a token; case counts */
    struct bow_slice target; /* as it came */
    struct bow_slice path;   /* of the target, without query; "*" of OPTIONS; empty of CONNECT */
    struct bow_slice query;  /* behind "?"; with `data` NULL where there is none */
    struct bow_slice host; /* of the target, else of the Host field; may be empty, with its port */
    unsigned minor;        /* 0 or 1: of the version, HTTP/1.0 or HTTP/1.1 and above */
    enum bow__http1_body body;
    uint64_t content_length;
    bool keep_alive;       /* another request may follow behind this one */
    bool expects_continue; /* the peer may wait for 100 (Continue) before it sends the body */
    struct bow__http1_fields fields;
};

/**
 * Read `head`, from the request line to the empty line, all with CRLF at their ends. Returns 0, or
 * -EBADMSG with `*ret_error`. `*ret_request` refers to the bytes of `head`.
 */
int bow__http1_request_decode(struct bow_slice head, struct bow__http1_request *ret_request,
                              struct bow__http1_error *ret_error);

#endif
