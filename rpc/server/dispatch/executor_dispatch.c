/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls on their way to an executor, and their streams' events back. A reply comes back by
 * rpc/core/call/call_answer.c, which has it posted (dispatch_call.c). Which handlers run there is
 * the registry's business, what a call does there that of rpc/core.
 */

#include "rpc/server/dispatch/executor_dispatch.h"
#include "base/alloc.h"
#include "rpc/core/call/call_invoke.h"
#include "rpc/core/call/call_stream_events.h"
#include "rpc/core/call/call_stream_send.h"
#include "transport/executor/executor.h"

#include <errno.h>

/* On the executor */

static uint64_t read_clock(const struct bow__server_call *server_call)
{
    const struct bow_system *system = bow__context_system(server_call->worker->context);

    return system->now_ns(system->user);
}

/* The handler is entered, unless nobody waits for it any more. The call may be gone afterwards. */
static void enter(struct bow__server_call *server_call)
{
    struct bow_call *call = &server_call->call;
    uint64_t now = read_clock(server_call);

    if (atomic_load(&call->end_code) != 0 || call->deadline_ns <= now) {
        (void)bow_call_fail(call, BOW_DEADLINE_EXCEEDED, "the deadline passed before the handler");
        return;
    }
    atomic_store_explicit(&server_call->entered_at_ns, now > 0 ? now : 1, memory_order_relaxed);
    bow__call_enter(call);
}

static int go_on_task(void *user)
{
    struct bow__server_call *server_call = user;

    bow__call_stream_go_on(&server_call->call);
    return 0;
}

/* An event of a streaming call is done; without a loop nobody but this thread can go on. */
static void return_stream(struct bow__server_call *server_call)
{
    struct bow_loop *loop = server_call->worker->loop;

    bow_task_init(&server_call->executor_task, "call event done", go_on_task, server_call);
    if (bow__loop_post_internal(loop, &server_call->executor_task, 0) < 0) {
        (void)!bow_loop_join(loop, BOW_NEVER);
        bow__call_stream_go_on(&server_call->call);
    }
}

static int enter_task(void *user)
{
    struct bow__server_call *server_call = user;
    struct bow__worker *worker = server_call->worker;
    bool is_stream = server_call->call.stream != NULL;

    atomic_fetch_sub_explicit(&server_call->call.entry->executor->n_waiting, 1,
                              memory_order_relaxed);
    enter(server_call);
    if (is_stream) {
        return_stream(server_call);
    }
    bow__worker_leave_executor(worker);
    return 0;
}

static int event_task(void *user)
{
    struct bow__server_call *server_call = user;
    struct bow__worker *worker = server_call->worker;

    bow__call_stream_deliver_event(&server_call->call);
    return_stream(server_call);
    bow__worker_leave_executor(worker);
    return 0;
}

/* On the loop */

static int post(struct bow__server_call *server_call, const char *name, bow_task_fn fn)
{
    struct bow__worker *worker = server_call->worker;

    bow_task_init(&server_call->executor_task, name, fn, server_call);
    bow__worker_enter_executor(worker);
    int rc = bow__executor_post_internal(server_call->call.entry->executor->executor,
                                         &server_call->executor_task);
    if (rc < 0) {
        bow__worker_leave_executor(worker);
    }
    return rc;
}

int bow__executor_dispatch_enter(struct bow__server_call *server_call)
{
    struct bow__handler_executor *executor = server_call->call.entry->executor;

    if (atomic_fetch_add_explicit(&executor->n_waiting, 1, memory_order_relaxed) >=
        executor->max_waiting) {
        atomic_fetch_sub_explicit(&executor->n_waiting, 1, memory_order_relaxed);
        return -EAGAIN;
    }
    atomic_store_explicit(&server_call->entered_at_ns, 0, memory_order_relaxed);
    server_call->waits_since_ns = bow_loop_now(server_call->worker->loop);
    server_call->call.invoked = true;
    if (server_call->call.stream != NULL) {
        server_call->call.stream->busy = true;
    }
    int rc = post(server_call, "handler", enter_task);
    if (rc < 0) {
        server_call->call.invoked = false;
        atomic_fetch_sub_explicit(&executor->n_waiting, 1, memory_order_relaxed);
    }
    return rc;
}

int bow__executor_dispatch_post_event(struct bow_call *call)
{
    return post(bow__server_call_of(call), "call event", event_task);
}
