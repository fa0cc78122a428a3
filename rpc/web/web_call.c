/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A call's memory and its end, and its name. */

#include "rpc/web/web.h"

struct bow__web_call *bow__web_call_free(struct bow__web_call *call)
{
    if (call == NULL) {
        return NULL;
    }
    bow__web_reader_fini(&call->reader);
    bow__block_unref(call->held);
    bow__arena_fini(&call->arena);
    bow__pool_free(call->pool, call, sizeof(*call));
    return NULL;
}

size_t bow__web_call_bytes(const struct bow__web_call *call)
{
    return sizeof(*call) + call->arena.used;
}

const char *bow__web_protocol(const struct bow__web_call *call)
{
    switch (call->kind) {
    case BOW__WEB_NONE:
        break;
    case BOW__WEB_CONNECT_UNARY:
    case BOW__WEB_CONNECT_STREAM:
        return "connect";
    case BOW__WEB_GRPC:
    case BOW__WEB_GRPC_TEXT:
        return "grpc-web";
    }
    return "http";
}
