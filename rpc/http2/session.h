/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_HTTP2_SESSION_H
#define BOWLINE_RPC_HTTP2_SESSION_H

/* All that the host sees of gRPC over HTTP/2: how a session is made. */

#include "rpc/core/session.h"

/** Returns 0 or -ENOMEM; -ENOTSUP in a build without HTTP/2. The preface and SETTINGS are ready to
 * drain. */
int bow__http2_session_new(const struct bow__session_options *options,
                           struct bow__session **ret_session);

#endif
