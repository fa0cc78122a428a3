/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_WEB_ANSWER_H
#define BOWLINE_RPC_WEB_ANSWER_H

/*
 * What a call answers, step by step: each step says what its session has to send of HTTP now.
 */

#include "rpc/web/web.h"

/** What to send. The fields are the call's, and stay until its next step; the blocks are
 * references, the taker's. */
struct bow__web_output {
    const char *http_status; /* of the head that goes first; NULL: it has been sent */
    const struct bow__web_field *fields;
    size_t n_fields;
    uint8_t prefix[5];        /* before `block` */
    uint8_t n_prefix;         /* 0 or 5 */
    struct bow__block *block; /* of the body, or NULL */
    size_t offset;
    size_t len;
    struct bow__block *tail; /* behind it, all of it; or NULL */
    size_t n_tail;
    bool is_last; /* nothing follows */
};

/** Let go of what is not going to be sent. */
void bow__web_output_fini(struct bow__web_output *output);

/** As the session's respond(). Of a unary call of Connect nothing is sent yet. Returns 0, or
 * -ENOMEM. */
int bow__web_respond(struct bow__web_call *call, const struct bow_metadata *metadata,
                     enum bow__encoding encoding, struct bow__web_output *ret_output);

/**
 * As the session's send(): takes the reference to `block` if it succeeds. Returns 0; -ENOMEM;
 * -EBADMSG for a message that cannot be JSON, as `why` says then.
 */
int bow__web_send(struct bow__web_call *call, uint32_t flags, struct bow__block *block,
                  size_t offset, size_t len, struct bow__web_output *ret_output,
                  struct bow__text *why);

/** As the session's finish(). Returns 0, or -ENOMEM. */
int bow__web_end(struct bow__web_call *call, const struct bow_status *status,
                 struct bow__web_output *ret_output);

/** The answer to a request that is no call. Returns 0, or -ENOMEM. */
int bow__web_refuse(struct bow__web_call *call, struct bow__web_output *ret_output);

#endif
