/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_OPERATIONS_OPERATIONS_CONN_H
#define BOWLINE_RPC_SERVER_OPERATIONS_OPERATIONS_CONN_H

/*
 * A connection of the operations listener: one request after the other, each answered before the
 * next is read. It lives in its channel's data. All on the loop.
 *
 *     idle ──► reading ──► gathering ──► sending ──► idle, or closing
 *               └──────────────────────────┘
 *
 * A timer bounds each of these, so a peer that does not get on holds none of the few places.
 */

#include "base/list.h"
#include "rpc/http1/parser.h"
#include "rpc/http1/response.h"
#include "rpc/server/operations/routes.h"

#include <bowline/channel.h>
#include <bowline/timer.h>

enum bow__operations_conn_state {
    BOW__OPERATIONS_IDLE = 0,  /* between requests: BOW_LIMIT_OPERATIONS_IDLE_NS */
    BOW__OPERATIONS_READING,   /* a request has begun: BOW_LIMIT_OPERATIONS_REQUEST_NS */
    BOW__OPERATIONS_GATHERING, /* the loops are asked, which has a bound of its own */
    BOW__OPERATIONS_SENDING,   /* BOW_LIMIT_OPERATIONS_SEND_NS */
    BOW__OPERATIONS_CLOSING,   /* the same for the last answer, or a second when the server ends */
};

struct bow__operations_conn {
    struct bow_handler handler; /* first */
    struct bow__link link;      /* in the listener's conns */
    struct bow_context *context;
    const struct bow__operations_host *host;
    /** It is out of the list, and not to be touched any more. */
    void (*on_gone)(void *user);
    void *user;
    enum bow__operations_conn_state state;
    struct bow_timer timer;
    struct bow__http1_parser parser;
    struct bow__http1_asked asked;
    struct bow__operations_request request;
    struct bow__operations_answer answer; /* while it is made */
    bool answer_is_made;
    struct bow__snapshot_limits limits;
    struct bow__gather *gather; /* while loops are asked */
};

/** Set up in zeroed channel data, in on_channel; `conns` is the list to be in. */
void bow__operations_conn_init(struct bow__operations_conn *conn, struct bow_channel *channel,
                               struct bow_context *context, const struct bow__operations_host *host,
                               struct bow__link *conns, void (*on_gone)(void *user), void *user);
/** End it, after what is being sent, soon. */
void bow__operations_conn_close(struct bow__operations_conn *conn);

#endif
