/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_DISPATCH_DISPATCH_CALL_H
#define BOWLINE_RPC_SERVER_DISPATCH_DISPATCH_CALL_H

/*
 * A call's time on its connection, and its end there. All on the loop.
 */

#include "rpc/server/dispatch/server_call.h"

extern const struct bow__call_ops bow__dispatch_call_ops;

/** The session's stream has ended without the handler: end the call. */
void bow__dispatch_end(struct bow__server_call *server_call, const struct bow_status *why);
/** End the session's stream with an error of ours, then the call. */
void bow__dispatch_refuse(struct bow__server_call *server_call, enum bow_code code,
                          const char *message);
void bow__dispatch_refuse_with(struct bow__server_call *server_call,
                               const struct bow_status *status);
/** The same, for its deadline has passed. */
void bow__dispatch_expire(struct bow__server_call *server_call);

/** The call has begun. */
void bow__dispatch_enlist(struct bow__server_call *server_call);
/** Its request has come: count it as in flight now. Returns whether there is room for it. */
bool bow__dispatch_count_request(struct bow__server_call *server_call);

/** Let it wait before its handler; it outlives its batch. */
void bow__dispatch_wait(struct bow__server_call *server_call);
void bow__dispatch_stop_waiting(struct bow__server_call *server_call);

/** What came with the batch under way is not answered at once. */
void bow__dispatch_outlive_batch(struct bow__server_conn *conn);

/** Look at what waits to be sent on the connection. */
void bow__dispatch_count_backlog(struct bow__server_conn *conn);

/** A call of method `index` was refused on arrival, and never becomes one: counted all the same. */
void bow__dispatch_count_refused(struct bow__server_conn *conn, uint32_t index, enum bow_code code);
/** The client has ended the call with `code`: count it if it has cancelled it. */
void bow__dispatch_count_cancelled(struct bow__server_call *server_call, enum bow_code code);

/** The end of a batch of events. A member of struct bow__conn_ops. */
void bow__dispatch_end_batch(struct bow__conn *conn);

#endif
