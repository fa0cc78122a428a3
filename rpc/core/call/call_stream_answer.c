/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How a streaming call ends by its server's side: finished, replied to, failed by its handler, or
 * refused by us. Whoever comes first answers; what an answer says lies in memory of its own,
 * for the call's may be in use.
 */

#include "rpc/core/call/call_metadata.h"
#include "rpc/core/call/call_stream.h"
#include "rpc/core/errors.h"

#include <bowline/limits.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* On the loop */

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

    if (rc == -ENOMEM || rc == -EMSGSIZE) {
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

/* A call whose client was to get initial metadata, and could not, has not gone well. */
static int send_answer_status(struct bow_call *call)
{
    const struct bow_status *status = &call->stream->answer.status;
    int rc = bow__call_respond(call);

    if (status->code == BOW_OK && (rc == -ENOMEM || rc == -EMSGSIZE)) {
        bow__call_stream_refuse_unsent(call, rc);
        return rc;
    }
    send_status(call, status, 0);
    return 0;
}

int bow__call_stream_answer(struct bow_call *call)
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
    int rc = bow__call_stream_hand_over(call, reply, last_flags(call), &len);
    if (rc == 0) {
        answer->reply = NULL;
    }
    after_reply(call, rc, len);
    return rc;
}

/* Whoever answers */

static int claim(struct bow_call *call)
{
    struct bow__call_stream *stream = call->stream;

    pthread_mutex_lock(&stream->lock);
    bool is_over = bow__call_stream_is_over(call);
    if (!is_over) {
        atomic_store(&stream->answered, true);
    }
    pthread_mutex_unlock(&stream->lock);
    return is_over ? -ECANCELED : 0;
}

/* The answer is complete: give it, behind what was sent before it. */
static int give(struct bow_call *call)
{
    struct bow__call_stream *stream = call->stream;

    pthread_mutex_lock(&stream->lock);
    stream->answer_posted = true;
    pthread_mutex_unlock(&stream->lock);
    if (!call->ops->in_loop(call)) {
        return bow__call_stream_wake(call);
    }
    return bow__call_stream_take_posted(call);
}

static char *answer_memory(struct bow_call *call, size_t n)
{
    struct bow__block *memory = bow__block_new(call->arena.context, n);

    call->stream->answer.memory = memory;
    return memory != NULL ? (char *)memory->data : NULL;
}

static void set_answer(struct bow_call *call, enum bow_code code, const char *message)
{
    struct bow_status *status = &call->stream->answer.status;

    *status = (struct bow_status)BOW_STATUS_OK_INIT;
    status->code = code;
    status->message = message;
    if (code == BOW_OK) {
        status->code = BOW_INTERNAL;
        status->message = "the handler failed the call with code OK";
    }
}

/* The reply cannot be sent; the peer is told why, and the handler by `rc`. */
static int refuse_reply(struct bow_call *call, int rc, const char *why)
{
    char *message = answer_memory(call, BOW__TEXT_BYTES);

    if (message != NULL) {
        (void)snprintf(message, BOW__TEXT_BYTES, "%s", why);
    }
    set_answer(call, rc == -ENOMEM ? BOW_RESOURCE_EXHAUSTED : BOW_INTERNAL,
               message != NULL ? message : "the server has no memory to send the reply");
    int given = give(call);
    return given < 0 ? given : rc;
}

int bow_call_finish(struct bow_call *call)
{
    if (call->stream == NULL || (call->method->flags & BOW_METHOD_SERVER_STREAMING) == 0) {
        return -EINVAL;
    }
    int rc = claim(call);
    if (rc < 0) {
        return rc;
    }
    call->stream->answer.status = (struct bow_status)BOW_STATUS_OK_INIT;
    return give(call);
}

int bow__call_stream_vfail(struct bow_call *call, enum bow_code code, const char *format,
                           va_list args)
{
    char text[BOW_LIMIT_STATUS_MESSAGE_BYTES];

    int rc = claim(call);
    if (rc < 0) {
        return rc;
    }
    int n = vsnprintf(text, sizeof(text), format, args);
    size_t len = n > 0 ? bow__utf8_cut(text, strlen(text), sizeof(text) - 1) : 0;
    char *message = answer_memory(call, len + 1);
    if (message != NULL) {
        memcpy(message, text, len);
        message[len] = '\0';
    }
    set_answer(call, code, message != NULL ? message : "");
    return give(call);
}

int bow__call_stream_fail(struct bow_call *call, const struct bow_status *status)
{
    size_t n_text =
        bow__utf8_cut(status->message, strlen(status->message), BOW_LIMIT_STATUS_MESSAGE_BYTES);

    int rc = claim(call);
    if (rc < 0) {
        return rc;
    }
    rc = bow__call_add_status(call, &status->metadata);
    if (rc < 0) {
        return refuse_reply(call, rc, BOW__STATUS_METADATA_TEXT);
    }
    char *memory = answer_memory(call, n_text + 1 + status->details.len);
    set_answer(call, status->code, memory != NULL ? memory : "");
    if (memory != NULL) {
        memcpy(memory, status->message, n_text);
        memory[n_text] = '\0';
    }
    if (memory != NULL && status->details.len > 0) {
        memcpy(memory + n_text + 1, status->details.data, status->details.len);
        call->stream->answer.status.details =
            (struct bow_slice){(uint8_t *)memory + n_text + 1, status->details.len};
    }
    call->stream->answer.status.retry_after_ns = status->retry_after_ns;
    return give(call);
}

int bow__call_stream_reply(struct bow_call *call, const ProtobufCMessage *reply)
{
    struct bow__text reason;
    struct bow__text why;

    int rc = claim(call);
    if (rc < 0) {
        return rc;
    }
    bow__text_clear(&reason);
    bow__text_clear(&why);
    if (reply == NULL || reply->descriptor != call->method->output) {
        bow__text_printf(&why, "the reply of %s is a %s, not a %s", call->method->path,
                         reply != NULL && reply->descriptor != NULL ? reply->descriptor->name
                                                                    : "NULL",
                         call->method->output->name);
        return refuse_reply(call, -EINVAL, why.bytes);
    }
    rc = bow__call_stream_encode(call, reply, &call->stream->answer.reply, &reason);
    if (rc == -EINVAL) {
        bow__text_printf(&why, "the reply of %s cannot be encoded: %s", call->method->path,
                         reason.len > 0 ? reason.bytes : "it is too large");
        return refuse_reply(call, rc, why.bytes);
    }
    if (rc < 0) {
        return refuse_reply(call, rc, "the server has no memory to encode the reply");
    }
    call->stream->answer.status = (struct bow_status)BOW_STATUS_OK_INIT;
    return give(call);
}
