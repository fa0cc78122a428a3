/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_HTTP1_SESSION_H
#define BOWLINE_RPC_HTTP1_SESSION_H

/* All that the host sees of calls over HTTP/1.1: how a server's session is made. */

#include "rpc/core/session.h"

/** Of options->web, which is not NULL. Returns 0 or -ENOMEM. */
int bow__http1_session_new(const struct bow__session_options *options,
                           struct bow__session **ret_session);

#endif
