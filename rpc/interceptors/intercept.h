/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_INTERCEPTORS_INTERCEPT_H
#define BOWLINE_RPC_INTERCEPTORS_INTERCEPT_H

/*
 * Where the calls of servers and clients meet their interceptors (rpc/core/intercept.h
 * says in which order and when). Each call has one pointer to it, NULL where there are none.
 * All on the call's loop.
 *
 *     intercept_server.c   held before the handler: what comes meanwhile is kept as it came
 *     intercept_client.c   held before the queue
 */

#include "rpc/core/intercept.h"
#include "rpc/core/session.h"

#include <string.h>

struct bow__client_call;
struct bow__served;
struct bow__server_conn;

static inline const char *bow__protocol_name(const struct bow__session *session)
{
    return strcmp(session->ops->name, "native") == 0 ? "native" : "grpc";
}

/** Let the call just begun pass its server's interceptors. Returns whether it goes on now. Else
 * `*ret_stream` is what the session is told: the call that is held, or NULL for one that has
 * been refused and is gone. */
bool bow__served_intercept(struct bow__served *served, void **ret_stream);
/** Keep a message (NULL: none) of a held call, and the client's end. */
void bow__served_keep(struct bow__served *served, struct bow__message *message, bool end);
/** The call leaves its connection. */
void bow__served_intercept_end(struct bow__served *served, const struct bow_status *status);

/** Tell a server's interceptors of a call that was refused before it began. */
void bow__dispatch_tell_refused(const struct bow__server_conn *conn,
                                const struct bow__request_head *head,
                                const struct bow_status *status, const char *limit);

/** Let a call that begins on its loop pass its client's interceptors. Returns 0 when it goes on; 1
 * when it is held, or refused and to be completed later; -ENOMEM; -EAGAIN with `reason`. */
int bow__client_intercept(struct bow__client_call *call, struct bow__text *reason);
/** The call is being completed. */
void bow__client_intercept_end(struct bow__client_call *call, const struct bow_status *status);
/** The call was never started after all: `rc` says why. */
void bow__client_intercept_undo(struct bow__client_call *call, int rc,
                                const struct bow__text *reason);

#endif
