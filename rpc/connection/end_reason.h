/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CONNECTION_END_REASON_H
#define BOWLINE_RPC_CONNECTION_END_REASON_H

/* Why a connection ended, in words for its calls and for logs. Changes nothing. */

#include "base/text.h"
#include "rpc/connection/conn.h"

/** What the handshake failed with; "" when it did not. */
const char *bow__conn_security_failure(const struct bow__conn *conn);

/** The status of its calls; the message lies in `text`. */
void bow__conn_describe_end(const struct bow__conn *conn, struct bow__text *text,
                            struct bow_status *ret_why);

#endif
