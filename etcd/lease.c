/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A lease's times, and how it goes on. See the header. */

#include "etcd/lease.h"
#include "etcd/core.h"
#include "etcd/rpc.bow.h"

#define SECOND_NS UINT64_C(1000000000)
#define RENEWALS 3u /* in a time to live */
#define REVOKE_TIMEOUT_NS (2 * SECOND_NS)

static struct bow__etcd_lease *lease_of(struct bow__etcd_op *op)
{
    return BOW__CONTAINER(op, struct bow__etcd_lease, op);
}

/* From when the request was sent: etcd counts from later. */
static void live_from_now(struct bow__etcd_lease *lease, int64_t ttl_s)
{
    lease->ttl_ns = (uint64_t)ttl_s * SECOND_NS;
    if (lease->is_strict) {
        bow_timer_start_at(&lease->expiry, lease->sent_ns + lease->ttl_ns);
    }
}

/* Losing it */

void bow__etcd_lease_lose(struct bow__etcd_lease *lease, const char *why)
{
    bow_timer_stop(&lease->renew);
    bow_timer_stop(&lease->expiry);
    lease->id = 0;
    bow__etcd_op_reset(&lease->op);
    lease->events->on_lost(lease, why);
}

static void on_expiry(struct bow_timer *timer, void *user)
{
    (void)timer;
    bow__etcd_lease_lose(user, "no renewal was answered within its time to live");
}

/* Granting */

static void on_grant(struct bow_result *result, const Bow__Etcd__LeaseGrantResponse *grant,
                     void *user)
{
    struct bow__etcd_lease *lease = user;

    if (!bow__etcd_op_ended(&lease->op, &result->status)) {
        return;
    }
    if (grant->id == 0 || grant->ttl <= 0) {
        const struct bow_status status = {.code = BOW_INTERNAL,
                                          .message = "etcd has granted no lease"};
        bow__etcd_op_failed(&lease->op, &status);
        return;
    }
    lease->id = grant->id;
    live_from_now(lease, grant->ttl);
    bow__etcd_op_go(&lease->op, 0); /* its renewals */
    lease->events->on_granted(lease);
}

static int ask_grant(struct bow__etcd_lease *lease)
{
    Bow__Etcd__LeaseGrantRequest request = BOW__ETCD__LEASE_GRANT_REQUEST__INIT;
    struct bow_call_options options = bow__etcd_op_options(&lease->op, false);

    request.ttl = lease->asked_ttl_s;
    lease->sent_ns = bow_loop_now(lease->op.etcd->loop);
    return bow__etcd__lease__lease_grant__start(lease->op.etcd->client, &request, &options,
                                                on_grant, lease, &lease->op.call);
}

/* Renewals */

static void send_renewal(struct bow__etcd_lease *lease)
{
    Bow__Etcd__LeaseKeepAliveRequest request = BOW__ETCD__LEASE_KEEP_ALIVE_REQUEST__INIT;
    const struct bow__etcd__lease__lease_keep_alive__stream stream = {lease->op.stream};

    request.id = lease->id;
    lease->is_awaited = true;
    lease->sent_ns = bow_loop_now(lease->op.etcd->loop);
    bow_timer_start(&lease->renew, lease->ttl_ns / RENEWALS);
    if (bow__etcd__lease__lease_keep_alive__stream_send(stream, &request) < 0) {
        bow__etcd_op_cancel(&lease->op, BOW_UNAVAILABLE, "a renewal cannot be sent");
    }
}

static void on_renew(struct bow_timer *timer, void *user)
{
    struct bow__etcd_lease *lease = user;

    (void)timer;
    if (lease->is_awaited) { /* another stream, perhaps to another member */
        bow__etcd_op_cancel(&lease->op, BOW_DEADLINE_EXCEEDED,
                            "a renewal was not answered in time");
    } else {
        send_renewal(lease);
    }
}

static void on_renewed(struct bow__etcd__lease__lease_keep_alive__stream stream,
                       const Bow__Etcd__LeaseKeepAliveResponse *response, void *user)
{
    struct bow__etcd_lease *lease = user;

    (void)stream;
    if (lease->op.is_halted || lease->op.is_stale || response->id != lease->id) {
        return;
    }
    bow__etcd_op_good(&lease->op);
    lease->is_awaited = false;
    if (response->ttl <= 0) {
        bow__etcd_lease_lose(lease, "etcd has the lease no more");
        return;
    }
    live_from_now(lease, response->ttl);
}

static void on_closed(struct bow__etcd__lease__lease_keep_alive__stream stream,
                      struct bow_result *result, void *user)
{
    struct bow__etcd_lease *lease = user;

    (void)stream;
    bow_timer_stop(&lease->renew);
    bow__etcd_op_closed(&lease->op, &result->status);
}

static int open_stream(struct bow__etcd_lease *lease)
{
    static const struct bow__etcd__lease__lease_keep_alive__stream_events events = {
        .on_message = on_renewed,
        .on_closed = on_closed,
    };
    struct bow_call_options options = bow__etcd_op_options(&lease->op, true);
    struct bow__etcd__lease__lease_keep_alive__stream stream;

    int rc = bow__etcd__lease__lease_keep_alive__open(lease->op.etcd->client, &options, &events,
                                                      lease, &stream);
    if (rc == 0) {
        lease->op.stream = stream.stream;
        send_renewal(lease);
    }
    return rc;
}

static int begin(struct bow__etcd_op *op)
{
    struct bow__etcd_lease *lease = lease_of(op);

    return lease->id == 0 ? ask_grant(lease) : open_stream(lease);
}

static void on_error(struct bow__etcd_op *op, const struct bow_status *status)
{
    struct bow__etcd_lease *lease = lease_of(op);

    lease->events->on_error(lease, status);
}

/* The end */

static void close_lease(struct bow__etcd_lease *lease)
{
    if (!lease->is_closed) {
        lease->is_closed = true;
        lease->events->on_closed(lease);
    }
}

/* If it did not work, the lease ends by itself. */
static void on_revoked(struct bow_result *result, const Bow__Etcd__LeaseRevokeResponse *response,
                       void *user)
{
    (void)result;
    (void)response;
    close_lease(user);
}

static void on_idle(struct bow__etcd_op *op)
{
    struct bow__etcd_lease *lease = lease_of(op);
    Bow__Etcd__LeaseRevokeRequest request = BOW__ETCD__LEASE_REVOKE_REQUEST__INIT;
    struct bow_call_options options = bow__etcd_op_options(op, false);

    if (lease->revoke != 0) {
        return; /* its end is the end */
    }
    request.id = lease->id;
    if (options.timeout_ns > REVOKE_TIMEOUT_NS) {
        options.timeout_ns = REVOKE_TIMEOUT_NS;
    }
    if (lease->id == 0 || op->etcd->is_dead ||
        bow__etcd__lease__lease_revoke__start(op->etcd->client, &request, &options, on_revoked,
                                              lease, &lease->revoke) < 0) {
        close_lease(lease);
    }
}

static const struct bow__etcd_op_kind kind = {
    .begin = begin,
    .on_error = on_error,
    .on_idle = on_idle,
};

void bow__etcd_lease_init(struct bow__etcd_lease *lease, struct bow_etcd *etcd, int64_t ttl_s,
                          bool is_strict, const struct bow__etcd_lease_events *events)
{
    lease->events = events;
    lease->asked_ttl_s = ttl_s;
    lease->is_strict = is_strict;
    bow__etcd_op_init(&lease->op, &kind, etcd);
    bow_timer_init(&lease->renew, etcd->loop, on_renew, lease);
    bow_timer_init(&lease->expiry, etcd->loop, on_expiry, lease);
}

void bow__etcd_lease_start(struct bow__etcd_lease *lease)
{
    bow__etcd_op_go(&lease->op, 0);
}

void bow__etcd_lease_stop(struct bow__etcd_lease *lease)
{
    if (lease->is_stopping && !lease->op.etcd->is_dead) {
        return;
    }
    lease->is_stopping = true;
    bow_timer_stop(&lease->renew);
    bow_timer_stop(&lease->expiry);
    bow__etcd_op_halt(&lease->op);
}
