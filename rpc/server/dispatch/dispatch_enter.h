/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_DISPATCH_DISPATCH_ENTER_H
#define BOWLINE_RPC_SERVER_DISPATCH_DISPATCH_ENTER_H

/*
 * The last step of a call on its way to its handler, at once or when less waits to be sent to its
 * client. All on the loop.
 */

#include "rpc/core/work.h"
#include "rpc/server/dispatch/server_call.h"

/** Let the handler have the call, or let it wait. Returns whether the call goes on: a handler may
 * have ended it at once, and nothing is known of a unary one. */
bool bow__dispatch_enter(struct bow__server_call *server_call);

/** A message of a call that waits; `end` as on_message says. It may be refused. */
void bow__dispatch_keep_message(struct bow__server_call *server_call, struct bow__message *message,
                                bool end);

/** Calls that waited for their connection's next turn go on: the waiter's of one. */
void bow__dispatch_go_on(struct bow__work_waiter *waiter);

/** What could be sent was: begin calls that waited for that, as many as its turn has room for. A
 * member of struct bow__conn_ops. */
void bow__dispatch_settled(struct bow__conn *conn);

#endif
