/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One address of a client's target, on one loop: the connection that takes calls, and the
 * attempts to have one.
 *
 *     IDLE ──wanted──► CONNECTING ──answered──► READY ──lost, GOAWAY──► IDLE
 *      ▲                   │ failed
 *      └──(connected)── BACKING_OFF ──wanted, not at once; or the pause is over──► CONNECTING
 *
 *     READY ──another server was lost to silence──► CONNECTING (probed) ──it answers──► READY
 *
 * When a further connection to an address is wanted: balancer.c. Of a list each address has a pause
 * of its own; what becomes of calls when all have failed is in balancer.c. It connects only while
 * calls want it, and never gives up: what a failed attempt costs is a pause, which grows while
 * attempts fail and is jittered so that many clients do not come back at once.
 *
 * An attempt succeeds when a server has answered in the protocol, and not before: a socket that was
 * accepted may be that of a proxy without a server behind it, of another service, or of one that
 * hangs. Of a name with several addresses the next one is tried when one has failed to answer, and
 * beside one that has been silent for a second; the first that answers is taken, and the others are
 * closed. One attempt is all that, until one has answered or none is left.
 *
 * With options.health_service an answer is that the server serves (health_watch.c). One that says
 * that it does not keeps its connection, so that it can say when it does, and is BACKING_OFF
 * without a next attempt; but where the name has another address, or the connection is a further
 * one, it is an attempt that failed.
 *
 * Calls wait for the answer. Where there is no other address to turn to they travel with the
 * connection's first bytes instead, but for those with wait_for_ready: it is READY then, and fails
 * like an attempt if it is lost before it was answered.
 *
 * One address of several is connected to again by itself while calls are made, so that a server
 * that has come back is found. Knows nothing of the calls but whether there are any.
 */

#include "rpc/client/subchannel.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "rpc/client/backoff.h"
#include "rpc/client/conn_setup.h"
#include "rpc/connection/jitter.h"
#include "rpc/core/errors.h"
#include "transport/address/address.h"
#include "transport/channel/connector.h"
#include <bowline/limits.h>

#include <errno.h>
#include <string.h>

/* How long an address that took the connection may be silent before the next one is tried, too.
 * More than a handshake takes on a long way, so that seldom two servers do the work for one. */
#define NEXT_ADDRESS_NS UINT64_C(1000000000)

static uint64_t now_of(const struct bow__subchannel *subchannel)
{
    return bow_loop_now(subchannel->list->calls->loop);
}

static const struct bow_client_options *options_of(const struct bow__subchannel *subchannel)
{
    return &subchannel->list->config->options;
}

/* That connect by themselves while calls are made. */
static bool is_one_of_many(const struct bow__subchannel *subchannel)
{
    return bow__target_is_list(&subchannel->list->config->target) && !subchannel->is_further;
}

/* It waits for a call to be of use. */
static void note_idle(const struct bow__subchannel *subchannel)
{
    subchannel->list->has_idle |= is_one_of_many(subchannel);
}

static void set_state(struct bow__subchannel *subchannel, enum bow__connectivity state)
{
    enum bow__connectivity before = subchannel->state;

    subchannel->state = state;
    if (subchannel->is_drained) {
        return;
    }
    if (!subchannel->is_further) {
        subchannel->list->n_in[before]--;
        subchannel->list->n_in[state]++;
    }
    subchannel->n_calls_seen = subchannel->list->calls->counters.now.calls_started;
    subchannel->list->ops->on_state(subchannel, before);
}

/* Calls wait, or were made since the state changed. */
static bool is_wanted(const struct bow__subchannel *subchannel)
{
    const struct bow__client_calls *calls = subchannel->list->calls;

    return !bow__list_is_empty(&calls->queue) ||
           (!subchannel->is_further &&
            calls->counters.now.calls_started != subchannel->n_calls_seen);
}

/* Back-off */

static void back_off(struct bow__subchannel *subchannel)
{
    const struct bow_client_options *options = options_of(subchannel);

    subchannel->backoff_ns = bow__backoff_next(options, subchannel->backoff_ns);
    /* What failed while nobody looked did so at some time before, and no call fails fast for it. */
    subchannel->failed_at_ns = subchannel->list->catching_up ? 0 : now_of(subchannel);
    subchannel->next_try_ns = bow__time_add(
        now_of(subchannel), bow__jittered(subchannel->list->config->context, subchannel->backoff_ns,
                                          subchannel->backoff_ns / 5));
    set_state(subchannel, BOW__CONNECTIVITY_BACKING_OFF);
    bow_timer_start_at(&subchannel->timer, subchannel->next_try_ns);
}

static void on_failed(struct bow__subchannel *subchannel, const char *message)
{
    struct bow__client_calls *calls = subchannel->list->calls;

    calls->counters.now.connects_failed++;
    bow__counters_touch(&calls->counters);
    bow__text_clear(&subchannel->last_error);
    bow__text_printf(&subchannel->last_error, "%s", message);
    subchannel->was_turned_away = false;
    back_off(subchannel);
    subchannel->list->ops->on_failed(subchannel);
    subchannel->list->ops->on_doubt(subchannel);
}

/* Never beyond the next try, whose timer may have fired while nobody wanted the server. */
static uint64_t least_pause_ends(const struct bow__subchannel *subchannel)
{
    uint64_t min = options_of(subchannel)->backoff_min_ns;

    return bow__time_min(subchannel->next_try_ns, bow__time_add(subchannel->failed_at_ns, min));
}

bool bow__subchannel_is_too_early(const struct bow__subchannel *subchannel)
{
    if (bow__subchannel_is_unhealthy(subchannel)) {
        return true;
    }
    return subchannel->state == BOW__CONNECTIVITY_BACKING_OFF &&
           now_of(subchannel) < least_pause_ends(subchannel);
}

/* Connecting */

static struct bow__client_conn *first_candidate(const struct bow__subchannel *subchannel)
{
    return bow__list_is_empty(&subchannel->candidates)
               ? NULL
               : BOW__CONTAINER(subchannel->candidates.next, struct bow__client_conn, candidate);
}

const struct bow__client_conn *
bow__subchannel_silent_candidate(const struct bow__subchannel *subchannel)
{
    struct bow__link *at = subchannel->candidates.next;

    for (; at != &subchannel->candidates; at = at->next) {
        const struct bow__client_conn *conn =
            BOW__CONTAINER(at, struct bow__client_conn, candidate);
        if (!conn->conn.heard) {
            return conn;
        }
    }
    return NULL;
}

static bool asks_for_health(const struct bow__subchannel *subchannel)
{
    return options_of(subchannel)->health_service != NULL;
}

bool bow__subchannel_awaits_health(const struct bow__subchannel *subchannel)
{
    struct bow__link *at = subchannel->candidates.next;
    bool asks = bow__subchannel_is_unhealthy(subchannel);

    for (; at != &subchannel->candidates && !asks; at = at->next) {
        asks = bow__health_watch_is_wanted(
            &BOW__CONTAINER(at, struct bow__client_conn, candidate)->health);
    }
    return asks;
}

/* With no other to turn to, and nothing to ask first. */
static bool is_sole(const struct bow__subchannel *subchannel)
{
    if (asks_for_health(subchannel)) {
        return false;
    }
    return !is_one_of_many(subchannel) && !subchannel->is_further &&
           bow__list_is_empty(&subchannel->list->further) &&
           (subchannel->addresses == NULL || subchannel->addresses->n == 1);
}

/* It takes no calls any more, or none at all. Whether the attempt has failed with it is for go_on()
 * to say, at once where nothing else of it is under way. */
static void drop_candidate(struct bow__client_conn *conn)
{
    struct bow__subchannel *subchannel = conn->subchannel;

    bow__list_remove(&conn->candidate);
    bow__health_watch_stop(&conn->health);
    if (subchannel->conn == conn) {
        subchannel->conn = NULL;
        subchannel->probed = false;
        if (subchannel->connect != NULL) {
            set_state(subchannel, BOW__CONNECTIVITY_CONNECTING);
        }
    }
}

static bool has_next_address(const struct bow__subchannel *subchannel)
{
    return subchannel->addresses != NULL && bow__address_list_next(subchannel->addresses, 0) >= 0;
}

/* The timer is for what comes first: an answer that is overdue, or the next address. */
static void watch_attempt(struct bow__subchannel *subchannel)
{
    const struct bow__client_conn *first = first_candidate(subchannel);
    uint64_t at = first != NULL ? first->answer_due_ns : BOW_NEVER;

    if (subchannel->connect == NULL && first == NULL) {
        at = 0; /* it could not even begin */
    } else if (subchannel->connect == NULL && has_next_address(subchannel)) {
        at = bow__time_min(at, subchannel->next_address_ns);
    }
    if (at == BOW_NEVER) {
        bow_timer_stop(&subchannel->timer);
    } else {
        bow_timer_start_at(&subchannel->timer, at);
    }
}

static void note_failure(struct bow__subchannel *subchannel, const char *why)
{
    bow__text_clear(&subchannel->last_error);
    bow__text_printf(&subchannel->last_error, "%s", why);
    subchannel->is_told = true;
    subchannel->next_address_ns = 0;
}

/* That this host has no way to one address hides nothing that another one's server has said. */
static void note_unconnected(struct bow__subchannel *subchannel,
                             const struct bow_transport_error *error)
{
    if (subchannel->is_told && bow__is_out_of_reach(error->error)) {
        subchannel->next_address_ns = 0;
        return;
    }
    note_failure(subchannel, error->text);
}

/* Of one address, with what it took to look up the name. */
static uint64_t answer_due(const struct bow__subchannel *subchannel)
{
    return bow__time_add(subchannel->tried_at_ns, options_of(subchannel)->connect_timeout_ns);
}

static void on_connected(struct bow_channel *channel, const struct bow_transport_error *error,
                         void *user);
static int init_conn(struct bow_channel *channel, void *user);

static void try_address(struct bow__subchannel *subchannel)
{
    struct bow_channel_options options = BOW_CHANNEL_OPTIONS_INIT;
    struct bow_transport_error error = {0};

    options.data_bytes = sizeof(struct bow__client_conn);
    options.on_channel = init_conn;
    options.user = subchannel;
    options.keepalive_ns = options_of(subchannel)->keepalive_ns;
    options.tcp_timeout_ns = options_of(subchannel)->tcp_timeout_ns;
    options.source = options_of(subchannel)->source;
    subchannel->tried_at_ns = now_of(subchannel);
    int rc = bow__connect_start(subchannel->list->calls->loop, subchannel->address->text, &options,
                                options_of(subchannel)->connect_timeout_ns, subchannel->addresses,
                                on_connected, subchannel, &subchannel->connect, &error);
    if (rc < 0) {
        /* Memory, or an address that only a server can have. The calls that wait are not to fail
         * in here, for one may be starting. */
        subchannel->connect = NULL;
        note_failure(subchannel, error.text);
        if (subchannel->addresses != NULL) {
            bow__address_list_clear(subchannel->addresses);
        }
    }
    watch_attempt(subchannel);
}

/* Something of the attempt has ended, or a time has come. */
static void go_on(struct bow__subchannel *subchannel)
{
    if (!subchannel->attempting || subchannel->connect != NULL) {
        return;
    }
    const struct bow__client_conn *first = first_candidate(subchannel);
    if (has_next_address(subchannel) &&
        (first == NULL || subchannel->next_address_ns <= now_of(subchannel))) {
        try_address(subchannel);
        return;
    }
    if (first == NULL) {
        struct bow__text why = subchannel->last_error;
        subchannel->attempting = false;
        on_failed(subchannel, why.bytes);
        return;
    }
    watch_attempt(subchannel);
}

static void on_connected(struct bow_channel *channel, const struct bow_transport_error *error,
                         void *user)
{
    struct bow__subchannel *subchannel = user;
    struct bow__client_calls *calls = subchannel->list->calls;

    subchannel->connect = NULL;
    if (calls->closing) {
        calls->ops->check_closed(calls);
        return;
    }
    if (subchannel->is_drained) {
        subchannel->list->ops->on_drained(subchannel);
        return;
    }
    if (!subchannel->attempting) {
        /* Another address has answered meanwhile, and its connection may be lost again by now. */
        subchannel->list->ops->on_change(subchannel);
        return;
    }
    if (channel == NULL) {
        note_unconnected(subchannel, error);
    }
    go_on(subchannel);
}

/* Short of memory for them, an attempt has what answers first alone. */
static void forget_addresses(struct bow__subchannel *subchannel)
{
    if (subchannel->addresses != NULL) {
        bow__address_list_clear(subchannel->addresses);
    } else if (subchannel->is_name) {
        subchannel->addresses =
            bow__alloc_zero(subchannel->list->config->context, sizeof(*subchannel->addresses));
    }
}

static void connect_now(struct bow__subchannel *subchannel)
{
    forget_addresses(subchannel);
    subchannel->attempting = true;
    subchannel->is_told = false;
    set_state(subchannel, BOW__CONNECTIVITY_CONNECTING);
    try_address(subchannel);
}

/* A server that takes connections and ends them is not asked for ever more of them. */
static uint64_t rests_until(const struct bow__subchannel *subchannel)
{
    bool others_serve =
        subchannel->list->n_ready > 0 || !bow__list_is_empty(&subchannel->list->further);

    if (subchannel->state == BOW__CONNECTIVITY_BACKING_OFF) {
        return others_serve ? subchannel->next_try_ns : least_pause_ends(subchannel);
    }
    return (is_one_of_many(subchannel) || subchannel->is_further) && subchannel->tried_at_ns > 0
               ? bow__time_add(subchannel->tried_at_ns, options_of(subchannel)->backoff_min_ns)
               : 0;
}

bool bow__subchannel_is_resting(const struct bow__subchannel *subchannel)
{
    return subchannel->state <= BOW__CONNECTIVITY_IDLE &&
           now_of(subchannel) < rests_until(subchannel);
}

void bow__subchannel_request_connection(struct bow__subchannel *subchannel, bool at_once)
{
    uint64_t rest = rests_until(subchannel);

    if (subchannel->list->calls->closing || subchannel->connect != NULL ||
        subchannel->conn != NULL || subchannel->state > BOW__CONNECTIVITY_IDLE) {
        return;
    }
    if (at_once || rest <= now_of(subchannel)) {
        connect_now(subchannel);
    } else if (subchannel->state == BOW__CONNECTIVITY_IDLE) {
        bow_timer_start_at(&subchannel->timer, rest);
    }
}

static void close_candidate(struct bow__client_conn *conn, const char *why, int error)
{
    struct bow__subchannel *subchannel = conn->subchannel;

    drop_candidate(conn);
    if (subchannel->state == BOW__CONNECTIVITY_READY && subchannel->conn == NULL) {
        set_state(subchannel, BOW__CONNECTIVITY_CONNECTING); /* its calls may come back in here */
    }
    if (conn->conn.up) {
        bow__conn_close(&conn->conn, why, 0);
    } else {
        bow_channel_close(conn->conn.channel, error);
    }
}

/* "example.org:80 (192.0.2.1:80)", or the address alone when it says as much. */
static void describe(const struct bow__client_conn *conn, struct bow__text *text)
{
    const struct bow__subchannel *subchannel = conn->subchannel;

    bow__text_printf(text, "%s", subchannel->address->text);
    if (subchannel->addresses != NULL) {
        bow__text_printf(text, " (%s)", bow_channel_peer(conn->conn.channel));
    }
}

/* It took the connection and says nothing, or not enough, which no server of ours does. */
static void give_up_silent(struct bow__subchannel *subchannel, struct bow__client_conn *conn)
{
    struct bow__text text;

    bow__text_clear(&text);
    bow__text_printf(&text, "connecting to ");
    describe(conn, &text);
    bow__text_printf(&text, ": it took the connection and then %s for ",
                     bow__health_watch_is_wanted(&conn->health)
                         ? "did not say whether it serves (options.health_service)"
                     : conn->conn.up ? "said nothing"
                                     : "was not done with the handshake");
    bow__text_duration(&text, options_of(subchannel)->connect_timeout_ns);
    bow__text_printf(&text, " (connect_timeout_ns): is it a %s server?",
                     subchannel->list->config->target.http2 ? "gRPC" : "Bowline");
    note_failure(subchannel, text.bytes);
    close_candidate(conn,
                    "it never answered (connect_timeout_ns): is it the right port and protocol?",
                    -ETIMEDOUT);
}

static void on_attempt_timer(struct bow__subchannel *subchannel)
{
    struct bow__client_conn *first;

    while ((first = first_candidate(subchannel)) != NULL &&
           first->answer_due_ns <= now_of(subchannel)) {
        give_up_silent(subchannel, first);
    }
    if (subchannel->connect != NULL) {
        watch_attempt(subchannel);
    } else {
        go_on(subchannel);
    }
}

static void on_timer(struct bow_timer *timer, void *user)
{
    struct bow__subchannel *subchannel = user;

    (void)timer;
    if (subchannel->attempting) {
        on_attempt_timer(subchannel);
    } else if (subchannel->is_further) {
        subchannel->list->ops->on_change(subchannel);
    } else if (is_wanted(subchannel)) {
        bow__subchannel_request_connection(subchannel, true);
    } else {
        note_idle(subchannel);
    }
}

/* What becomes of connections */

static void take_calls(struct bow__subchannel *subchannel)
{
    subchannel->list->calls->counters.now.reconnects += subchannel->was_up && !subchannel->probed &&
                                                        !subchannel->is_further &&
                                                        !bow__subchannel_is_unhealthy(subchannel);
    subchannel->was_up = true;
    subchannel->was_turned_away = false;
    subchannel->probed = false;
    subchannel->backoff_ns = 0;
    bow_timer_stop(&subchannel->timer);
    set_state(subchannel, BOW__CONNECTIVITY_READY);
    subchannel->list->ops->on_change(subchannel);
}

/* The first of the attempt to answer. */
static void take_candidate(struct bow__subchannel *subchannel, struct bow__client_conn *conn)
{
    struct bow__client_conn *other;

    bow__list_remove(&conn->candidate);
    subchannel->attempting = false;
    subchannel->conn = conn;
    if (subchannel->addresses != NULL) {
        bow__address_list_remember(subchannel->addresses, conn->address_index);
    }
    while ((other = first_candidate(subchannel)) != NULL) {
        close_candidate(other, "another address of the name answered first", -ECANCELED);
    }
    if (subchannel->connect != NULL) {
        bow_connect_cancel(subchannel->connect);
    }
    take_calls(subchannel);
}

/* Or a stream got free. */
static void conn_answered(struct bow__subchannel *subchannel, struct bow__client_conn *conn)
{
    bow__health_watch_resume(&conn->health);
    if (!bow__client_conn_is_candidate(conn)) {
        if (subchannel->conn == conn && subchannel->probed) {
            take_calls(subchannel);
        }
    } else if (!asks_for_health(subchannel)) {
        take_candidate(subchannel, conn);
    } else if (!bow__health_watch_is_wanted(&conn->health)) {
        bow__health_watch_start(&conn->health);
    }
}

static void candidate_failed(struct bow__subchannel *subchannel, struct bow__client_conn *conn,
                             const char *why)
{
    drop_candidate(conn);
    if (!subchannel->list->calls->closing) {
        note_failure(subchannel, why);
        go_on(subchannel);
    }
}

/* It is no failure that it did not answer. */
static void forgo_candidate(struct bow__subchannel *subchannel, struct bow__client_conn *conn)
{
    drop_candidate(conn);
    if (subchannel->connect == NULL && first_candidate(subchannel) == NULL) {
        subchannel->attempting = false;
        bow_timer_stop(&subchannel->timer);
        set_state(subchannel, BOW__CONNECTIVITY_IDLE);
        note_idle(subchannel);
    }
}

void bow__subchannel_probe(struct bow__subchannel *subchannel)
{
    struct bow__conn *conn =
        subchannel->state == BOW__CONNECTIVITY_READY ? &subchannel->conn->conn : NULL;

    if (conn == NULL || !conn->session->ops->doubt(conn->session, now_of(subchannel))) {
        return;
    }
    subchannel->probed = true;
    set_state(subchannel, BOW__CONNECTIVITY_CONNECTING);
    bow__conn_touch(conn);
}

static void conn_retired(struct bow__subchannel *subchannel, struct bow__client_conn *conn,
                         const char *why)
{
    bool wanted = why != NULL && is_wanted(subchannel);

    bow__health_watch_stop(&conn->health);
    if (subchannel->conn != conn) {
        return;
    }
    subchannel->conn = NULL;
    subchannel->probed = false;
    bow_timer_stop(&subchannel->timer);
    set_state(subchannel, BOW__CONNECTIVITY_IDLE);
    if (subchannel->list->calls->closing) {
        return;
    }
    if (is_one_of_many(subchannel) && wanted) {
        bow__subchannel_request_connection(subchannel, false);
    } else {
        note_idle(subchannel);
    }
    subchannel->list->ops->on_change(subchannel);
}

/* It takes no calls any more, or none at all. */
static void conn_left(struct bow__client_conn *conn, const char *why)
{
    if (bow__client_conn_is_candidate(conn)) {
        candidate_failed(conn->subchannel, conn, why);
    } else {
        conn_retired(conn->subchannel, conn, why);
    }
}

/* Health */

/* It is kept, to say when that changes. */
static void set_aside(struct bow__subchannel *subchannel, struct bow__client_conn *conn)
{
    bow__list_remove(&conn->candidate);
    subchannel->attempting = false;
    subchannel->conn = conn;
    subchannel->probed = false;
    subchannel->backoff_ns = 0;
    subchannel->failed_at_ns = now_of(subchannel);
    subchannel->next_try_ns = BOW_NEVER;
    bow_timer_stop(&subchannel->timer);
    set_state(subchannel, BOW__CONNECTIVITY_BACKING_OFF);
    subchannel->list->ops->on_failed(subchannel);
}

static bool has_others(const struct bow__subchannel *subchannel)
{
    return subchannel->is_further ||
           (subchannel->addresses != NULL && subchannel->addresses->n > 1);
}

static void leave_unhealthy(struct bow__subchannel *subchannel, struct bow__client_conn *conn)
{
    static const char why[] = "its server says that it does not serve";

    if (bow__client_conn_is_candidate(conn)) {
        close_candidate(conn, why, -ECANCELED);
        go_on(subchannel);
        return;
    }
    if (subchannel->addresses != NULL) {
        bow__address_list_forget(subchannel->addresses);
    }
    conn_retired(subchannel, conn, why);
    bow__conn_goaway(&conn->conn, why);
}

static void on_unhealthy(struct bow__subchannel *subchannel, struct bow__client_conn *conn,
                         const char *why)
{
    struct bow__client_calls *calls = subchannel->list->calls;
    bool is_known = bow__subchannel_is_unhealthy(subchannel);
    struct bow__text text;

    bow__text_clear(&text);
    describe(conn, &text);
    bow__text_printf(&text, " %s", why);
    note_failure(subchannel, text.bytes);
    if (is_known) {
        return;
    }
    calls->counters.now.servers_unhealthy++;
    bow__counters_touch(&calls->counters);
    if (has_others(subchannel)) {
        leave_unhealthy(subchannel, conn);
    } else {
        set_aside(subchannel, conn);
    }
}

static void on_health(struct bow__health_watch *watch, const char *why)
{
    struct bow__client_conn *conn = BOW__CONTAINER(watch, struct bow__client_conn, health);
    struct bow__subchannel *subchannel = conn->subchannel;

    if (why != NULL) {
        on_unhealthy(subchannel, conn, why);
    } else if (bow__client_conn_is_candidate(conn)) {
        take_candidate(subchannel, conn);
    } else if (bow__subchannel_is_unhealthy(subchannel)) {
        take_calls(subchannel);
    }
}

/* Connections */

static void on_ready(void *owner)
{
    struct bow__client_conn *conn = owner;

    conn_answered(conn->subchannel, conn);
    conn->subchannel->list->ops->on_change(conn->subchannel);
}

/* A server that leaves before it has said whether it serves may have another in its place. Once:
 * no call bounds how often that is. */
static bool is_turned_away(const struct bow__client_conn *conn)
{
    return bow__client_conn_is_candidate(conn) && bow__health_watch_is_wanted(&conn->health) &&
           !conn->subchannel->was_turned_away;
}

static void on_goaway(void *owner, const struct bow_status *reason)
{
    struct bow__client_conn *conn = owner;
    struct bow__subchannel *subchannel = conn->subchannel;
    struct bow__text text;

    conn->conn.is_announced = true;
    if (is_turned_away(conn)) {
        subchannel->was_turned_away = true;
        forgo_candidate(subchannel, conn);
        subchannel->list->ops->on_change(subchannel);
    } else {
        bow__text_clear(&text);
        describe(conn, &text);
        bow__text_printf(&text, " takes no calls (GOAWAY): %s", reason->message);
        conn_left(conn, text.bytes);
    }
    subchannel->list->ops->on_doubt(subchannel);
    bow__conn_touch(&conn->conn);
}

static void on_up(struct bow__conn *conn)
{
    struct bow__client_conn *ours = bow__client_conn_of(conn);
    struct bow__subchannel *subchannel = ours->subchannel;

    if (ours->calls->closing) {
        bow__conn_close(conn, "the client was closed", 0);
    } else if (is_sole(subchannel)) {
        subchannel->conn = ours;
        set_state(subchannel, BOW__CONNECTIVITY_READY);
        subchannel->list->ops->on_change(subchannel);
    }
}

static void on_down(struct bow__conn *conn, const struct bow_status *why)
{
    struct bow__client_conn *lost = bow__client_conn_of(conn);

    if (conn->up && conn->session->heartbeats_lost > 0) {
        lost->subchannel->list->ops->on_silence(lost->subchannel);
    }
    conn_left(lost, why->message);
    lost->subchannel->list->ops->on_doubt(lost->subchannel);
}

static void on_aged(struct bow__conn *conn, const char *why)
{
    struct bow__client_conn *aged = bow__client_conn_of(conn);

    if (bow__list_is_empty(&aged->calls->queue)) {
        if (bow__client_conn_is_candidate(aged)) {
            forgo_candidate(aged->subchannel, aged);
        } else {
            conn_retired(aged->subchannel, aged, NULL);
        }
        bow__conn_goaway(conn, bow__conn_setup_idle_reason(aged->subchannel, why));
    }
}

static void on_gone(struct bow__conn *conn)
{
    struct bow__client_conn *gone = bow__client_conn_of(conn);

    bow__list_remove(&gone->at);
    gone->subchannel->n_conns--;
    if (gone->calls->closing) {
        gone->calls->ops->check_closed(gone->calls);
    } else if (gone->subchannel->is_drained) {
        gone->subchannel->list->ops->on_drained(gone->subchannel);
    }
}

static int init_conn(struct bow_channel *channel, void *user)
{
    static const struct bow__session_events events = {
        .on_headers = bow__client_conn_on_headers,
        .on_message = bow__client_conn_on_message,
        .on_status = bow__client_conn_on_status,
        .on_writable = bow__client_conn_on_writable,
        .on_ready = on_ready,
        .on_goaway = on_goaway,
    };
    static const struct bow__conn_ops ops = {
        .events = &events,
        .configure = bow__conn_setup_configure,
        .on_up = on_up,
        .on_down = on_down,
        .on_aged = on_aged,
        .on_gone = on_gone,
    };
    struct bow__client_conn *conn = bow_channel_data(channel);
    struct bow__subchannel *subchannel = user;
    struct bow__client_calls *calls = subchannel->list->calls;
    const struct bow__client_config *config = subchannel->list->config;

    if (!subchannel->attempting) {
        return -ECANCELED; /* another address has answered meanwhile */
    }
    if (config->options.security != NULL) {
        int rc = bow__conn_setup_secure(subchannel, channel);
        if (rc < 0) {
            return rc;
        }
    }
    conn->calls = calls;
    conn->subchannel = subchannel;
    subchannel->n_conns++;
    bow__list_push_back(&subchannel->list->conns, &conn->at);
    bow__list_push_back(&subchannel->candidates, &conn->candidate);
    conn->answer_due_ns = answer_due(subchannel);
    conn->address_index = subchannel->addresses != NULL ? subchannel->addresses->connected : 0;
    subchannel->next_address_ns = bow__time_add(now_of(subchannel), NEXT_ADDRESS_NS);
    bow__conn_init(&conn->conn, channel, &ops, &calls->counters, false);
    bow__health_watch_init(&conn->health, &conn->conn, calls, config, on_health);
    conn->conn.write_timeout_ns = config->options.write_timeout_ns;
    bow__age_start(&conn->conn.age, config->context, bow_loop_now(calls->loop),
                   bow__conn_setup_idle_ns(subchannel), BOW_NEVER, BOW_NEVER);
    conn->conn.http2 = config->target.http2;
    conn->conn.security = config->options.security;
    return 0;
}

/* Life */

static bool is_name(const char *text)
{
    struct bow__address address;
    struct bow__text why;

    bow__text_clear(&why);
    return bow__address_parse(text, &address, &why) == 0 && address.kind == BOW__ADDRESS_NAME;
}

void bow__subchannel_init(struct bow__subchannel *subchannel, struct bow__subchannel_list *list,
                          const struct bow__target_address *address, bool is_further)
{
    subchannel->list = list;
    subchannel->is_further = is_further;
    subchannel->address = address;
    subchannel->state = BOW__CONNECTIVITY_IDLE;
    subchannel->is_name = is_name(address->text);
    bow__list_init(&subchannel->at);
    bow__list_init(&subchannel->ready_link);
    bow__list_init(&subchannel->candidates);
    bow__text_clear(&subchannel->last_error);
    bow_timer_init(&subchannel->timer, list->calls->loop, on_timer, subchannel);
}

/* Addresses that a name has no more */

static void drain_one(struct bow__subchannel *subchannel)
{
    static const char why[] = "the name has this address no more";
    struct bow__client_conn *conn;

    bow_timer_stop(&subchannel->timer);
    subchannel->attempting = false;
    while ((conn = first_candidate(subchannel)) != NULL) {
        close_candidate(conn, why, -ECANCELED);
    }
    conn = subchannel->conn;
    subchannel->conn = NULL;
    subchannel->probed = false;
    set_state(subchannel, BOW__CONNECTIVITY_IDLE);
    subchannel->is_drained = true;
    if (subchannel->connect != NULL) {
        bow_connect_cancel(subchannel->connect);
    }
    if (conn != NULL) {
        bow__health_watch_stop(&conn->health);
        bow__conn_goaway(&conn->conn, why);
    }
}

void bow__subchannel_drain(struct bow__subchannel *first, uint64_t until_ns)
{
    for (uint32_t i = 0; i < bow__subchannels_each(first->list); i++) {
        drain_one(&first[i]);
    }
    bow__list_remove(&first->at);
    first->list->n_addresses--;
    first->list->n_in[BOW__CONNECTIVITY_IDLE]--;
    first->drained_until_ns = until_ns;
}

void bow__subchannel_close(struct bow__subchannel *subchannel)
{
    bow_timer_stop(&subchannel->timer);
    if (subchannel->connect != NULL) {
        bow_connect_cancel(subchannel->connect);
    }
}
