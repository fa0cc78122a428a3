/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Starting and cancelling calls, from any thread: what is done on the caller's
 * thread (checks, encoding, times, names), and the step onto the loop.
 */

#include "base/alloc.h"
#include "base/clock.h"
#include "base/options.h"
#include "rpc/client/client_state.h"
#include "rpc/client/stream_state.h"
#include "rpc/core/call/call.h"
#include "rpc/core/codec/encode.h"
#include "rpc/core/errors.h"
#include "rpc/interceptors/intercept.h"

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
    bow__text_printf(reason, "%s is a %s method", method->path, streams ? "streaming" : "unary");
    return -EINVAL;
}

static int check_request(const struct bow__client_begin *begin, struct bow__text *reason)
{
    const struct bow_method *method = begin->method;
    const ProtobufCMessage *request = begin->request;

    if ((method->flags & BOW_METHOD_CLIENT_STREAMING) != 0) {
        return request == NULL ? 0 : -EINVAL;
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

    if (n == -ENOBUFS) {
        size_t size = bow__encoded_size(request);
        if (size == SIZE_MAX) {
            bow__text_printf(reason, "it is too large");
            return refuse_request(call, reason);
        }
        call->block = bow__block_new_to_fill(call->balancer->client->context, size);
        if (call->block == NULL) {
            return -ENOMEM;
        }
        n = bow__encode(request, call->block->data, size, reason);
    }
    if (n < 0) {
        return refuse_request(call, reason);
    }
    call->n_request = (size_t)n;
    return 0;
}

/* Times */

static void set_deadline(struct bow__client_call *call, const struct bow_call_options *options)
{
    const struct bow_client *client = call->balancer->client;
    const struct bow_system *system = bow__context_system(client->context);

    /* The clock itself: a loop that is not being driven has an old notion of it. */
    call->started_ns = system->now_ns(system->user);
    call->timeout_ns = options->timeout_ns;
    if (call->timeout_ns == 0) {
        call->timeout_ns = call->stream == NULL ? client->options.default_timeout_ns : BOW_NEVER;
        call->timeout_origin = BOW__TIMEOUT_DEFAULT;
    }
    call->deadline_ns = bow__time_add(call->started_ns, call->timeout_ns);
    if (options->parent != NULL && bow_call_deadline(options->parent) < call->deadline_ns) {
        call->deadline_ns = bow_call_deadline(options->parent);
        call->timeout_ns = bow__time_left(call->deadline_ns, call->started_ns);
        call->timeout_origin = BOW__TIMEOUT_PARENT;
    }
}

/* Names and parents */

static void cancel_child(struct bow__child *child)
{
    bow__client_call_request_cancel(BOW__CONTAINER(child, struct bow__client_call, child));
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
    call->id = bow__call_ids_put(&call->balancer->client->ids, call);
    return call->id != 0 ? 0 : -ENOMEM;
}

/* Nobody else may find the call after this. */
static void forget(struct bow__client_call *call)
{
    if (call->id != 0) {
        bow__call_ids_remove(&call->balancer->client->ids, call->id);
    }
    bow__child_calls_leave(&call->child);
}

/* Onto the loop */

static int open_link(struct bow__balancer *balancer)
{
    if (balancer->opened || balancer->closing) {
        return 0;
    }
    int rc = bow_loop_add_hook(balancer->loop, &balancer->hook);
    balancer->opened = rc == 0;
    balancer->closing = rc < 0;
    if (rc == 0) {
        bow__client_link_unsettle(balancer);
    }
    return rc;
}

/* A call that fails holds the balancer until all of it has ended, be the loop shut down or not. */
static void hold_link(struct bow__balancer *balancer)
{
    (void)open_link(balancer);
    bow__client_link_unsettle(balancer);
    balancer->n_calls++;
}

/* Returns as bow__balancer_submit(); the call is then not on the loop. */
static int begin(struct bow__client_call *call, struct bow__text *reason)
{
    struct bow__balancer *balancer = call->balancer;

    int rc = open_link(balancer);
    if (rc == 0 && balancer->client->interceptors.n > 0) {
        rc = bow__client_intercept(call, reason);
    }
    if (rc == 0) {
        rc = bow__balancer_submit(balancer, call, reason);
    }
    if (rc >= 0) {
        bow__client_call_arm(call);
        rc = 0;
    }
    if (rc == 0 || rc == -ENOTCONN) {
        balancer->n_calls++;
        balancer->counters.now.calls_started++;
        bow__counters_touch(&balancer->counters);
    }
    return rc;
}

static void fail_posted(struct bow__client_call *call, int rc, const struct bow__text *reason)
{
    enum bow_code code = rc == -ENOTCONN ? BOW_UNAVAILABLE : bow__code_from_errno(rc);

    if (rc == -ESHUTDOWN) {
        bow__client_call_fail(call, BOW_CANCELLED, "the client was closed");
        return;
    }
    bow__client_call_fail(call, code,
                          reason->len > 0 ? reason->bytes : "the request cannot be sent");
}

static void fail_start(struct bow__client_call *call, int rc, const struct bow__text *reason)
{
    if (rc != -ENOTCONN) {
        hold_link(call->balancer);
        call->balancer->counters.now.calls_started++;
    }
    if (call->cancelled) {
        bow__client_call_fail(call, BOW_CANCELLED, "the call was cancelled");
        return;
    }
    fail_posted(call, rc, reason);
}

void bow__client_call_resume(struct bow__client_call *call)
{
    struct bow__text reason;

    bow__text_clear(&reason);
    call->state = BOW__CLIENT_CALL_POSTED; /* in no list */
    int rc = bow__balancer_submit(call->balancer, call, &reason);
    if (rc < 0) {
        fail_posted(call, rc, &reason);
    }
}

/* The count goes last: it is what keeps a client that is being freed. */
static int start_task(void *user)
{
    struct bow__client_call *call = user;
    struct bow__balancer *balancer = call->balancer;
    struct bow__text reason;

    bow__text_clear(&reason);
    int rc = call->cancelled ? -ECANCELED : begin(call, &reason);
    if (rc == 0) {
        atomic_fetch_sub_explicit(&balancer->n_posted, 1, memory_order_release);
        return 0;
    }
    fail_start(call, rc, &reason);
    bow__client_link_unpost(balancer);
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
        call->balancer->n_calls--;
    }
    return rc;
}

static int start_elsewhere(struct bow__client_call *call, struct bow__text *reason)
{
    struct bow__balancer *balancer = call->balancer;

    if (atomic_load_explicit(&balancer->n_queued, memory_order_relaxed) >=
        balancer->client->options.max_queued_calls) {
        return bow__balancer_refuse_queued(balancer, reason);
    }
    bow_task_init(&call->task, "start call", start_task, call);
    return bow__loop_post_internal(balancer->loop, &call->task, 0);
}

/* A cancellation may be under way already, which then frees the call. */
static void undo_in_loop(struct bow__client_call *call)
{
    if (atomic_load(&call->cancel_posted)) {
        call->ended = true;
        hold_link(call->balancer);
        return;
    }
    bow__client_call_free(call, true);
}

/* Likewise, and it may be running: the one that finds the other gone has the call. */
static void undo_elsewhere(struct bow__client_call *call)
{
    if (!atomic_exchange(&call->cancel_posted, false)) {
        bow__client_call_drop(call);
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

static int prepare(struct bow__client_call *call, const struct bow__client_begin *begin,
                   const struct bow_call_options *options, struct bow__text *reason)
{
    call->method = begin->method;
    call->done = begin->done;
    call->fn = begin->fn;
    call->user = begin->user;
    call->stream = begin->stream;
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
    set_deadline(call, options);
    call->waits_for_ready = options->wait_for_ready;
    call->compresses = options->compression == BOW_COMPRESSION_DEFAULT
                           ? call->balancer->compression.compression.on
                           : options->compression == BOW_COMPRESSION_AUTO;
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
    if (rc == 0) {
        rc = check(client, begin, reason);
    }
    if (rc < 0) {
        return rc;
    }
    struct bow__balancer *balancer = bow__client_link_of(client);
    if (balancer == NULL) {
        bow__text_printf(reason, "%s", BOW__CONFINED_TEXT);
        return -EINVAL;
    }
    if (bow__loop_is_foreign(balancer->loop)) {
        return -ECHILD;
    }
    bool in_loop = bow_loop_in_loop(balancer->loop);
    struct bow__client_call *call = bow__client_call_new(balancer, in_loop);
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
    return bow__client_begin(client, &begin, &reason);
}

/* Cancelling */

void bow__client_call_request_cancel(struct bow__client_call *call)
{
    if (atomic_exchange(&call->cancel_posted, true)) {
        return;
    }
    if (bow__loop_post_internal(call->balancer->loop, &call->cancel_task, 0) < 0) {
        /* The loop shuts down, and ends its calls. */
        atomic_store(&call->cancel_posted, false);
    }
}

void bow_client_cancel(struct bow_client *client, uint64_t id)
{
    if (bow__client_is_foreign(client)) {
        return;
    }
    bow__call_ids_with(&client->ids, id, bow__client_call_request_cancel);
}
