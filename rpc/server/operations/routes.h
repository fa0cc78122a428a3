/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_OPERATIONS_ROUTES_H
#define BOWLINE_RPC_SERVER_OPERATIONS_ROUTES_H

/*
 * What the operations listener answers, by path. Knows requests and what a server tells of itself,
 * no connections. Some answers are there at once; others need what the server's loops tell first:
 *
 *     begin ──► true: the answer is made
 *          └──► false: gather with these limits, then finish
 */

#include "rpc/http1/request.h"
#include "rpc/inspect/gather.h"
#include "rpc/server/operations/answer.h"
#include "rpc/services/health_states.h"

#include <bowline/server.h>

/** What is asked of the server that is shown; the functions are its own. */
struct bow__operations_host {
    struct bow_server *server;
    struct bow__health_states *health; /* without a name in it: the library's is left out */
    const char *hosts; /* names that a Host may have, with commas; NULL: none beside numbers */
    bool any_host;     /* a Unix socket, which no browser reaches: Host says nothing */
    bool (*is_draining)(const struct bow_server *server);
    int (*gather)(struct bow_server *server, const struct bow__snapshot_limits *limits,
                  struct bow__gather **ret_gather);
    /** Members of the JSON object that is open, or lines. */
    void (*put_config)(const struct bow_server *server, bool json, struct bow__out *out);
};

struct bow__operations_request {
    const struct bow__operations_route *route;
    bool json;
    bool openmetrics;
    char service[256]; /* that a probe asks for; "" for none */
    bool has_service;
};

/** Read what is asked. Returns whether `answer` is made. */
bool bow__operations_begin(const struct bow__operations_host *host,
                           const struct bow__http1_request *head,
                           struct bow__operations_request *ret_request,
                           struct bow__operations_answer *answer,
                           struct bow__snapshot_limits *ret_limits);
/** Make the answer of what was gathered. */
void bow__operations_finish(const struct bow__operations_host *host,
                            const struct bow__operations_request *request,
                            const struct bow__gather *gather,
                            struct bow__operations_answer *answer);

#endif
