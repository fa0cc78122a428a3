/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a streaming call gives its session, on the loop: messages, in place where the session has
 * room, and the status that ends it. Knows nothing of who sends, or from where.
 */

#include "rpc/core/call/call_stream_output.h"
#include "rpc/core/call/call_gone.h"
#include "rpc/core/call/call_metadata.h"
#include "rpc/core/codec/encode.h"
#include "rpc/core/compression/compression.h"
#include "rpc/core/errors.h"
#include "rpc/core/intercept.h"

#include <errno.h>
#include <string.h>

/* A payload up to this size costs less to copy than to send as a piece of its own. */
#define COPIED_PAYLOAD_BYTES ((size_t)1 << 10)

/* Whether there is room */

static bool sends_many(const struct bow_call *call)
{
    return call->stream != NULL && (call->method->flags & BOW_METHOD_SERVER_STREAMING) != 0;
}

int bow__call_stream_check_send(const struct bow_call *call)
{
    if (!sends_many(call)) {
        return bow__call_is_gone(call) ? bow__call_is_misused(call, "sent on") : -EINVAL;
    }
    if (bow__call_stream_is_over(call)) {
        return -ECANCELED;
    }
    return bow__call_stream_waiting(call->stream) < BOW_STREAM_WRITABLE_BYTES ? 0 : -EAGAIN;
}

bool bow_call_is_writable(const struct bow_call *call)
{
    return bow__call_stream_check_send(call) == 0;
}

/* One step, so that it is seen as a whole. */
void bow__call_stream_settle(struct bow_call *call, size_t n_handed)
{
    struct bow__call_stream *stream = call->stream;
    size_t n = 0;

    if (call->session != NULL) {
        n = call->session->ops->queued(call->session, call->key);
    }
    size_t change = n - stream->n_counted - n_handed; /* modulo 2^N when it is less */
    stream->n_counted = n;
    size_t before =
        change == 0 ? bow__call_stream_waiting(stream)
                    : atomic_fetch_add_explicit(&stream->n_waiting, change, memory_order_relaxed);
    if (before >= BOW_STREAM_WRITABLE_BYTES && before + change < BOW_STREAM_WRITABLE_BYTES) {
        stream->writable_due = true;
    }
}

/* Messages */

int bow__call_stream_encode(struct bow_call *call, const ProtobufCMessage *message,
                            struct bow__queued_message **ret_queued, struct bow__text *reason)
{
    size_t size = bow__encoded_size(message);
    size_t cap = size > 0 && size != SIZE_MAX ? size : 1; /* 1: to be told what is wrong */

    struct bow__queued_message *queued = bow__queued_message_new(call->arena.context, cap);
    if (queued == NULL) {
        return -ENOMEM;
    }
    ssize_t n = bow__encode_sized(message, bow__queued_message_bytes(queued), cap, reason);
    if (n < 0) {
        bow__queued_message_free(queued);
        return -EINVAL;
    }
    queued->len = (size_t)n;
    queued->compression = (uint8_t)bow__call_compresses(call);
    *ret_queued = queued;
    return 0;
}

static int as_seen_outside(int rc)
{
    return rc == -ENOENT ? -ECANCELED : rc;
}

/* Initial metadata goes before the first message. */
static int begin(struct bow_call *call)
{
    int rc = bow__call_respond(call);

    if (rc == 0) {
        atomic_store_explicit(&call->stream->began, true, memory_order_relaxed);
    }
    return as_seen_outside(rc);
}

/* Returns 1 when the message is to go as it is. After begin(). */
static int send_packed(struct bow_call *call, struct bow_slice bytes, uint32_t flags,
                       size_t *ret_len)
{
    if (!bow__compression_wants(call->compression, call->encoding, bow__call_compresses(call),
                                bytes.len)) {
        return 1;
    }
    return bow__compression_send(call->compression, call->session, call->key,
                                 (enum bow__encoding)call->encoding, flags, bytes, ret_len);
}

/* Returns 0 when the session has the queued bytes now. */
static int send_queued(struct bow_call *call, struct bow__queued_message *queued, uint32_t flags)
{
    bool is_apart = queued->shared != NULL; /* or it goes with the block, perhaps at once */
    int rc =
        call->session->ops->send(call->session, call->key, flags, bow__queued_message_block(queued),
                                 queued->offset, queued->len);

    if (rc == 0 && is_apart) {
        bow__queued_message_given(queued);
    }
    return rc;
}

int bow__call_stream_hand_over(struct bow_call *call, struct bow__queued_message *queued,
                               uint32_t flags, size_t *ret_len)
{
    size_t len = queued->len;
    int rc = begin(call);

    if (rc < 0) {
        return rc;
    }
    bow__intercept_sent(call->intercepted, bow__queued_message_bytes(queued), len);
    rc = bow__compression_send_queued(call->compression, call->session, call->key,
                                      (enum bow__encoding)call->encoding, flags, queued, &len);
    if (rc == 0) {
        bow__queued_message_free(queued);
    } else if (rc > 0) {
        rc = send_queued(call, queued, flags);
    }
    *ret_len = len;
    return as_seen_outside(rc);
}

int bow__call_stream_put_in_place(struct bow_call *call, const ProtobufCMessage *message,
                                  uint32_t flags, size_t *ret_len, struct bow__text *reason)
{
    const struct bow__session_ops *ops = call->session->ops;
    size_t cap = 0;

    int rc = begin(call);
    if (rc < 0) {
        return rc;
    }
    uint8_t *room = ops->reserve(call->session, call->key, flags, &cap);
    if (room == NULL) {
        return 1;
    }
    ssize_t n = bow__encode(message, room, cap, reason);
    if (n < 0) {
        return -EINVAL;
    }
    if ((size_t)n > cap) {
        return 1;
    }
    *ret_len = (size_t)n;
    bow__intercept_sent(call->intercepted, room, *ret_len);
    rc = send_packed(call, (struct bow_slice){room, (size_t)n}, flags, ret_len);
    if (rc > 0) {
        rc = ops->commit(call->session, call->key, flags, (size_t)n);
    }
    return as_seen_outside(rc);
}

int bow__call_stream_copy_in_place(struct bow_call *call, struct bow_slice bytes)
{
    const struct bow__session_ops *ops = call->session->ops;
    size_t cap = 0;

    if (bytes.len > COPIED_PAYLOAD_BYTES) {
        return 1;
    }
    int rc = begin(call);
    if (rc < 0) {
        return rc;
    }
    if (bow__compression_wants(call->compression, call->encoding, bow__call_compresses(call),
                               bytes.len)) {
        return 1;
    }
    uint8_t *room = ops->reserve(call->session, call->key, 0, &cap);
    if (room == NULL || cap < bytes.len) {
        return 1;
    }
    memcpy(room, bytes.data, bytes.len);
    bow__intercept_sent(call->intercepted, room, bytes.len);
    rc = ops->commit(call->session, call->key, 0, bytes.len);
    return as_seen_outside(rc);
}

/* The end */

static void conclude(struct bow_call *call, const struct bow_status *status, size_t n_bytes,
                     int error)
{
    bow__call_stream_keep_status(call, status);
    call->ops->answered(call, status, n_bytes, error);
    bow__call_stream_end(call);
}

/* Initial metadata that cannot be sent is left out. */
static void send_status(struct bow_call *call, const struct bow_status *status, size_t n_bytes)
{
    struct bow_status sent = *status;

    (void)bow__call_respond(call);
    sent.metadata = bow__call_trailing(call);
    int rc = call->session->ops->finish(call->session, call->key, &sent);
    conclude(call, &sent, n_bytes, rc);
}

static void refuse(struct bow_call *call, enum bow_code code, const char *message)
{
    struct bow_status status = BOW_STATUS_OK_INIT;

    status.code = code;
    status.message = message;
    send_status(call, &status, 0);
}

/* Without metadata: the handler may be adding some, on its executor. */
static void refuse_apart(struct bow_call *call, enum bow_code code, const char *message)
{
    struct bow_status status = BOW_STATUS_OK_INIT;

    status.code = code;
    status.message = message;
    int rc = call->session->ops->finish(call->session, call->key, &status);
    conclude(call, &status, 0, rc);
}

void bow__call_stream_refuse(struct bow_call *call, enum bow_code code, const char *message)
{
    struct bow__call_stream *stream = call->stream;

    if (call->session == NULL) {
        return;
    }
    pthread_mutex_lock(&stream->lock);
    atomic_store(&stream->answered, true);
    pthread_mutex_unlock(&stream->lock);
    if (stream->busy) {
        refuse_apart(call, code, message);
    } else {
        refuse(call, code, message);
    }
}

void bow__call_stream_refuse_unsent(struct bow_call *call, int rc)
{
    struct bow_status status;
    struct bow__text text;

    bow__call_describe_unsent(call, rc, &text, &status);
    bow__call_stream_refuse(call, status.code, status.message);
}

/* Trailing metadata travels with a status, which then ends the call behind the message. */
static uint32_t last_flags(const struct bow_call *call)
{
    return bow__call_trailing(call).n == 0 ? BOW__SEND_END : 0;
}

static void after_reply(struct bow_call *call, int rc, size_t n_bytes)
{
    struct bow_status ok = BOW_STATUS_OK_INIT;

    if (rc == -ENOMEM || rc == -EMSGSIZE || rc == -EBADMSG) {
        bow__call_stream_refuse_unsent(call, rc);
    } else if (rc < 0) {
        /* The session is broken, and may not keep a call that is about to go. */
        refuse(call, BOW_CANCELLED, "the connection ended before the reply was sent");
    } else if (last_flags(call) == 0) {
        send_status(call, &ok, n_bytes);
    } else {
        conclude(call, &ok, n_bytes, 0);
    }
}

/* A call whose client was to get metadata, and could not, has not gone well. */
static int send_answer_status(struct bow_call *call)
{
    const struct bow_status *status = &call->stream->answer.status;
    int rc = bow__call_respond(call);

    rc = rc == 0 ? bow__call_check_trailing(call) : rc;
    if (status->code == BOW_OK && (rc == -ENOMEM || rc == -EMSGSIZE)) {
        bow__call_stream_refuse_unsent(call, rc);
        return rc;
    }
    send_status(call, status, 0);
    return 0;
}

int bow__call_stream_send_answer(struct bow_call *call)
{
    struct bow__stream_answer *answer = &call->stream->answer;
    struct bow__queued_message *reply = answer->reply;
    struct bow__text text;

    if (call->ops->is_late(call, &text)) {
        refuse(call, BOW_DEADLINE_EXCEEDED, text.bytes);
        return -ECANCELED;
    }
    if (reply == NULL) {
        return send_answer_status(call);
    }
    size_t len = 0;
    int rc = bow__call_check_trailing(call);
    if (rc == 0) {
        rc = bow__call_stream_hand_over(call, reply, last_flags(call), &len);
        answer->reply = rc == 0 ? NULL : reply;
    }
    after_reply(call, rc, len);
    return rc == -EBADMSG ? -EINVAL : rc; /* as of what cannot be encoded */
}
