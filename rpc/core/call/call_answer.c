/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Answering a call: on its loop the reply is encoded into the session's output;
 * elsewhere into the call's own memory, and posted.
 */

#include "base/alloc.h"
#include "base/hints.h"
#include "base/refuse.h"
#include "rpc/core/call/call.h"
#include "rpc/core/call/call_metadata.h"
#include "rpc/core/call/call_stream_answer.h"
#include "rpc/core/codec/encode.h"
#include "rpc/core/compression/compression.h"
#include "rpc/core/errors.h"
#include "rpc/core/intercept.h"
#include <bowline/limits.h>

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* The call is answered and the loop's again. */
static void conclude(struct bow_call *call, const struct bow_status *status, size_t n_bytes,
                     int error)
{
    call->ops->answered(call, status, n_bytes, error);
    bow__call_free(call);
}

static void describe_memory(const struct bow_call *call, struct bow__text *text)
{
    bow__text_clear(text);
    bow__text_printf(
        text,
        "the call's memory ran out: its cap is %zu bytes, and all calls share what the "
        "server's context has",
        call->arena.max_bytes);
}

/* Without a message where the memory for it was wanting. */
static void send_status(struct bow_call *call, const struct bow_status *status)
{
    struct bow_status sent = *status;
    struct bow__text text;

    if (sent.message == NULL) {
        describe_memory(call, &text);
        sent.message = text.bytes;
    }
    (void)bow__call_respond(call);
    sent.metadata = bow__call_trailing(call);
    int rc = call->session->ops->finish(call->session, call->key, &sent);
    conclude(call, &sent, 0, rc);
}

static void fail_locally(struct bow_call *call, enum bow_code code, const char *message)
{
    struct bow_status status = BOW_STATUS_OK_INIT;

    status.code = code;
    status.message = message;
    send_status(call, &status);
}

/* What was to go to the peer cannot: it is told why. Returns what the handler is told. */
static int refuse_unsent(struct bow_call *call, int rc)
{
    struct bow_status status;
    struct bow__text text;

    bow__call_describe_unsent(call, rc, &text, &status);
    send_status(call, &status);
    if (rc == -EBADMSG) {
        return -EINVAL; /* as of what cannot be encoded */
    }
    return rc == -ENOENT ? -ECANCELED : rc;
}

BOW__LONG_WAY static bool fail_late(struct bow_call *call, const struct bow__text *text)
{
    fail_locally(call, BOW_DEADLINE_EXCEEDED, text->bytes);
    return true;
}

/* After the deadline the peer gets that for an answer. `text` is for the reason. */
static inline bool is_late(struct bow_call *call, struct bow__text *text)
{
    return call->ops->is_late(call, text) && fail_late(call, text);
}

/* With trailing metadata a status of its own ends the call, behind the reply. */
static uint32_t reply_flags(const struct bow_call *call)
{
    return call->metadata == NULL || call->metadata->trailing.n == 0 ? BOW__SEND_END : 0;
}

/* What comes before the reply, and whether what is to come behind it can. */
static inline int begin_reply(struct bow_call *call)
{
    int rc = bow__call_respond(call);

    return rc == 0 && call->metadata != NULL ? bow__call_check_trailing(call) : rc;
}

/* The reply is with the session. */
static void conclude_reply(struct bow_call *call, size_t n_bytes)
{
    static const struct bow_status ok = BOW_STATUS_OK_INIT;

    if (reply_flags(call) != 0) {
        conclude(call, &ok, n_bytes, 0);
        return;
    }
    struct bow_status behind = ok;
    behind.metadata = bow__call_trailing(call);
    int rc = call->session->ops->finish(call->session, call->key, &behind);
    conclude(call, &behind, n_bytes, rc);
}

BOW__LONG_WAY static int send_wanted(struct bow_call *call, struct bow_slice bytes, size_t *ret_len)
{
    if (!bow__compression_wants(call->compression, call->encoding, bow__call_compresses(call),
                                bytes.len)) {
        return 1;
    }
    bow__work_spend(&call->session->work, BOW__WORK_REPLY_FACTOR * bytes.len);
    return bow__compression_send(call->compression, call->session, call->key,
                                 (enum bow__encoding)call->encoding, reply_flags(call), bytes,
                                 ret_len);
}

/* Returns 0 and the length as sent, 1 when the reply is to go as it is, or as the session. */
static inline int send_packed(struct bow_call *call, struct bow_slice bytes, size_t *ret_len)
{
    return call->encoding != BOW__ENCODING_IDENTITY ? send_wanted(call, bytes, ret_len) : 1;
}

/* `block` is ours until the session took it. */
static int send_block(struct bow_call *call, struct bow__block *block, size_t len)
{
    int rc = call->session->ops->send(call->session, call->key, reply_flags(call), block, 0, len);

    bow__work_spend(&call->session->work, BOW__WORK_REPLY_FACTOR * len);
    if (rc < 0) {
        bow__block_unref(block);
    }
    return rc;
}

static int send_copy(struct bow_call *call, struct bow_slice bytes)
{
    size_t cap = 0;
    uint32_t flags = reply_flags(call);
    uint8_t *room = call->session->ops->reserve(call->session, call->key, flags, &cap);

    if (room != NULL && bytes.len <= cap) {
        memcpy(room, bytes.data, bytes.len);
        return call->session->ops->commit(call->session, call->key, flags, bytes.len);
    }
    struct bow__block *block = bow__block_new_to_fill(call->arena.context, bytes.len);
    if (block == NULL) {
        return -ENOMEM;
    }
    memcpy(block->data, bytes.data, bytes.len);
    return send_block(call, block, bytes.len);
}

static int send_answer(struct bow_call *call, size_t *ret_len)
{
    struct bow__answer *answer = &call->answer;
    struct bow__block *block = answer->block;

    *ret_len = answer->bytes.len;
    int rc = send_packed(call, answer->bytes, ret_len);
    if (rc <= 0) {
        return rc;
    }
    if (block == NULL) {
        return send_copy(call, answer->bytes);
    }
    answer->block = NULL;
    return send_block(call, block, answer->bytes.len);
}

/* The answer lies in the call's memory. Returns 0, or why the peer got an error instead. */
static int deliver(struct bow_call *call)
{
    struct bow__answer *answer = &call->answer;
    size_t len = 0;
    int rc = 0;

    if (answer->status.code != BOW_OK) {
        send_status(call, &answer->status);
        return 0;
    }
    rc = begin_reply(call);
    if (rc < 0) {
        return refuse_unsent(call, rc);
    }
    bow__intercept_sent(call->intercepted, answer->bytes.data, answer->bytes.len);
    rc = send_answer(call, &len);
    if (rc == -ENOMEM || rc == -EBADMSG) {
        return refuse_unsent(call, rc);
    }
    conclude_reply(call, len);
    return 0;
}

/* After a post: the answer was made elsewhere. */
static void deliver_posted(struct bow_call *call)
{
    struct bow__text text;

    if (call->session == NULL) {
        bow__call_free(call);
        return;
    }
    if (!is_late(call, &text)) {
        (void)deliver(call);
    }
}

static int post_answer(struct bow_call *call)
{
    unsigned state = BOW__CALL_HELD;

    if (!atomic_compare_exchange_strong(&call->state, &state, BOW__CALL_POSTED)) {
        return bow__call_discard_answer(call);
    }
    unsigned waiting = 0;
    (void)atomic_compare_exchange_strong(&call->end_code, &waiting, BOW__CALL_ANSWERED);
    if (call->ops->post(call, deliver_posted) == 0) {
        return 0;
    }
    state = BOW__CALL_POSTED;
    if (!atomic_compare_exchange_strong(&call->state, &state, BOW__CALL_STRANDED)) {
        bow__call_free(call);
    }
    return -ECANCELED;
}

/* Borrowed on the loop, kept in the call's memory elsewhere; NULL when that has run out. */
static const char *status_text(struct bow_call *call, const char *text, bool in_loop)
{
    size_t len = strlen(text);
    size_t cut = bow__utf8_cut(text, len, BOW_LIMIT_STATUS_MESSAGE_BYTES);

    return in_loop && cut == len ? text : bow__arena_dup(&call->arena, text, cut);
}

static int post_status(struct bow_call *call, struct bow_status status)
{
    if (status.details.len > 0) {
        status.details.data =
            (uint8_t *)bow__arena_dup(&call->arena, status.details.data, status.details.len);
        status.details.len = status.details.data != NULL ? status.details.len : 0;
    }
    call->answer.status = status;
    return post_answer(call);
}

static int answer_status(struct bow_call *call, const struct bow_status *status)
{
    struct bow_status checked = *status;
    struct bow__text text;
    bool in_loop = call->ops->in_loop(call);

    if (atomic_load(&call->end_code) != 0) {
        return bow__call_discard_answer(call);
    }
    if (in_loop && is_late(call, &text)) {
        return -ECANCELED;
    }
    if (checked.code == BOW_OK) {
        checked.code = BOW_INTERNAL;
        checked.message = "the handler failed the call with code OK";
    }
    /* The handler ran, whatever it says. */
    checked.not_processed = false;
    checked.message = status_text(call, checked.message, in_loop);
    if (!in_loop) {
        return post_status(call, checked);
    }
    send_status(call, &checked);
    return 0;
}

/* The reply cannot be sent; the peer is told why, and the handler by `rc`. */
static int refuse(struct bow_call *call, int rc, enum bow_code code, const char *message)
{
    struct bow_status status = BOW_STATUS_OK_INIT;

    status.code = code;
    status.message = message;
    if (rc == -EINVAL) {
        (void)bow__refuse(call->arena.context, rc, "bow_call_reply: %s", message);
    }
    int answered = answer_status(call, &status);
    return answered < 0 ? answered : rc;
}

static int refuse_memory(struct bow_call *call)
{
    struct bow__text text;

    describe_memory(call, &text);
    return refuse(call, -ENOMEM, BOW_RESOURCE_EXHAUSTED, text.bytes);
}

static int refuse_encoding(struct bow_call *call, const struct bow__text *reason)
{
    struct bow__text text;

    bow__text_clear(&text);
    bow__text_printf(&text, "the reply of %s cannot be encoded: %s", bow_call_path(call),
                     reason->len > 0 ? reason->bytes : "it is too large");
    return refuse(call, -EINVAL, BOW_INTERNAL, text.bytes);
}

static int refuse_type(struct bow_call *call, const ProtobufCMessage *reply)
{
    struct bow__text text;

    if (reply == NULL && bow__arena_has_failed(&call->arena)) { /* for that it is NULL */
        return refuse_memory(call);
    }
    bow__text_clear(&text);
    bow__text_printf(&text, "the reply of %s is a %s, not a %s", bow_call_path(call),
                     bow__type_name(reply), call->method->output->name);
    return refuse(call, -EINVAL, BOW_INTERNAL, text.bytes);
}

/* A reply that does not fit in place, or is made off the loop: into memory of its own. */
static int encode_apart(struct bow_call *call, const ProtobufCMessage *reply, size_t size,
                        struct bow__text *reason)
{
    struct bow__answer *answer = &call->answer;
    size_t cap = size > 0 && size != SIZE_MAX ? size : 1; /* 1: to be told what is wrong */

    uint8_t *room = NULL;
    if (cap <= BOW__IN_PLACE_BYTES) {
        room = bow__arena_alloc_bytes(&call->arena, cap);
    } else {
        answer->block = bow__block_new_to_fill(call->arena.context, cap);
        room = answer->block != NULL ? answer->block->data : NULL;
    }
    if (room == NULL) {
        return -ENOMEM;
    }
    ssize_t n = bow__encode_sized(reply, room, cap, reason);
    if (n < 0) {
        answer->block = bow__block_unref(answer->block);
        return -EINVAL;
    }
    answer->bytes = (struct bow_slice){room, (size_t)n};
    answer->status = (struct bow_status)BOW_STATUS_OK_INIT;
    return 0;
}

static int reply_apart(struct bow_call *call, const ProtobufCMessage *reply, size_t size,
                       struct bow__text *reason)
{
    int rc = encode_apart(call, reply, size, reason);

    if (rc == -ENOMEM) {
        return refuse_memory(call);
    }
    if (rc < 0) {
        return refuse_encoding(call, reason);
    }
    if (!call->ops->in_loop(call)) {
        return post_answer(call);
    }
    return deliver(call);
}

static int reply_in_place(struct bow_call *call, const ProtobufCMessage *reply,
                          struct bow__text *reason)
{
    const struct bow__session_ops *ops = call->session->ops;
    size_t cap = 0;

    int rc = begin_reply(call);
    if (rc < 0) {
        return refuse_unsent(call, rc);
    }
    uint32_t flags = reply_flags(call);
    uint8_t *room = ops->reserve(call->session, call->key, flags, &cap);
    if (room == NULL) {
        return reply_apart(call, reply, bow__encoded_size(reply), reason);
    }
    ssize_t n = bow__encode(reply, room, cap, reason);
    if (n < 0) {
        return refuse_encoding(call, reason);
    }
    size_t len = (size_t)n;
    if (len > cap) {
        return reply_apart(call, reply, len, reason);
    }
    bow__intercept_sent(call->intercepted, room, len);
    rc = send_packed(call, (struct bow_slice){room, len}, &len);
    if (rc > 0) {
        rc = ops->commit(call->session, call->key, flags, len);
    }
    if (rc == -ENOMEM) {
        return refuse_memory(call);
    }
    conclude_reply(call, len);
    return 0;
}

int bow_call_reply(struct bow_call *call, const ProtobufCMessage *reply)
{
    struct bow__text reason;

    if (call->stream != NULL) {
        return bow__call_stream_reply(call, reply);
    }
    if (atomic_load(&call->end_code) != 0) {
        return bow__call_discard_answer(call);
    }
    bool in_loop = call->ops->in_loop(call);
    if (in_loop && is_late(call, &reason)) {
        return -ECANCELED;
    }
    if (reply == NULL || reply->descriptor != call->method->output) {
        return refuse_type(call, reply);
    }
    if (bow__arena_has_failed(&call->arena)) {
        return refuse_memory(call);
    }
    bow__text_clear(&reason);
    if (in_loop) {
        return reply_in_place(call, reply, &reason);
    }
    return reply_apart(call, reply, bow__encoded_size(reply), &reason);
}

int bow_call_fail(struct bow_call *call, enum bow_code code, const char *format, ...)
{
    struct bow_status status = BOW_STATUS_OK_INIT;
    va_list args;

    va_start(args, format);
    if (call->stream != NULL) {
        int rc = bow__call_stream_vfail(call, code, format, args);
        va_end(args);
        return rc;
    }
    if (atomic_load(&call->end_code) != 0) {
        va_end(args);
        return bow__call_discard_answer(call);
    }
    const char *text = bow__arena_vprintf(&call->arena, format, args);
    va_end(args);
    status.code = code;
    status.message = text != NULL ? text : "";
    return answer_status(call, &status);
}

int bow_call_fail_status(struct bow_call *call, const struct bow_status *status)
{
    if (call->stream != NULL) {
        return bow__call_stream_fail(call, status);
    }
    if (atomic_load(&call->end_code) != 0) {
        return bow__call_discard_answer(call);
    }
    int rc = bow__call_add_status(call, &status->metadata);
    if (rc < 0) {
        return refuse(call, rc, BOW_INTERNAL, BOW__STATUS_METADATA_TEXT);
    }
    return answer_status(call, status);
}
