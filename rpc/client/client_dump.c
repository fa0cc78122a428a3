/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a client has in flight on its loops (<bowline/inspect.h>): at which stage each call is is
 * said here; how loops are joined, and what they tell written, is rpc/inspect's.
 */
#include "base/refuse.h"
#include "rpc/client/balancer_stage.h"
#include "rpc/client/call/stream.h"
#include "rpc/client/client.h"
#include "rpc/connection/conn_inspect.h"
#include "rpc/core/call/generic.h"
#include "rpc/core/intercept.h"
#include "rpc/inspect/render.h"
#include "transport/channel/channel_core.h"

#include <errno.h>

static size_t queued_of(const struct bow__client_call *call)
{
    const struct bow__session *session = call->conn != NULL ? call->conn->session : NULL;

    return session != NULL && call->state == BOW__CLIENT_CALL_OPEN
               ? session->ops->queued(session, call->key)
               : 0;
}

/* What is done about a connection; several addresses may be tried at once. */
static enum bow__call_stage queued_stage(const struct bow__client_call *call, char *detail)
{
    const struct bow__balancer *balancer = bow__balancer_of(call);

    if (bow__balancer_lacks_streams(balancer)) {
        return BOW__STAGE_STREAM;
    }
    bow__snapshot_copy(detail, balancer->state == BOW__CONNECTIVITY_READY
                                   ? "waiting for the first answer of its server"
                               : balancer->state == BOW__CONNECTIVITY_BACKING_OFF
                                   ? "backing off after an attempt that failed"
                                   : bow__balancer_stage(balancer));
    return BOW__STAGE_CONNECTION;
}

static void describe_rest(const struct bow__client_call *call, char *detail)
{
    struct bow__text text;

    bow__text_clear(&text);
    bow__text_printf(&text, "%u failed, the last with %s: %s", call->n_failed,
                     bow_code_name(call->retry->last_code), call->retry->last_reason);
    bow__snapshot_copy(detail, text.bytes);
}

static void describe_attempt(const struct bow__client_call *call, char *detail)
{
    struct bow__text text;

    if (call->n_failed == 0) {
        return;
    }
    bow__text_clear(&text);
    bow__text_printf(&text, "attempt %u%s", call->n_failed + 1u,
                     call->hedge_of != NULL ? ", beside the others of its call" : "");
    bow__snapshot_copy(detail, text.bytes);
}

static enum bow__call_stage stage_of(const struct bow__client_call *call, size_t n_queued,
                                     char *detail)
{
    switch (call->state) {
    case BOW__CLIENT_CALL_HELD:
        bow__snapshot_copy(detail, bow__intercepted_holder(call->intercepted));
        return BOW__STAGE_INTERCEPTED;
    case BOW__CLIENT_CALL_QUEUED:
        return queued_stage(call, detail);
    case BOW__CLIENT_CALL_RESTING:
        describe_rest(call, detail);
        return BOW__STAGE_ATTEMPT;
    case BOW__CLIENT_CALL_LINGERING:
        return BOW__STAGE_READER;
    default:
        break;
    }
    describe_attempt(call, detail);
    if (n_queued > 0) {
        return bow__channel_stalled_since(call->conn->channel) != 0 ? BOW__STAGE_SOCKET
                                                                    : BOW__STAGE_CREDIT;
    }
    return BOW__STAGE_SERVER;
}

static void copy_target(const struct bow__client_call *call, char *to)
{
    struct bow__text text;

    if (call->conn != NULL) {
        bow__snapshot_copy(to, bow_channel_peer(call->conn->channel));
        return;
    }
    bow__text_clear(&text);
    bow__target_describe(&bow__balancer_of(call)->subchannels.config->target, &text);
    bow__snapshot_copy(to, text.bytes);
}

static void add_call(const struct bow__client_call *call, struct bow__snapshot *snapshot)
{
    struct bow__call_entry *entry = bow__snapshot_add_call(snapshot, call->started_ns);

    if (entry == NULL) {
        return;
    }
    size_t n_queued = queued_of(call);
    if (bow__method_is_generic(call->method)) {
        bow__snapshot_copy(entry->path, call->method->path);
    } else {
        entry->method = call->method->path;
    }
    entry->protocol =
        call->conn != NULL && call->conn->session != NULL ? call->conn->session->ops->name : NULL;
    entry->deadline_ns = call->deadline_ns;
    entry->n_waiting = n_queued;
    if (call->stream != NULL) {
        entry->n_waiting += atomic_load_explicit(&call->stream->n_waiting, memory_order_relaxed);
    }
    copy_target(call, entry->peer);
    entry->stage = stage_of(call, n_queued, entry->detail);
}

static void add_calls(struct bow__link *calls, struct bow__snapshot *snapshot)
{
    for (struct bow__link *at = calls->next; at != calls; at = at->next) {
        add_call(BOW__CONTAINER(at, struct bow__client_call, at), snapshot);
    }
}

static void fill(void *source, struct bow__snapshot *snapshot)
{
    struct bow__balancer *balancer = source;
    struct bow__link *conns = &balancer->subchannels.conns;

    add_calls(&balancer->calls.held, snapshot);
    add_calls(&balancer->calls.queue, snapshot);
    add_calls(&balancer->calls.resting, snapshot);
    add_calls(&balancer->calls.open, snapshot);
    for (struct bow__link *at = conns->next; at != conns; at = at->next) {
        const struct bow__conn *conn = &BOW__CONTAINER(at, struct bow__client_conn, at)->conn;
        uint32_t n_calls = conn->session != NULL ? bow__conn_n_calls(conn) : 0;
        (void)bow__conn_inspect(conn, n_calls, snapshot);
    }
}

/* As a call that is on its way to the loop does. */
static void hold(void *source)
{
    struct bow__balancer *balancer = source;

    atomic_fetch_add_explicit(&balancer->n_posted, 1, memory_order_relaxed);
}

static void release(void *source)
{
    bow__client_unpost(source);
}

static int gather_new(struct bow_client *client, const struct bow__snapshot_limits *limits,
                      struct bow__gather **ret_gather)
{
    static const struct bow__gather_ops ops = {
        .is_client = true, .hold = hold, .fill = fill, .release = release};

    int rc = bow__gather_new(client->config.context, &ops, client->n_balancers, limits, ret_gather);
    for (uint32_t i = 0; i < client->n_balancers && rc == 0; i++) {
        struct bow__balancer *balancer = &client->balancers[i];
        if (atomic_load_explicit(&balancer->used, memory_order_acquire)) {
            bow__gather_add(*ret_gather, balancer->calls.loop, balancer);
        }
    }
    return rc;
}

int bow_client_dump(struct bow_client *client, const struct bow_dump_options *options,
                    bow_dump_put_fn put, void *user)
{
    struct bow_dump_options known;
    struct bow__gather *gather = NULL;

    if (bow__dump_options_read(options, &known) < 0) {
        return bow__refuse(client->config.context, -EINVAL,
                           "bow_client_dump: begin with BOW_DUMP_OPTIONS_INIT, and set a known "
                           "format and parts");
    }
    if (bow__client_is_foreign(client)) {
        return -ECHILD;
    }
    struct bow__snapshot_limits limits = bow__dump_limits(&known);
    int rc = gather_new(client, &limits, &gather);
    if (rc < 0) {
        return rc;
    }
    bow__gather_wait(gather, known.wait_ns);
    rc = bow__render_dump(gather, "client", &known, put, user);
    bow__gather_unref(gather);
    return rc;
}

int bow_client_dump_fd(struct bow_client *client, const struct bow_dump_options *options, int fd)
{
    return bow_client_dump(client, options, bow__dump_to_fd, &fd);
}
