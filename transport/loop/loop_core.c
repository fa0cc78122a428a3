/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a loop is: the references that keep its memory, whose thread it is, and what else
 * can be asked without running it. Knows nothing of how it runs.
 */

#include "transport/loop/loop_core.h"
#include "base/alloc.h"
#include "transport/loop/condition.h"

#include <assert.h>

const struct bow_system *bow__loop_system(const struct bow_loop *loop)
{
    return loop->system;
}

static void free_loop(struct bow_loop *loop)
{
    struct bow_context *context = loop->context;

    loop->system->poller->close(loop->poller);
    if (loop->fd_poller != NULL) {
        loop->system->poller->close(loop->fd_poller);
    }
    loop->system->close(loop->system->user, loop->wake_watch.fd);
    bow__pool_fini(&loop->pool);
    bow__free(context, loop->recv_buffer, BOW__LOOP_RECV_BYTES);
    bow__free(context, loop->events, (size_t)loop->events_cap * sizeof(*loop->events));
    bow__cond_fini(&loop->mutex, &loop->terminated);
    bow__free(context, loop, sizeof(*loop));
    bow_context_unref(context);
}

void bow__loop_hold(struct bow_loop *loop)
{
    atomic_fetch_add_explicit(&loop->memory_refs, 1, memory_order_relaxed);
}

void bow__loop_release(struct bow_loop *loop)
{
    if (atomic_fetch_sub_explicit(&loop->memory_refs, 1, memory_order_acq_rel) == 1) {
        free_loop(loop);
    }
}

bool bow_loop_in_loop(const struct bow_loop *loop)
{
    uintptr_t owner = atomic_load_explicit(&loop->owner, memory_order_relaxed);
    return owner == (uintptr_t)pthread_self();
}

bool bow__loop_may_touch(const struct bow_loop *loop)
{
    /* An owner sets his loop up before he runs it; a terminated one is nobody's. */
    return bow_loop_in_loop(loop) ||
           (loop->options.thread == BOW_LOOP_OWNER &&
            atomic_load_explicit(&loop->owner, memory_order_relaxed) == 0) ||
           bow__loop_state(loop) == BOW_LOOP_TERMINATED;
}

bool bow__loop_awaits_owner(const struct bow_loop *loop)
{
    return loop->options.thread == BOW_LOOP_OWNER &&
           atomic_load_explicit(&loop->owner, memory_order_relaxed) == 0 &&
           bow__loop_state(loop) < BOW_LOOP_SHUTDOWN;
}

const char *bow__loop_name(const struct bow_loop *loop)
{
    return loop->name;
}

enum bow_loop_state bow_loop_get_state(const struct bow_loop *loop)
{
    return bow__loop_state(loop);
}

struct bow_context *bow_loop_context(const struct bow_loop *loop)
{
    return loop->context;
}

uint64_t bow_loop_now(const struct bow_loop *loop)
{
    /* Between two turns of an owner's loop its last reading may be old. */
    if (bow_loop_in_loop(loop) && loop->in_turn) {
        return loop->now_ns;
    }
    return bow__loop_clock(loop);
}

uint8_t *bow__loop_recv_buffer(struct bow_loop *loop, size_t *ret_size)
{
    if (loop->recv_buffer == NULL) {
        loop->recv_buffer = bow__alloc(loop->context, BOW__LOOP_RECV_BYTES);
    }
    *ret_size = loop->recv_buffer != NULL ? BOW__LOOP_RECV_BYTES : 0;
    return loop->recv_buffer;
}

struct bow__pool *bow__loop_pool(struct bow_loop *loop)
{
    return &loop->pool;
}

uint64_t bow__loop_n_channels(const struct bow_loop *loop)
{
    return atomic_load_explicit(&loop->n_channels, memory_order_relaxed);
}
