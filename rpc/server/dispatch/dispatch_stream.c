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
    struct bow__server_call *server_call =
        BOW__CONTAINER(deferred, struct bow__server_call, deferred);

    bow__call_stream_run(&server_call->call);
}

int bow__dispatch_stream_begin(struct bow__server_call *server_call)
{
    int rc = bow__call_stream_new(&server_call->call);

    if (rc < 0) {
        return rc;
    }
    server_call->call.stream->in.share = &server_call->conn->share;
    server_call->call.stream->on_executor = server_call->call.entry->executor != NULL;
    server_call->deferred.fn = run_deferred;
    bow__list_init(&server_call->deferred.link);
    return 0;
}

void bow__dispatch_stream_message(struct bow__server_call *server_call,
                                  struct bow__message *message, bool end)
{
    bow__count(&server_call->counts->bytes_in, message->bytes.len);
    server_call->n_received += message->bytes.len;
    bow__call_stream_take(&server_call->call, message, end);
}

void bow__dispatch_stream_sent(struct bow_call *call, size_t n_bytes)
{
    struct bow__server_call *server_call = bow__server_call_of(call);

    bow__count(&server_call->counts->bytes_out, n_bytes);
    server_call->n_sent += n_bytes;
    if (bow__call_stream_waiting(call->stream) >= BOW_STREAM_WRITABLE_BYTES) {
        bow__count(&server_call->counts->stalls, 1);
    }
    bow__conn_touch(&server_call->conn->conn);
}

void bow__dispatch_stream_undecodable(struct bow_call *call)
{
    bow__server_call_of(call)->worker->counters.now.undecodable_messages++;
}

/* A phase of its own of the loop, so that no event comes from inside a function of the call. */
void bow__dispatch_stream_defer(struct bow_call *call)
{
    struct bow__server_call *server_call = bow__server_call_of(call);

    bow__loop_defer_flush(server_call->worker->loop, &server_call->deferred);
}

void bow__dispatch_stream_closed(struct bow_call *call)
{
    struct bow__server_call *server_call = bow__server_call_of(call);

    /* The call ended in the very run that gave this event: nothing is left for another. */
    bow__list_remove(&server_call->deferred.link);
    bow__worker_stream_closed(server_call->worker);
}
