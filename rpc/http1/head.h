/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_HTTP1_HEAD_H
#define BOWLINE_RPC_HTTP1_HEAD_H

/* A request's head as rpc/web/ wants it: fields that may be metadata by their rules, others by what
 * they say. */

#include "base/arena.h"
#include "rpc/http1/request.h"
#include "rpc/web/request.h"

/** What is not borrowed from `request` lies in `arena`. Returns 0; -EBADMSG when grpc-timeout is
 * malformed; -EMSGSIZE when there are more values than BOW_LIMIT_HTTP1_FIELDS, for binary ones may
 * be joined; or -ENOMEM. */
int bow__http1_web_head(const struct bow__http1_request *request, struct bow__arena *arena,
                        struct bow__web_head *ret_head);

#endif
