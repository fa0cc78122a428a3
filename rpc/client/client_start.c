/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Starting and cancelling calls, from any thread: what is done on the caller's
 * thread (checks, encoding, times, names), and the step onto the loop.
 */

#include "rpc/client/client_start.h"
#include "base/options.h"
#include "base/refuse.h"
#include "rpc/client/call/call_retry.h"
#include "rpc/client/call/client_metadata.h"
#include "rpc/client/call/stream.h"
#include "rpc/client/client.h"
#include "rpc/client/client_deadline.h"
#include "rpc/client/client_metrics.h"
#include "rpc/client/intercept_client.h"
#include "rpc/core/call/call.h"
#include "rpc/core/codec/encode.h"
#include "rpc/core/errors.h"

#include <errno.h>
#include <string.h>

/* Checks */

static int check_kind(const struct bow__client_begin *begin, struct bow__text *reason)
{
    const struct bow_method *method = begin->method;
    bool streams =
        (method->flags & (BOW_METHOD_CLIENT_STREAMING | BOW_METHOD_SERVER_STREAMING)) != 0;

    if (streams == (begin->stream != NULL)) {
        return 0;
    }
    bow__text_printf(reason, "%s is a %s method: %s", method->path, streams ? "streaming" : "unary",
                     streams ? "bow_client_open() opens it"
                             : "bow_client_call() or bow_client_start() calls it");
    return -EINVAL;
}

static int check_request(const struct bow__client_begin *begin, struct bow__text *reason)
{
    const struct bow_method *method = begin->method;
    const ProtobufCMessage *request = begin->request;

    if ((method->flags & BOW_METHOD_CLIENT_STREAMING) != 0) {
        if (request == NULL) {
            return 0;
        }
        bow__text_printf(reason, "%s takes its messages one by one: no request opens it",
                         method->path);
        return -EINVAL;
    }
    if (request == NULL || request->descriptor != method->input) {
        bow__text_printf(reason, "the request of %s is not a %s", method->path,
                         method->input->name);
        return -EINVAL;
    }
    return 0;
}

static int check(const struct bow_client *client, const struct bow__client_begin *begin,
                 struct bow__text *reason)
{
    if (atomic_load(&client->closing)) {
        bow__text_printf(reason, "the client is being freed");
        return -ESHUTDOWN;
    }
    int rc = check_kind(begin, reason);
    return rc == 0 ? check_request(begin, reason) : rc;
}

/* The request */

static int refuse_request(const struct bow__client_call *call, struct bow__text *reason)
{
    struct bow__text why = *reason;

    bow__text_clear(reason);
    bow__text_printf(reason, "the request of %s cannot be encoded: %s", call->method->path,
                     why.bytes);
    return -EINVAL;
}

static int encode(struct bow__client_call *call, const ProtobufCMessage *request,
                  struct bow__text *reason)
{
    ssize_t n = bow__encode(request, call->request, BOW__INLINE_REQUEST_BYTES, reason);

    if (n > BOW__INLINE_REQUEST_BYTES) {
        size_t size = (size_t)n;
        call->block = bow__block_new_to_fill(call->calls->context, size);
        if (call->block == NULL) {
            return -ENOMEM;
        }
        n = bow__encode_sized(request, call->block->data, size, reason);
    }
    if (n < 0) {
        return refuse_request(call, reason);
    }
    call->n_request = (size_t)n;
    return 0;
}

/* Cancelling */

/* One that was begun on another thread and never came to its loop: the balancer may go. */
static void drop(struct bow__client_call *call)
{
    struct bow__balancer *balancer = bow__balancer_of(call);

    bow__client_call_free(call, false);
    bow__client_unpost(balancer);
}

/* Before it has come to the loop, if it ever does: see undo_elsewhere(). */
static void cancel_unstarted(struct bow__client_call *call)
{
    call->cancelled = true;
    if (!atomic_exchange(&call->cancel_posted, false)) {
        drop(call);
    }
}

static int cancel_task(void *user)
{
    struct bow__client_call *call = user;
    struct bow__client_calls *calls = call->calls;

    if (call->ended) {
        calls->n_calls--;
        bow__client_call_free(call, true);
        calls->ops->check_closed(calls);
        return 0;
    }
    if (call->state == BOW__CLIENT_CALL_POSTED) {
        cancel_unstarted(call);
        return 0;
    }
    atomic_store(&call->cancel_posted, false);
    switch (call->state) {
    case BOW__CLIENT_CALL_HELD:
    case BOW__CLIENT_CALL_QUEUED:
    case BOW__CLIENT_CALL_RESTING:
    case BOW__CLIENT_CALL_OPEN:
    case BOW__CLIENT_CALL_EXPIRING:
    case BOW__CLIENT_CALL_LINGERING:
        bow__count(&call->counts->cancelled, 1);
        bow__client_call_abandon(call, BOW_CANCELLED);
        bow__client_call_fail(call, BOW_CANCELLED, "the call was cancelled");
        break;
    case BOW__CLIENT_CALL_POSTED:
    case BOW__CLIENT_CALL_FAILING:
    case BOW__CLIENT_CALL_DONE:
        break;
    }
    return 0;
}

/* Under the lock by which the call was found. Thread: any. */
static void request_cancel(struct bow__client_call *call)
{
    if (atomic_exchange(&call->cancel_posted, true)) {
        return;
    }
    if (bow__loop_post_internal(call->calls->loop, &call->cancel_task, 0) < 0) {
        /* The loop shuts down, and ends its calls. */
        atomic_store(&call->cancel_posted, false);
    }
}

/* Names and parents */

static void cancel_child(struct bow__child *child)
{
    request_cancel(BOW__CONTAINER(child, struct bow__client_call, child));
}

static int join_parent(struct bow__client_call *call, struct bow_call *parent)
{
    if (parent == NULL) {
        return 0;
    }
    struct bow__child_calls *child_calls = bow__call_family(parent);
    if (child_calls == NULL) {
        return -ENOMEM;
    }
    call->child.cancel = cancel_child;
    bow__child_calls_join(child_calls, &call->child);
    return 0;
}

static int name_call(struct bow__client_call *call, uint64_t *ret_id)
{
    if (ret_id == NULL) {
        return 0;
    }
    call->id = bow__call_ids_put(call->calls->ids, call);
    return call->id != 0 ? 0 : -ENOMEM;
}

/* Nobody else may find the call after this. */
static void forget(struct bow__client_call *call)
{
    if (call->id != 0) {
        bow__call_ids_remove(call->calls->ids, call->id);
    }
    bow__child_calls_leave(&call->child);
}

/* Onto the loop */

static int open_balancer(struct bow__balancer *balancer)
{
    if (balancer->opened || balancer->calls.closing) {
        return 0;
    }
    int rc = bow_loop_add_hook(balancer->calls.loop, &balancer->hook);
    balancer->opened = rc == 0;
    balancer->calls.closing = rc < 0;
    if (rc == 0) {
        bow__client_unsettle(balancer);
        bow__client_metrics_start(balancer);
    }
    return rc;
}

/* A call that fails holds the balancer until all of it has ended, be the loop shut down or not. */
static void hold_balancer(struct bow__balancer *balancer)
{
    (void)open_balancer(balancer);
    bow__client_unsettle(balancer);
    balancer->calls.n_calls++;
}

/* Returns as bow__balancer_submit(); the call is then not on the loop. */
static int begin(struct bow__client_call *call, struct bow__text *reason)
{
    struct bow__balancer *balancer = bow__balancer_of(call);

    bow__client_call_find_counts(call);
    int rc = open_balancer(balancer);
    if (rc == 0 && bow__call_retry_concerns(call)) {
        rc = bow__call_retry_begin(call, reason);
    }
    if (rc == 0 && balancer->subchannels.config->interceptors.n > 0) {
        rc = bow__client_intercept(call, reason);
    }
    if (rc == 0) {
        rc = bow__balancer_submit(balancer, call, reason);
    }
    if (rc >= 0) {
        bow__client_deadline_arm(call);
        rc = 0;
    }
    if (rc == 0 || rc == -ENOTCONN) {
        balancer->calls.n_calls++;
        bow__client_call_count_start(call);
    } else if (rc == -EAGAIN) {
        bow__client_call_count_refused(call);
    }
    return rc;
}

static void fail_start(struct bow__client_call *call, int rc, const struct bow__text *reason)
{
    if (rc != -ENOTCONN) {
        hold_balancer(bow__balancer_of(call));
        bow__client_call_find_counts(call);
        bow__client_call_count_start(call);
    }
    if (call->cancelled) {
        bow__count(&call->counts->cancelled, 1);
        bow__client_call_fail(call, BOW_CANCELLED, "the call was cancelled");
        return;
    }
    bow__client_fail_submitted(call, rc, reason);
}

/* The count goes last: it is what keeps a client that is being freed. */
static int start_task(void *user)
{
    struct bow__client_call *call = user;
    struct bow__balancer *balancer = bow__balancer_of(call);
    struct bow__text reason;

    bow__text_clear(&reason);
    int rc = call->cancelled ? -ECANCELED : begin(call, &reason);
    if (rc == 0) {
        atomic_fetch_sub_explicit(&balancer->n_posted, 1, memory_order_release);
        return 0;
    }
    fail_start(call, rc, &reason);
    bow__client_unpost(balancer);
    return 0;
}

static int start_in_loop(struct bow__client_call *call, struct bow__text *reason)
{
    int rc = begin(call, reason);

    if (rc != -ENOTCONN) {
        return rc;
    }
    rc = bow__client_call_fail_later(call, BOW_UNAVAILABLE, reason->bytes);
    if (rc < 0) {
        call->calls->n_calls--;
    }
    return rc;
}

static int start_elsewhere(struct bow__client_call *call, struct bow__text *reason)
{
    struct bow__balancer *balancer = bow__balancer_of(call);

    if (atomic_load_explicit(&balancer->calls.n_queued, memory_order_relaxed) >=
        balancer->subchannels.config->options.max_queued_calls) {
        bow__client_call_count_refused(call);
        return bow__balancer_refuse_queued(balancer, reason);
    }
    bow_task_init(&call->task, "start call", start_task, call);
    return bow__loop_post_internal(balancer->calls.loop, &call->task, 0);
}

/* A cancellation may be under way already, which then frees the call. */
static void undo_in_loop(struct bow__client_call *call)
{
    if (atomic_load(&call->cancel_posted)) {
        call->ended = true;
        hold_balancer(bow__balancer_of(call));
        return;
    }
    bow__client_call_free(call, true);
}

/* Likewise, and it may be running: the one that finds the other gone has the call. */
static void undo_elsewhere(struct bow__client_call *call)
{
    if (!atomic_exchange(&call->cancel_posted, false)) {
        drop(call);
    }
}

static void undo(struct bow__client_call *call, bool in_loop)
{
    forget(call);
    bow__arena_reset(&call->memory->arena); /* it may go back to the pool */
    if (in_loop) {
        undo_in_loop(call);
    } else {
        undo_elsewhere(call);
    }
}

static int set_compression(struct bow__client_call *call, enum bow_compression given,
                           struct bow__text *reason)
{
    enum bow_compression mode =
        given == BOW_COMPRESSION_DEFAULT ? call->calls->compression.compression.mode : given;

    if (!bow__compression_is_known(given)) {
        bow__text_printf(reason, "%s: options.compression is none of enum bow_compression",
                         call->method->path);
        return -EINVAL;
    }
    call->compresses = (uint8_t)mode;
    if (call->stream != NULL && mode >= BOW_COMPRESSION_AUTO) {
        atomic_init(&call->stream->compresses, (uint8_t)mode);
    }
    return 0;
}

static int prepare(struct bow__client_call *call, const struct bow__client_begin *begin,
                   const struct bow_call_options *options, struct bow__text *reason)
{
    call->method = begin->method;
    call->done = begin->done;
    call->fn = begin->fn;
    call->user = begin->user;
    call->stream = begin->stream;
    bow_task_init(&call->cancel_task, "cancel call", cancel_task, call);
    if (call->stream != NULL) {
        call->stream->call = call;
    }
    int rc = begin->request != NULL ? encode(call, begin->request, reason) : 0;
    if (rc < 0) {
        return rc;
    }
    rc = bow__client_call_take_metadata(call, options, reason);
    if (rc < 0) {
        return rc;
    }
    bow__client_deadline_set(call, options);
    call->waits_for_ready = options->wait_for_ready;
    rc = set_compression(call, options->compression, reason);
    if (rc < 0) {
        return rc;
    }
    rc = name_call(call, begin->ret_id);
    if (rc < 0) {
        return rc;
    }
    return join_parent(call, options->parent);
}

/* The id is there before the callback can be, which may run on another thread at once. */
static int launch(struct bow__client_call *call, bool in_loop, uint64_t *ret_id,
                  struct bow__text *reason)
{
    uint64_t before = ret_id != NULL ? *ret_id : 0;

    if (ret_id != NULL) {
        *ret_id = call->id;
    }
    int rc = in_loop ? start_in_loop(call, reason) : start_elsewhere(call, reason);
    if (rc < 0 && ret_id != NULL) {
        *ret_id = before;
    }
    return rc;
}

int bow__client_begin(struct bow_client *client, const struct bow__client_begin *begin,
                      struct bow__text *reason)
{
    struct bow_call_options known = BOW_CALL_OPTIONS_INIT;

    int rc = begin->options != NULL ? bow__options_read(&known, sizeof(known), begin->options) : 0;
    if (rc < 0) {
        bow__text_printf(reason, "%s: begin the call's options with BOW_CALL_OPTIONS_INIT",
                         begin->method->path);
    } else {
        rc = check(client, begin, reason);
    }
    if (rc < 0) {
        return rc;
    }
    struct bow__balancer *balancer = bow__client_balancer(client);
    if (balancer == NULL) {
        bow__text_printf(reason, "%s", BOW__CONFINED_TEXT);
        return -EINVAL;
    }
    if (bow__loop_is_foreign(balancer->calls.loop)) {
        return -ECHILD;
    }
    bool in_loop = bow_loop_in_loop(balancer->calls.loop);
    struct bow__client_call *call = bow__client_call_new(&balancer->calls, in_loop);
    if (call == NULL) {
        return -ENOMEM;
    }
    if (!in_loop) {
        atomic_fetch_add_explicit(&balancer->n_posted, 1, memory_order_relaxed);
    }
    rc = prepare(call, begin, &known, reason);
    if (rc == 0) {
        rc = launch(call, in_loop, begin->ret_id, reason);
    }
    if (rc < 0 && call->intercepted != NULL) {
        bow__client_intercept_undo(call, rc, reason);
    }
    if (rc < 0) {
        undo(call, in_loop);
    }
    return rc;
}

int bow__client_refuse(const struct bow_client *client, int rc, const struct bow__text *reason)
{
    if (rc == -EINVAL || rc == -EMSGSIZE) {
        (void)bow__refuse(client->config.context, rc, "starting a call: %s", reason->bytes);
    }
    return rc;
}

int bow_client_start(struct bow_client *client, const struct bow_method *method,
                     const ProtobufCMessage *request, const struct bow_call_options *options,
                     bow_client_done_fn done, bow_any_fn fn, void *user, uint64_t *ret_id)
{
    struct bow__client_begin begin = {
        .method = method,
        .request = request,
        .options = options,
        .done = done,
        .fn = fn,
        .user = user,
        .ret_id = ret_id,
    };
    struct bow__text reason;

    bow__text_clear(&reason);
    return bow__client_refuse(client, bow__client_begin(client, &begin, &reason), &reason);
}

void bow_client_cancel(struct bow_client *client, uint64_t id)
{
    if (bow__client_is_foreign(client)) {
        return;
    }
    bow__call_ids_with(&client->ids, id, request_cancel);
}
