/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CALL_CALL_METADATA_H
#define BOWLINE_RPC_CORE_CALL_CALL_METADATA_H

/*
 * A call's metadata: what came with it, and what its handler sends along. It is made
 * when there is any, in the call's arena, which whoever adds has to itself.
 */

#include "rpc/core/call/call.h"
#include "rpc/core/metadata.h"
#include <bowline/compression.h>

struct bow__call_metadata {
    struct bow_metadata received;
    struct bow__metadata_list initial;
    struct bow__metadata_list trailing;
};

/** Keep what came with the call. Returns 0 or -ENOMEM. */
int bow__call_receive_metadata(struct bow_call *call, const struct bow_metadata *metadata);

/** What has the trace context of calls that are made for `call`: what an interceptor set, else what
 * came with it. Thread: any that holds the call. */
const struct bow_metadata *bow__call_trace(const struct bow_call *call);

/** What the holder says of messages to come: an enum bow_compression. Thread: any that holds it. */
static inline unsigned bow__call_compresses(const struct bow_call *call)
{
    return atomic_load_explicit(&call->compresses, memory_order_relaxed);
}

/** The next one's long way, where something may be due. */
int bow__call_respond_now(struct bow_call *call);
/** Give initial metadata and the encoding of compressed messages, if there is either, to the
 * session, once. Loop, before each message. Returns as the session's respond(). */
static inline int bow__call_respond(struct bow_call *call)
{
    bool is_due = !call->responded &&
                  (bow__call_compresses(call) != BOW_COMPRESSION_DEFAULT || call->metadata != NULL);

    return is_due ? bow__call_respond_now(call) : 0;
}

/** Whether the client takes the trailing metadata of a call that has gone well. Returns as the
 * session's check_trailing(). */
int bow__call_check_trailing(struct bow_call *call);

/** What the client is told when something that it was to get cannot be sent: `rc` is -EMSGSIZE
 * (the metadata is more than it takes), -ENOMEM, or -ENOENT. `text` holds the message. */
void bow__call_describe_unsent(const struct bow_call *call, int rc, struct bow__text *text,
                               struct bow_status *ret_status);

/** What a client is told when the metadata of a handler's status cannot be. */
#define BOW__STATUS_METADATA_TEXT                                                                  \
    "the metadata of the status cannot be sent: a key or value is one that <bowline/metadata.h> "  \
    "forbids, or there is too much of it (BOW_LIMIT_HEADER_BYTES_MAX)"

/** Add all of `metadata` to the trailing one. Returns as bow_call_add_trailing(). */
int bow__call_add_status(struct bow_call *call, const struct bow_metadata *metadata);

static inline struct bow_metadata bow__call_trailing(const struct bow_call *call)
{
    return call->metadata != NULL ? bow__metadata_of(&call->metadata->trailing)
                                  : (struct bow_metadata)BOW_METADATA_INIT;
}

#endif
