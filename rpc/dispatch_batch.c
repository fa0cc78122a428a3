/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What is done once for all calls of a batch of events. Most are answered in the batch
 * that brought them: those need no timer, and the clock is read once for all of them.
 * Knows nothing of what the calls are.
 */

#include "rpc/dispatch.h"
#include "rpc/dispatch_internal.h"

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
    served->timed = false;
    bow__list_push_back(&served->conn->fresh, &served->link);
}

void bow__dispatch_delist(struct bow__served *served)
{
    if (served->timed) {
        bow_timer_stop(&served->timer);
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

static void watch_deadline(struct bow__served *served)
{
    bow__list_remove(&served->link);
    if (served->call.deadline_ns != BOW_NEVER) {
        served->timed = true;
        bow_timer_init(&served->timer, served->worker->loop, bow__dispatch_on_deadline, served);
        bow_timer_start_at(&served->timer, served->call.deadline_ns);
    }
}

void bow__dispatch_end_batch(struct bow__conn *conn)
{
    struct bow__server_conn *own = BOW__CONTAINER(conn, struct bow__server_conn, conn);

    count_times(own->worker);
    while (!bow__list_is_empty(&own->fresh)) {
        watch_deadline(BOW__CONTAINER(own->fresh.next, struct bow__served, link));
    }
}
