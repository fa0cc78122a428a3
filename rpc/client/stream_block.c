/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The blocking style of a client's stream: waiting on a condition while another thread
 * runs the loop, or by driving the loop of a confined client. Knows no session.
 */

#include "base/alloc.h"
#include "base/clock.h"
#include "base/refuse.h"
#include "rpc/client/call/stream_receive.h"
#include "rpc/client/client.h"
#include "rpc/core/errors.h"
#include "transport/loop/condition.h"

#include <errno.h>

/* Until when; one of the two clocks counts. */
struct deadline {
    bool endless;
    uint64_t until_ns;     /* confined: of the loop's clock */
    struct timespec until; /* else */
};

typedef bool (*condition_fn)(const struct bow_stream *stream);

static int refuse(const struct bow_stream *stream, int rc, const char *why)
{
    return bow__refuse(stream->context, rc, "a blocking function of a stream of %s: %s",
                       stream->method->path, why);
}

/* The client is looked at under the lock, for it may be freed once the stream is closed. */
static int check_caller(struct bow_stream *stream)
{
    int rc = 0;

    if (!bow__stream_is_blocking(stream)) {
        return refuse(stream, -EINVAL, "it was opened with events, which bring what comes");
    }
    if (bow__loop_is_foreign(stream->loop)) {
        return -ECHILD;
    }
    const char *why = "on the client's own loop it would wait for itself: open it with events";
    pthread_mutex_lock(&stream->lock);
    const struct bow_client *client = stream->closed ? NULL : stream->client;
    if (client != NULL && client->config.confined &&
        !pthread_equal(client->thread, pthread_self())) {
        rc = -EINVAL;
        why = BOW__CONFINED_TEXT;
    } else if (client != NULL &&
               (client->config.confined ? client->driving : bow__client_in_loops(client))) {
        rc = -EDEADLK;
    }
    pthread_mutex_unlock(&stream->lock);
    return rc < 0 ? refuse(stream, rc, why) : 0;
}

/* Waiting */

static uint64_t now_of(const struct bow_stream *stream)
{
    const struct bow_system *system = bow__context_system(stream->context);

    return system->now_ns(system->user);
}

static struct deadline deadline_of(const struct bow_stream *stream, uint64_t timeout_ns)
{
    return (struct deadline){
        .endless = timeout_ns == BOW_NEVER,
        .until_ns = bow__time_add(now_of(stream), timeout_ns),
        .until = bow__cond_deadline(timeout_ns),
    };
}

/* With the lock held, and the stream not closed. */
static int wait_for_loop(struct bow_stream *stream, const struct deadline *deadline)
{
    if (deadline->endless) {
        pthread_cond_wait(&stream->changed, &stream->lock);
        return 0;
    }
    return bow__cond_wait(&stream->changed, &stream->lock, &deadline->until) ? 0 : -ETIMEDOUT;
}

static int drive(struct bow_stream *stream, const struct deadline *deadline)
{
    uint64_t left =
        deadline->endless ? BOW_NEVER : bow__time_left(deadline->until_ns, now_of(stream));

    pthread_mutex_unlock(&stream->lock);
    int rc = bow__client_drive(stream->client, left);
    pthread_mutex_lock(&stream->lock);
    return rc == 0 && left == 0 ? -ETIMEDOUT : rc;
}

/* Returns 0, -ETIMEDOUT, or what the loop of a confined client says. */
static int wait_until(struct bow_stream *stream, condition_fn is_true,
                      const struct deadline *deadline)
{
    struct bow_client *driven = NULL;
    int rc = 0;

    pthread_mutex_lock(&stream->lock);
    while (rc == 0 && !is_true(stream) && !stream->closed) {
        driven = stream->client->config.confined ? stream->client : NULL;
        rc = driven != NULL ? drive(stream, deadline) : wait_for_loop(stream, deadline);
    }
    if (is_true(stream) || stream->closed) {
        rc = 0;
    }
    pthread_mutex_unlock(&stream->lock);
    if (driven != NULL) {
        bow__client_end_drive(driven);
    }
    return rc;
}

static bool has_message(const struct bow_stream *stream)
{
    return stream->in.first != NULL;
}

static bool may_write(const struct bow_stream *stream)
{
    return !atomic_load(&stream->blocked) || atomic_load(&stream->ended) ||
           atomic_load(&stream->half_closed);
}

static bool is_closed(const struct bow_stream *stream)
{
    return stream->closed;
}

/* Receiving */

static void give_credit_back(struct bow_stream *stream, size_t n)
{
    atomic_fetch_add(&stream->n_taken, n);
    bow__stream_wake(stream);
}

/* From now on what comes is not for anybody. */
static void drop_messages(struct bow_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    stream->dropping = true;
    size_t n = bow__message_queue_clear(&stream->in);
    pthread_mutex_unlock(&stream->lock);
    give_credit_back(stream, n);
}

static struct bow__queued_message *pop(struct bow_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    struct bow__queued_message *queued = bow__message_queue_pop(&stream->in);
    pthread_mutex_unlock(&stream->lock);
    return queued;
}

int bow_stream_receive(struct bow_stream *stream, uint64_t timeout_ns,
                       const ProtobufCMessage **ret_message)
{
    struct deadline deadline = deadline_of(stream, timeout_ns);
    ProtobufCMessage *message = NULL;
    struct bow__text reason;

    int rc = check_caller(stream);
    if (rc == 0) {
        rc = wait_until(stream, has_message, &deadline);
    }
    if (rc < 0) {
        return rc;
    }
    bow__arena_reset(&stream->arena);
    struct bow__queued_message *queued = pop(stream);
    if (queued == NULL) {
        return 0;
    }
    size_t n = bow__consumed_bytes(queued->len);
    rc = bow__stream_decode_queued(stream, queued, &message, &reason);
    if (rc < 0) {
        bow__stream_give_up(stream, bow__code_from_errno(rc), reason.bytes);
        drop_messages(stream);
        return 0;
    }
    give_credit_back(stream, n);
    *ret_message = message;
    return 1;
}

/* Sending */

/* What was written goes out also if nobody waits for anything for a while. */
static void drive_confined(struct bow_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    struct bow_client *client = stream->closed ? NULL : stream->client;
    pthread_mutex_unlock(&stream->lock);
    if (client != NULL && client->config.confined) {
        (void)bow__client_drive(client, 0);
        bow__client_end_drive(client);
    }
}

int bow_stream_write(struct bow_stream *stream, const ProtobufCMessage *message,
                     uint64_t timeout_ns)
{
    struct deadline deadline = deadline_of(stream, timeout_ns);

    int rc = check_caller(stream);
    if (rc < 0) {
        return rc;
    }
    while ((rc = bow_stream_send(stream, message)) == -EAGAIN) {
        rc = wait_until(stream, may_write, &deadline);
        if (rc < 0) {
            return rc;
        }
    }
    drive_confined(stream);
    return rc;
}

/* The end */

/* What we could not decode counts, also when the server was content. */
static void apply_failure(struct bow_stream *stream, struct bow_result *result)
{
    struct bow_status status = BOW_STATUS_OK_INIT;

    if (stream->failure.len > 0 && result->status.code == BOW_OK) {
        status.code = stream->failure_code;
        status.message = stream->failure.bytes;
        result->status = bow__result_keep_status(result->memory, &status);
        result->reply = NULL;
    }
}

int bow_stream_finish(struct bow_stream *stream, struct bow_result *ret_result)
{
    struct deadline endless = {.endless = true};

    int rc = check_caller(stream);
    if (rc < 0) {
        return rc;
    }
    (void)bow_stream_half_close(stream);
    drop_messages(stream);
    rc = wait_until(stream, is_closed, &endless);
    if (rc < 0) {
        bow__result_fail(stream->context, rc, "driving the client's loop failed", true, ret_result);
    } else {
        bow_result_move(ret_result, &stream->result);
        apply_failure(stream, ret_result);
    }
    bow_stream_unref(stream);
    return 0;
}
