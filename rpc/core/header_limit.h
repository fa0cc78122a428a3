/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_HEADER_LIMIT_H
#define BOWLINE_RPC_CORE_HEADER_LIMIT_H

/*
 * max_header_bytes: what values it may have, and the words for headers above it, ours and the
 * peer's. How a header is counted is its protocol's.
 */

#include "base/text.h"
#include "rpc/core/session.h"

/** Whether an option may have that value; 0 is the default. Says why not. Returns 0 or -EINVAL. */
int bow__header_limit_check(size_t given, struct bow__text *reason);

static inline size_t bow__header_limit_or_default(size_t given)
{
    return given > 0 ? given : BOW_LIMIT_HEADER_BYTES;
}

/** Less than `announced`, if that is more than anybody sends. */
static inline size_t bow__header_limit_to_send(size_t announced)
{
    return announced < BOW_LIMIT_HEADER_BYTES_MAX ? announced : BOW_LIMIT_HEADER_BYTES_MAX;
}

/** A header of `n` bytes came to the `server`, or to the client. */
void bow__header_limit_received(struct bow__text *text, bool server, size_t n, size_t max);

/** The session's last header that was not sent (`session->excess`). */
void bow__header_limit_unsent(struct bow__text *text, const struct bow__session *session);

/** A header is not sent. Returns -EMSGSIZE. */
static inline int bow__header_limit_refuse(struct bow__session *session, size_t n, size_t max)
{
    session->excess = (struct bow__header_excess){.n_bytes = n, .max_bytes = max};
    return -EMSGSIZE;
}

#endif
