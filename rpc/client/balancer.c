/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls and connections of a client on one loop: which connection a call goes to, in turn over
 * those that take calls, and the queue of calls that wait for one. How there come to be
 * connections is the subchannels' business.
 */

#include "base/alloc.h"
#include "base/clock.h"
#include "rpc/client/client_state.h"
#include "rpc/client/stream_state.h"
#include "rpc/core/errors.h"
#include "rpc/core/metadata.h"

#include <bowline/limits.h>
#include <errno.h>
#include <string.h>

#define LAST_WORDS_NS UINT64_C(100000000)

static uint64_t now_of(const struct bow__balancer *balancer)
{
    return bow_loop_now(balancer->loop);
}

static uint32_t n_endpoints_of(const struct bow__balancer *balancer)
{
    return balancer->client->target.n_addresses;
}

static bool has_many(const struct bow__balancer *balancer)
{
    return bow__target_is_list(&balancer->client->target);
}

/* Taking turns */

static struct bow__subchannel *endpoint_of(struct bow__link *turn)
{
    return BOW__CONTAINER(turn, struct bow__subchannel, turn);
}

/* The next call goes to the next connection. */
static void turn(struct bow__balancer *balancer)
{
    struct bow__link *at = balancer->conn->subchannel->turn.next;

    balancer->conn = endpoint_of(at != &balancer->ready ? at : at->next)->conn;
}

static void add_ready(struct bow__balancer *balancer, struct bow__subchannel *subchannel)
{
    bow__list_push_back(&balancer->ready, &subchannel->turn);
    balancer->n_ready++;
    if (balancer->conn == NULL) {
        balancer->conn = subchannel->conn;
    }
}

static void remove_ready(struct bow__balancer *balancer, struct bow__subchannel *subchannel)
{
    if (balancer->conn->subchannel == subchannel) {
        turn(balancer);
    }
    bow__list_remove(&subchannel->turn);
    balancer->n_ready--;
    if (balancer->n_ready == 0) {
        balancer->conn = NULL;
    }
}

void bow__balancer_set_state(struct bow__balancer *balancer, struct bow__subchannel *subchannel,
                             enum bow__connectivity state)
{
    bool was_ready = subchannel->state == BOW__CONNECTIVITY_READY;

    subchannel->state = state;
    subchannel->n_calls_seen = balancer->counters.now.calls_started;
    if (was_ready && state != BOW__CONNECTIVITY_READY) {
        remove_ready(balancer, subchannel);
    } else if (!was_ready && state == BOW__CONNECTIVITY_READY) {
        add_ready(balancer, subchannel);
    }
    for (uint32_t i = 0; i < n_endpoints_of(balancer); i++) {
        if (i == 0 || balancer->subchannels[i].state > balancer->state) {
            balancer->state = balancer->subchannels[i].state;
        }
    }
    bow__balancer_show_state(balancer);
}

void bow__balancer_doubt(struct bow__balancer *balancer, const struct bow__subchannel *lost)
{
    for (uint32_t i = 0; i < n_endpoints_of(balancer); i++) {
        if (&balancer->subchannels[i] != lost) {
            bow__subchannel_doubt(&balancer->subchannels[i]);
        }
    }
}

/* Failing what waits */

static struct bow__client_call *first_queued(struct bow__balancer *balancer)
{
    struct bow__link *at = balancer->queue.next;

    return at != &balancer->queue ? BOW__CONTAINER(at, struct bow__client_call, at) : NULL;
}

/* Those that wait now and for no other attempt; a callback may start others, or end some. */
static void fail_impatient(struct bow__balancer *balancer, enum bow_code code, const char *message)
{
    struct bow__link patient;
    struct bow__client_call *call;

    bow__list_init(&patient);
    for (uint32_t n = atomic_load_explicit(&balancer->n_queued, memory_order_relaxed);
         n > 0 && (call = first_queued(balancer)) != NULL; n--) {
        if (call->waits_for_ready) {
            bow__list_remove(&call->at);
            bow__list_push_back(&patient, &call->at);
        } else {
            bow__client_call_fail(call, code, message);
        }
    }
    bow__list_move(&patient, &balancer->queue); /* those that came meanwhile stand behind */
    bow__list_move(&balancer->queue, &patient);
}

/* Why no connection takes calls. */
static void describe_failures(const struct bow__balancer *balancer, struct bow__text *text)
{
    uint32_t n = n_endpoints_of(balancer);

    if (n > 1) {
        bow__text_printf(text, "none of %u addresses takes calls: ", (unsigned)n);
    }
    for (uint32_t i = 0; i < n; i++) {
        bow__text_printf(text, "%s%s", i > 0 ? "; " : "",
                         balancer->subchannels[i].last_error.bytes);
    }
}

void bow__balancer_failed(struct bow__balancer *balancer)
{
    struct bow__text text;

    if (balancer->state != BOW__CONNECTIVITY_BACKING_OFF) {
        return;
    }
    bow__text_clear(&text);
    describe_failures(balancer, &text);
    fail_impatient(balancer, BOW_UNAVAILABLE, text.bytes);
}

/* The queue */

static size_t bytes_of(const struct bow__client_call *call)
{
    return sizeof(*call) + call->n_request + bow__metadata_bytes(&call->metadata);
}

static void count_queued(struct bow__balancer *balancer, struct bow__client_call *call)
{
    call->state = BOW__CLIENT_CALL_QUEUED;
    call->queued_bytes = bytes_of(call);
    balancer->queued_bytes += call->queued_bytes;
    atomic_fetch_add_explicit(&balancer->n_queued, 1, memory_order_relaxed);
}

static void queue_back(struct bow__balancer *balancer, struct bow__client_call *call)
{
    bow__list_push_back(&balancer->queue, &call->at);
    count_queued(balancer, call);
}

static void queue_front(struct bow__balancer *balancer, struct bow__client_call *call)
{
    bow__list_push_front(&balancer->queue, &call->at);
    count_queued(balancer, call);
}

void bow__balancer_unqueue(struct bow__balancer *balancer, struct bow__client_call *call)
{
    bow__list_remove(&call->at);
    balancer->queued_bytes -= call->queued_bytes;
    atomic_fetch_sub_explicit(&balancer->n_queued, 1, memory_order_relaxed);
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

static bool find_another(struct bow__balancer *balancer)
{
    for (uint32_t n = balancer->n_ready; n > 1; n--) {
        turn(balancer);
        if (takes_calls(balancer->conn)) {
            return true;
        }
    }
    return false;
}

static bool can_open(struct bow__balancer *balancer)
{
    return balancer->conn != NULL && (takes_calls(balancer->conn) || find_another(balancer));
}

static int send_in_turn(struct bow__balancer *balancer, struct bow__client_call *call)
{
    int rc = bow__client_call_send(call);

    if (rc == 0 && balancer->n_ready > 1) {
        turn(balancer);
    }
    return rc;
}

/* Returns `rc`, which a connection that takes calls has said. */
static int explain_unsent(const struct bow__balancer *balancer, const struct bow__client_call *call,
                          int rc, struct bow__text *reason)
{
    bow__text_printf(reason, "the request of %s cannot be sent to %s: ", call->method->path,
                     balancer->conn->subchannel->address->text);
    bow__text_errno(reason, rc);
    if (rc == -EMSGSIZE) {
        bow__text_printf(reason,
                         ": path and metadata are more than it takes; BOW_LIMIT_HEADER_BYTES "
                         "(%zu), or what it said",
                         BOW_LIMIT_HEADER_BYTES);
    }
    return rc;
}

static void send_queued(struct bow__balancer *balancer, struct bow__client_call *call)
{
    struct bow__text reason;

    bow__balancer_unqueue(balancer, call);
    int rc = send_in_turn(balancer, call);
    if (rc == 0) {
        return;
    }
    if (is_temporary(rc)) {
        queue_front(balancer, call);
        return;
    }
    call->state = BOW__CLIENT_CALL_POSTED; /* in no list */
    bow__text_clear(&reason);
    (void)explain_unsent(balancer, call, rc, &reason);
    bow__client_call_fail(call, bow__code_from_errno(rc), reason.bytes);
}

static void seek(struct bow__balancer *balancer, bool at_once)
{
    balancer->dormant = false;
    for (uint32_t i = 0; i < n_endpoints_of(balancer); i++) {
        bow__subchannel_seek(&balancer->subchannels[i], at_once);
    }
}

static void connect_for_queue(struct bow__balancer *balancer)
{
    const struct bow__client_call *call = first_queued(balancer);

    if (call != NULL && balancer->n_ready < n_endpoints_of(balancer)) {
        seek(balancer, !call->waits_for_ready && !has_many(balancer));
    }
}

void bow__balancer_pump(struct bow__balancer *balancer)
{
    struct bow__client_call *call;

    while (can_open(balancer) && (call = first_queued(balancer)) != NULL) {
        send_queued(balancer, call);
    }
    connect_for_queue(balancer);
}

void bow__balancer_requeue(struct bow__balancer *balancer, struct bow__client_call *call,
                           bool counts)
{
    if (balancer->n_ready > 1 && balancer->conn == call->conn) {
        turn(balancer);
    }
    bow__list_remove(&call->at);
    bow__client_call_part(call);
    call->retried |= counts;
    if (call->stream != NULL) {
        bow__stream_rewind(call->stream);
    }
    queue_front(balancer, call);
    bow__balancer_pump(balancer);
}

/* Right after failed attempts. */
static bool is_too_early(const struct bow__balancer *balancer)
{
    bool early = balancer->state == BOW__CONNECTIVITY_BACKING_OFF;

    for (uint32_t i = 0; i < n_endpoints_of(balancer) && early; i++) {
        early = bow__subchannel_is_too_early(&balancer->subchannels[i]);
    }
    return early;
}

const struct bow__subchannel *bow__balancer_last_failed(const struct bow__balancer *balancer)
{
    const struct bow__subchannel *last = NULL;

    for (uint32_t i = 0; i < n_endpoints_of(balancer); i++) {
        const struct bow__subchannel *subchannel = &balancer->subchannels[i];
        if (subchannel->backoff_ns > 0 &&
            (last == NULL || subchannel->failed_at_ns > last->failed_at_ns)) {
            last = subchannel;
        }
    }
    return last;
}

static uint64_t next_try_of(const struct bow__balancer *balancer)
{
    uint64_t next = BOW_NEVER;

    for (uint32_t i = 0; i < n_endpoints_of(balancer); i++) {
        next = bow__time_min(next, balancer->subchannels[i].next_try_ns);
    }
    return next;
}

static int refuse_backing_off(struct bow__balancer *balancer, struct bow__text *reason)
{
    uint64_t now = now_of(balancer);

    describe_failures(balancer, reason);
    bow__text_printf(reason, "; that was ");
    bow__text_duration(reason, now - bow__balancer_last_failed(balancer)->failed_at_ns);
    bow__text_printf(reason, " ago, and the next try is due in ");
    bow__text_duration(reason, bow__time_left(next_try_of(balancer), now));
    return -ENOTCONN;
}

int bow__balancer_refuse_queued(const struct bow__balancer *balancer, struct bow__text *reason)
{
    bow__text_printf(reason, "as many calls wait for ");
    bow__target_describe(&balancer->client->target, reason);
    bow__text_printf(reason, " as max_queued_calls (%u) allows",
                     balancer->client->options.max_queued_calls);
    return -EAGAIN;
}

/* Returns 0 or -EAGAIN. One call may be larger than all that may wait. */
static int check_queue(const struct bow__balancer *balancer, const struct bow__client_call *call,
                       struct bow__text *reason)
{
    const struct bow_client_options *options = &balancer->client->options;
    unsigned n = atomic_load_explicit(&balancer->n_queued, memory_order_relaxed);
    bool many = n >= options->max_queued_calls;

    if (!many && (n == 0 || balancer->queued_bytes + bytes_of(call) <= options->max_queued_bytes)) {
        return 0;
    }
    if (many) {
        return bow__balancer_refuse_queued(balancer, reason);
    }
    bow__text_printf(reason, "%u calls wait for ", n);
    bow__target_describe(&balancer->client->target, reason);
    bow__text_printf(reason,
                     " already, of %zu bytes, and another %zu are more than %zu (max_queued_bytes)",
                     balancer->queued_bytes, bytes_of(call), options->max_queued_bytes);
    return -EAGAIN;
}

int bow__balancer_submit(struct bow__balancer *balancer, struct bow__client_call *call,
                         struct bow__text *reason)
{
    if (balancer->closing) {
        return -ESHUTDOWN;
    }
    if (balancer->dormant) {
        seek(balancer, false);
    }
    if (can_open(balancer) && bow__list_is_empty(&balancer->queue)) {
        int sent = send_in_turn(balancer, call);
        if (sent == 0) {
            return 0;
        }
        if (!is_temporary(sent)) {
            return explain_unsent(balancer, call, sent, reason);
        }
    }
    if (!call->waits_for_ready && is_too_early(balancer)) {
        return refuse_backing_off(balancer, reason);
    }
    int rc = check_queue(balancer, call, reason);
    if (rc < 0) {
        return rc;
    }
    queue_back(balancer, call);
    connect_for_queue(balancer);
    return 0;
}

/* For the text of a deadline that passed */

static bool is_connecting(const struct bow__subchannel *subchannel)
{
    return subchannel->connect != NULL &&
           strcmp(bow_connect_stage(subchannel->connect), "resolving") != 0;
}

const char *bow__balancer_stage(const struct bow__balancer *balancer)
{
    bool resolves = false;

    for (uint32_t i = 0; i < n_endpoints_of(balancer); i++) {
        const struct bow__subchannel *subchannel = &balancer->subchannels[i];
        if (is_connecting(subchannel)) {
            return "connecting to";
        }
        resolves = resolves || subchannel->connect != NULL;
    }
    return resolves ? "resolving the name of" : "connecting to";
}

const struct bow__client_conn *bow__balancer_mute(const struct bow__balancer *balancer)
{
    for (uint32_t i = 0; i < n_endpoints_of(balancer); i++) {
        const struct bow__client_conn *conn = balancer->subchannels[i].conn;
        if (conn != NULL && !conn->conn.heard) {
            return conn;
        }
    }
    return NULL;
}

/* The end */

static bool has_attempt(const struct bow__balancer *balancer)
{
    bool has = false;

    for (uint32_t i = 0; i < n_endpoints_of(balancer) && !has; i++) {
        has = balancer->subchannels[i].connect != NULL;
    }
    return has;
}

void bow__balancer_check_closed(struct bow__balancer *balancer)
{
    if (!balancer->closing || balancer->n_calls > 0 || !bow__list_is_empty(&balancer->conns) ||
        has_attempt(balancer) || bow__counters_is_posted(&balancer->counters)) {
        return;
    }
    bow__counters_publish(&balancer->counters);
    bow__loop_compression_stop(&balancer->compression);
    if (balancer->opened) {
        bow_loop_remove_hook(balancer->loop, &balancer->hook);
        balancer->opened = false;
    }
    bow__client_link_settle(balancer);
}

static void fail_all(struct bow__balancer *balancer, enum bow_code code, const char *message)
{
    struct bow__client_call *call;

    while ((call = first_queued(balancer)) != NULL) {
        bow__client_call_fail(call, code, message);
    }
    while (!bow__list_is_empty(&balancer->held)) {
        bow__client_call_fail(BOW__CONTAINER(balancer->held.next, struct bow__client_call, at),
                              code, message);
    }
    while (!bow__list_is_empty(&balancer->calls)) {
        call = BOW__CONTAINER(balancer->calls.next, struct bow__client_call, at);
        bow__client_call_abandon(call, BOW_CANCELLED);
        bow__client_call_fail(call, code, message);
    }
}

/* Callbacks run in here, so the balancer is held open by a call that is none. */
static void close_link(struct bow__balancer *balancer, enum bow_code code, const char *message)
{
    struct bow__link *next;

    balancer->closing = true;
    balancer->n_calls++;
    bow__balancer_show_state(balancer);
    for (uint32_t i = 0; i < n_endpoints_of(balancer); i++) {
        bow__subchannel_close(&balancer->subchannels[i]);
    }
    fail_all(balancer, code, message);
    for (struct bow__link *at = balancer->conns.next; at != &balancer->conns; at = next) {
        struct bow__client_conn *conn = BOW__CONTAINER(at, struct bow__client_conn, at);
        next = at->next;
        bow__conn_goaway(&conn->conn, "the client is done");
        bow__conn_close(&conn->conn, "the client was closed", LAST_WORDS_NS);
    }
    balancer->n_calls--;
    bow__balancer_check_closed(balancer);
}

static int close_task(void *user)
{
    struct bow__balancer *balancer = user;
    struct bow_client *client = balancer->client;

    close_link(balancer, BOW_CANCELLED, "the client was closed");
    bow__client_closed_one(client);
    return 0;
}

static void on_loop_shutdown(struct bow_loop_hook *hook)
{
    struct bow__balancer *balancer = BOW__CONTAINER(hook, struct bow__balancer, hook);

    balancer->opened = false;
    close_link(balancer, BOW_UNAVAILABLE, "the client's loop has shut down");
}

static void on_published(void *owner)
{
    bow__balancer_check_closed(owner);
}

static void init_packing(struct bow__balancer *balancer)
{
    const struct bow_client_options *options = &balancer->client->options;
    struct bow__compression_options compression = {
        .compression = options->compression,
        .threshold_bytes = options->compression_threshold_bytes,
        .level = options->compression_level,
        .max_message_bytes = options->max_message_bytes,
    };

    bow__loop_compression_init(&balancer->compression, balancer->client->context, balancer->loop,
                               &compression);
}

void bow__balancer_init(struct bow__balancer *balancer, struct bow_client *client,
                        struct bow_loop *loop, struct bow__subchannel *subchannels)
{
    balancer->client = client;
    balancer->loop = bow_loop_ref(loop);
    balancer->settled = true;
    balancer->state = BOW__CONNECTIVITY_IDLE;
    balancer->subchannels = subchannels;
    for (uint32_t i = 0; i < n_endpoints_of(balancer); i++) {
        bow__subchannel_init(&subchannels[i], balancer, &client->target.addresses[i]);
    }
    bow__list_init(&balancer->ready);
    bow__list_init(&balancer->conns);
    bow__list_init(&balancer->held);
    bow__list_init(&balancer->queue);
    bow__list_init(&balancer->calls);
    /* Without methods it allocates nothing, so it cannot fail. */
    (void)bow__counters_init(&balancer->counters, client->context, loop, 0, on_published, balancer);
    balancer->hook.fn = on_loop_shutdown;
    bow_task_init(&balancer->close_task, "close client", close_task, balancer);
    bow__balancer_state_init(balancer);
    init_packing(balancer);
}

void bow__balancer_fini(struct bow__balancer *balancer)
{
    while (balancer->idle != NULL) {
        struct bow__client_call *call = balancer->idle;
        balancer->idle = call->next;
        bow__result_memory_free(call->memory);
        bow__free(balancer->client->context, call, sizeof(*call));
    }
    bow__counters_fini(&balancer->counters);
    bow_loop_unref(balancer->loop);
}
