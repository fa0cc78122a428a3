/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_OPERATIONS_METHODS_H
#define BOWLINE_RPC_SERVER_OPERATIONS_METHODS_H

/* What a server has counted, by method and in all, as JSON and text. Knows no connection. */

#include "rpc/inspect/out.h"

#include <bowline/server.h>

/** The array "methods" of the object that is open. */
void bow__operations_json_methods(const struct bow_server *server, struct bow__out *out);
void bow__operations_text_methods(const struct bow_server *server, struct bow__out *out);
/** The object "counters" of the object that is open. */
void bow__operations_json_counters(const struct bow_server *server, struct bow__out *out);

#endif
