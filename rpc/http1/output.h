/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_HTTP1_OUTPUT_H
#define BOWLINE_RPC_HTTP1_OUTPUT_H

/*
 * What is written on a connection of HTTP/1.1: answers as rpc/web/ gives them, framed by a length
 * or in chunks, one behind the other. Knows nothing of requests but what their answers need.
 */

#include "base/outbuf.h"
#include "rpc/http1/response.h"
#include "rpc/web/answer.h"

struct bow__http1_output {
    struct bow__outbuf bytes;
    struct bow__http1_asked asked;   /* of the answer under way; its owner's to set */
    enum bow__http1_framing framing; /* of its body, once there was its head */
};

/** Write a step of an answer, whose blocks stay the caller's. Returns 0; or -ENOMEM or -EINVAL:
 * part of it may be written, and the connection is of no use any more. */
int bow__http1_output_put(struct bow__http1_output *out, const struct bow__web_output *output);

/** A whole answer in words, behind which the connection ends. Returns 0 or -ENOMEM. */
int bow__http1_output_plain(struct bow__http1_output *out, int status, const char *text);

#endif
