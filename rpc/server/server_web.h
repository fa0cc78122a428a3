/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_SERVER_WEB_H
#define BOWLINE_RPC_SERVER_SERVER_WEB_H

/* What a server keeps for browsers: whose pages may call it, the page of its own, and the .proto
 * files behind its JSON. */

#include "rpc/server/server_state.h"

/** Whether options.web_origins can be kept; `reason` says why not. Returns 0 or -EINVAL. */
int bow__server_check_origins(const struct bow_server_options *options, struct bow__text *reason);
/** Keep them. Returns 0 or -ENOMEM. */
int bow__server_keep_origins(struct bow_server *server);

/** Whether options.web_page is one that somebody could get; `reason` says why not. Returns 0 or
 * -EINVAL. */
int bow__server_check_page(const struct bow_server_options *options, struct bow__text *reason);
/** Keep it. Returns 0 or -ENOMEM. */
int bow__server_keep_page(struct bow_server *server);

/** When its services are all there: whose messages a google.protobuf.Any may hold in JSON. Returns
 * 0 or -ENOMEM. */
int bow__server_list_files(struct bow_server *server);

#endif
