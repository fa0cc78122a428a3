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
#include "rpc/client_state.h"
#include "rpc/core/errors.h"
#include "rpc/jitter.h"

#include <errno.h>

static uint64_t now_of(const struct bow__endpoint *endpoint)
{
    return bow_loop_now(endpoint->link->loop);
}

static const struct bow_client_options *options_of(const struct bow__endpoint *endpoint)
{
    return &endpoint->link->client->options;
}

static bool is_one_of_many(const struct bow__endpoint *endpoint)
{
    return bow__target_is_list(&endpoint->link->client->target);
}

static void set_state(struct bow__endpoint *endpoint, enum bow__link_state state)
{
    bow__link_set_state(endpoint->link, endpoint, state);
}

/* Calls wait, or were made since the state changed. */
static bool is_wanted(const struct bow__endpoint *endpoint)
{
    const struct bow__client_link *link = endpoint->link;

    return !bow__list_is_empty(&link->queue) ||
           link->counters.now.calls_started != endpoint->n_calls_seen;
}

/* Back-off */

/* However short it is, it is one: 0 says that no attempt has failed. */
static uint64_t grown(uint64_t backoff_ns)
{
    return backoff_ns + backoff_ns / 10 * 6;
}

static void back_off(struct bow__endpoint *endpoint)
{
    const struct bow_client_options *options = options_of(endpoint);
    uint64_t max = options->backoff_max_ns;

    endpoint->backoff_ns = endpoint->backoff_ns == 0              ? options->backoff_min_ns
                           : endpoint->backoff_ns > max / 16 * 10 ? max
                                                                  : grown(endpoint->backoff_ns);
    endpoint->backoff_ns = bow__time_min(endpoint->backoff_ns, max);
    /* What failed while nobody looked did so at some time before, and no call fails fast for it. */
    endpoint->failed_at_ns = endpoint->link->client->taking_in ? 0 : now_of(endpoint);
    endpoint->next_try_ns = bow__time_add(
        now_of(endpoint), bow__jittered(endpoint->link->client->context, endpoint->backoff_ns,
                                        endpoint->backoff_ns / 5));
    set_state(endpoint, BOW__LINK_BACKING_OFF);
    bow_timer_start_at(&endpoint->timer, endpoint->next_try_ns);
}

static void on_failed(struct bow__endpoint *endpoint, const char *message)
{
    struct bow__client_link *link = endpoint->link;

    link->counters.now.connects_failed++;
    bow__counters_touch(&link->counters);
    bow__text_clear(&endpoint->last_error);
    bow__text_printf(&endpoint->last_error, "%s", message);
    back_off(endpoint);
    bow__link_failed(link);
}

/* Never beyond the next try, whose timer may have fired while nobody wanted the server. */
static uint64_t least_pause_ends(const struct bow__endpoint *endpoint)
{
    uint64_t min = options_of(endpoint)->backoff_min_ns;

    return bow__time_min(endpoint->next_try_ns, bow__time_add(endpoint->failed_at_ns, min));
}

bool bow__endpoint_is_too_early(const struct bow__endpoint *endpoint)
{
    return endpoint->state == BOW__LINK_BACKING_OFF &&
           now_of(endpoint) < least_pause_ends(endpoint);
}

/* Connecting */

static uint64_t attempt_ends(const struct bow__endpoint *endpoint)
{
    return bow__time_add(endpoint->tried_at_ns, options_of(endpoint)->connect_timeout_ns);
}

static void on_connected(struct bow_channel *channel, const struct bow_transport_error *error,
                         void *user)
{
    struct bow__endpoint *endpoint = user;
    struct bow__client_link *link = endpoint->link;

    endpoint->connect = NULL;
    if (link->closing) {
        bow__link_check_closed(link);
        return;
    }
    if (channel == NULL && endpoint->state == BOW__LINK_CONNECTING) {
        on_failed(endpoint, error->text);
        return;
    }
    if (endpoint->state == BOW__LINK_CONNECTING && endpoint->conn == NULL) {
        /* It is being secured, which is part of the attempt. */
        endpoint->conn = bow_channel_data(channel);
        bow_timer_start_at(&endpoint->timer, attempt_ends(endpoint));
        return;
    }
    /* conn_up came before, and the connection may be lost again by now. */
    bow__link_pump(link);
}

static void connect_now(struct bow__endpoint *endpoint)
{
    struct bow_channel_options options = BOW_CHANNEL_OPTIONS_INIT;
    struct bow_transport_error error = {0};

    options.data_bytes = sizeof(struct bow__client_conn);
    options.on_channel = bow__client_conn_init;
    options.user = endpoint;
    bow_timer_stop(&endpoint->timer);
    endpoint->tried_at_ns = now_of(endpoint);
    set_state(endpoint, BOW__LINK_CONNECTING);
    int rc = bow_connect_start(endpoint->link->loop, endpoint->address->text, &options,
                               options_of(endpoint)->connect_timeout_ns, on_connected, endpoint,
                               &endpoint->connect, &error);
    if (rc < 0) {
        /* Memory, or an address that only a server can have. The calls that wait are not to fail
         * in here, for one may be starting. */
        endpoint->connect = NULL;
        bow__text_clear(&endpoint->last_error);
        bow__text_printf(&endpoint->last_error, "%s", error.text);
        bow_timer_start(&endpoint->timer, 0);
    }
}

/* A server that takes connections and ends them is not asked for ever more of them. */
static uint64_t rests_until(const struct bow__endpoint *endpoint)
{
    bool others_serve = endpoint->link->n_ready > 0;

    if (endpoint->state == BOW__LINK_BACKING_OFF) {
        return others_serve ? endpoint->next_try_ns : least_pause_ends(endpoint);
    }
    return is_one_of_many(endpoint) && endpoint->tried_at_ns > 0
               ? bow__time_add(endpoint->tried_at_ns, options_of(endpoint)->backoff_min_ns)
               : 0;
}

void bow__endpoint_seek(struct bow__endpoint *endpoint, bool at_once)
{
    uint64_t rest = rests_until(endpoint);

    if (endpoint->link->closing || endpoint->connect != NULL || endpoint->state > BOW__LINK_IDLE) {
        return;
    }
    if (at_once || rest <= now_of(endpoint)) {
        connect_now(endpoint);
    } else if (endpoint->state == BOW__LINK_IDLE) {
        bow_timer_start_at(&endpoint->timer, rest);
    }
}

/* It took the connection and says nothing, or not enough, which no server of ours does. */
static void give_up_mute(struct bow__endpoint *endpoint)
{
    struct bow__client_conn *conn = endpoint->conn;
    struct bow__text text;

    bow__text_clear(&text);
    bow__text_printf(&text, "connecting to %s: it took the connection and then %s for ",
                     endpoint->address->text,
                     conn->conn.up ? "said nothing" : "was not done with the handshake");
    bow__text_duration(&text, options_of(endpoint)->connect_timeout_ns);
    bow__text_printf(&text, " (connect_timeout_ns): is it a %s server?",
                     endpoint->link->client->target.http2 ? "gRPC" : "Bowline");
    endpoint->conn = NULL;
    if (conn->conn.up) {
        bow__conn_close(&conn->conn, "it never answered", 0);
    } else {
        bow_channel_close(conn->conn.channel, -ETIMEDOUT);
    }
    on_failed(endpoint, text.bytes);
}

static void on_timer(struct bow_timer *timer, void *user)
{
    struct bow__endpoint *endpoint = user;

    (void)timer;
    if (endpoint->state == BOW__LINK_CONNECTING && endpoint->conn != NULL) {
        give_up_mute(endpoint);
    } else if (endpoint->state == BOW__LINK_CONNECTING) {
        struct bow__text why = endpoint->last_error;
        on_failed(endpoint, why.bytes);
    } else if (is_wanted(endpoint)) {
        bow__endpoint_seek(endpoint, true);
    } else {
        endpoint->link->dormant = is_one_of_many(endpoint);
    }
}

/* What becomes of connections */

static void take_calls(struct bow__endpoint *endpoint)
{
    struct bow__client_link *link = endpoint->link;

    link->counters.now.reconnects += endpoint->was_up && !endpoint->doubted;
    endpoint->was_up = true;
    endpoint->doubted = false;
    endpoint->backoff_ns = 0;
    bow_timer_stop(&endpoint->timer);
    set_state(endpoint, BOW__LINK_READY);
    bow__link_pump(link);
}

void bow__endpoint_conn_up(struct bow__endpoint *endpoint, struct bow__client_conn *conn)
{
    if (endpoint->link->closing) {
        bow__conn_close(&conn->conn, "the client was closed", 0);
        return;
    }
    endpoint->conn = conn;
    if (!is_one_of_many(endpoint)) {
        take_calls(endpoint);
        return;
    }
    bow_timer_start_at(&endpoint->timer, attempt_ends(endpoint));
}

void bow__endpoint_conn_answered(struct bow__endpoint *endpoint, struct bow__client_conn *conn)
{
    if (endpoint->conn == conn && endpoint->state == BOW__LINK_CONNECTING) {
        take_calls(endpoint);
    }
}

void bow__endpoint_doubt(struct bow__endpoint *endpoint)
{
    struct bow__conn *conn = endpoint->state == BOW__LINK_READY ? &endpoint->conn->conn : NULL;

    if (conn == NULL || !conn->session->ops->doubt(conn->session, now_of(endpoint))) {
        return;
    }
    endpoint->doubted = true;
    set_state(endpoint, BOW__LINK_CONNECTING);
    bow__conn_touch(conn);
}

void bow__endpoint_conn_failed(struct bow__endpoint *endpoint, const struct bow__client_conn *conn,
                               const char *why)
{
    if (endpoint->conn != conn) {
        return;
    }
    endpoint->conn = NULL;
    if (!endpoint->link->closing) {
        on_failed(endpoint, why);
    }
}

void bow__endpoint_conn_retired(struct bow__endpoint *endpoint, struct bow__client_conn *conn,
                                const char *why)
{
    bool wanted = why != NULL && is_wanted(endpoint);
    bool attempted = endpoint->state == BOW__LINK_CONNECTING && !endpoint->doubted;

    if (endpoint->conn != conn) {
        return;
    }
    endpoint->conn = NULL;
    endpoint->doubted = false;
    if (endpoint->link->closing) {
        set_state(endpoint, BOW__LINK_IDLE);
        return;
    }
    if (attempted && why != NULL) {
        on_failed(endpoint, why);
        return;
    }
    bow_timer_stop(&endpoint->timer);
    set_state(endpoint, BOW__LINK_IDLE);
    if (is_one_of_many(endpoint) && wanted) {
        bow__endpoint_seek(endpoint, false);
    } else {
        endpoint->link->dormant = is_one_of_many(endpoint);
    }
    bow__link_pump(endpoint->link);
}

/* Life */

void bow__endpoint_init(struct bow__endpoint *endpoint, struct bow__client_link *link,
                        const struct bow__target_address *address)
{
    endpoint->link = link;
    endpoint->address = address;
    endpoint->state = BOW__LINK_IDLE;
    bow__list_init(&endpoint->turn);
    bow__text_clear(&endpoint->last_error);
    bow_timer_init(&endpoint->timer, link->loop, on_timer, endpoint);
}

void bow__endpoint_close(struct bow__endpoint *endpoint)
{
    bow_timer_stop(&endpoint->timer);
    if (endpoint->connect != NULL) {
        bow_connect_cancel(endpoint->connect);
    }
}
