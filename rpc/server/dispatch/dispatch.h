/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_DISPATCH_DISPATCH_H
#define BOWLINE_RPC_SERVER_DISPATCH_DISPATCH_H

/*
 * From a session's events to handlers: path → method, deadline, decoding, the
 * call's entry and its end. The events' owner is a struct bow__server_conn.
 */

#include "rpc/core/session.h"

extern const struct bow__session_events bow__dispatch_events;

#endif
