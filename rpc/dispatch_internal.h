/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_DISPATCH_INTERNAL_H
#define BOWLINE_RPC_DISPATCH_INTERNAL_H

/*
 * Between dispatch.c (opening, unary calls, the end) and dispatch_stream.c (what only
 * streaming calls do). All on the loop.
 */

#include "rpc/worker.h"

/* The call is the first member; constness of a call does not extend to what it is part of. */
static inline struct bow__served *bow__served_of(const struct bow_call *call)
{
    return (struct bow__served *)(uintptr_t)call;
}

static inline struct bow__method_counts *bow__served_counts(const struct bow__served *served)
{
    return &served->worker->counters.methods[served->call.entry->index];
}

static inline bool bow__served_is_entered_stream(const struct bow__served *served)
{
    return served->call.stream != NULL && served->call.invoked;
}

/** Make the call just begun a streaming one. Returns 0 or -ENOMEM. */
int bow__dispatch_stream_begin(struct bow__served *served);
/** An event of a streaming call whose handler was entered. */
void bow__dispatch_stream_message(struct bow__served *served, struct bow__message *message,
                                  bool end);

/* Members of struct bow__call_ops. */
void bow__dispatch_stream_sent(struct bow_call *call, size_t n_bytes);
void bow__dispatch_stream_undecodable(struct bow_call *call);
void bow__dispatch_stream_defer(struct bow_call *call);
void bow__dispatch_stream_closed(struct bow_call *call);

#endif
