/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls and connections of a client on one loop: which connection a call goes to, in turn over
 * those that take calls, and the queue of calls that wait for one. How there come to be
 * connections is the endpoints' business.
 */

#include "base/alloc.h"
#include "base/clock.h"
#include "rpc/client_state.h"
#include "rpc/core/errors.h"
#include "rpc/core/metadata.h"
#include "rpc/stream_state.h"

#include <bowline/limits.h>
#include <errno.h>
#include <string.h>

#define LAST_WORDS_NS UINT64_C(100000000)

static uint64_t now_of(const struct bow__client_link *link)
{
    return bow_loop_now(link->loop);
}

static uint32_t n_endpoints_of(const struct bow__client_link *link)
{
    return link->client->target.n_addresses;
}

static bool has_many(const struct bow__client_link *link)
{
    return bow__target_is_list(&link->client->target);
}

/* Taking turns */

static struct bow__endpoint *endpoint_of(struct bow__link *turn)
{
    return BOW__CONTAINER(turn, struct bow__endpoint, turn);
}

/* The next call goes to the next connection. */
static void turn(struct bow__client_link *link)
{
    struct bow__link *at = link->conn->endpoint->turn.next;

    link->conn = endpoint_of(at != &link->ready ? at : at->next)->conn;
}

static void add_ready(struct bow__client_link *link, struct bow__endpoint *endpoint)
{
    bow__list_push_back(&link->ready, &endpoint->turn);
    link->n_ready++;
    if (link->conn == NULL) {
        link->conn = endpoint->conn;
    }
}

static void remove_ready(struct bow__client_link *link, struct bow__endpoint *endpoint)
{
    if (link->conn->endpoint == endpoint) {
        turn(link);
    }
    bow__list_remove(&endpoint->turn);
    link->n_ready--;
    if (link->n_ready == 0) {
        link->conn = NULL;
    }
}

void bow__link_set_state(struct bow__client_link *link, struct bow__endpoint *endpoint,
                         enum bow__link_state state)
{
    bool was_ready = endpoint->state == BOW__LINK_READY;

    endpoint->state = state;
    endpoint->n_calls_seen = link->counters.now.calls_started;
    if (was_ready && state != BOW__LINK_READY) {
        remove_ready(link, endpoint);
    } else if (!was_ready && state == BOW__LINK_READY) {
        add_ready(link, endpoint);
    }
    for (uint32_t i = 0; i < n_endpoints_of(link); i++) {
        if (i == 0 || link->endpoints[i].state > link->state) {
            link->state = link->endpoints[i].state;
        }
    }
    bow__link_show_state(link);
}

void bow__link_doubt(struct bow__client_link *link, const struct bow__endpoint *lost)
{
    for (uint32_t i = 0; i < n_endpoints_of(link); i++) {
        if (&link->endpoints[i] != lost) {
            bow__endpoint_doubt(&link->endpoints[i]);
        }
    }
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
    bow__list_move(&patient, &link->queue); /* those that came meanwhile stand behind */
    bow__list_move(&link->queue, &patient);
}

/* Why no connection takes calls. */
static void describe_failures(const struct bow__client_link *link, struct bow__text *text)
{
    uint32_t n = n_endpoints_of(link);

    if (n > 1) {
        bow__text_printf(text, "none of %u addresses takes calls: ", (unsigned)n);
    }
    for (uint32_t i = 0; i < n; i++) {
        bow__text_printf(text, "%s%s", i > 0 ? "; " : "", link->endpoints[i].last_error.bytes);
    }
}

void bow__link_failed(struct bow__client_link *link)
{
    struct bow__text text;

    if (link->state != BOW__LINK_BACKING_OFF) {
        return;
    }
    bow__text_clear(&text);
    describe_failures(link, &text);
    fail_impatient(link, BOW_UNAVAILABLE, text.bytes);
}

/* The queue */

static size_t bytes_of(const struct bow__client_call *call)
{
    return sizeof(*call) + call->n_request + bow__metadata_bytes(&call->metadata);
}

static void count_queued(struct bow__client_link *link, struct bow__client_call *call)
{
    call->state = BOW__CLIENT_CALL_QUEUED;
    call->queued_bytes = bytes_of(call);
    link->queued_bytes += call->queued_bytes;
    atomic_fetch_add_explicit(&link->n_queued, 1, memory_order_relaxed);
}

static void queue_back(struct bow__client_link *link, struct bow__client_call *call)
{
    bow__list_push_back(&link->queue, &call->at);
    count_queued(link, call);
}

static void queue_front(struct bow__client_link *link, struct bow__client_call *call)
{
    bow__list_push_front(&link->queue, &call->at);
    count_queued(link, call);
}

void bow__link_unqueue(struct bow__client_link *link, struct bow__client_call *call)
{
    bow__list_remove(&call->at);
    link->queued_bytes -= call->queued_bytes;
    atomic_fetch_sub_explicit(&link->n_queued, 1, memory_order_relaxed);
}

static bool is_temporary(int rc)
{
    return rc == -EAGAIN || rc == -EPIPE;
}

static bool takes_calls(const struct bow__client_conn *conn)
{
    const struct bow__session *session = conn->conn.session;

    return session != NULL && session->ops->can_open(session);
}

static bool find_another(struct bow__client_link *link)
{
    for (uint32_t n = link->n_ready; n > 1; n--) {
        turn(link);
        if (takes_calls(link->conn)) {
            return true;
        }
    }
    return false;
}

static bool can_open(struct bow__client_link *link)
{
    return link->conn != NULL && (takes_calls(link->conn) || find_another(link));
}

static int send_in_turn(struct bow__client_link *link, struct bow__client_call *call)
{
    int rc = bow__client_call_send(call);

    if (rc == 0 && link->n_ready > 1) {
        turn(link);
    }
    return rc;
}

/* Returns `rc`, which a connection that takes calls has said. */
static int explain_unsent(const struct bow__client_link *link, const struct bow__client_call *call,
                          int rc, struct bow__text *reason)
{
    bow__text_printf(reason, "the request of %s cannot be sent to %s: ", call->method->path,
                     link->conn->endpoint->address->text);
    bow__text_errno(reason, rc);
    if (rc == -EMSGSIZE) {
        bow__text_printf(reason,
                         ": path and metadata are more than it takes; BOW_LIMIT_HEADER_BYTES "
                         "(%zu), or what it said",
                         BOW_LIMIT_HEADER_BYTES);
    }
    return rc;
}

static void send_queued(struct bow__client_link *link, struct bow__client_call *call)
{
    struct bow__text reason;

    bow__link_unqueue(link, call);
    int rc = send_in_turn(link, call);
    if (rc == 0) {
        return;
    }
    if (is_temporary(rc)) {
        queue_front(link, call);
        return;
    }
    call->state = BOW__CLIENT_CALL_POSTED; /* in no list */
    bow__text_clear(&reason);
    (void)explain_unsent(link, call, rc, &reason);
    bow__client_call_fail(call, bow__code_from_errno(rc), reason.bytes);
}

static void seek(struct bow__client_link *link, bool at_once)
{
    link->dormant = false;
    for (uint32_t i = 0; i < n_endpoints_of(link); i++) {
        bow__endpoint_seek(&link->endpoints[i], at_once);
    }
}

static void connect_for_queue(struct bow__client_link *link)
{
    const struct bow__client_call *call = first_queued(link);

    if (call != NULL && link->n_ready < n_endpoints_of(link)) {
        seek(link, !call->waits_for_ready && !has_many(link));
    }
}

void bow__link_pump(struct bow__client_link *link)
{
    struct bow__client_call *call;

    while (can_open(link) && (call = first_queued(link)) != NULL) {
        send_queued(link, call);
    }
    connect_for_queue(link);
}

void bow__link_requeue(struct bow__client_link *link, struct bow__client_call *call, bool counts)
{
    if (link->n_ready > 1 && link->conn == call->conn) {
        turn(link);
    }
    bow__list_remove(&call->at);
    bow__client_call_part(call);
    call->retried |= counts;
    if (call->stream != NULL) {
        bow__stream_rewind(call->stream);
    }
    queue_front(link, call);
    bow__link_pump(link);
}

/* Right after failed attempts. */
static bool is_too_early(const struct bow__client_link *link)
{
    bool early = link->state == BOW__LINK_BACKING_OFF;

    for (uint32_t i = 0; i < n_endpoints_of(link) && early; i++) {
        early = bow__endpoint_is_too_early(&link->endpoints[i]);
    }
    return early;
}

const struct bow__endpoint *bow__link_last_failed(const struct bow__client_link *link)
{
    const struct bow__endpoint *last = NULL;

    for (uint32_t i = 0; i < n_endpoints_of(link); i++) {
        const struct bow__endpoint *endpoint = &link->endpoints[i];
        if (endpoint->backoff_ns > 0 &&
            (last == NULL || endpoint->failed_at_ns > last->failed_at_ns)) {
            last = endpoint;
        }
    }
    return last;
}

static uint64_t next_try_of(const struct bow__client_link *link)
{
    uint64_t next = BOW_NEVER;

    for (uint32_t i = 0; i < n_endpoints_of(link); i++) {
        next = bow__time_min(next, link->endpoints[i].next_try_ns);
    }
    return next;
}

static int refuse_backing_off(struct bow__client_link *link, struct bow__text *reason)
{
    uint64_t now = now_of(link);

    describe_failures(link, reason);
    bow__text_printf(reason, "; that was ");
    bow__text_duration(reason, now - bow__link_last_failed(link)->failed_at_ns);
    bow__text_printf(reason, " ago, and the next try is due in ");
    bow__text_duration(reason, bow__time_left(next_try_of(link), now));
    return -ENOTCONN;
}

int bow__link_refuse_queued(const struct bow__client_link *link, struct bow__text *reason)
{
    bow__text_printf(reason, "as many calls wait for ");
    bow__target_describe(&link->client->target, reason);
    bow__text_printf(reason, " as max_queued_calls (%u) allows",
                     link->client->options.max_queued_calls);
    return -EAGAIN;
}

/* Returns 0 or -EAGAIN. One call may be larger than all that may wait. */
static int check_queue(const struct bow__client_link *link, const struct bow__client_call *call,
                       struct bow__text *reason)
{
    const struct bow_client_options *options = &link->client->options;
    unsigned n = atomic_load_explicit(&link->n_queued, memory_order_relaxed);
    bool many = n >= options->max_queued_calls;

    if (!many && (n == 0 || link->queued_bytes + bytes_of(call) <= options->max_queued_bytes)) {
        return 0;
    }
    if (many) {
        return bow__link_refuse_queued(link, reason);
    }
    bow__text_printf(reason, "%u calls wait for ", n);
    bow__target_describe(&link->client->target, reason);
    bow__text_printf(reason,
                     " already, of %zu bytes, and another %zu are more than %zu (max_queued_bytes)",
                     link->queued_bytes, bytes_of(call), options->max_queued_bytes);
    return -EAGAIN;
}

int bow__link_submit(struct bow__client_link *link, struct bow__client_call *call,
                     struct bow__text *reason)
{
    if (link->closing) {
        return -ESHUTDOWN;
    }
    if (link->dormant) {
        seek(link, false);
    }
    if (can_open(link) && bow__list_is_empty(&link->queue)) {
        int sent = send_in_turn(link, call);
        if (sent == 0) {
            return 0;
        }
        if (!is_temporary(sent)) {
            return explain_unsent(link, call, sent, reason);
        }
    }
    if (!call->waits_for_ready && is_too_early(link)) {
        return refuse_backing_off(link, reason);
    }
    int rc = check_queue(link, call, reason);
    if (rc < 0) {
        return rc;
    }
    queue_back(link, call);
    connect_for_queue(link);
    return 0;
}

/* For the text of a deadline that passed */

static bool is_connecting(const struct bow__endpoint *endpoint)
{
    return endpoint->connect != NULL &&
           strcmp(bow_connect_stage(endpoint->connect), "resolving") != 0;
}

const char *bow__link_stage(const struct bow__client_link *link)
{
    bool resolves = false;

    for (uint32_t i = 0; i < n_endpoints_of(link); i++) {
        const struct bow__endpoint *endpoint = &link->endpoints[i];
        if (is_connecting(endpoint)) {
            return "connecting to";
        }
        resolves = resolves || endpoint->connect != NULL;
    }
    return resolves ? "resolving the name of" : "connecting to";
}

const struct bow__client_conn *bow__link_mute(const struct bow__client_link *link)
{
    for (uint32_t i = 0; i < n_endpoints_of(link); i++) {
        const struct bow__client_conn *conn = link->endpoints[i].conn;
        if (conn != NULL && !conn->conn.heard) {
            return conn;
        }
    }
    return NULL;
}

/* The end */

static bool has_attempt(const struct bow__client_link *link)
{
    bool has = false;

    for (uint32_t i = 0; i < n_endpoints_of(link) && !has; i++) {
        has = link->endpoints[i].connect != NULL;
    }
    return has;
}

void bow__link_check_closed(struct bow__client_link *link)
{
    if (!link->closing || link->n_calls > 0 || !bow__list_is_empty(&link->conns) ||
        has_attempt(link) || bow__counters_is_posted(&link->counters)) {
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
    while (!bow__list_is_empty(&link->held)) {
        bow__client_call_fail(BOW__CONTAINER(link->held.next, struct bow__client_call, at), code,
                              message);
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
    for (uint32_t i = 0; i < n_endpoints_of(link); i++) {
        bow__endpoint_close(&link->endpoints[i]);
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

void bow__link_init(struct bow__client_link *link, struct bow_client *client, struct bow_loop *loop,
                    struct bow__endpoint *endpoints)
{
    link->client = client;
    link->loop = bow_loop_ref(loop);
    link->settled = true;
    link->state = BOW__LINK_IDLE;
    link->endpoints = endpoints;
    for (uint32_t i = 0; i < n_endpoints_of(link); i++) {
        bow__endpoint_init(&endpoints[i], link, &client->target.addresses[i]);
    }
    bow__list_init(&link->ready);
    bow__list_init(&link->conns);
    bow__list_init(&link->held);
    bow__list_init(&link->queue);
    bow__list_init(&link->calls);
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
