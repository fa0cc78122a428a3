/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A server's calls on their way past its interceptors, and word of those that were refused before
 * it. A call that is held has not entered its handler: it is the loop's, so its deadline and its
 * peer may end it as they do any other. What comes meanwhile is kept as it came, undecoded, and no
 * credit is given for it.
 */

#include "rpc/server/dispatch/intercept_server.h"
#include "rpc/core/call/call_metadata.h"
#include "rpc/core/intercept.h"
#include "rpc/core/message/receive_queue.h"

#include <errno.h>
#include <string.h>

struct interception {
    struct bow__intercepted it; /* first */
    const struct bow__server_intercept_ops *ops;
    struct bow__server_call *server_call;
    const char *protocol; /* by which it came; lives for ever; NULL: the session's name */
    struct bow__deferred deferred;
    struct bow__receive_queue in;
    struct bow__work_waiter waiter; /* for the turn in which what is in there goes on */
    bool client_ended;
    bool *ended; /* of who replays messages: the call may go meanwhile */
};

static struct interception *interception_of(const struct bow__intercepted *it)
{
    return (struct interception *)(uintptr_t)it;
}

/* What interceptors ask */

static struct bow__intercept_facts facts(const struct bow__intercepted *it)
{
    const struct bow__server_call *server_call = interception_of(it)->server_call;
    const struct bow__conn *conn = &server_call->conn->conn;

    return (struct bow__intercept_facts){
        .method = server_call->call.method,
        .peer = server_call->call.peer,
        .protocol = interception_of(it)->protocol != NULL ? interception_of(it)->protocol
                                                          : server_call->call.session->ops->name,
        .deadline_ns = server_call->call.deadline_ns,
        .loop = server_call->worker->loop,
        .call = &server_call->call,
        .request = *bow_call_metadata(&server_call->call),
        .secure = conn->security != NULL,
    };
}

static int add(struct bow__intercepted *it, enum bow__intercept_add what, const char *key,
               struct bow_slice value)
{
    struct bow_call *call = &interception_of(it)->server_call->call;

    switch (what) {
    case BOW__ADD_INITIAL:
        return bow_call_add_initial(call, key, value);
    case BOW__ADD_TRAILING:
        return bow_call_add_trailing(call, key, value);
    case BOW__ADD_REQUEST:
    case BOW__SET_REQUEST:
        break;
    }
    return -EINVAL;
}

/* Refusing */

static void refuse(struct bow__intercepted *it)
{
    struct bow__server_call *server_call = interception_of(it)->server_call;
    struct bow_status status = it->refusal;

    (void)bow__call_respond(&server_call->call);
    status.metadata = bow__call_trailing(&server_call->call);
    interception_of(it)->ops->refuse(server_call, &status);
}

static void refuse_deferred(struct bow__intercepted *it)
{
    struct bow__conn *conn = &interception_of(it)->server_call->conn->conn;

    refuse(it);
    bow__conn_touch(conn);
}

/* Going on */

/* What was kept goes the way it would have gone, until the call is no more. */
static void replay(struct interception *held)
{
    struct bow__server_call *server_call = held->server_call;
    struct bow__receive_queue in = held->in;
    bool client_ended = held->client_ended;
    bool ended = false;
    struct bow__message message;

    held->in = (struct bow__receive_queue){.share = in.share};
    held->ended = &ended;
    (void)held->ops->go_on(server_call);
    while (!ended && bow__receive_queue_pop(&in, &message)) {
        bool is_last = client_ended && bow__receive_queue_is_empty(&in);
        held->ops->message(server_call, &message, is_last);
        client_ended = client_ended && !is_last;
        bow__block_unref(message.block);
    }
    bow__receive_queue_clear(&in);
    if (!ended && client_ended) {
        held->ops->half_close(server_call);
    }
    if (!ended) {
        held->ended = NULL;
    }
}

static bool has_turn(const struct interception *held)
{
    return bow__receive_queue_is_empty(&held->in) ||
           bow__session_has_turn(held->server_call->call.session);
}

static void on_turn(struct bow__work_waiter *waiter)
{
    struct interception *held = BOW__CONTAINER(waiter, struct interception, waiter);

    held->it.ops->defer(&held->it);
}

static void go_on(struct bow__intercepted *it)
{
    struct interception *held = interception_of(it);
    struct bow__conn *conn = &held->server_call->conn->conn;

    if (has_turn(held)) {
        replay(held);
    } else {
        it->stage = BOW__INTERCEPT_PROCEEDING; /* past the last one; what comes is kept */
        bow__work_wait(&conn->session->work, &held->waiter);
    }
    bow__conn_touch(conn);
}

static void run_deferred(struct bow__deferred *deferred)
{
    bow__intercepted_run(&BOW__CONTAINER(deferred, struct interception, deferred)->it);
}

static void defer(struct bow__intercepted *it)
{
    struct interception *held = interception_of(it);

    bow__loop_defer_flush(held->server_call->worker->loop, &held->deferred);
}

static const struct bow__intercept_ops intercept_ops = {
    .server = true,
    .facts = facts,
    .add = add,
    .defer = defer,
    .go_on = go_on,
    .refuse = refuse_deferred,
};

/* What dispatch asks */

void bow__server_intercept_refused(const struct bow__server_conn *conn,
                                   const struct bow__request_head *head,
                                   const struct bow_status *status, const char *limit)
{
    const struct bow__interceptors *chain = conn->worker->limits->interceptors;

    if (chain == NULL) {
        return;
    }
    struct bow_refused_call call = {
        .path = head->path,
        .peer = bow_channel_peer(conn->conn.channel),
        .protocol = head->protocol != NULL ? head->protocol : conn->conn.session->ops->name,
        .status = status,
        .limit = limit,
        .metadata = head->metadata,
        .loop = conn->worker->loop,
    };
    bow__interceptors_tell_refused(chain, &call);
}

static struct bow__intercepted *make(struct bow__server_call *server_call,
                                     const struct bow__server_intercept_ops *ops,
                                     const char *protocol)
{
    struct bow__intercepted *it = bow__intercepted_new(
        server_call->worker->limits->interceptors, &intercept_ops, &server_call->call.arena,
        sizeof(struct interception), server_call->started_ns);

    if (it != NULL) {
        struct interception *made = interception_of(it);
        made->ops = ops;
        made->server_call = server_call;
        made->protocol = protocol;
        made->in.share = &server_call->conn->share;
        made->deferred.fn = run_deferred;
        bow__list_init(&made->deferred.link);
        made->waiter.fn = on_turn;
        bow__list_init(&made->waiter.link);
    }
    return it;
}

/* None of them has seen the call. */
static void refuse_for_memory(struct bow__server_call *server_call,
                              const struct bow__server_intercept_ops *ops, const char *protocol)
{
    const char *path = server_call->call.method->path;
    const struct bow__request_head head = {
        .path = {(const uint8_t *)path, strlen(path)},
        .metadata = *bow_call_metadata(&server_call->call),
        .protocol = protocol,
    };
    struct bow_status status = BOW_STATUS_OK_INIT;

    status.code = BOW_RESOURCE_EXHAUSTED;
    status.message = "the server has no memory for the call's interceptors";
    status.not_processed = true;
    status.retry_after_ns = server_call->worker->limits->retry_after_ns;
    bow__server_intercept_refused(server_call->conn, &head, &status, "memory");
    ops->refuse(server_call, &status);
}

bool bow__server_intercept(struct bow__server_call *server_call,
                           const struct bow__server_intercept_ops *ops, const char *protocol,
                           void **ret_stream)
{
    struct bow__intercepted *it = make(server_call, ops, protocol);

    *ret_stream = NULL;
    if (it == NULL) {
        refuse_for_memory(server_call, ops, protocol);
        return false;
    }
    server_call->call.intercepted = it;
    server_call->call.states = it;
    switch (bow__intercepted_start(it)) {
    case BOW__INTERCEPT_PASSED:
        return true;
    case BOW__INTERCEPT_REFUSED:
        refuse(it);
        return false;
    default:
        *ret_stream = server_call;
        return false;
    }
}

void bow__server_intercept_queue(struct bow__server_call *server_call, struct bow__message *message,
                                 bool end)
{
    struct interception *held = interception_of(server_call->call.intercepted);

    held->client_ended = held->client_ended || end;
    if (message == NULL) {
        return;
    }
    struct bow_status status = BOW_STATUS_OK_INIT;
    struct bow__text text;
    int rc = bow__receive_queue_push(&held->in, server_call->worker->context, message);
    if (rc < 0) {
        bow__receive_queue_describe(&held->in, rc, &text);
        status.code = BOW_RESOURCE_EXHAUSTED;
        status.message = text.bytes;
        status.retry_after_ns = server_call->worker->limits->retry_after_ns;
        held->ops->refuse(server_call, &status);
    }
}

void bow__server_intercept_end(struct bow__server_call *server_call,
                               const struct bow_status *status)
{
    struct interception *it = interception_of(server_call->call.intercepted);

    bow__list_remove(&it->deferred.link);
    bow__list_remove(&it->waiter.link);
    bow__receive_queue_clear(&it->in);
    if (it->ended != NULL) {
        *it->ended = true;
    }
    bow__intercepted_end(&it->it, status, bow__loop_read_clock(server_call->worker->loop));
    server_call->call.intercepted = NULL;
}
