/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A client's connections on one loop: one that takes calls, and those that end.
 *
 *     IDLE ──a call──► CONNECTING ──► READY ──lost, GOAWAY──► IDLE
 *      ▲                   │ failed: the waiting calls fail with the reason
 *      └───(connected)── BACKING_OFF ──a call, not at once; or the pause is over──► CONNECTING
 *
 * It connects only while calls want it, and never gives up: what a failed attempt
 * costs is a pause, which grows while attempts fail and is jittered so that many
 * clients do not come back at once.
 */

#include "base/alloc.h"
#include "base/clock.h"
#include "base/log.h"
#include "rpc/client_state.h"
#include "rpc/core/errors.h"
#include "rpc/stream_state.h"

#include <errno.h>
#include <string.h>

#define LAST_WORDS_NS UINT64_C(100000000)

static void connect_now(struct bow__client_link *link);

static uint64_t now_of(const struct bow__client_link *link)
{
    return bow_loop_now(link->loop);
}

static void set_state(struct bow__client_link *link, enum bow__link_state state)
{
    link->state = state;
    bow__link_show_state(link);
}

/* Failing what waits */

static struct bow__client_call *first_queued(struct bow__client_link *link)
{
    struct bow__link *at = link->queue.next;

    return at != &link->queue ? BOW__CONTAINER(at, struct bow__client_call, at) : NULL;
}

/* Those that wait now and for no other attempt; a callback may start others, or end some. */
static void fail_impatient(struct bow__client_link *link, enum bow_code code, const char *message)
{
    struct bow__link patient;
    struct bow__client_call *call;

    bow__list_init(&patient);
    for (uint32_t n = atomic_load_explicit(&link->n_queued, memory_order_relaxed);
         n > 0 && (call = first_queued(link)) != NULL; n--) {
        if (call->waits_for_ready) {
            bow__list_remove(&call->at);
            bow__list_push_back(&patient, &call->at);
        } else {
            bow__client_call_fail(call, code, message);
        }
    }
    link->wanted = link->wanted || !bow__list_is_empty(&patient);
    bow__list_move(&patient, &link->queue); /* those that came meanwhile stand behind */
    bow__list_move(&link->queue, &patient);
}

/* Back-off */

static uint64_t jittered(const struct bow__client_link *link, uint64_t pause_ns)
{
    const struct bow_system *system = bow__context_system(link->client->context);
    uint32_t random = 0;

    if (system->random(system->user, &random, sizeof(random)) < 0) {
        return pause_ns;
    }
    uint64_t fifth = pause_ns / 5;
    return pause_ns - fifth + fifth * 2 * (random % 1024) / 1023;
}

static void back_off(struct bow__client_link *link)
{
    const struct bow_client_options *options = &link->client->options;
    uint64_t max = options->backoff_max_ns;

    link->backoff_ns = link->backoff_ns == 0              ? options->backoff_min_ns
                       : link->backoff_ns > max / 16 * 10 ? max
                                                          : link->backoff_ns / 10 * 16;
    link->backoff_ns = bow__time_min(link->backoff_ns, max);
    link->failed_at_ns = now_of(link);
    link->next_try_ns = bow__time_add(link->failed_at_ns, jittered(link, link->backoff_ns));
    set_state(link, BOW__LINK_BACKING_OFF);
    link->wanted = false;
    bow_timer_start_at(&link->retry_timer, link->next_try_ns);
}

static void on_failed(struct bow__client_link *link, const char *message)
{
    link->counters.now.connects_failed++;
    bow__counters_touch(&link->counters);
    bow__text_clear(&link->last_error);
    bow__text_printf(&link->last_error, "%s", message);
    back_off(link);
    fail_impatient(link, BOW_UNAVAILABLE, link->last_error.bytes);
}

static void on_retry_timer(struct bow_timer *timer, void *user)
{
    struct bow__client_link *link = user;

    (void)timer;
    if (link->state == BOW__LINK_CONNECTING && link->connect == NULL) {
        struct bow__text why = link->last_error;
        on_failed(link, why.bytes);
        return;
    }
    if (link->state == BOW__LINK_BACKING_OFF && link->wanted) {
        connect_now(link);
    }
}

/* Connecting */

static void on_connected(struct bow_channel *channel, const struct bow_transport_error *error,
                         void *user)
{
    struct bow__client_link *link = user;

    link->connect = NULL;
    if (link->closing) {
        bow__link_check_closed(link);
        return;
    }
    if (channel == NULL) {
        on_failed(link, error->text);
        return;
    }
    /* on_up came before, and the connection may be lost again by now. */
    bow__link_pump(link);
}

static void connect_now(struct bow__client_link *link)
{
    struct bow_channel_options options = BOW_CHANNEL_OPTIONS_INIT;
    struct bow_transport_error error = {0};
    const struct bow_client *client = link->client;

    options.data_bytes = sizeof(struct bow__client_conn);
    options.on_channel = bow__client_conn_init;
    options.user = link;
    bow_timer_stop(&link->retry_timer);
    set_state(link, BOW__LINK_CONNECTING);
    int rc =
        bow_connect_start(link->loop, client->target, &options, client->options.connect_timeout_ns,
                          on_connected, link, &link->connect, &error);
    if (rc < 0) {
        /* Memory, or a target that only a server can have. The calls that wait are not to fail in
         * here, for one may be starting. */
        link->connect = NULL;
        bow__text_clear(&link->last_error);
        bow__text_printf(&link->last_error, "%s", error.text);
        bow_timer_start(&link->retry_timer, 0);
    }
}

void bow__link_conn_up(struct bow__client_link *link, struct bow__client_conn *conn)
{
    if (link->closing) {
        bow__conn_close(&conn->conn, "the client was closed", 0);
        return;
    }
    link->counters.now.reconnects += link->was_up;
    link->was_up = true;
    link->conn = conn;
    set_state(link, BOW__LINK_READY);
    link->backoff_ns = 0;
    bow__link_pump(link);
}

void bow__link_conn_failed(struct bow__client_link *link, const char *why)
{
    if (!link->closing && link->state == BOW__LINK_CONNECTING && link->connect == NULL &&
        link->conn == NULL) {
        on_failed(link, why);
    }
}

void bow__link_conn_retired(struct bow__client_link *link, struct bow__client_conn *conn)
{
    if (link->conn != conn) {
        return;
    }
    link->conn = NULL;
    set_state(link, BOW__LINK_IDLE);
    bow__link_pump(link);
}

/* The queue */

static void queue_back(struct bow__client_link *link, struct bow__client_call *call)
{
    call->state = BOW__CLIENT_CALL_QUEUED;
    bow__list_push_back(&link->queue, &call->at);
    atomic_fetch_add_explicit(&link->n_queued, 1, memory_order_relaxed);
}

static void queue_front(struct bow__client_link *link, struct bow__client_call *call)
{
    call->state = BOW__CLIENT_CALL_QUEUED;
    bow__list_push_front(&link->queue, &call->at);
    atomic_fetch_add_explicit(&link->n_queued, 1, memory_order_relaxed);
}

static void unqueue(struct bow__client_link *link, struct bow__client_call *call)
{
    bow__list_remove(&call->at);
    atomic_fetch_sub_explicit(&link->n_queued, 1, memory_order_relaxed);
}

static bool is_temporary(int rc)
{
    return rc == -EAGAIN || rc == -EPIPE;
}

static void send_queued(struct bow__client_link *link, struct bow__client_call *call)
{
    unqueue(link, call);
    int rc = bow__client_call_send(call);
    if (rc == 0) {
        return;
    }
    if (is_temporary(rc)) {
        queue_front(link, call);
        return;
    }
    call->state = BOW__CLIENT_CALL_POSTED; /* in no list */
    bow__client_call_fail(call, bow__code_from_errno(rc), "sending the request failed");
}

static bool can_open(const struct bow__client_link *link)
{
    const struct bow__session *session = link->conn != NULL ? link->conn->conn.session : NULL;

    return session != NULL && session->ops->can_open(session);
}

static bool may_connect(const struct bow__client_link *link)
{
    return link->connect == NULL && !link->closing &&
           (link->state == BOW__LINK_IDLE || link->state == BOW__LINK_BACKING_OFF);
}

/* Right after a failed attempt. */
static bool is_too_early(const struct bow__client_link *link)
{
    return link->state == BOW__LINK_BACKING_OFF &&
           now_of(link) < bow__time_add(link->failed_at_ns, link->client->options.backoff_min_ns);
}

static void connect_for_queue(struct bow__client_link *link)
{
    const struct bow__client_call *call = first_queued(link);

    if (call == NULL || !may_connect(link)) {
        return;
    }
    if (call->waits_for_ready && is_too_early(link)) {
        link->wanted = true;
        return;
    }
    connect_now(link);
}

void bow__link_pump(struct bow__client_link *link)
{
    struct bow__client_call *call;

    while (can_open(link) && (call = first_queued(link)) != NULL) {
        send_queued(link, call);
    }
    connect_for_queue(link);
}

void bow__link_requeue(struct bow__client_link *link, struct bow__client_call *call)
{
    bow__list_remove(&call->at);
    call->conn = NULL;
    call->retried = true;
    if (call->stream != NULL) {
        bow__stream_rewind(call->stream);
    }
    queue_front(link, call);
    bow__link_pump(link);
}

static int refuse_backing_off(struct bow__client_link *link, struct bow__text *reason)
{
    uint64_t now = now_of(link);

    link->wanted = true;
    bow__text_printf(reason, "%s; that was ", link->last_error.bytes);
    bow__text_duration(reason, now - link->failed_at_ns);
    bow__text_printf(reason, " ago, and the next try is due in ");
    bow__text_duration(reason, bow__time_left(link->next_try_ns, now));
    return -ENOTCONN;
}

int bow__link_submit(struct bow__client_link *link, struct bow__client_call *call,
                     struct bow__text *reason)
{
    if (link->closing) {
        return -ESHUTDOWN;
    }
    if (can_open(link) && bow__list_is_empty(&link->queue)) {
        int rc = bow__client_call_send(call);
        if (!is_temporary(rc)) {
            return rc;
        }
    }
    if (is_too_early(link) && !call->waits_for_ready) {
        return refuse_backing_off(link, reason);
    }
    if (atomic_load_explicit(&link->n_queued, memory_order_relaxed) >=
        link->client->options.max_queued_calls) {
        bow__text_printf(reason, "%u calls wait for %s already (max_queued_calls)",
                         link->client->options.max_queued_calls, link->client->target);
        return -EAGAIN;
    }
    queue_back(link, call);
    connect_for_queue(link);
    return 0;
}

/* The end */

void bow__link_check_closed(struct bow__client_link *link)
{
    if (!link->closing || link->n_calls > 0 || link->connect != NULL ||
        !bow__list_is_empty(&link->conns) || bow__counters_is_posted(&link->counters)) {
        return;
    }
    bow__counters_publish(&link->counters);
    bow__loop_packing_stop(&link->packing);
    if (link->opened) {
        bow_loop_remove_hook(link->loop, &link->hook);
        link->opened = false;
    }
    bow__client_link_settle(link);
}

static void fail_all(struct bow__client_link *link, enum bow_code code, const char *message)
{
    struct bow__client_call *call;

    while ((call = first_queued(link)) != NULL) {
        bow__client_call_fail(call, code, message);
    }
    while (!bow__list_is_empty(&link->calls)) {
        call = BOW__CONTAINER(link->calls.next, struct bow__client_call, at);
        bow__client_call_abandon(call, BOW_CANCELLED);
        bow__client_call_fail(call, code, message);
    }
}

/* Callbacks run in here, so the link is held open by a call that is none. */
static void close_link(struct bow__client_link *link, enum bow_code code, const char *message)
{
    struct bow__link *next;

    link->closing = true;
    link->n_calls++;
    bow__link_show_state(link);
    bow_timer_stop(&link->retry_timer);
    if (link->connect != NULL) {
        bow_connect_cancel(link->connect);
    }
    fail_all(link, code, message);
    for (struct bow__link *at = link->conns.next; at != &link->conns; at = next) {
        struct bow__client_conn *conn = BOW__CONTAINER(at, struct bow__client_conn, at);
        next = at->next;
        bow__conn_goaway(&conn->conn, "the client is done");
        bow__conn_close(&conn->conn, "the client was closed", LAST_WORDS_NS);
    }
    link->n_calls--;
    bow__link_check_closed(link);
}

static int close_task(void *user)
{
    struct bow__client_link *link = user;
    struct bow_client *client = link->client;

    close_link(link, BOW_CANCELLED, "the client was closed");
    bow__client_closed_one(client);
    return 0;
}

static void on_loop_shutdown(struct bow_loop_hook *hook)
{
    struct bow__client_link *link = BOW__CONTAINER(hook, struct bow__client_link, hook);

    link->opened = false;
    close_link(link, BOW_UNAVAILABLE, "the client's loop has shut down");
}

static void on_published(void *owner)
{
    bow__link_check_closed(owner);
}

static void init_packing(struct bow__client_link *link)
{
    const struct bow_client_options *options = &link->client->options;
    struct bow__packing_options packing = {
        .compression = options->compression,
        .threshold_bytes = options->compression_threshold_bytes,
        .level = options->compression_level,
        .max_message_bytes = options->max_message_bytes,
    };

    bow__loop_packing_init(&link->packing, link->client->context, link->loop, &packing);
}

void bow__link_init(struct bow__client_link *link, struct bow_client *client, struct bow_loop *loop)
{
    link->client = client;
    link->loop = bow_loop_ref(loop);
    link->settled = true;
    bow__list_init(&link->conns);
    bow__list_init(&link->queue);
    bow__list_init(&link->calls);
    bow__text_clear(&link->last_error);
    bow_timer_init(&link->retry_timer, loop, on_retry_timer, link);
    /* Without methods it allocates nothing, so it cannot fail. */
    (void)bow__counters_init(&link->counters, client->context, loop, 0, on_published, link);
    link->hook.fn = on_loop_shutdown;
    bow_task_init(&link->close_task, "close client", close_task, link);
    bow__link_state_init(link);
    init_packing(link);
}

void bow__link_fini(struct bow__client_link *link)
{
    while (link->idle != NULL) {
        struct bow__client_call *call = link->idle;
        link->idle = call->next;
        bow__result_memory_free(call->memory);
        bow__free(link->client->context, call, sizeof(*call));
    }
    bow__counters_fini(&link->counters);
    bow_loop_unref(link->loop);
}
