/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CONNECTION_CONN_INSPECT_H
#define BOWLINE_RPC_CONNECTION_CONN_INSPECT_H

/* How a connection stands, copied for who asks. Knows no calls. */

#include "rpc/connection/conn.h"
#include "rpc/inspect/snapshot.h"

/** Copy it, with `n_calls` in flight on it. Returns the entry, for what its owner knows; or NULL:
 * it is only counted. */
struct bow__connection_entry *bow__conn_inspect(const struct bow__conn *conn, uint32_t n_calls,
                                                struct bow__snapshot *snapshot);

#endif
