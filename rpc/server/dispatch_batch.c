/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What is done once for all calls of a batch of events. Most are answered in the batch
 * that brought them: those need no timer, are not counted as in flight, and the clock is read once
 * for all of them.
 * Knows nothing of what the calls are.
 */

#include "rpc/core/call/call_stream.h"
#include "rpc/server/dispatch.h"
#include "rpc/server/dispatch_internal.h"

static void count_times(struct bow__worker *worker)
{
    struct bow__answered *answered = &worker->answered;

    if (answered->counts != NULL) {
        answered->counts->total_ns +=
            answered->n * bow__loop_read_clock(worker->loop) - answered->started_ns;
        *answered = (struct bow__answered){0};
    }
}

/* A call's time ends when its answer can leave, which is at the end of the batch. */
static void count_later(struct bow__served *served)
{
    struct bow__answered *answered = &served->worker->answered;
    struct bow__method_counts *counts = bow__served_counts(served);

    if (answered->counts != counts) {
        count_times(served->worker);
        answered->counts = counts;
    }
    answered->n++;
    answered->started_ns += served->started_ns;
}

void bow__dispatch_enlist(struct bow__served *served)
{
    served->lasting = false;
    bow__list_push_back(&served->conn->fresh, &served->link);
}

size_t bow__dispatch_weight(const struct bow__served *served)
{
    const struct bow__call_stream *stream = served->call.stream;
    size_t n = BOW__SERVED_BYTES + served->n_request;

    return stream != NULL ? n + sizeof(*stream) + stream->n_lent : n;
}

void bow__dispatch_delist(struct bow__served *served)
{
    if (served->lasting) {
        served->lasting = false;
        bow_timer_stop(&served->timer);
        bow__in_flight_give_call(&served->conn->part, served->n_in_flight);
    }
    bow__list_remove(&served->link);
    count_later(served);
    if (served->conn->conn.in_session) {
        bow__age_called(&served->conn->conn.age, served->conn->conn.batch_ns);
        return;
    }
    bow__age_called(&served->conn->conn.age, bow_loop_now(served->worker->loop));
    count_times(served->worker);
}

static void let_last(struct bow__served *served)
{
    bow__list_remove(&served->link);
    served->lasting = true;
    served->n_in_flight = BOW__SERVED_BYTES + served->n_request;
    bow__in_flight_take_call(&served->conn->part, served->n_in_flight);
    bow_timer_init(&served->timer, served->worker->loop, bow__dispatch_on_deadline, served);
    if (served->call.deadline_ns != BOW_NEVER) {
        bow_timer_start_at(&served->timer, served->call.deadline_ns);
    }
}

bool bow__dispatch_count_request(struct bow__served *served)
{
    struct bow__in_flight_share *part = &served->conn->part;
    size_t n_counted = served->lasting ? served->n_in_flight - BOW__SERVED_BYTES : 0;
    size_t n = bow__in_flight_clip(part, served->n_request - n_counted);

    served->n_request = n_counted + n;
    if (!bow__in_flight_has_room(part, n)) {
        return false;
    }
    if (!served->lasting) {
        let_last(served);
        return true;
    }
    served->n_in_flight += n;
    bow__in_flight_take_call(part, n);
    return true;
}

void bow__dispatch_end_batch(struct bow__conn *conn)
{
    struct bow__server_conn *own = BOW__CONTAINER(conn, struct bow__server_conn, conn);

    count_times(own->worker);
    while (!bow__list_is_empty(&own->fresh)) {
        let_last(BOW__CONTAINER(own->fresh.next, struct bow__served, link));
    }
}
