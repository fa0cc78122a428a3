/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How a handler ends a streaming call, on any thread: finished, replied to or failed. Whoever comes
 * first answers; what an answer says lies in memory of its own, for the call's may be in use.
 */

#include "rpc/core/call/call_stream_answer.h"
#include "base/refuse.h"
#include "rpc/core/call/call_gone.h"
#include "rpc/core/call/call_metadata.h"
#include "rpc/core/call/call_stream_output.h"
#include "rpc/core/call/call_stream_send.h"
#include "rpc/core/codec/encode.h"
#include "rpc/core/errors.h"

#include <bowline/limits.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

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
    if (rc == -EINVAL) {
        (void)bow__refuse(call->arena.context, rc, "bow_call_reply: %s", why);
    }
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
        if (bow__call_is_gone(call)) {
            return bow__call_is_misused(call, "finished");
        }
        return bow__refuse(call->arena.context, -EINVAL,
                           "bow_call_finish: the server of %s sends one message: bow_call_reply()",
                           call->method->path);
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
    if (bow__arena_has_failed(&call->arena)) {
        return refuse_reply(call, -ENOMEM, "the call's memory ran out");
    }
    if (reply == NULL || reply->descriptor != call->method->output) {
        bow__text_printf(&why, "the reply of %s is a %s, not a %s", call->method->path,
                         bow__type_name(reply), call->method->output->name);
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
