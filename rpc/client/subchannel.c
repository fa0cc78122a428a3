/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One address of a client's target, on one loop: the connection that takes calls, and the
 * attempts to have one.
 *
 *     IDLE ──wanted──► CONNECTING ──► READY ──lost, GOAWAY──► IDLE
 *      ▲                   │ failed
 *      └──(connected)── BACKING_OFF ──wanted, not at once; or the pause is over──► CONNECTING
 *
 *     READY ──another server was lost to silence──► CONNECTING (doubted) ──it answers──► READY
 *
 * It connects only while calls want it, and never gives up: what a failed attempt costs is a
 * pause, which grows while attempts fail and is jittered so that many clients do not come back
 * at once.
 *
 * A target's only address takes calls as soon as the connection is up: they travel with its
 * first bytes. One of several does so when the server has answered, and is connected to again by
 * itself while calls are made: so calls go to servers that are there, and a server that has come
 * back is found. Knows nothing of the calls but whether there are any.
 */

#include "base/clock.h"
#include "rpc/client/client_state.h"
#include "rpc/connection/jitter.h"
#include "rpc/core/errors.h"

#include <errno.h>

static uint64_t now_of(const struct bow__subchannel *subchannel)
{
    return bow_loop_now(subchannel->balancer->loop);
}

static const struct bow_client_options *options_of(const struct bow__subchannel *subchannel)
{
    return &subchannel->balancer->client->options;
}

static bool is_one_of_many(const struct bow__subchannel *subchannel)
{
    return bow__target_is_list(&subchannel->balancer->client->target);
}

static void set_state(struct bow__subchannel *subchannel, enum bow__connectivity state)
{
    bow__balancer_set_state(subchannel->balancer, subchannel, state);
}

/* Calls wait, or were made since the state changed. */
static bool is_wanted(const struct bow__subchannel *subchannel)
{
    const struct bow__balancer *balancer = subchannel->balancer;

    return !bow__list_is_empty(&balancer->queue) ||
           balancer->counters.now.calls_started != subchannel->n_calls_seen;
}

/* Back-off */

/* However short it is, it is one: 0 says that no attempt has failed. */
static uint64_t grown(uint64_t backoff_ns)
{
    return backoff_ns + backoff_ns / 10 * 6;
}

static void back_off(struct bow__subchannel *subchannel)
{
    const struct bow_client_options *options = options_of(subchannel);
    uint64_t max = options->backoff_max_ns;

    subchannel->backoff_ns = subchannel->backoff_ns == 0 ? options->backoff_min_ns
                             : subchannel->backoff_ns > max / 16 * 10
                                 ? max
                                 : grown(subchannel->backoff_ns);
    subchannel->backoff_ns = bow__time_min(subchannel->backoff_ns, max);
    /* What failed while nobody looked did so at some time before, and no call fails fast for it. */
    subchannel->failed_at_ns = subchannel->balancer->client->taking_in ? 0 : now_of(subchannel);
    subchannel->next_try_ns = bow__time_add(
        now_of(subchannel), bow__jittered(subchannel->balancer->client->context,
                                          subchannel->backoff_ns, subchannel->backoff_ns / 5));
    set_state(subchannel, BOW__CONNECTIVITY_BACKING_OFF);
    bow_timer_start_at(&subchannel->timer, subchannel->next_try_ns);
}

static void on_failed(struct bow__subchannel *subchannel, const char *message)
{
    struct bow__balancer *balancer = subchannel->balancer;

    balancer->counters.now.connects_failed++;
    bow__counters_touch(&balancer->counters);
    bow__text_clear(&subchannel->last_error);
    bow__text_printf(&subchannel->last_error, "%s", message);
    back_off(subchannel);
    bow__balancer_failed(balancer);
}

/* Never beyond the next try, whose timer may have fired while nobody wanted the server. */
static uint64_t least_pause_ends(const struct bow__subchannel *subchannel)
{
    uint64_t min = options_of(subchannel)->backoff_min_ns;

    return bow__time_min(subchannel->next_try_ns, bow__time_add(subchannel->failed_at_ns, min));
}

bool bow__subchannel_is_too_early(const struct bow__subchannel *subchannel)
{
    return subchannel->state == BOW__CONNECTIVITY_BACKING_OFF &&
           now_of(subchannel) < least_pause_ends(subchannel);
}

/* Connecting */

static uint64_t attempt_ends(const struct bow__subchannel *subchannel)
{
    return bow__time_add(subchannel->tried_at_ns, options_of(subchannel)->connect_timeout_ns);
}

static void on_connected(struct bow_channel *channel, const struct bow_transport_error *error,
                         void *user)
{
    struct bow__subchannel *subchannel = user;
    struct bow__balancer *balancer = subchannel->balancer;

    subchannel->connect = NULL;
    if (balancer->closing) {
        bow__balancer_check_closed(balancer);
        return;
    }
    if (channel == NULL && subchannel->state == BOW__CONNECTIVITY_CONNECTING) {
        on_failed(subchannel, error->text);
        return;
    }
    if (subchannel->state == BOW__CONNECTIVITY_CONNECTING && subchannel->conn == NULL) {
        /* It is being secured, which is part of the attempt. */
        subchannel->conn = bow_channel_data(channel);
        bow_timer_start_at(&subchannel->timer, attempt_ends(subchannel));
        return;
    }
    /* conn_up came before, and the connection may be lost again by now. */
    bow__balancer_pump(balancer);
}

static void connect_now(struct bow__subchannel *subchannel)
{
    struct bow_channel_options options = BOW_CHANNEL_OPTIONS_INIT;
    struct bow_transport_error error = {0};

    options.data_bytes = sizeof(struct bow__client_conn);
    options.on_channel = bow__client_conn_init;
    options.user = subchannel;
    bow_timer_stop(&subchannel->timer);
    subchannel->tried_at_ns = now_of(subchannel);
    set_state(subchannel, BOW__CONNECTIVITY_CONNECTING);
    int rc = bow_connect_start(subchannel->balancer->loop, subchannel->address->text, &options,
                               options_of(subchannel)->connect_timeout_ns, on_connected, subchannel,
                               &subchannel->connect, &error);
    if (rc < 0) {
        /* Memory, or an address that only a server can have. The calls that wait are not to fail
         * in here, for one may be starting. */
        subchannel->connect = NULL;
        bow__text_clear(&subchannel->last_error);
        bow__text_printf(&subchannel->last_error, "%s", error.text);
        bow_timer_start(&subchannel->timer, 0);
    }
}

/* A server that takes connections and ends them is not asked for ever more of them. */
static uint64_t rests_until(const struct bow__subchannel *subchannel)
{
    bool others_serve = subchannel->balancer->n_ready > 0;

    if (subchannel->state == BOW__CONNECTIVITY_BACKING_OFF) {
        return others_serve ? subchannel->next_try_ns : least_pause_ends(subchannel);
    }
    return is_one_of_many(subchannel) && subchannel->tried_at_ns > 0
               ? bow__time_add(subchannel->tried_at_ns, options_of(subchannel)->backoff_min_ns)
               : 0;
}

void bow__subchannel_seek(struct bow__subchannel *subchannel, bool at_once)
{
    uint64_t rest = rests_until(subchannel);

    if (subchannel->balancer->closing || subchannel->connect != NULL ||
        subchannel->state > BOW__CONNECTIVITY_IDLE) {
        return;
    }
    if (at_once || rest <= now_of(subchannel)) {
        connect_now(subchannel);
    } else if (subchannel->state == BOW__CONNECTIVITY_IDLE) {
        bow_timer_start_at(&subchannel->timer, rest);
    }
}

/* It took the connection and says nothing, or not enough, which no server of ours does. */
static void give_up_mute(struct bow__subchannel *subchannel)
{
    struct bow__client_conn *conn = subchannel->conn;
    struct bow__text text;

    bow__text_clear(&text);
    bow__text_printf(&text, "connecting to %s: it took the connection and then %s for ",
                     subchannel->address->text,
                     conn->conn.up ? "said nothing" : "was not done with the handshake");
    bow__text_duration(&text, options_of(subchannel)->connect_timeout_ns);
    bow__text_printf(&text, " (connect_timeout_ns): is it a %s server?",
                     subchannel->balancer->client->target.http2 ? "gRPC" : "Bowline");
    subchannel->conn = NULL;
    if (conn->conn.up) {
        bow__conn_close(&conn->conn, "it never answered", 0);
    } else {
        bow_channel_close(conn->conn.channel, -ETIMEDOUT);
    }
    on_failed(subchannel, text.bytes);
}

static void on_timer(struct bow_timer *timer, void *user)
{
    struct bow__subchannel *subchannel = user;

    (void)timer;
    if (subchannel->state == BOW__CONNECTIVITY_CONNECTING && subchannel->conn != NULL) {
        give_up_mute(subchannel);
    } else if (subchannel->state == BOW__CONNECTIVITY_CONNECTING) {
        struct bow__text why = subchannel->last_error;
        on_failed(subchannel, why.bytes);
    } else if (is_wanted(subchannel)) {
        bow__subchannel_seek(subchannel, true);
    } else {
        subchannel->balancer->dormant = is_one_of_many(subchannel);
    }
}

/* What becomes of connections */

static void take_calls(struct bow__subchannel *subchannel)
{
    struct bow__balancer *balancer = subchannel->balancer;

    balancer->counters.now.reconnects += subchannel->was_up && !subchannel->doubted;
    subchannel->was_up = true;
    subchannel->doubted = false;
    subchannel->backoff_ns = 0;
    bow_timer_stop(&subchannel->timer);
    set_state(subchannel, BOW__CONNECTIVITY_READY);
    bow__balancer_pump(balancer);
}

void bow__subchannel_conn_up(struct bow__subchannel *subchannel, struct bow__client_conn *conn)
{
    if (subchannel->balancer->closing) {
        bow__conn_close(&conn->conn, "the client was closed", 0);
        return;
    }
    subchannel->conn = conn;
    if (!is_one_of_many(subchannel)) {
        take_calls(subchannel);
        return;
    }
    bow_timer_start_at(&subchannel->timer, attempt_ends(subchannel));
}

void bow__subchannel_conn_answered(struct bow__subchannel *subchannel,
                                   struct bow__client_conn *conn)
{
    if (subchannel->conn == conn && subchannel->state == BOW__CONNECTIVITY_CONNECTING) {
        take_calls(subchannel);
    }
}

void bow__subchannel_doubt(struct bow__subchannel *subchannel)
{
    struct bow__conn *conn =
        subchannel->state == BOW__CONNECTIVITY_READY ? &subchannel->conn->conn : NULL;

    if (conn == NULL || !conn->session->ops->doubt(conn->session, now_of(subchannel))) {
        return;
    }
    subchannel->doubted = true;
    set_state(subchannel, BOW__CONNECTIVITY_CONNECTING);
    bow__conn_touch(conn);
}

void bow__subchannel_conn_failed(struct bow__subchannel *subchannel,
                                 const struct bow__client_conn *conn, const char *why)
{
    if (subchannel->conn != conn) {
        return;
    }
    subchannel->conn = NULL;
    if (!subchannel->balancer->closing) {
        on_failed(subchannel, why);
    }
}

void bow__subchannel_conn_retired(struct bow__subchannel *subchannel, struct bow__client_conn *conn,
                                  const char *why)
{
    bool wanted = why != NULL && is_wanted(subchannel);
    bool attempted = subchannel->state == BOW__CONNECTIVITY_CONNECTING && !subchannel->doubted;

    if (subchannel->conn != conn) {
        return;
    }
    subchannel->conn = NULL;
    subchannel->doubted = false;
    if (subchannel->balancer->closing) {
        set_state(subchannel, BOW__CONNECTIVITY_IDLE);
        return;
    }
    if (attempted && why != NULL) {
        on_failed(subchannel, why);
        return;
    }
    bow_timer_stop(&subchannel->timer);
    set_state(subchannel, BOW__CONNECTIVITY_IDLE);
    if (is_one_of_many(subchannel) && wanted) {
        bow__subchannel_seek(subchannel, false);
    } else {
        subchannel->balancer->dormant = is_one_of_many(subchannel);
    }
    bow__balancer_pump(subchannel->balancer);
}

/* Life */

void bow__subchannel_init(struct bow__subchannel *subchannel, struct bow__balancer *balancer,
                          const struct bow__target_address *address)
{
    subchannel->balancer = balancer;
    subchannel->address = address;
    subchannel->state = BOW__CONNECTIVITY_IDLE;
    bow__list_init(&subchannel->turn);
    bow__text_clear(&subchannel->last_error);
    bow_timer_init(&subchannel->timer, balancer->loop, on_timer, subchannel);
}

void bow__subchannel_close(struct bow__subchannel *subchannel)
{
    bow_timer_stop(&subchannel->timer);
    if (subchannel->connect != NULL) {
        bow_connect_cancel(subchannel->connect);
    }
}
