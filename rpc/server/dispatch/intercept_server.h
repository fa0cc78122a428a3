/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_DISPATCH_INTERCEPT_SERVER_H
#define BOWLINE_RPC_SERVER_DISPATCH_INTERCEPT_SERVER_H

/*
 * Where a server's calls meet its interceptors (rpc/core/intercept.h says in which order and when):
 * they are held before the handler, and what comes meanwhile is queued as it came. Each call has
 * one pointer to it, NULL where there are none. All on the call's loop.
 */

#include "rpc/server/dispatch/server_call.h"

/** Who dispatches calls, to whom a held one goes back. */
struct bow__server_intercept_ops {
    /** Enter the handler of a method whose client streams. Returns whether the call goes on. */
    bool (*go_on)(struct bow__server_call *server_call);
    /** As the session's events. */
    void (*message)(struct bow__server_call *server_call, struct bow__message *message, bool end);
    void (*half_close)(struct bow__server_call *server_call);
    /** End the session's stream, then the call. */
    void (*refuse)(struct bow__server_call *server_call, const struct bow_status *status);
};

/** Let the call just begun pass its server's interceptors; `protocol` is the request head's.
 * Returns whether it goes on now. Else
 * `*ret_stream` is what the session is told: the call that is held, or NULL for one that has
 * been refused and is gone. */
bool bow__server_intercept(struct bow__server_call *server_call,
                           const struct bow__server_intercept_ops *ops, const char *protocol,
                           void **ret_stream);
/** Keep a message (NULL: none) of a held call, and the client's end. */
void bow__server_intercept_queue(struct bow__server_call *server_call, struct bow__message *message,
                                 bool end);
/** The call leaves its connection. */
void bow__server_intercept_end(struct bow__server_call *server_call,
                               const struct bow_status *status);

/** Tell a server's interceptors of a call that was refused before it began. */
void bow__server_intercept_refused(const struct bow__server_conn *conn,
                                   const struct bow__request_head *head,
                                   const struct bow_status *status, const char *limit);

#endif
