/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * For builds without HTTP/2: what the rest links against instead of rpc/http2/.
 */

#include "rpc/connection/http2_built.h"
#include "rpc/http2/session.h"

#include <errno.h>

bool bow__http2_is_built(void)
{
    return false;
}

int bow__http2_session_new(const struct bow__session_options *options,
                           struct bow__session **ret_session)
{
    (void)options;
    (void)ret_session;
    return -ENOTSUP;
}
