/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_CLIENT_CONN_H
#define BOWLINE_RPC_CLIENT_CLIENT_CONN_H

/*
 * A client's connection, as far as its calls go: how they are sent, and what its session tells of
 * them. That it comes and goes is its subchannel's business. All on the loop.
 */

#include "rpc/client/call/client_call.h"
#include "rpc/client/health_watch.h"

struct bow__subchannel;

struct bow__client_conn {
    struct bow__conn conn; /* first */
    struct bow__client_calls *calls;
    struct bow__subchannel *subchannel;
    struct bow__link at;        /* in the subchannels' conns */
    struct bow__link candidate; /* in its subchannel's, until the server has answered */
    uint64_t answer_due_ns;     /* until when it has to */
    int address_index;          /* of those that the name has */
    struct bow__health_watch health;
};

/** The connection of an open call. */
static inline struct bow__client_conn *bow__client_conn_of(struct bow__conn *conn)
{
    return BOW__CONTAINER(conn, struct bow__client_conn, conn);
}

/** Whether its server has yet to answer. */
static inline bool bow__client_conn_is_candidate(const struct bow__client_conn *conn)
{
    return !bow__list_is_empty(&conn->candidate);
}

/** Whether another call may be sent on it now. */
static inline bool bow__client_conn_takes_calls(const struct bow__client_conn *conn)
{
    const struct bow__session *session = conn->conn.session;

    return session != NULL && session->ops->can_open(session);
}

/** Send `call`, which is in no list. Returns 0; -EAGAIN and -EPIPE (not now); or what it fails
 * with. */
int bow__client_conn_send(struct bow__client_conn *conn, struct bow__client_call *call);

/** What a session tells of calls; of struct bow__session_events. */
void bow__client_conn_on_headers(void *owner, uint64_t key, void *stream,
                                 const struct bow_metadata *metadata);
void bow__client_conn_on_message(void *owner, uint64_t key, void *stream,
                                 struct bow__message *message, bool end);
void bow__client_conn_on_status(void *owner, uint64_t key, void *stream,
                                const struct bow_status *status);
void bow__client_conn_on_writable(void *owner, uint64_t key, void *stream);

#endif
