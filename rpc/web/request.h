/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_WEB_REQUEST_H
#define BOWLINE_RPC_WEB_REQUEST_H

/*
 * A request of HTTP: what its head says, so that a call begins or is refused, and its body, as
 * messages. A session asks bow__web_begin() for any request that is not gRPC's own.
 */

#include "rpc/web/web.h"

/** Of a request, as its session has read it. */
struct bow__web_head {
    struct bow_slice method;
    struct bow_slice target; /* path and query */
    struct bow_slice content_type;
    struct bow_slice accept_encoding;
    /* All other fields that may be metadata; begin() takes those out that are a protocol's own. */
    struct bow_metadata_entry *entries;
    size_t n_entries;

    /* What gRPC's fields say, of which gRPC-Web has some. */
    uint64_t time_left_ns;
    enum bow__encoding encoding;
    uint32_t accepts;
};

/** What a session has for all of its requests. */
struct bow__web_options {
    const struct bow__web *web;
    uint32_t protocols; /* BOW_PROTOCOL_ bits */
    struct bow__pool *pool;
    struct bow_context *context;
    struct bow__in_flight_share *in_flight;
    size_t max_message_bytes;
    uint32_t encodings; /* that are decoded, as a set */
};

/**
 * Look at a request. When `(*ret_call)->kind` is NONE, or its code is not OK, there is no call, and
 * bow__web_refuse() says so; else the session opens one with its path, time_left_ns and encoding,
 * and what is left of the head's entries. Returns 0 or -ENOMEM.
 */
int bow__web_begin(const struct bow__web_options *options, struct bow__web_head *head,
                   struct bow__web_call **ret_call);

static inline bool bow__web_is_refused(const struct bow__web_call *call)
{
    return call->kind == BOW__WEB_NONE || call->code != BOW_OK;
}

/** Of one that is refused: whether that is for something wrong with it, and no page or preflight.
 */
static inline bool bow__web_is_at_fault(const struct bow__web_call *call)
{
    return call->http_status == NULL || call->http_status[0] >= '4';
}

/**
 * Read the body on from the front of `*bytes`, which is moved behind what was taken. Returns 1 with
 * a message, which is the caller's with its block; 0 when all has been taken; or a negative errno
 * when the call cannot go on: `call->reader.code` and `why` say so.
 */
int bow__web_read(struct bow__web_call *call, struct bow_slice *bytes,
                  struct bow__message *ret_message, struct bow__text *why);
/** The body has ended. Returns 1 with its last message; 0 when there is none; or as above. */
int bow__web_read_end(struct bow__web_call *call, struct bow__message *ret_message,
                      struct bow__text *why);

#endif
