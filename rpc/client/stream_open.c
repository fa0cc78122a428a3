/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Streaming calls opened, what their task does on the loop, and their end.
 */

#include "base/alloc.h"
#include "base/refuse.h"
#include "rpc/client/call/stream_receive.h"
#include "rpc/client/call/stream_send.h"
#include "rpc/client/client.h"
#include "rpc/client/client_start.h"
#include "rpc/core/call/generic.h"
#include "rpc/core/registry.h"
#include "transport/loop/condition.h"
#include <bowline/limits.h>

#include <errno.h>
#include <string.h>

/* The task */

static void fail_call(struct bow_stream *stream, enum bow_code code, const char *message)
{
    bow__client_call_abandon(stream->call, BOW_CANCELLED);
    bow__client_call_fail(stream->call, code, message);
}

/* Returns whether the call has been ended. A call whose completion is posted ends by that. */
static bool do_asks(struct bow_stream *stream)
{
    unsigned asks = atomic_exchange_explicit(&stream->asks, 0, memory_order_acquire);

    if (asks == 0 || stream->call->state == BOW__CLIENT_CALL_FAILING) {
        return false;
    }
    if ((asks & BOW__STREAM_CANCEL) != 0) {
        bow__count(&stream->call->counts->cancelled, 1);
        fail_call(stream, BOW_CANCELLED, "the call was cancelled");
    } else {
        fail_call(stream, stream->failure_code, stream->failure.bytes);
    }
    return true;
}

/* Callbacks may do anything but end the call, which is always done later. */
static void work(struct bow_stream *stream)
{
    if (stream->call == NULL || do_asks(stream)) {
        return;
    }
    bow__stream_flush(stream);
    bow__stream_return_credit(stream);
    bow__stream_check_writable(stream);
    bow__stream_deliver(stream);
}

static int stream_task(void *user)
{
    struct bow_stream *stream = user;

    atomic_store(&stream->task_posted, false);
    work(stream);
    bow_stream_unref(stream);
    return 0;
}

static void on_turn(struct bow__work_waiter *waiter)
{
    bow__stream_wake(BOW__CONTAINER(waiter, struct bow_stream, waiter));
}

/* The end */

static void close_blocking(struct bow_stream *stream, struct bow_result *result)
{
    pthread_mutex_lock(&stream->lock);
    bow_result_move(&stream->result, result);
    stream->closed = true;
    pthread_cond_broadcast(&stream->changed);
    pthread_mutex_unlock(&stream->lock);
}

static void on_done(struct bow_result *result, bow_any_fn fn, void *user)
{
    struct bow_stream *stream = user;

    (void)fn;
    bow__stream_seal(stream);
    stream->call = NULL;
    bow__list_remove(&stream->waiter.link);
    if (bow__stream_is_blocking(stream)) {
        close_blocking(stream, result);
    } else {
        bow__message_queue_clear(&stream->in);
        stream->method->stream_thunks->on_closed(stream, result, stream->events, stream->user);
    }
    bow_stream_unref(stream); /* the call's */
}

/* Opening */

static int make(struct bow_client *client, struct bow__balancer *balancer,
                struct bow_stream **ret_stream)
{
    struct bow_stream *stream = bow__alloc_zero(client->config.context, sizeof(*stream));

    if (stream == NULL) {
        return -ENOMEM;
    }
    int rc = bow__cond_init(&stream->lock, &stream->changed);
    if (rc < 0) {
        bow__free(client->config.context, stream, sizeof(*stream));
        return rc;
    }
    atomic_init(&stream->refs, 1); /* the call's */
    stream->context = bow_context_ref(client->config.context);
    bow__loop_hold(balancer->calls.loop);
    stream->loop = balancer->calls.loop;
    stream->client = client;
    stream->result = (struct bow_result)BOW_RESULT_INIT;
    bow__text_clear(&stream->failure);
    bow_task_init(&stream->task, "stream", stream_task, stream);
    stream->waiter.fn = on_turn;
    bow__list_init(&stream->waiter.link);
    bow__coders_init(&stream->compression.coders, client->config.context);
    stream->compression.max_message_bytes = client->config.options.max_message_bytes;
    bow__arena_init(&stream->arena, client->config.context, stream->slab, sizeof(stream->slab),
                    BOW_LIMIT_CALL_ARENA_BYTES);
    *ret_stream = stream;
    return 0;
}

/* The opener has its handle and its reference before the first event can come, which on another
 * thread may be at once. */
static int begin_for(struct bow_client *client, const struct bow__client_begin *begin,
                     struct bow_stream **ret_stream, struct bow__text *reason)
{
    if (ret_stream == NULL) {
        return bow__client_begin(client, begin, reason);
    }
    struct bow_stream *before = *ret_stream;
    *ret_stream = bow_stream_ref(begin->stream);
    int rc = bow__client_begin(client, begin, reason);
    if (rc < 0) {
        *ret_stream = before;
        bow_stream_unref(begin->stream);
    }
    return rc;
}

static int refuse(const struct bow_client *client, const struct bow_method *method, const char *why)
{
    return bow__refuse(client->config.context, -EINVAL, "bow_client_open: %s: %s", method->path,
                       why);
}

/* `stream` is taken if it succeeds. */
static int open_made(struct bow_client *client, struct bow_stream *stream,
                     const ProtobufCMessage *request, const struct bow_call_options *options,
                     const void *events, void *user, struct bow_stream **ret_stream)
{
    const struct bow_method *method = stream->method;
    struct bow__text reason;

    stream->events = events;
    stream->user = user;
    atomic_init(&stream->half_closed, !bow__method_sends_many(method));
    struct bow__client_begin begin = {
        .method = method,
        .request = request,
        .options = options,
        .done = on_done,
        .user = stream,
        .stream = stream,
    };
    bow__text_clear(&reason);
    if (events == NULL) {
        (void)bow__client_catch_up(client); /* one that can't be driven says so below */
    }
    int rc = begin_for(client, &begin, ret_stream, &reason);
    if (rc < 0) {
        (void)bow__client_refuse(client, rc, &reason);
    }
    if (events == NULL && client->config.confined && !client->driving) {
        bow__client_end_drive(client);
    }
    return rc;
}

int bow_client_open(struct bow_client *client, const struct bow_method *method,
                    const ProtobufCMessage *request, const struct bow_call_options *options,
                    const void *events, void *user, struct bow_stream **ret_stream)
{
    struct bow__balancer *balancer = bow__client_balancer(client);
    struct bow_stream *stream = NULL;

    if (balancer == NULL) {
        return refuse(client, method, BOW__CONFINED_TEXT);
    }
    if (method->stream_thunks == NULL) {
        return refuse(client, method,
                      "it is a unary method: bow_client_call() or bow_client_start() calls it");
    }
    if (events == NULL && ret_stream == NULL) {
        return refuse(client, method, "without events nobody hears of it but through ret_stream");
    }
    int rc = make(client, balancer, &stream);
    if (rc < 0) {
        return rc;
    }
    stream->method = method;
    rc = open_made(client, stream, request, options, events, user, ret_stream);
    if (rc < 0) {
        bow_stream_unref(stream);
    }
    return rc;
}

/* Generic ones */

static int own_method(struct bow_stream *stream, struct bow_slice path)
{
    char *copy = bow__alloc(stream->context, path.len + 1);

    if (copy == NULL) {
        return -ENOMEM;
    }
    memcpy(copy, path.data, path.len);
    copy[path.len] = '\0';
    stream->own_path = copy;
    stream->own_method = bow__generic_method_of(copy);
    stream->method = &stream->own_method;
    return 0;
}

static int refuse_generic(const struct bow_client *client, const char *why)
{
    return bow__refuse(client->config.context, -EINVAL, "bow_client_open_generic: %s", why);
}

int bow_client_open_generic(struct bow_client *client, const char *path,
                            const struct bow_call_options *options,
                            const struct bow_generic_stream_events *events, void *user,
                            struct bow_stream **ret_stream)
{
    struct bow__balancer *balancer = bow__client_balancer(client);
    struct bow_slice text = {(const uint8_t *)path, path != NULL ? strlen(path) : 0};
    struct bow_stream *stream = NULL;

    if (balancer == NULL) {
        return refuse_generic(client, BOW__CONFINED_TEXT);
    }
    if (!bow__is_method_path(text)) {
        return refuse_generic(client, "the path is not \"/service/method\" in visible ASCII");
    }
    if (events == NULL) {
        return refuse_generic(client, "it takes events");
    }
    int rc = make(client, balancer, &stream);
    if (rc < 0) {
        return rc;
    }
    rc = own_method(stream, text);
    if (rc == 0) {
        rc = open_made(client, stream, NULL, options, events, user, ret_stream);
    }
    if (rc < 0) {
        bow_stream_unref(stream);
    }
    return rc;
}
