/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_CONN_SETUP_H
#define BOWLINE_RPC_CLIENT_CONN_SETUP_H

/*
 * How a client's connection is set up, of its client's options and its subchannel's address: the
 * session, security, and when it is idle for too long. Knows nothing of what becomes of it.
 */

#include "rpc/client/subchannel.h"
#include <bowline/security.h>

/** Of struct bow__conn_ops: fill the options of the conn's session. */
void bow__conn_setup_configure(struct bow__conn *conn, struct bow__session_options *options);
/** Secure `channel`, by the client's security, which there is. Returns as that does. */
int bow__conn_setup_secure(const struct bow__subchannel *subchannel, struct bow_channel *channel);

/** Without a call for so long a connection of the subchannel ends. */
uint64_t bow__conn_setup_idle_ns(const struct bow__subchannel *subchannel);
/** What is said then; `why` unless it is for that subchannel alone. */
const char *bow__conn_setup_idle_reason(const struct bow__subchannel *subchannel, const char *why);

#endif
