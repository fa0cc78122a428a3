/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls on their way to an executor and back. Which handlers run there is the registry's
 * business, what a call does there that of rpc/core.
 */

#include "rpc/server/dispatch/executor_dispatch.h"
#include "base/alloc.h"
#include "rpc/core/call/call_invoke.h"
#include "rpc/core/call/call_stream_events.h"
#include "rpc/core/call/call_stream_send.h"
#include "transport/executor/executor.h"

#include <errno.h>

/* On the executor */

static bool is_past_deadline(const struct bow__served *served)
{
    const struct bow_system *system = bow__context_system(served->worker->context);

    return served->call.deadline_ns <= system->now_ns(system->user);
}

/* The handler is entered, unless nobody waits for it any more. The call may be gone afterwards. */
static void enter(struct bow__served *served)
{
    struct bow_call *call = &served->call;

    if (atomic_load(&call->why) != 0 || is_past_deadline(served)) {
        (void)bow_call_fail(call, BOW_DEADLINE_EXCEEDED, "the deadline passed before the handler");
        return;
    }
    atomic_store_explicit(&served->entered, true, memory_order_relaxed);
    bow__call_enter(call);
}

static int go_on_task(void *user)
{
    struct bow__served *served = user;

    bow__call_stream_go_on(&served->call);
    return 0;
}

/* An event of a streaming call is done; without a loop nobody but this thread can go on. */
static void return_stream(struct bow__served *served)
{
    struct bow_loop *loop = served->worker->loop;

    bow_task_init(&served->elsewhere_task, "call event done", go_on_task, served);
    if (bow__loop_post_internal(loop, &served->elsewhere_task, 0) < 0) {
        (void)!bow_loop_join(loop, BOW_NEVER);
        bow__call_stream_go_on(&served->call);
    }
}

static int enter_task(void *user)
{
    struct bow__served *served = user;
    struct bow__worker *worker = served->worker;
    bool is_stream = served->call.stream != NULL;

    atomic_fetch_sub_explicit(&served->call.entry->executor->n_waiting, 1, memory_order_relaxed);
    enter(served);
    if (is_stream) {
        return_stream(served);
    }
    bow__worker_leave_elsewhere(worker);
    return 0;
}

static int event_task(void *user)
{
    struct bow__served *served = user;
    struct bow__worker *worker = served->worker;

    bow__call_stream_tell(&served->call);
    return_stream(served);
    bow__worker_leave_elsewhere(worker);
    return 0;
}

/* On the loop */

static int post(struct bow__served *served, const char *name, bow_task_fn fn)
{
    struct bow__worker *worker = served->worker;

    bow_task_init(&served->elsewhere_task, name, fn, served);
    bow__worker_go_elsewhere(worker);
    int rc = bow__executor_post_internal(served->call.entry->executor->executor,
                                         &served->elsewhere_task);
    if (rc < 0) {
        bow__worker_leave_elsewhere(worker);
    }
    return rc;
}

int bow__executor_dispatch_enter(struct bow__served *served)
{
    struct bow__handler_executor *executor = served->call.entry->executor;

    if (atomic_fetch_add_explicit(&executor->n_waiting, 1, memory_order_relaxed) >=
        executor->max_waiting) {
        atomic_fetch_sub_explicit(&executor->n_waiting, 1, memory_order_relaxed);
        return -EAGAIN;
    }
    atomic_store_explicit(&served->entered, false, memory_order_relaxed);
    served->call.invoked = true;
    if (served->call.stream != NULL) {
        served->call.stream->busy = true;
    }
    int rc = post(served, "handler", enter_task);
    if (rc < 0) {
        served->call.invoked = false;
        atomic_fetch_sub_explicit(&executor->n_waiting, 1, memory_order_relaxed);
    }
    return rc;
}

int bow__executor_dispatch_give(struct bow_call *call)
{
    return post(bow__served_of(call), "call event", event_task);
}
