/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_WEB_MESSAGE_JSON_H
#define BOWLINE_RPC_WEB_MESSAGE_JSON_H

/*
 * Messages that travel as JSON, and are protobuf's inside: whole ones, either way, inflated before
 * and deflated after.
 */

#include "rpc/web/web.h"

/**
 * From a client's JSON, which may be compressed, to protobuf in a block of its own: `message` is
 * that then. Returns 0; or with `why`, the message as it was: -EBADMSG, -EMSGSIZE, -ENOMEM,
 * -ENOTSUP.
 */
int bow__message_from_json(struct bow__web_call *call, struct bow__message *message,
                           struct bow__text *why);

/**
 * The other way: `bytes`, compressed as the call's answer is if `*compressed`, to JSON in a new
 * block. Returns 0; -EBADMSG with `why` when there is no JSON for it; or -ENOMEM.
 */
int bow__message_to_json(struct bow__web_call *call, struct bow_slice bytes, bool *compressed,
                         struct bow__block **ret_block, size_t *ret_len, struct bow__text *why);

#endif
