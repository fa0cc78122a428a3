/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a session tells a client, and what it has to know of it.
 */

#include "base/clock.h"
#include "rpc/client/client_state.h"
#include "rpc/client/stream_state.h"
#include "rpc/core/call/receive.h"
#include "rpc/core/errors.h"
#include "rpc/core/metadata.h"
#include "transport/address/address.h"
#include <bowline/limits.h>

#include <errno.h>
#include <string.h>

/* By how much a server's idea of a deadline may be ahead of ours. */
#define EARLY_NS UINT64_C(20000000)

static struct bow__client_conn *client_conn_of(struct bow__conn *conn)
{
    return BOW__CONTAINER(conn, struct bow__client_conn, conn);
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

    conn->balancer->counters.now.undecodable_messages++;
    bow__text_clear(&text);
    bow__text_printf(&text, "the reply of %s cannot be decoded: %s", call->method->path,
                     reason->bytes);
    give_up(call, bow__code_from_errno(rc), text.bytes);
}

static void take_reply(struct bow__client_conn *conn, uint64_t key, struct bow__client_call *call,
                       struct bow__message *message)
{
    struct bow__session *session = conn->conn.session;
    size_t n_bytes = message->bytes.len;
    struct bow__text reason;

    bow__text_clear(&reason);
    int rc = bow__open_message(&call->balancer->compression.compression, call->intercepted, message,
                               &reason);
    if (rc == 0) {
        rc = bow__decode_message(call->method->output, message, &call->memory->arena, &call->reply,
                                 &reason);
    }
    session->ops->consumed(session, key, bow__consumed_bytes(n_bytes));
    if (bow__intercepted_refused(call->intercepted)) {
        give_up(call, call->intercepted->refusal.code, reason.bytes);
    } else if (rc < 0) {
        refuse_undecodable(conn, call, rc, &reason);
    }
}

static void on_message(void *owner, uint64_t key, void *stream, struct bow__message *message,
                       bool end)
{
    struct bow__client_call *call = stream;

    (void)end;
    if (bow__method_receives_many(call->method)) {
        bow__stream_take_message(call->stream, message);
    } else if (call->reply != NULL) {
        give_up(call, BOW_INTERNAL, "the call has one reply, and a second one came");
    } else {
        take_reply(owner, key, call, message);
    }
}

static void on_headers(void *owner, uint64_t key, void *stream, const struct bow_metadata *metadata)
{
    struct bow__client_call *call = stream;

    (void)owner;
    (void)key;
    if (bow__metadata_copy(&call->memory->arena, metadata, &call->initial) < 0) {
        give_up(call, BOW_RESOURCE_EXHAUSTED, "out of memory for the initial metadata");
    } else if (call->stream != NULL) {
        bow__stream_take_headers(call->stream, &call->initial);
    }
}

static void on_writable(void *owner, uint64_t key, void *stream)
{
    struct bow__client_call *call = stream;

    (void)owner;
    (void)key;
    if (call->stream != NULL) {
        bow__stream_check_writable(call->stream);
    }
}

static bool is_held(const struct bow__client_call *call)
{
    if (bow__method_sends_many(call->method)) {
        return bow__stream_may_retry(call->stream);
    }
    return call->block != NULL || call->n_request <= BOW__INLINE_REQUEST_BYTES;
}

/* Whatever else it says, a server that has answered something has run a handler. */
static bool has_answered(const struct bow__client_call *call)
{
    return call->reply != NULL || call->initial.n > 0 ||
           (call->stream != NULL && call->stream->n_received > 0);
}

static bool never_left(const struct bow__client_call *call)
{
    const struct bow__session *session = call->conn->conn.session;

    return session->ops->never_left(session, call->key);
}

/* Once, but that what never left may be sent as often as servers come and go. Not where none has
 * shown itself yet: what takes connections and ends them would be asked for ever more of them. */
static bool counts_as_retry(const struct bow__client_call *call)
{
    return !call->conn->conn.heard || !never_left(call);
}

/* Nothing of the call reached a handler, and an overloaded peer is not asked again at once. */
static bool may_retry(const struct bow__client_call *call, const struct bow_status *status)
{
    bool spent = call->retried && counts_as_retry(call);

    return status->not_processed && status->retry_after_ns == 0 && !spent && is_held(call) &&
           !has_answered(call) && !call->balancer->closing;
}

/* Returns whether that is not the end of it. */
static bool retry(struct bow__client_call *call, struct bow_status *status)
{
    status->not_processed |= never_left(call);
    if (!may_retry(call, status)) {
        return false;
    }
    bow__balancer_requeue(call->balancer, call, counts_as_retry(call));
    return true;
}

/*
 * Both sides keep the deadline, and the server's may be the first by the time that
 * rounding and the way take. A call does not end early: our timer ends it.
 */
static bool is_about_to_expire(const struct bow__client_call *call, const struct bow_status *status)
{
    uint64_t left = bow__time_left(call->deadline_ns, bow_loop_now(call->balancer->loop));

    return status->code == BOW_DEADLINE_EXCEEDED && left < EARLY_NS;
}

static void on_status(void *owner, uint64_t key, void *stream, const struct bow_status *status)
{
    struct bow__client_call *call = stream;
    struct bow_status failure;

    (void)owner;
    (void)key;
    if (status->code != BOW_OK) {
        failure = *status;
        status = &failure;
        if (retry(call, &failure)) {
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
        bow__client_call_fail(call, BOW_INTERNAL, "the peer says OK and sent no reply");
        return;
    }
    if (call->stream != NULL && bow__stream_has_waiting(call->stream)) {
        bow__client_call_linger(call, status);
        return;
    }
    bow__client_call_complete(call, status);
}

static void on_ready(void *owner)
{
    struct bow__client_conn *conn = owner;

    bow__subchannel_conn_answered(conn->subchannel, conn);
    bow__balancer_pump(conn->balancer);
}

static void on_goaway(void *owner, const struct bow_status *reason)
{
    struct bow__client_conn *conn = owner;

    conn->conn.is_announced = true;
    bow__subchannel_conn_retired(conn->subchannel, conn, reason->message);
    bow__conn_touch(&conn->conn);
}

static void configure(struct bow__conn *conn, struct bow__session_options *options)
{
    const struct bow__client_conn *ours = client_conn_of(conn);
    const struct bow_client *client = ours->balancer->client;
    const char *address = ours->subchannel->address->text;

    options->unattended = client->confined;
    options->max_message_bytes = client->options.max_message_bytes;
    options->heartbeat_ns = client->options.heartbeat_ns;
    options->heartbeat_timeout_ns = client->options.heartbeat_timeout_ns;
    options->encodings = bow__encodings_built();
    options->authority = bow__address_is_hostless(address)
                             ? (struct bow_slice){(const uint8_t *)"localhost", 9}
                             : (struct bow_slice){(const uint8_t *)address, strlen(address)};
}

static void on_up(struct bow__conn *conn)
{
    bow__subchannel_conn_up(client_conn_of(conn)->subchannel, client_conn_of(conn));
}

static void on_down(struct bow__conn *conn, const struct bow_status *why)
{
    struct bow__client_conn *lost = client_conn_of(conn);

    if (!conn->up) {
        bow__subchannel_conn_failed(lost->subchannel, lost, why->message);
        return;
    }
    if (conn->session->heartbeats_lost > 0) {
        bow__balancer_doubt(lost->balancer, lost->subchannel);
    }
    bow__subchannel_conn_retired(lost->subchannel, lost, why->message);
}

static void on_aged(struct bow__conn *conn, const char *why)
{
    struct bow__client_conn *aged = client_conn_of(conn);

    if (bow__list_is_empty(&aged->balancer->queue)) {
        bow__subchannel_conn_retired(aged->subchannel, aged, NULL);
        bow__conn_goaway(conn, why);
    }
}

static void on_gone(struct bow__conn *conn)
{
    struct bow__client_conn *gone = client_conn_of(conn);

    bow__list_remove(&gone->at);
    bow__balancer_check_closed(gone->balancer);
}

static int secure(const struct bow__subchannel *subchannel, struct bow_channel *channel)
{
    const struct bow_client *client = subchannel->balancer->client;
    struct bow_security *security = client->options.security;
    struct bow_security_request request = {
        .server_name = subchannel->address->server_name,
        .alpn = client->target.http2 ? "h2" : "bowline/1",
    };

    return security->ops->add(security, channel, &request);
}

int bow__client_conn_init(struct bow_channel *channel, void *user)
{
    static const struct bow__session_events events = {
        .on_headers = on_headers,
        .on_message = on_message,
        .on_status = on_status,
        .on_writable = on_writable,
        .on_ready = on_ready,
        .on_goaway = on_goaway,
    };
    static const struct bow__conn_ops ops = {
        .events = &events,
        .configure = configure,
        .on_up = on_up,
        .on_down = on_down,
        .on_aged = on_aged,
        .on_gone = on_gone,
    };
    struct bow__client_conn *conn = bow_channel_data(channel);
    struct bow__subchannel *subchannel = user;
    struct bow__balancer *balancer = subchannel->balancer;
    const struct bow_client *client = balancer->client;

    if (client->options.security != NULL) {
        int rc = secure(subchannel, channel);
        if (rc < 0) {
            return rc;
        }
    }
    conn->balancer = balancer;
    conn->subchannel = subchannel;
    bow__list_push_back(&balancer->conns, &conn->at);
    bow__conn_init(&conn->conn, channel, &ops, &balancer->counters, false);
    conn->conn.write_timeout_ns = client->options.write_timeout_ns;
    bow__age_start(&conn->conn.age, client->context, bow_loop_now(balancer->loop),
                   client->options.idle_timeout_ns, BOW_NEVER, BOW_NEVER);
    conn->conn.http2 = client->target.http2;
    conn->conn.security = client->options.security;
    return 0;
}
