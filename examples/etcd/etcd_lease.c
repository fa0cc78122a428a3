/* SPDX-License-Identifier: 0BSD */
/*
 * Owns a lease's times and how it goes on. Knows nothing of the keys that are put with it.
 *
 * Design: at any time one thing is under way, the timer `next`, a unary call or the stream, and its
 * end begins the next. The time to live runs beside them, through any loss of connection.
 */

#include "etcd_lease.h"
#include <string.h>

#define SECOND_NS UINT64_C(1000000000)
#define CALL_TIMEOUT_NS (UINT64_C(10) * SECOND_NS)
#define REVOKE_TIMEOUT_NS (UINT64_C(2) * SECOND_NS)
#define PAUSE_MIN_NS (SECOND_NS / 10)
#define PAUSE_MAX_NS (UINT64_C(1) * SECOND_NS)
#define RENEWALS 3u    /* in a time to live */
#define MAX_REVOKES 2u /* the second with a new token */

static const struct bow_status stopped = {.code = BOW_CANCELLED, .message = "stopped"};

static uint64_t ttl_ns(const struct etcd_lease *lease)
{
    return (uint64_t)lease->ttl_s * SECOND_NS;
}

static void end(struct etcd_lease *lease, const struct bow_status *status)
{
    bow_timer_stop(&lease->next);
    bow_timer_stop(&lease->renew);
    bow_timer_stop(&lease->expiry);
    lease->events->on_closed(lease, lease->stopping ? &stopped : status, lease->user);
}

/* A call or the stream ended so. */
static void go_on_after(struct etcd_lease *lease, const struct bow_status *status)
{
    enum etcd_remedy remedy = etcd_remedy(lease->etcd, status);

    if (lease->stopping) {
        bow_timer_start(&lease->next, 0);
        return;
    }
    if (remedy == ETCD_GIVE_UP) {
        end(lease, status);
        return;
    }
    lease->lacks_token = lease->lacks_token || remedy == ETCD_LOG_IN;
    lease->pause_ns = lease->pause_ns == 0 ? PAUSE_MIN_NS : 2 * lease->pause_ns;
    if (lease->pause_ns > PAUSE_MAX_NS) {
        lease->pause_ns = PAUSE_MAX_NS;
    }
    bow_timer_start(&lease->next, lease->pause_ns);
    lease->events->on_interrupted(lease, status, lease->user);
}

static void lose(struct etcd_lease *lease, const char *why)
{
    int64_t id = lease->id;

    lease->id = 0;
    bow_timer_stop(&lease->renew);
    bow_timer_stop(&lease->expiry);
    if (lease->stream.stream != NULL) {
        bow_stream_cancel(lease->stream.stream); /* its end asks for another lease */
    }
    lease->events->on_lost(lease, id, why, lease->user);
}

static void on_expiry(struct bow_timer *timer, void *user)
{
    (void)timer;
    lose(user, "no renewal was answered within its time to live");
}

/* Granting, and giving back. */

static void on_grant(struct bow_result *result, const Etcdserverpb__LeaseGrantResponse *grant,
                     void *user)
{
    struct etcd_lease *lease = user;

    lease->call = 0;
    if (grant == NULL) {
        go_on_after(lease, &result->status);
        return;
    }
    lease->pause_ns = 0;
    lease->id = grant->id;
    lease->ttl_s = grant->ttl;
    bow_timer_start(&lease->next, 0); /* its renewals; or it goes back at once */
    if (!lease->stopping) {
        bow_timer_start_at(&lease->expiry, lease->sent_ns + ttl_ns(lease));
        lease->events->on_granted(lease, lease->id, lease->ttl_s, lease->user);
    }
}

static int ask_grant(struct etcd_lease *lease)
{
    Etcdserverpb__LeaseGrantRequest request = ETCDSERVERPB__LEASE_GRANT_REQUEST__INIT;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;

    request.ttl = lease->asked_ttl_s;
    options.wait_for_ready = true;
    options.timeout_ns = CALL_TIMEOUT_NS;
    lease->sent_ns = bow_loop_now(lease->etcd->loop);
    return etcdserverpb__lease__lease_grant__start(lease->etcd->client, &request, &options,
                                                   on_grant, lease, &lease->call);
}

static void on_revoked(struct bow_result *result, const Etcdserverpb__LeaseRevokeResponse *reply,
                       void *user)
{
    struct etcd_lease *lease = user;

    if (reply == NULL && etcd_remedy(lease->etcd, &result->status) == ETCD_LOG_IN) {
        lease->lacks_token = true;
        bow_timer_start(&lease->next, 0);
        return;
    }
    end(lease, &stopped); /* if it did not work, the lease ends by itself */
}

static int revoke(struct etcd_lease *lease)
{
    Etcdserverpb__LeaseRevokeRequest request = ETCDSERVERPB__LEASE_REVOKE_REQUEST__INIT;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;

    request.id = lease->id;
    options.timeout_ns = REVOKE_TIMEOUT_NS;
    lease->n_revokes++;
    return etcdserverpb__lease__lease_revoke__start(lease->etcd->client, &request, &options,
                                                    on_revoked, lease, NULL);
}

/* Renewals. */

static void send_renewal(struct etcd_lease *lease)
{
    Etcdserverpb__LeaseKeepAliveRequest request = ETCDSERVERPB__LEASE_KEEP_ALIVE_REQUEST__INIT;

    request.id = lease->id;
    lease->awaited = true;
    lease->sent_ns = bow_loop_now(lease->etcd->loop);
    bow_timer_start(&lease->renew, ttl_ns(lease) / RENEWALS);
    if (etcdserverpb__lease__lease_keep_alive__stream_send(lease->stream, &request) < 0) {
        bow_stream_cancel(lease->stream.stream);
    }
}

static void on_renew(struct bow_timer *timer, void *user)
{
    struct etcd_lease *lease = user;

    (void)timer;
    if (lease->awaited) {
        bow_stream_cancel(lease->stream.stream); /* no answer: another stream, perhaps elsewhere */
    } else {
        send_renewal(lease);
    }
}

static void on_renewed(struct etcdserverpb__lease__lease_keep_alive__stream stream,
                       const Etcdserverpb__LeaseKeepAliveResponse *reply, void *user)
{
    struct etcd_lease *lease = user;

    (void)stream;
    if (lease->stopping || lease->id == 0 || reply->id != lease->id) {
        return;
    }
    lease->awaited = false;
    lease->pause_ns = 0;
    if (reply->ttl <= 0) {
        lose(lease, "the server has it no more");
        return;
    }
    lease->ttl_s = reply->ttl;
    bow_timer_start_at(&lease->expiry, lease->sent_ns + ttl_ns(lease));
}

static void on_stream_closed(struct etcdserverpb__lease__lease_keep_alive__stream stream,
                             struct bow_result *result, void *user)
{
    static const struct bow_status ended = {.code = BOW_UNAVAILABLE,
                                            .message = "the server has ended the stream"};
    static const struct bow_status silent = {.code = BOW_UNAVAILABLE,
                                             .message = "a renewal was not answered in time"};
    struct etcd_lease *lease = user;
    const struct bow_status *status = result->status.code == BOW_OK ? &ended : &result->status;

    bow_stream_unref(stream.stream);
    lease->stream.stream = NULL;
    if (status->code == BOW_CANCELLED && lease->awaited) {
        status = &silent;
    }
    lease->awaited = false;
    bow_timer_stop(&lease->renew);
    if (lease->id == 0) { /* lost, and said so */
        bow_timer_start(&lease->next, 0);
        return;
    }
    go_on_after(lease, status);
}

static int open_stream(struct etcd_lease *lease)
{
    static const struct etcdserverpb__lease__lease_keep_alive__stream_events events = {
        .on_message = on_renewed,
        .on_closed = on_stream_closed,
    };
    /* A member that is cut off from the others ends the stream, instead of falling silent. */
    static const struct bow_metadata_entry entries[] = {
        {"hasleader", {(const uint8_t *)"true", 4}}};
    static const struct bow_metadata metadata = {entries, 1};
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;

    options.wait_for_ready = true;
    options.metadata = &metadata;
    int rc = etcdserverpb__lease__lease_keep_alive__open(lease->etcd->client, &options, &events,
                                                         lease, &lease->stream);
    if (rc == 0) {
        send_renewal(lease);
    }
    return rc;
}

/* The token. */

static void on_login(const struct bow_status *status, void *user)
{
    struct etcd_lease *lease = user;

    lease->call = 0;
    if (status->code != BOW_OK) {
        lease->id = lease->stopping ? 0 : lease->id; /* it ends by itself */
        go_on_after(lease, status);
        return;
    }
    lease->lacks_token = false;
    bow_timer_start(&lease->next, 0);
}

static int log_in(struct etcd_lease *lease)
{
    lease->login = (struct etcd_login){lease->etcd, on_login, lease};
    return etcd_login_start(&lease->login, &lease->call);
}

static void on_next(struct bow_timer *timer, void *user)
{
    struct etcd_lease *lease = user;
    int rc;

    (void)timer;
    if (lease->stopping && (lease->id == 0 || lease->n_revokes == MAX_REVOKES)) {
        end(lease, &stopped);
        return;
    }
    if (lease->lacks_token) {
        rc = log_in(lease);
    } else if (lease->stopping) {
        rc = revoke(lease);
    } else {
        rc = lease->id == 0 ? ask_grant(lease) : open_stream(lease);
    }
    if (rc < 0) {
        struct bow_status status = {.code = BOW_INTERNAL, .message = strerror(-rc)};
        end(lease, &status);
    }
}

void etcd_lease_start(struct etcd_lease *lease, struct etcd *etcd, int64_t ttl_s,
                      const struct etcd_lease_events *events, void *user)
{
    *lease =
        (struct etcd_lease){.etcd = etcd, .events = events, .user = user, .asked_ttl_s = ttl_s};
    bow_timer_init(&lease->next, etcd->loop, on_next, lease);
    bow_timer_init(&lease->renew, etcd->loop, on_renew, lease);
    bow_timer_init(&lease->expiry, etcd->loop, on_expiry, lease);
    bow_timer_start(&lease->next, 0);
}

void etcd_lease_stop(struct etcd_lease *lease)
{
    if (lease->stopping) {
        return;
    }
    lease->stopping = true;
    bow_timer_stop(&lease->expiry);
    bow_timer_stop(&lease->renew);
    if (lease->call != 0) {
        bow_client_cancel(lease->etcd->client, lease->call);
    } else if (lease->stream.stream != NULL) {
        bow_stream_cancel(lease->stream.stream);
    } else {
        bow_timer_start(&lease->next, 0);
    }
}
