/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_CLIENT_START_H
#define BOWLINE_RPC_CLIENT_CLIENT_START_H

/*
 * How calls of all kinds begin.
 */

#include "base/text.h"
#include <bowline/client.h>

/** What a call begins with; as for bow_client_start(). */
struct bow__client_begin {
    const struct bow_method *method;
    const ProtobufCMessage *request;
    const struct bow_call_options *options;
    bow_client_done_fn done;
    bow_any_fn fn;
    void *user;
    uint64_t *ret_id;
    struct bow_stream *stream; /* NULL: a unary call */
};

/** Begin a call: all that the caller's thread prepares, and the step onto the loop. Returns 0 or
 * as bow_client_start(), with the reason. */
int bow__client_begin(struct bow_client *client, const struct bow__client_begin *begin,
                      struct bow__text *reason);

/** Tell the log of a call that its caller may not begin so, for which he gets `rc` alone. Returns
 * `rc`. */
int bow__client_refuse(const struct bow_client *client, int rc, const struct bow__text *reason);

#endif
