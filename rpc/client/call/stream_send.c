/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Messages out of a client's stream: encoded by who sends, in place when that is on the
 * loop and the session has room, else queued until the loop hands them over.
 */

#include "rpc/client/call/stream_send.h"
#include "base/alloc.h"
#include "base/refuse.h"
#include "rpc/core/codec/encode.h"
#include "rpc/core/codec/raw.h"
#include "rpc/core/message/payload.h"
#include <bowline/generic.h>

#include <bowline/limits.h>
#include <errno.h>

/* Whether */

static int refusal(const struct bow_stream *stream)
{
    if (bow__loop_is_foreign(stream->loop)) {
        return -ECHILD;
    }
    if (atomic_load(&stream->ended)) {
        return -ECANCELED;
    }
    if (atomic_load(&stream->half_closed)) {
        return -EPIPE;
    }
    return atomic_load(&stream->blocked) ? -EAGAIN : 0;
}

bool bow_stream_is_writable(const struct bow_stream *stream)
{
    return refusal(stream) == 0;
}

/* What a queued message counts for: empty ones take memory too. */
static size_t weight(const struct bow__queued_message *queued)
{
    return sizeof(struct bow__block) + sizeof(*queued) + queued->len;
}

/* With what the session has of it, which other threads are told. */
static size_t waiting(struct bow_stream *stream)
{
    const struct bow__session *session = bow__stream_session(stream);
    size_t n_unsent = session != NULL ? session->ops->queued(session, stream->call->key) : 0;

    atomic_store_explicit(&stream->n_unsent, n_unsent, memory_order_relaxed);
    return atomic_load_explicit(&stream->n_waiting, memory_order_relaxed) + n_unsent;
}

static void check_blocked(struct bow_stream *stream)
{
    if (waiting(stream) >= BOW_STREAM_WRITABLE_BYTES) {
        atomic_store(&stream->blocked, true);
    }
}

void bow__stream_check_writable(struct bow_stream *stream)
{
    const struct bow_stream_thunks *thunks = stream->method->stream_thunks;

    if (!atomic_load(&stream->blocked) || waiting(stream) >= BOW_STREAM_WRITABLE_BYTES) {
        return;
    }
    atomic_store(&stream->blocked, false);
    bow__count(&stream->call->counts->stalls, 1);
    if (refusal(stream) < 0) {
        return;
    }
    if (bow__stream_is_blocking(stream)) {
        bow__stream_changed(stream);
    } else if (thunks->on_writable != NULL) {
        thunks->on_writable(stream, stream->events, stream->user);
    }
}

/* To the session */

static unsigned compresses(const struct bow_stream *stream)
{
    return atomic_load_explicit(&stream->compresses, memory_order_relaxed);
}

/* Returns 1 when the message is to go as it is. */
static int send_compressed(struct bow_stream *stream, struct bow__session *session,
                           struct bow_slice bytes, size_t *ret_len)
{
    struct bow__compression *compression = &stream->call->calls->compression.compression;
    enum bow__encoding encoding = (enum bow__encoding)stream->call->encoding;

    if (!bow__compression_wants(compression, encoding, compresses(stream), bytes.len)) {
        return 1;
    }
    return bow__compression_send(compression, session, stream->call->key, encoding, 0, bytes,
                                 ret_len);
}

static int send_queued(struct bow__session *session, uint64_t key,
                       struct bow__queued_message *queued, uint32_t flags)
{
    int rc = session->ops->send(session, key, flags, bow__queued_message_block(queued),
                                queued->offset, queued->len);

    if (rc == 0) {
        bow__queued_message_given(queued);
    }
    return rc;
}

/* For another attempt */

void bow__stream_hold(struct bow_stream *stream, bool on)
{
    stream->keeps = on && bow__method_sends_many(stream->method);
    if (!stream->keeps && stream->kept_bytes > 0) {
        stream->call->calls->held_bytes -= stream->kept_bytes;
        stream->kept_bytes = 0;
        bow__message_queue_clear(&stream->kept);
    }
}

/* What `queued`, which is about to be sent, is kept as; NULL: nothing is kept, any more. */
static struct bow__queued_message *keep_for_another(struct bow_stream *stream,
                                                    struct bow__queued_message *queued)
{
    const struct bow__client_calls *calls = stream->call->calls;
    size_t n = weight(queued);
    struct bow__queued_message *dup = NULL;

    if (!stream->keeps) {
        return NULL;
    }
    if (stream->kept_bytes + n <= BOW_LIMIT_RETRY_REQUEST_BYTES &&
        calls->held_bytes + n <= calls->max_held_bytes) {
        dup = bow__queued_message_dup(stream->context, queued);
    }
    if (dup == NULL) {
        bow__stream_hold(stream, false);
    }
    return dup;
}

static void keep_sent(struct bow_stream *stream, struct bow__queued_message *dup)
{
    size_t n = weight(dup);

    bow__message_queue_push(&stream->kept, dup);
    stream->kept_bytes += n;
    stream->call->calls->held_bytes += n;
}

/* Interceptors see a message once. */
static void show(struct bow_stream *stream, struct bow__queued_message *queued)
{
    if (stream->n_again > 0) {
        stream->n_again--;
        return;
    }
    bow__intercept_sent(stream->call->intercepted, bow__queued_message_bytes(queued), queued->len);
}

/* A service config may allow less than the server does: the call ends, as gRPC has it. */
static bool is_too_large(struct bow_stream *stream, size_t n)
{
    const struct bow__call_retry *retry = stream->call->retry;
    struct bow__text text;

    if (retry == NULL || n <= retry->policy.max_request_bytes) {
        return false;
    }
    bow__text_clear(&text);
    bow__text_printf(&text,
                     "a message of %s has %zu bytes, and its service config allows %zu "
                     "(maxRequestMessageBytes)",
                     stream->method->path, n, retry->policy.max_request_bytes);
    bow__stream_give_up(stream, BOW_RESOURCE_EXHAUSTED, text.bytes);
    return true;
}

/* Returns 0, and `queued` is gone; -ECANCELED: the call is about to end; or as the session. */
static int hand_over(struct bow_stream *stream, struct bow__session *session, uint64_t key,
                     struct bow__queued_message *queued, uint32_t flags)
{
    struct bow__client_call *call = stream->call;
    size_t len = queued->len;

    if (is_too_large(stream, len)) {
        return -ECANCELED;
    }
    struct bow__queued_message *dup = keep_for_another(stream, queued);
    show(stream, queued);
    int rc = bow__compression_send_queued(&call->calls->compression.compression, session, key,
                                          (enum bow__encoding)call->encoding, flags, queued, &len);
    if (rc == 0) {
        bow__queued_message_free(queued);
    } else if (rc > 0) {
        rc = send_queued(session, key, queued, flags);
    }
    if (rc == 0) {
        stream->n_sent++;
        bow__client_call_count_sent(call, len);
    }
    if (dup != NULL && rc == 0) {
        keep_sent(stream, dup);
    } else {
        bow__queued_message_free(dup);
    }
    return rc;
}

/* Who half-closes does so under the lock, after all that was accepted before has been posted. */
static bool take_posted(struct bow_stream *stream)
{
    bool closes = atomic_load(&stream->half_closed);

    pthread_mutex_lock(&stream->lock);
    bow__message_queue_append(&stream->out, &stream->posted);
    pthread_mutex_unlock(&stream->lock);
    return closes && bow__method_sends_many(stream->method);
}

/* The first one that waits. */
static int send_next(struct bow_stream *stream, struct bow__session *session, uint64_t key,
                     bool closes)
{
    struct bow__queued_message *queued = stream->out.first;
    bool last = closes && queued->next == NULL;
    struct bow__queued_message *next = queued->next;
    size_t n = weight(queued);

    int rc = hand_over(stream, session, key, queued, last ? BOW__SEND_END : 0);
    if (rc == 0) {
        stream->out.first = next;
        stream->end_sent = last;
        (void)waiting(stream); /* first: it is to count at the one place or the other */
        atomic_fetch_sub_explicit(&stream->n_waiting, n, memory_order_release);
    }
    return rc;
}

static int send_end(struct bow_stream *stream, struct bow__session *session, uint64_t key)
{
    int rc = session->ops->half_close(session, key);

    stream->end_sent = rc == 0;
    return rc;
}

static int flush(struct bow_stream *stream, struct bow__session *session, uint64_t key, bool closes)
{
    int rc = 0;

    while (rc == 0 && stream->out.first != NULL) {
        rc = send_next(stream, session, key, closes);
    }
    if (rc == 0 && closes && !stream->end_sent) {
        rc = send_end(stream, session, key);
    }
    return rc;
}

int bow__stream_begin(struct bow_stream *stream, struct bow__session *session, uint64_t key)
{
    bool closes = take_posted(stream);

    if (stream->out.first != NULL) {
        return send_next(stream, session, key, closes);
    }
    return session->ops->begin(session, key);
}

void bow__stream_flush(struct bow_stream *stream)
{
    struct bow__session *session = bow__stream_session(stream);
    bool closes = take_posted(stream);

    if (session == NULL || (stream->out.first == NULL && (!closes || stream->end_sent))) {
        return;
    }
    int rc = flush(stream, session, stream->call->key, closes);
    if (rc == -ENOMEM) {
        /* They were accepted, so they cannot be left out. */
        bow__stream_give_up(stream, BOW_RESOURCE_EXHAUSTED,
                            "out of memory for a message that had been accepted");
    }
    bow__conn_touch(stream->call->conn);
    check_blocked(stream);
}

/* Nothing is called from here, for a function of the client may be the one that opens it. */
void bow__stream_opened(struct bow_stream *stream)
{
    bow__stream_flush(stream);
    if (atomic_load(&stream->blocked)) {
        bow__stream_wake(stream);
    }
}

void bow__stream_seal(struct bow_stream *stream)
{
    /* One that no longer waits for anything counts its wait all the same, once. */
    if (atomic_exchange(&stream->blocked, false) && stream->call->counts != NULL) {
        bow__count(&stream->call->counts->stalls, 1);
    }
    pthread_mutex_lock(&stream->lock);
    atomic_store(&stream->ended, true);
    bow__message_queue_clear(&stream->posted);
    pthread_mutex_unlock(&stream->lock);
    bow__stream_hold(stream, false);
    bow__message_queue_clear(&stream->out);
    atomic_store_explicit(&stream->n_waiting, 0, memory_order_relaxed);
}

bool bow__stream_may_retry(const struct bow_stream *stream)
{
    return stream->n_sent == 0 || stream->keeps;
}

/* What was kept goes in front of what waits. */
void bow__stream_rewind(struct bow_stream *stream)
{
    stream->end_sent = false;
    if (stream->kept_bytes == 0) {
        return;
    }
    atomic_fetch_add_explicit(&stream->n_waiting, stream->kept_bytes, memory_order_relaxed);
    stream->call->calls->held_bytes -= stream->kept_bytes;
    stream->kept_bytes = 0;
    stream->n_again += stream->n_sent;
    stream->n_sent = 0;
    bow__message_queue_append(&stream->kept, &stream->out);
    stream->out = stream->kept;
    stream->kept = (struct bow__message_queue){0};
}

/* From the loop */

static int send_as_block(struct bow_stream *stream, struct bow__session *session,
                         struct bow__queued_message *queued)
{
    int rc = hand_over(stream, session, stream->call->key, queued, 0);

    if (rc < 0) {
        bow__queued_message_free(queued);
        return rc == -ENOENT ? -ECANCELED : rc;
    }
    bow__conn_touch(stream->call->conn);
    check_blocked(stream);
    return 0;
}

static void queue(struct bow_stream *stream, struct bow__queued_message *queued)
{
    atomic_fetch_add_explicit(&stream->n_waiting, weight(queued), memory_order_relaxed);
    bow__message_queue_push(&stream->out, queued);
    check_blocked(stream);
}

/* What other threads have posted comes first. */
static int send_queued_here(struct bow_stream *stream, struct bow__queued_message *queued)
{
    bow__stream_flush(stream);
    struct bow__session *session = bow__stream_session(stream);
    if (session != NULL && stream->out.first == NULL) {
        return send_as_block(stream, session, queued);
    }
    queue(stream, queued);
    return 0;
}

/* Returns 1 when the message has to be sent as a block. */
static int send_in_place(struct bow_stream *stream, const ProtobufCMessage *message)
{
    struct bow__session *session = bow__stream_session(stream);
    size_t cap = 0;

    if (session == NULL || stream->keeps ||
        atomic_load_explicit(&stream->n_waiting, memory_order_relaxed) > 0) {
        return 1;
    }
    uint8_t *room = session->ops->reserve(session, stream->call->key, 0, &cap);
    if (room == NULL) {
        return 1;
    }
    ssize_t n = bow__encode(message, room, cap, NULL);
    if (n < 0) {
        return -EINVAL;
    }
    if ((size_t)n > cap) {
        return 1;
    }
    if (is_too_large(stream, (size_t)n)) {
        return -ECANCELED;
    }
    bow__intercept_sent(stream->call->intercepted, room, (size_t)n);
    size_t len = (size_t)n;
    int rc = send_compressed(stream, session, (struct bow_slice){room, (size_t)n}, &len);
    if (rc > 0) {
        rc = session->ops->commit(session, stream->call->key, 0, (size_t)n);
    }
    if (rc < 0) {
        return rc == -ENOENT ? -ECANCELED : rc;
    }
    stream->n_sent++;
    bow__client_call_count_sent(stream->call, len);
    bow__conn_touch(stream->call->conn);
    check_blocked(stream);
    return 0;
}

/* From other threads */

static int post(struct bow_stream *stream, struct bow__queued_message *queued)
{
    size_t n = weight(queued);

    pthread_mutex_lock(&stream->lock);
    int rc = refusal(stream);
    if (rc == 0) {
        size_t before = atomic_fetch_add_explicit(&stream->n_waiting, n, memory_order_acquire);
        size_t n_unsent = atomic_load_explicit(&stream->n_unsent, memory_order_relaxed);
        if (before + n + n_unsent >= BOW_STREAM_WRITABLE_BYTES) {
            atomic_store(&stream->blocked, true);
        }
        bow__message_queue_push(&stream->posted, queued);
    }
    pthread_mutex_unlock(&stream->lock);
    if (rc < 0) {
        bow__queued_message_free(queued);
        return rc;
    }
    bow__stream_wake(stream);
    return 0;
}

/* What programs call */

static int refuse(const struct bow_stream *stream, const char *why)
{
    return bow__refuse(stream->context, -EINVAL, "sending on a stream of %s: %s",
                       stream->method->path, why);
}

static int refuse_unnamed(const struct bow_stream *stream)
{
    return bow__refuse(
        stream->context, -EALREADY,
        "bow_stream_compress: the stream of %s was opened without an encoding: open it "
        "with options.compression",
        stream->method->path);
}

static int refuse_type(const struct bow_stream *stream, const ProtobufCMessage *message)
{
    return bow__refuse(stream->context, -EINVAL,
                       "sending on a stream of %s: the message is a %s, not a %s",
                       stream->method->path, bow__type_name(message), stream->method->input->name);
}

static int refuse_encoding(const struct bow_stream *stream, const ProtobufCMessage *message)
{
    struct bow__text reason;

    bow__text_clear(&reason);
    bow__encode_explain(message, &reason);
    return bow__refuse(stream->context, -EINVAL,
                       "sending on a stream of %s: the message cannot be encoded: %s",
                       stream->method->path, reason.bytes);
}

static const char one_request[] = "its request was sent when it was opened, and it is the only one";

static int check(const struct bow_stream *stream, const ProtobufCMessage *message)
{
    if (!bow__method_sends_many(stream->method)) {
        return refuse(stream, one_request);
    }
    if (message != NULL && message->descriptor != stream->method->input) {
        return refuse_type(stream, message);
    }
    return refusal(stream);
}

static int encode(struct bow_stream *stream, const ProtobufCMessage *message,
                  struct bow__queued_message **ret_held)
{
    size_t size = bow__encoded_size(message);

    if (size == SIZE_MAX) {
        return refuse_encoding(stream, message);
    }
    struct bow__queued_message *queued = bow__queued_message_new(stream->context, size);
    if (queued == NULL) {
        return -ENOMEM;
    }
    if (bow__encode_sized(message, bow__queued_message_bytes(queued), size, NULL) < 0) {
        bow__queued_message_free(queued);
        return refuse_encoding(stream, message);
    }
    queued->compression = (uint8_t)compresses(stream);
    *ret_held = queued;
    return 0;
}

int bow_stream_send(struct bow_stream *stream, const ProtobufCMessage *message)
{
    bool here = bow_loop_in_loop(stream->loop);
    struct bow__queued_message *queued = NULL;

    int rc = message != NULL ? check(stream, message) : refuse_type(stream, message);
    if (rc < 0) {
        return rc;
    }
    rc = here ? send_in_place(stream, message) : 1;
    if (rc <= 0) {
        return rc == -EINVAL ? refuse_encoding(stream, message) : rc;
    }
    rc = encode(stream, message, &queued);
    if (rc < 0) {
        return rc;
    }
    return here ? send_queued_here(stream, queued) : post(stream, queued);
}

int bow_stream_send_bytes(struct bow_stream *stream, struct bow_slice bytes)
{
    struct bow__raw_message raw;

    bow__raw_message_init(&raw, bytes);
    return bow_stream_send(stream, &raw.base);
}

int bow_stream_send_payload(struct bow_stream *stream, struct bow_payload *payload)
{
    int rc = check(stream, NULL);
    if (rc < 0) {
        return rc;
    }
    struct bow__queued_message *queued = bow__queued_message_share(stream->context, payload);
    if (queued == NULL) {
        return -ENOMEM;
    }
    queued->compression = (uint8_t)compresses(stream);
    return bow_loop_in_loop(stream->loop) ? send_queued_here(stream, queued) : post(stream, queued);
}

int bow_stream_compress(struct bow_stream *stream, bool on)
{
    if (!bow__method_sends_many(stream->method)) {
        return refuse(stream, one_request);
    }
    if (compresses(stream) == BOW_COMPRESSION_DEFAULT) {
        return on ? refuse_unnamed(stream) : 0;
    }
    atomic_store_explicit(&stream->compresses, on ? BOW_COMPRESSION_ON : BOW_COMPRESSION_OFF,
                          memory_order_relaxed);
    return 0;
}

/* What was accepted goes first; the end travels with the last of it. */
int bow_stream_half_close(struct bow_stream *stream)
{
    if (bow__loop_is_foreign(stream->loop)) {
        return -ECHILD;
    }
    pthread_mutex_lock(&stream->lock);
    int rc = refusal(stream);
    if (rc == 0 || rc == -EAGAIN) {
        atomic_store(&stream->half_closed, true);
        pthread_cond_broadcast(&stream->changed); /* another thread may wait to send */
        rc = 0;
    }
    pthread_mutex_unlock(&stream->lock);
    if (rc < 0) {
        return rc;
    }
    if (bow_loop_in_loop(stream->loop)) {
        bow__stream_flush(stream);
    } else {
        bow__stream_wake(stream);
    }
    return 0;
}
