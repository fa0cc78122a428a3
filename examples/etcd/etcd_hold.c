/* SPDX-License-Identifier: 0BSD */
/* Owns when a key is put under which lease. How a lease lives, its file knows. */

#include "etcd_hold.h"
#include <stdio.h>
#include <string.h>

#define PUT_TIMEOUT_NS (UINT64_C(10) * 1000000000u)
#define PAUSE_NS (UINT64_C(200) * 1000000u)

static void set_status(struct etcd_hold *hold, const struct bow_status *status)
{
    if (hold->status.code == BOW_OK) { /* the first is the reason */
        snprintf(hold->reason, sizeof(hold->reason), "%s", status->message);
        hold->status = (struct bow_status){.code = status->code, .message = hold->reason};
    }
}

/* A put or a login ended so. */
static void go_on_after(struct etcd_hold *hold, const struct bow_status *status)
{
    enum etcd_remedy remedy = etcd_remedy(hold->etcd, status);

    if (hold->closed) {
        hold->events->on_closed(hold, &hold->status, hold->user);
        return;
    }
    if (status->code == BOW_NOT_FOUND) {
        return; /* the lease is gone, and says so itself */
    }
    if (remedy == ETCD_GIVE_UP) {
        set_status(hold, status);
        etcd_lease_stop(&hold->lease);
        return;
    }
    hold->lacks_token = hold->lacks_token || remedy == ETCD_LOG_IN;
    bow_timer_start(&hold->timer, PAUSE_NS);
    hold->events->on_interrupted(hold, status, hold->user);
}

static void on_put(struct bow_result *result, const Etcdserverpb__PutResponse *reply, void *user)
{
    struct etcd_hold *hold = user;

    hold->call = 0;
    if (reply == NULL || hold->closed) {
        go_on_after(hold, &result->status);
    } else if (hold->put_id == hold->lease_id) {
        hold->events->on_held(hold, hold->lease_id, hold->user);
    } else if (hold->lease_id != 0) { /* another one meanwhile */
        bow_timer_start(&hold->timer, 0);
    }
}

static int put(struct etcd_hold *hold)
{
    Etcdserverpb__PutRequest request = ETCDSERVERPB__PUT_REQUEST__INIT;
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;

    request.key = etcd_bytes(hold->key);
    request.value = etcd_bytes(hold->value);
    request.lease = hold->put_id = hold->lease_id;
    options.wait_for_ready = true;
    options.timeout_ns = PUT_TIMEOUT_NS;
    return etcdserverpb__kv__put__start(hold->etcd->client, &request, &options, on_put, hold,
                                        &hold->call);
}

static void on_login(const struct bow_status *status, void *user)
{
    struct etcd_hold *hold = user;

    hold->call = 0;
    if (status->code != BOW_OK || hold->closed) {
        go_on_after(hold, status);
        return;
    }
    hold->lacks_token = false;
    bow_timer_start(&hold->timer, 0);
}

static int log_in(struct etcd_hold *hold)
{
    hold->login = (struct etcd_login){hold->etcd, on_login, hold};
    return etcd_login_start(&hold->login, &hold->call);
}

static void on_timer(struct bow_timer *timer, void *user)
{
    struct etcd_hold *hold = user;

    (void)timer;
    if (hold->lease_id == 0) {
        return; /* the next one begins it again */
    }
    int rc = hold->lacks_token ? log_in(hold) : put(hold);
    if (rc < 0) {
        set_status(hold, &(struct bow_status){.code = BOW_INTERNAL, .message = strerror(-rc)});
        etcd_lease_stop(&hold->lease);
    }
}

/* The lease. */

static void on_granted(struct etcd_lease *lease, int64_t id, int64_t ttl_s, void *user)
{
    struct etcd_hold *hold = user;

    (void)lease;
    (void)ttl_s;
    hold->lease_id = id;
    if (hold->call == 0) { /* else its end sees to it */
        bow_timer_start(&hold->timer, 0);
    }
}

static void on_lost(struct etcd_lease *lease, int64_t id, const char *why, void *user)
{
    struct etcd_hold *hold = user;

    (void)lease;
    hold->lease_id = 0;
    hold->events->on_lost(hold, id, why, hold->user);
}

static void on_interrupted(struct etcd_lease *lease, const struct bow_status *why, void *user)
{
    struct etcd_hold *hold = user;

    (void)lease;
    hold->events->on_interrupted(hold, why, hold->user);
}

static void on_lease_closed(struct etcd_lease *lease, const struct bow_status *status, void *user)
{
    struct etcd_hold *hold = user;

    (void)lease;
    hold->closed = true;
    set_status(hold, status);
    bow_timer_stop(&hold->timer);
    if (hold->call != 0) {
        bow_client_cancel(hold->etcd->client, hold->call);
        return;
    }
    hold->events->on_closed(hold, &hold->status, hold->user);
}

void etcd_hold_start(struct etcd_hold *hold, struct etcd *etcd, const char *key, const char *value,
                     int64_t ttl_s, const struct etcd_hold_events *events, void *user)
{
    static const struct etcd_lease_events lease_events = {
        .on_granted = on_granted,
        .on_lost = on_lost,
        .on_interrupted = on_interrupted,
        .on_closed = on_lease_closed,
    };

    *hold = (struct etcd_hold){
        .etcd = etcd, .events = events, .user = user, .key = key, .value = value};
    bow_timer_init(&hold->timer, etcd->loop, on_timer, hold);
    etcd_lease_start(&hold->lease, etcd, ttl_s, &lease_events, hold);
}

void etcd_hold_stop(struct etcd_hold *hold)
{
    etcd_lease_stop(&hold->lease);
}
