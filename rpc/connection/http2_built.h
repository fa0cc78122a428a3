/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CONNECTION_HTTP2_BUILT_H
#define BOWLINE_RPC_CONNECTION_HTTP2_BUILT_H

#include <stdbool.h>

/** Whether this build speaks HTTP/2. Without, bow__http2_session_new() says -ENOTSUP. Thread: any.
 */
bool bow__http2_is_built(void);

#endif
