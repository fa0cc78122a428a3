/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVER_DISPATCH_INTERNAL_H
#define BOWLINE_RPC_SERVER_DISPATCH_INTERNAL_H

/*
 * Between the files that make a session's events into calls:
 *
 *     dispatch.c         opening, messages, the handler's entry
 *     dispatch_call.c    what a call asks of its connection, its deadline and its end
 *     dispatch_batch.c   what is done once for all calls of a batch
 *     dispatch_stream.c  what only streaming calls do
 *
 * All on the loop.
 */

#include "rpc/server/worker.h"

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

/* dispatch.c: for a call that was held before its handler */

/** Enter the handler of a method whose client streams. Returns whether the call goes on. */
bool bow__dispatch_go_on(struct bow__served *served);
/** As the session's events. */
void bow__dispatch_message(struct bow__served *served, struct bow__message *message, bool end);
void bow__dispatch_half_close(struct bow__served *served);

/* dispatch_call.c */

extern const struct bow__call_ops bow__dispatch_call_ops;

/** The session's stream has ended without the handler: end the call. */
void bow__dispatch_end(struct bow__served *served, const struct bow_status *why);
/** End the session's stream with an error of ours, then the call. */
void bow__dispatch_refuse(struct bow__served *served, enum bow_code code, const char *message);
void bow__dispatch_refuse_with(struct bow__served *served, const struct bow_status *status);
/** The same, for its deadline has passed. */
void bow__dispatch_expire(struct bow__served *served);
void bow__dispatch_on_deadline(struct bow_timer *timer, void *user);

/* dispatch_batch.c */

/** The call has begun. */
void bow__dispatch_enlist(struct bow__served *served);
/** What it counts for once its connection has done with it. */
size_t bow__dispatch_weight(const struct bow__served *served);
/** Its request has come: count it as in flight now. Returns whether there is room for it. */
bool bow__dispatch_count_request(struct bow__served *served);
/** It has ended: stop its timer, and count its time. */
void bow__dispatch_delist(struct bow__served *served);

/* dispatch_stream.c */

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
