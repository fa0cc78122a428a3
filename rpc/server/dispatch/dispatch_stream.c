/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a server does for streaming calls beyond what it does for all: what they ask of their
 * connection, and when their events run. What they are is in rpc/core/call/call_stream.h.
 */

#include "rpc/server/dispatch/dispatch_stream.h"
#include "rpc/core/call/call_stream_events.h"
#include "rpc/core/call/call_stream_send.h"

static void run_deferred(struct bow__deferred *deferred)
{
    struct bow__served *served = BOW__CONTAINER(deferred, struct bow__served, deferred);

    bow__call_stream_run(&served->call);
}

int bow__dispatch_stream_begin(struct bow__served *served)
{
    int rc = bow__call_stream_new(&served->call);

    if (rc < 0) {
        return rc;
    }
    served->call.stream->in.part = &served->conn->part;
    served->call.stream->on_executor = served->call.entry->executor != NULL;
    served->deferred.fn = run_deferred;
    bow__list_init(&served->deferred.link);
    return 0;
}

void bow__dispatch_stream_message(struct bow__served *served, struct bow__message *message,
                                  bool end)
{
    bow__served_counts(served)->bytes_in += message->bytes.len;
    bow__call_stream_take(&served->call, message, end);
}

void bow__dispatch_stream_sent(struct bow_call *call, size_t n_bytes)
{
    struct bow__served *served = bow__served_of(call);

    bow__served_counts(served)->bytes_out += n_bytes;
    bow__conn_touch(&served->conn->conn);
}

void bow__dispatch_stream_undecodable(struct bow_call *call)
{
    bow__served_of(call)->worker->counters.now.undecodable_messages++;
}

/* A phase of its own of the loop, so that no event comes from inside a function of the call. */
void bow__dispatch_stream_defer(struct bow_call *call)
{
    struct bow__served *served = bow__served_of(call);

    bow__loop_defer_flush(served->worker->loop, &served->deferred);
}

void bow__dispatch_stream_closed(struct bow_call *call)
{
    struct bow__served *served = bow__served_of(call);

    /* The call ended in the very run that gave this event: nothing is left for another. */
    bow__list_remove(&served->deferred.link);
    bow__worker_stream_closed(served->worker);
}
