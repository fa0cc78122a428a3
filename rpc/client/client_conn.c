/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls on a connection: requests sent, replies received, and whether what was not processed is
 * tried again. When a call is sent, and over which connection, is others' business.
 */

#include "rpc/client/client_conn.h"
#include "base/clock.h"
#include "rpc/client/call/call_attempt.h"
#include "rpc/client/call/call_retry.h"
#include "rpc/client/call/stream_receive.h"
#include "rpc/client/call/stream_send.h"
#include "rpc/core/call/generic.h"
#include "rpc/core/call/receive.h"
#include "rpc/core/errors.h"

#include <errno.h>
#include <string.h>

/* By how much a server's idea of a deadline may be ahead of ours. */
#define EARLY_NS UINT64_C(20000000)

/* Sending */

static int send_block(struct bow__client_call *call, struct bow__session *session,
                      struct bow__block *block)
{
    int rc = session->ops->send(session, call->key, BOW__SEND_END, block, 0, call->n_request);

    if (rc < 0) {
        bow__block_unref(block);
    }
    return rc;
}

/* Returns 1 when the request is to go as it is. */
static int send_compressed(struct bow__client_call *call, struct bow__session *session,
                           const uint8_t *bytes)
{
    if (!bow__compression_wants(&call->calls->compression.compression, call->encoding,
                                call->compresses, call->n_request)) {
        return 1;
    }
    return bow__compression_send(&call->calls->compression.compression, session, call->key,
                                 (enum bow__encoding)call->encoding, BOW__SEND_END,
                                 (struct bow_slice){bytes, call->n_request}, &call->n_sent);
}

static int send_request(struct bow__client_call *call, struct bow__session *session)
{
    const uint8_t *bytes = call->block != NULL ? call->block->data : call->request;
    size_t cap = 0;

    call->n_sent = call->n_request;
    int rc = send_compressed(call, session, bytes);
    if (rc <= 0) {
        return rc;
    }
    uint8_t *room = call->n_request <= BOW__IN_PLACE_BYTES
                        ? session->ops->reserve(session, call->key, BOW__SEND_END, &cap)
                        : NULL;
    if (room != NULL && call->n_request <= cap) {
        memcpy(room, bytes, call->n_request);
        return session->ops->commit(session, call->key, BOW__SEND_END, call->n_request);
    }
    if (call->block != NULL) {
        return send_block(call, session, bow__block_ref(call->block));
    }
    struct bow__block *block = bow__block_new(call->calls->context, BOW__INLINE_REQUEST_BYTES);
    if (block == NULL) {
        return -ENOMEM;
    }
    memcpy(block->data, bytes, call->n_request);
    return send_block(call, session, block);
}

/* What the peer takes is known once it has said so: until then it is what the client's options
 * assume, if they do. */
static enum bow__encoding choose_encoding(const struct bow__client_call *call,
                                          const struct bow__session *session)
{
    bool sends_many = bow__method_sends_many(call->method);

    if (call->compresses < BOW_COMPRESSION_AUTO) {
        return BOW__ENCODING_IDENTITY;
    }
    enum bow__encoding best = bow__compression_choose(session, 0);
    bool is_wanted = sends_many || bow__compression_wants(&call->calls->compression.compression,
                                                          best, call->compresses, call->n_request);
    return is_wanted ? best : BOW__ENCODING_IDENTITY;
}

/* Until a turn ends its loop's time stands still, which a handler that calls on may have long
 * used up. */
static uint64_t time_left(const struct bow__client_call *call)
{
    uint64_t now = bow_loop_now(call->calls->loop);
    uint64_t left =
        bow__time_left(call->deadline_ns, now > call->started_ns ? now : call->started_ns);
    return call->retry != NULL ? bow__time_min(left, call->retry->policy.attempt_timeout_ns) : left;
}

/* A generic call's method goes with it, and its address comes to be another's. */
static uint64_t path_key(const struct bow_method *method)
{
    return bow__method_is_generic(method) ? 0 : (uint64_t)(uintptr_t)method;
}

int bow__client_conn_send(struct bow__client_conn *conn, struct bow__client_call *call)
{
    struct bow__session *session = conn->conn.session;
    struct bow__request_head head = {
        .path = {(const uint8_t *)call->method->path, strlen(call->method->path)},
        .path_key = path_key(call->method),
        .time_left_ns = time_left(call),
        .metadata = call->metadata,
        .previous_attempts = bow__call_retry_previous(call),
    };

    head.encoding = choose_encoding(call, session);
    call->encoding = (uint8_t)head.encoding;
    int rc = session->ops->open(session, &head, call, &call->key);
    if (rc < 0) {
        return rc;
    }
    rc = bow__method_sends_many(call->method) ? bow__stream_begin(call->stream, session, call->key)
                                              : send_request(call, session);
    if (rc < 0) {
        session->ops->abandon(session, call->key);
        return rc;
    }
    if (!bow__method_sends_many(call->method)) {
        bow__count(&call->counts->bytes_out, call->n_sent);
    }
    bow__client_call_count_attempt(call);
    call->conn = &conn->conn;
    call->state = BOW__CLIENT_CALL_OPEN;
    bow__list_push_back(&call->calls->open, &call->at);
    if (call->retry != NULL) {
        bow__call_retry_sent(call);
    }
    if (call->n_request > BOW_LIMIT_RETRY_REQUEST_BYTES) {
        call->block = bow__block_unref(call->block);
    }
    bow__conn_touch(&conn->conn);
    if (call->stream != NULL) {
        bow__stream_opened(call->stream);
    }
    return 0;
}

/* Receiving */

/* What this end says of a server names it. A connection that was lost has been named. */
static const char *name_server(const struct bow__client_call *call, const char *message,
                               struct bow__text *text)
{
    const char *address = bow_channel_peer(call->conn->channel);

    if (strstr(message, address) != NULL) {
        return message;
    }
    bow__text_clear(text);
    bow__text_printf(text, "%s (server %s)", message, address);
    return text->bytes;
}

static void give_up(struct bow__client_call *call, enum bow_code code, const char *message)
{
    bow__client_call_abandon(call, BOW_CANCELLED);
    bow__client_call_fail(call, code, message);
}

static void refuse_undecodable(struct bow__client_conn *conn, struct bow__client_call *call, int rc,
                               const struct bow__text *reason)
{
    struct bow__text text;

    conn->calls->counters.now.undecodable_messages++;
    bow__text_clear(&text);
    bow__text_printf(&text, "the reply of %s cannot be decoded: %s (server %s)", call->method->path,
                     reason->bytes, bow_channel_peer(call->conn->channel));
    give_up(call, bow__code_from_errno(rc), text.bytes);
}

static void give_up_too_large(struct bow__client_call *call, size_t n, size_t max)
{
    struct bow__text text;

    bow__text_clear(&text);
    bow__text_printf(&text,
                     "the reply of %s has %zu bytes, and its service config allows %zu "
                     "(maxResponseMessageBytes)",
                     call->method->path, n, max);
    give_up(call, BOW_RESOURCE_EXHAUSTED, text.bytes);
}

static void take_reply(struct bow__client_conn *conn, uint64_t key, struct bow__client_call *call,
                       struct bow__message *message)
{
    struct bow__session *session = conn->conn.session;
    const struct bow__client_call *whole = call->hedge_of != NULL ? call->hedge_of : call;
    size_t n_bytes = message->bytes.len;
    struct bow__text reason;

    bow__text_clear(&reason);
    bow__client_call_count_received(call, n_bytes);
    call->memory->reply_compressed = message->compressed;
    int rc = bow__open_message(&call->calls->compression.compression, whole->intercepted, message,
                               &reason);
    if (rc == 0) {
        rc = bow__decode_message(call->method->output, message, &call->memory->arena, &call->reply,
                                 &reason);
    }
    bow__session_worked(session, message, n_bytes, rc);
    session->ops->consumed(session, key, bow__consumed_bytes(n_bytes));
    if (whole->retry != NULL && message->bytes.len > whole->retry->policy.max_response_bytes) {
        give_up_too_large(call, message->bytes.len, whole->retry->policy.max_response_bytes);
    } else if (bow__intercepted_refused(whole->intercepted)) {
        give_up(call, whole->intercepted->refusal.code, reason.bytes);
    } else if (rc < 0) {
        refuse_undecodable(conn, call, rc, &reason);
    }
}

void bow__client_conn_on_message(void *owner, uint64_t key, void *stream,
                                 struct bow__message *message, bool end)
{
    struct bow__client_conn *conn = owner;
    struct bow__client_call *call = stream;

    (void)end;
    if (stream == &conn->health) {
        bow__health_watch_on_message(&conn->health, message);
    } else if (bow__method_receives_many(call->method)) {
        bow__stream_take_message(call->stream, message);
    } else if (call->reply != NULL) {
        give_up(call, BOW_INTERNAL, "the call has one reply, and a second one came");
    } else {
        take_reply(conn, key, call, message);
    }
}

void bow__client_conn_on_headers(void *owner, uint64_t key, void *stream,
                                 const struct bow_metadata *metadata)
{
    const struct bow__client_conn *conn = owner;
    struct bow__client_call *call = stream;

    (void)key;
    if (stream == &conn->health) {
        return;
    }
    if (call->retry != NULL) {
        bow__call_retry_commit(call);
    }
    if (bow__metadata_copy(&call->memory->arena, metadata, &call->initial) < 0) {
        give_up(call, BOW_RESOURCE_EXHAUSTED, "out of memory for the initial metadata");
    } else if (call->stream != NULL) {
        bow__stream_take_headers(call->stream, &call->initial);
    }
}

void bow__client_conn_on_writable(void *owner, uint64_t key, void *stream)
{
    const struct bow__client_conn *conn = owner;
    struct bow__client_call *call = stream;

    (void)key;
    if (stream != &conn->health && call->stream != NULL) {
        bow__stream_check_writable(call->stream);
    }
}

static bool never_left(const struct bow__client_call *call)
{
    const struct bow__session *session = call->conn->session;

    return session->ops->never_left(session, call->key);
}

/* Once, but that what never left may be sent as often as servers come and go. Not where none has
 * shown itself yet: what takes connections and ends them would be asked for ever more of them. */
static bool counts_as_retry(const struct bow__client_call *call)
{
    return !call->conn->heard || !never_left(call);
}

/* Nothing of the call reached a handler, and an overloaded peer is not asked again at once. */
static bool may_retry(const struct bow__client_call *call, const struct bow_status *status)
{
    bool spent = call->retried && counts_as_retry(call);

    return status->not_processed && status->retry_after_ns == 0 && !spent &&
           bow__call_may_be_resent(call);
}

/* Returns whether that is not the end of it. */
static bool retry(struct bow__client_call *call, struct bow_status *status)
{
    status->not_processed |= never_left(call);
    if (!may_retry(call, status)) {
        return false;
    }
    if (call->intercepted != NULL) {
        bow__intercepted_retries(call->intercepted, status);
    }
    bow__client_call_count_attempt_end(call, status->code);
    if (call->retry != NULL) {
        bow__call_retry_stop(call);
    }
    bow__count(&call->counts->retries, 1);
    call->calls->counters.now.calls_retried++;
    call->calls->ops->requeue(call, counts_as_retry(call));
    return true;
}

/*
 * Both sides keep the deadline, and the server's may be the first by the time that
 * rounding and the way take. A call does not end early: our timer ends it.
 */
static bool is_about_to_expire(const struct bow__client_call *call, const struct bow_status *status)
{
    uint64_t left = bow__time_left(call->deadline_ns, call->conn->session->work.came_ns);

    return status->code == BOW_DEADLINE_EXCEEDED && left < EARLY_NS;
}

void bow__client_conn_on_status(void *owner, uint64_t key, void *stream,
                                const struct bow_status *status)
{
    struct bow__client_conn *conn = owner;
    struct bow__client_call *call = stream;
    struct bow_status failure;
    struct bow__text text;
    struct bow__text attempts;

    (void)key;
    if (stream == &conn->health) {
        bow__health_watch_on_status(&conn->health, status);
        return;
    }
    if (status->code != BOW_OK) {
        failure = *status;
        status = &failure;
        if (retry(call, &failure)) {
            return;
        }
        if (call->conn->session->is_own_status) {
            failure.message = name_server(call, failure.message, &text);
        }
        if (bow__call_retry_failed(call, &failure, &attempts)) {
            return;
        }
    }
    if (call->stream != NULL) {
        bow__stream_seal(call->stream);
    }
    if (is_about_to_expire(call, status)) {
        call->state = BOW__CLIENT_CALL_EXPIRING;
        bow__client_call_part(call);
        return;
    }
    if (status->code == BOW_OK && call->reply == NULL && !bow__method_receives_many(call->method)) {
        bow__client_call_fail(call, BOW_INTERNAL,
                              name_server(call, "the peer says OK and sent no reply", &text));
        return;
    }
    if (call->stream != NULL && bow__stream_has_waiting(call->stream)) {
        bow__client_call_linger(call, status);
        return;
    }
    bow__client_call_complete(call, status);
}
