/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The life of a server's call, its memory, and what a handler may ask of it. How
 * it is answered is in call_answer.c.
 */

#include "rpc/core/call/call.h"
#include "base/hints.h"
#include "rpc/core/call/call_gone.h"
#include "rpc/core/call/call_stream.h"
#include "rpc/core/intercept.h"
#include <bowline/limits.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

void bow__call_init(struct bow_call *call, const struct bow__call_ops *ops,
                    struct bow_context *context, void *slab, size_t n_slab)
{
    bow__zero_struct(call, offsetof(struct bow_call, arena));
    call->answer.block = NULL;
    call->ops = ops;
    call->peer = "";
    call->deadline_ns = BOW_NEVER;
    bow__arena_init(&call->arena, context, slab, n_slab, BOW_LIMIT_CALL_ARENA_BYTES);
}

void bow__call_free(struct bow_call *call)
{
    struct bow__child_calls *child_calls = atomic_load(&call->child_calls);

    if (child_calls != NULL) {
        bow__child_calls_end(child_calls);
        bow__child_calls_unref(child_calls);
    }
    if (call->answer.block != NULL) {
        bow__block_unref(call->answer.block);
    }
    if (call->stream != NULL) {
        bow__call_stream_free(call);
    }
    if (bow__arena_has_grown(&call->arena)) {
        bow__arena_reset(&call->arena);
    }
    atomic_store_explicit(&call->end_code, BOW__CALL_GONE, memory_order_relaxed);
    call->ops->free(call);
}

struct bow_call *bow_call_ref(struct bow_call *call)
{
    if (bow__call_is_gone(call)) {
        (void)bow__call_is_misused(call, "referred to");
        return call;
    }
    if (call->stream != NULL) {
        atomic_fetch_add_explicit(&call->stream->refs, 1, memory_order_relaxed);
    }
    return call;
}

void bow_call_unref(struct bow_call *call)
{
    if (bow__call_is_gone(call)) {
        (void)bow__call_is_misused(call, "let go of");
        return;
    }
    if (call->stream != NULL &&
        atomic_fetch_sub_explicit(&call->stream->refs, 1, memory_order_acq_rel) == 1) {
        bow__call_free(call);
    }
}

/* The loop's part after the handler was told: it, or the handler meanwhile, answered. */
static void notify(struct bow_call *call)
{
    unsigned expected = BOW__CALL_NOTIFYING;

    call->on_cancel(call, (enum bow_code)atomic_load(&call->end_code), call->cancel_user);
    if (!atomic_compare_exchange_strong(&call->state, &expected, BOW__CALL_ORPHANED)) {
        bow__call_free(call);
    }
}

static void orphan(struct bow_call *call)
{
    unsigned state = BOW__CALL_HELD;
    unsigned orphaned = call->on_cancel != NULL ? BOW__CALL_NOTIFYING : BOW__CALL_ORPHANED;

    if (atomic_compare_exchange_strong(&call->state, &state, orphaned)) {
        if (orphaned == BOW__CALL_NOTIFYING) {
            notify(call);
        }
        return;
    }
    if (state == BOW__CALL_POSTED &&
        atomic_compare_exchange_strong(&call->state, &state, BOW__CALL_POSTED_LATE)) {
        return;
    }
    assert(state == BOW__CALL_STRANDED);
    bow__call_free(call);
}

void bow__call_end(struct bow_call *call, enum bow_code why)
{
    call->session = NULL;
    if (!call->invoked) {
        bow__call_free(call);
        return;
    }
    call->ops->hold(call);
    /* First `end_code`, then the child_calls, both sequentially consistent: a child that joins
     * concurrently either is in the list by now or sees `end_code`. The word changes last: until
     * then the call cannot go. */
    atomic_store(&call->end_code, (unsigned)why);
    struct bow__child_calls *child_calls = atomic_load(&call->child_calls);
    if (child_calls != NULL) {
        bow__child_calls_end(child_calls);
    }
    orphan(call);
}

static bool was_answered(const struct bow_call *call, unsigned state)
{
    return bow__call_is_gone(call) ||
           (state != BOW__CALL_HELD && state != BOW__CALL_NOTIFYING && state != BOW__CALL_ORPHANED);
}

int bow__call_discard_answer(struct bow_call *call)
{
    unsigned state = atomic_load(&call->state);

    if (was_answered(call, state)) {
        return bow__call_is_misused(call, "answered again");
    }
    for (;;) {
        unsigned next = state == BOW__CALL_NOTIFYING ? BOW__CALL_DROPPED : BOW__CALL_STRANDED;
        if (state == BOW__CALL_ORPHANED) {
            bow__call_free(call);
            return -ECANCELED;
        }
        assert(state == BOW__CALL_HELD || state == BOW__CALL_NOTIFYING);
        if (atomic_compare_exchange_strong(&call->state, &state, next)) {
            return -ECANCELED;
        }
    }
}

struct bow__child_calls *bow__call_family(struct bow_call *call)
{
    struct bow__child_calls *child_calls = atomic_load(&call->child_calls);

    if (child_calls != NULL) {
        return child_calls;
    }
    child_calls = bow__child_calls_new(call->arena.context);
    if (child_calls == NULL) {
        return NULL;
    }
    atomic_store(&call->child_calls, child_calls);
    if (atomic_load(&call->end_code) != 0) {
        bow__child_calls_end(child_calls);
    }
    return child_calls;
}

void *bow_call_alloc(struct bow_call *call, size_t size)
{
    if (bow__call_is_gone(call)) {
        (void)bow__call_is_misused(call, "asked for memory");
        return NULL;
    }
    return bow__arena_alloc(&call->arena, size);
}

struct bow_arena *bow_call_arena(struct bow_call *call)
{
    if (bow__call_is_gone(call)) {
        (void)bow__call_is_misused(call, "asked for its arena");
        return NULL;
    }
    return bow__arena_as_public(&call->arena);
}

char *bow_call_printf(struct bow_call *call, const char *format, ...)
{
    va_list args;

    if (bow__call_is_gone(call)) {
        (void)bow__call_is_misused(call, "asked for memory");
        return NULL;
    }
    va_start(args, format);
    char *text = bow__arena_vprintf(&call->arena, format, args);
    va_end(args);
    return text;
}

char *bow_call_strdup(struct bow_call *call, const char *text)
{
    if (bow__call_is_gone(call)) {
        (void)bow__call_is_misused(call, "asked for memory");
        return NULL;
    }
    return bow__arena_dup(&call->arena, text, strlen(text));
}

void *bow_call_state(const struct bow_call *call, const void *state_key)
{
    if (bow__call_is_gone(call)) {
        (void)bow__call_is_misused(call, "asked for an interceptor's state");
        return NULL;
    }
    return bow__intercepted_state(call->states, state_key);
}

const char *bow_call_path(const struct bow_call *call)
{
    return call->method->path;
}

const char *bow_call_peer(const struct bow_call *call)
{
    return call->peer;
}

uint64_t bow_call_deadline(const struct bow_call *call)
{
    return call->deadline_ns;
}

bool bow_call_is_cancelled(const struct bow_call *call)
{
    return atomic_load_explicit(&call->end_code, memory_order_relaxed) != 0;
}

struct bow_channel *bow_call_channel(const struct bow_call *call)
{
    return call->ops->channel(call);
}

int bow_call_peer_subject(const struct bow_call *call, char *text, size_t size)
{
    return call->ops->peer_subject(call, text, size);
}

int bow_call_peer_credentials(const struct bow_call *call,
                              struct bow_peer_credentials *ret_credentials)
{
    return call->ops->peer_credentials(call, ret_credentials);
}

struct bow_loop *bow_call_loop(const struct bow_call *call)
{
    return call->ops->loop(call);
}

void bow_call_on_cancel(struct bow_call *call, bow_call_cancel_fn fn, void *user)
{
    unsigned expected = BOW__CALL_ORPHANED;

    if (bow__call_is_gone(call)) {
        (void)bow__call_is_misused(call, "given a function for its cancel");
        return;
    }
    assert(call->ops->in_loop(call));
    call->on_cancel = fn;
    call->cancel_user = user;
    if (call->stream != NULL) {
        return; /* told with on_closed, which comes in any case */
    }
    if (fn == NULL || atomic_load(&call->end_code) == 0 ||
        !atomic_compare_exchange_strong(&call->state, &expected, BOW__CALL_NOTIFYING)) {
        return;
    }
    if (call->ops->post(call, notify) < 0) {
        atomic_store(&call->state, BOW__CALL_ORPHANED);
    }
}
