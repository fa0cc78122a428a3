/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls and connections of a client on one loop: which connection a call goes to, in turn over
 * those that take calls, the queue of calls that wait for one, and how all that stands, for who
 * wants to know. When an address gets a further connection is said here, too: calls wait, and none
 * has a stream for them. How a connection comes about: subchannel.c.
 *
 * Addresses take turns. Of one that has further connections they take what its first cannot, the
 * oldest before the others, so that those which a burst has left over have nothing to do and end.
 */

#include "rpc/client/balancer.h"
#include "base/clock.h"
#include "base/log.h"
#include "rpc/client/balancer_stage.h"
#include "rpc/client/call/call_retry.h"
#include "rpc/client/call/stream_send.h"
#include "rpc/client/further.h"
#include "rpc/core/errors.h"
#include "rpc/core/header_limit.h"

#include <bowline/limits.h>
#include <errno.h>
#include <string.h>

#define GOAWAY_FLUSH_NS UINT64_C(100000000)

static uint64_t now_of(const struct bow__balancer *balancer)
{
    return bow_loop_now(balancer->calls.loop);
}

static const struct bow__client_config *config_of(const struct bow__balancer *balancer)
{
    return balancer->subchannels.config;
}

static struct bow__subchannel *first_of(const struct bow__balancer *balancer)
{
    return bow__subchannel_list_first(&balancer->subchannels);
}

static bool has_many(const struct bow__balancer *balancer)
{
    return bow__target_is_list(&config_of(balancer)->target);
}

/* Connectivity */

static void check_closed(struct bow__balancer *balancer);

static enum bow_client_state state_of(const struct bow__balancer *balancer)
{
    static const enum bow_client_state states[] = {
        [BOW__CONNECTIVITY_IDLE] = BOW_CLIENT_IDLE,
        [BOW__CONNECTIVITY_CONNECTING] = BOW_CLIENT_CONNECTING,
        [BOW__CONNECTIVITY_READY] = BOW_CLIENT_READY,
        [BOW__CONNECTIVITY_BACKING_OFF] = BOW_CLIENT_TRANSIENT_FAILURE,
    };

    return balancer->calls.closing ? BOW_CLIENT_SHUTDOWN : states[balancer->state];
}

static void notify(struct bow__balancer *balancer)
{
    const struct bow_client_options *options = &balancer->subchannels.config->options;
    enum bow_client_state state = state_of(balancer);

    if (state != balancer->notified_state) {
        balancer->notified_state = state;
        options->on_state(balancer->client, balancer->calls.loop, state, options->state_user);
    }
}

static int notify_task(void *user)
{
    struct bow__balancer *balancer = user;

    balancer->notifies = false;
    notify(balancer);
    balancer->calls.n_calls--;
    check_closed(balancer);
    return 0;
}

/* The state, or `closing`, has changed. */
static void show_state(struct bow__balancer *balancer)
{
    atomic_store_explicit(&balancer->shown_state, (int)state_of(balancer), memory_order_relaxed);
    if (balancer->subchannels.config->options.on_state == NULL || balancer->notifies) {
        return;
    }
    if (bow__loop_post_internal(balancer->calls.loop, &balancer->state_task, 0) < 0) {
        /* The loop shuts down, which is where this is called from. */
        notify(balancer);
        return;
    }
    balancer->notifies = true;
    balancer->calls.n_calls++;
}

/* Round robin */

static struct bow__balancer *owner_of(const struct bow__subchannel *subchannel)
{
    return BOW__CONTAINER(subchannel->list, struct bow__balancer, subchannels);
}

/* The next call goes to the next connection. */
static void pick_next(struct bow__balancer *balancer)
{
    struct bow__link *at = balancer->conn->subchannel->ready_link.next;

    at = at != &balancer->subchannels.ready ? at : at->next;
    balancer->conn = BOW__CONTAINER(at, struct bow__subchannel, ready_link)->conn;
}

static void add_ready(struct bow__balancer *balancer, struct bow__subchannel *subchannel)
{
    bow__list_push_back(&balancer->subchannels.ready, &subchannel->ready_link);
    balancer->subchannels.n_ready++;
    if (balancer->conn == NULL) {
        balancer->conn = subchannel->conn;
    }
}

static void remove_ready(struct bow__balancer *balancer, struct bow__subchannel *subchannel)
{
    if (balancer->conn->subchannel == subchannel) {
        pick_next(balancer);
    }
    bow__list_remove(&subchannel->ready_link);
    balancer->subchannels.n_ready--;
    if (balancer->subchannels.n_ready == 0) {
        balancer->conn = NULL;
    }
}

static void move_first(struct bow__subchannel *subchannel, enum bow__connectivity before)
{
    struct bow__balancer *balancer = owner_of(subchannel);
    bool was_ready = before == BOW__CONNECTIVITY_READY;

    if (was_ready && subchannel->state != BOW__CONNECTIVITY_READY) {
        remove_ready(balancer, subchannel);
    } else if (!was_ready && subchannel->state == BOW__CONNECTIVITY_READY) {
        add_ready(balancer, subchannel);
    }
}

static void move_further(struct bow__subchannel *subchannel, enum bow__connectivity before)
{
    struct bow__subchannel_list *list = subchannel->list;
    bool was_in_use = before > BOW__CONNECTIVITY_IDLE;
    bool is_in_use = subchannel->state > BOW__CONNECTIVITY_IDLE;

    if (before == BOW__CONNECTIVITY_READY) {
        bow__list_remove(&subchannel->ready_link);
    }
    if (subchannel->state == BOW__CONNECTIVITY_READY) {
        bow__list_push_back(&list->further, &subchannel->ready_link);
    }
    list->n_further_in_use += (uint32_t)is_in_use - (uint32_t)was_in_use;
    list->n_further_connecting += (uint32_t)(subchannel->state == BOW__CONNECTIVITY_CONNECTING) -
                                  (uint32_t)(before == BOW__CONNECTIVITY_CONNECTING);
}

/* No address is known. */
static enum bow__connectivity unresolved_state(const struct bow__balancer *balancer)
{
    switch (balancer->names->state) {
    case BOW__RESOLVER_IDLE:
        return BOW__CONNECTIVITY_IDLE;
    case BOW__RESOLVER_FAILED:
        return BOW__CONNECTIVITY_BACKING_OFF;
    default:
        return BOW__CONNECTIVITY_CONNECTING;
    }
}

/* Further ones count while they take calls. */
static enum bow__connectivity best_state(const struct bow__balancer *balancer)
{
    const struct bow__subchannel_list *list = &balancer->subchannels;
    int best = BOW__CONNECTIVITY_READY;

    if (!bow__list_is_empty(&list->further)) {
        return BOW__CONNECTIVITY_READY;
    }
    if (list->n_addresses == 0) {
        return unresolved_state(balancer);
    }
    while (list->n_in[best] == 0) {
        best--;
    }
    return (enum bow__connectivity)best;
}

static void update_state(struct bow__balancer *balancer)
{
    balancer->state = best_state(balancer);
    show_state(balancer);
}

static void on_state(struct bow__subchannel *subchannel, enum bow__connectivity before)
{
    if (subchannel->is_further) {
        move_further(subchannel, before);
    } else {
        move_first(subchannel, before);
    }
    update_state(owner_of(subchannel));
}

static void on_silence(struct bow__subchannel *lost)
{
    struct bow__subchannel_list *list = lost->list;

    for (struct bow__subchannel *at = bow__subchannel_list_first(list); at != NULL;
         at = bow__subchannel_next(at)) {
        for (uint32_t i = 0; i < bow__subchannels_each(list); i++) {
            if (&at[i] != lost) {
                bow__subchannel_probe(&at[i]);
            }
        }
    }
}

static void on_doubt(struct bow__subchannel *subchannel)
{
    struct bow__balancer *balancer = owner_of(subchannel);

    if (balancer->names != NULL && !balancer->calls.closing && !subchannel->is_drained) {
        bow__resolver_watch_doubt(balancer->names);
    }
}

static void on_drained(struct bow__subchannel *subchannel)
{
    bow__subchannel_set_reap(&owner_of(subchannel)->set);
}

/* Failing what waits */

/* Those that came meanwhile stand behind. */
static void put_back(struct bow__balancer *balancer, struct bow__link *waiting)
{
    bow__list_move(waiting, &balancer->calls.queue);
    bow__list_move(&balancer->calls.queue, waiting);
}

/* A call that no connection took: over, unless its policy says otherwise. */
static void fail_attempt(struct bow__client_call *call, enum bow_code code, const char *message)
{
    struct bow_status status = {.code = code, .message = message, .not_processed = true};
    struct bow__text text;

    if (!bow__call_retry_failed(call, &status, &text)) {
        bow__client_call_fail(call, code, status.message);
    }
}

/* Those that wait now and for no other attempt; a callback may start others, or end some. */
static void fail_fast_calls(struct bow__balancer *balancer, enum bow_code code, const char *message)
{
    struct bow__link waiting;
    struct bow__client_call *call;

    bow__list_init(&waiting);
    for (uint32_t n = atomic_load_explicit(&balancer->calls.n_queued, memory_order_relaxed);
         n > 0 && (call = bow__client_calls_first_queued(&balancer->calls)) != NULL; n--) {
        if (call->waits_for_ready) {
            bow__list_remove(&call->at);
            bow__list_push_back(&waiting, &call->at);
        } else {
            fail_attempt(call, code, message);
        }
    }
    put_back(balancer, &waiting);
}

/* The queue */

static bool is_temporary(int rc)
{
    return rc == -EAGAIN || rc == -EPIPE;
}

static bool find_another(struct bow__balancer *balancer)
{
    for (uint32_t n = balancer->subchannels.n_ready; n > 1; n--) {
        pick_next(balancer);
        if (bow__client_conn_takes_calls(balancer->conn)) {
            return true;
        }
    }
    return false;
}

static struct bow__client_conn *find_further(const struct bow__balancer *balancer)
{
    const struct bow__link *further = &balancer->subchannels.further;

    for (struct bow__link *at = further->next; at != further; at = at->next) {
        struct bow__client_conn *conn =
            BOW__CONTAINER(at, struct bow__subchannel, ready_link)->conn;
        if (bow__client_conn_takes_calls(conn)) {
            return conn;
        }
    }
    return NULL;
}

/* The connection that takes the next call, or NULL. */
static struct bow__client_conn *find_conn(struct bow__balancer *balancer)
{
    if (balancer->conn != NULL &&
        (bow__client_conn_takes_calls(balancer->conn) || find_another(balancer))) {
        return balancer->conn;
    }
    return find_further(balancer);
}

/* A server that has not answered may be none. */
static bool waits_for(const struct bow__client_call *call, const struct bow__client_conn *conn)
{
    return call->waits_for_ready && bow__client_conn_is_candidate(conn);
}

/* For one that has just begun, behind those that wait. Those that wait for a server's first answer
 * are not in its way. */
static struct bow__client_conn *conn_for(struct bow__balancer *balancer,
                                         const struct bow__client_call *call)
{
    bool is_first = bow__list_is_empty(&balancer->calls.queue);

    if (!is_first && (call->waits_for_ready || balancer->calls.n_queued_fast > 0)) {
        return NULL;
    }
    struct bow__client_conn *conn = find_conn(balancer);
    if (conn == NULL || waits_for(call, conn)) {
        return NULL;
    }
    return is_first || bow__client_conn_is_candidate(conn) ? conn : NULL;
}

static int send_in_turn(struct bow__balancer *balancer, struct bow__client_conn *conn,
                        struct bow__client_call *call)
{
    int rc = bow__client_conn_send(conn, call);

    if (rc == 0 && balancer->subchannels.n_ready > 1 && conn == balancer->conn) {
        pick_next(balancer);
    }
    return rc;
}

/* Returns `rc`, which a connection that takes calls has said. */
static int explain_unsent(const struct bow__client_conn *conn, const struct bow__client_call *call,
                          int rc, struct bow__text *reason)
{
    bow__text_printf(reason, "the request of %s cannot be sent to %s: ", call->method->path,
                     conn->subchannel->address->text);
    bow__text_errno(reason, rc);
    if (rc == -EMSGSIZE) {
        bow__text_printf(reason, ": ");
        bow__header_limit_unsent(reason, conn->conn.session);
    }
    return rc;
}

static void send_first(struct bow__balancer *balancer, struct bow__client_conn *conn,
                       struct bow__client_call *call)
{
    struct bow__text reason;

    bow__client_call_unqueue(call);
    int rc = send_in_turn(balancer, conn, call);
    if (rc == 0) {
        return;
    }
    if (is_temporary(rc)) {
        bow__client_call_queue_front(call);
        return;
    }
    call->state = BOW__CLIENT_CALL_POSTED; /* in no list */
    bow__text_clear(&reason);
    (void)explain_unsent(conn, call, rc, &reason);
    bow__client_call_fail(call, bow__code_from_errno(rc), reason.bytes);
}

/* After an error calls go on asking. */
static void request_addresses(struct bow__balancer *balancer)
{
    balancer->subchannels.has_idle = !bow__resolver_watch_want(balancer->names);
    update_state(balancer);
}

static void request_connections(struct bow__balancer *balancer, bool at_once)
{
    balancer->subchannels.has_idle = false;
    for (struct bow__subchannel *at = first_of(balancer); at != NULL;
         at = bow__subchannel_next(at)) {
        bow__subchannel_request_connection(at, at_once);
    }
    if (balancer->subchannels.n_addresses == 0) {
        request_addresses(balancer);
    }
}

/* Calls wait and no connection has a stream for them. One at a time: what it brings is known when
 * its server has answered. */
static void add_connection(struct bow__balancer *balancer)
{
    struct bow__subchannel_list *list = &balancer->subchannels;
    uint32_t n_further = list->n_addresses * (bow__subchannels_each(list) - 1);

    if (list->n_further_in_use == n_further || list->n_further_connecting > 0) {
        return;
    }
    struct bow__subchannel *further = bow__further_find(list);
    if (further != NULL) {
        bow__subchannel_request_connection(further, false);
    }
}

static void connect_for_queue(struct bow__balancer *balancer)
{
    const struct bow__client_call *call = bow__client_calls_first_queued(&balancer->calls);
    struct bow__subchannel_list *list = &balancer->subchannels;

    if (call != NULL && list->n_ready < list->n_addresses) {
        request_connections(balancer, balancer->calls.n_queued_fast > 0 && !has_many(balancer) &&
                                          bow__list_is_empty(&list->further));
    }
    if (call != NULL && list->n_ready > 0) {
        add_connection(balancer);
    }
}

static void on_failed(struct bow__subchannel *subchannel)
{
    struct bow__balancer *balancer = owner_of(subchannel);
    struct bow__text text;

    if (subchannel->is_further) {
        connect_for_queue(balancer); /* elsewhere */
    }
    if (balancer->state != BOW__CONNECTIVITY_BACKING_OFF) {
        return;
    }
    bow__text_clear(&text);
    bow__balancer_describe_failures(balancer, &text);
    fail_fast_calls(balancer, BOW_UNAVAILABLE, text.bytes);
}

/* What can be: of those that wait for a server's first answer the others need not. */
static void send_queued(struct bow__balancer *balancer)
{
    struct bow__client_call *call;
    struct bow__client_conn *conn;
    struct bow__link waiting;

    bow__list_init(&waiting);
    while ((call = bow__client_calls_first_queued(&balancer->calls)) != NULL &&
           (conn = find_conn(balancer)) != NULL &&
           (!waits_for(call, conn) || balancer->calls.n_queued_fast > 0)) {
        if (waits_for(call, conn)) {
            bow__list_remove(&call->at);
            bow__list_push_back(&waiting, &call->at);
        } else {
            send_first(balancer, conn, call);
        }
    }
    put_back(balancer, &waiting);
    connect_for_queue(balancer);
}

static void on_change(struct bow__subchannel *subchannel)
{
    send_queued(owner_of(subchannel));
}

/* Elsewhere if it can be, and before the others. */
static void requeue(struct bow__client_call *call, bool counts)
{
    struct bow__balancer *balancer = bow__balancer_of(call);

    if (balancer->subchannels.n_ready > 1 && &balancer->conn->conn == call->conn) {
        pick_next(balancer);
    }
    bow__list_remove(&call->at);
    bow__client_call_part(call);
    call->retried |= counts;
    if (call->stream != NULL) {
        bow__stream_rewind(call->stream);
    }
    bow__client_call_queue_front(call);
    send_queued(balancer);
}

/* Right after failed attempts. */
static bool is_too_early(const struct bow__balancer *balancer)
{
    bool early = balancer->state == BOW__CONNECTIVITY_BACKING_OFF;

    for (const struct bow__subchannel *at = first_of(balancer); at != NULL && early;
         at = bow__subchannel_next(at)) {
        early = bow__subchannel_is_too_early(at);
    }
    return early;
}

static uint64_t next_try_of(const struct bow__balancer *balancer)
{
    uint64_t next = BOW_NEVER;

    for (const struct bow__subchannel *at = first_of(balancer); at != NULL;
         at = bow__subchannel_next(at)) {
        next = bow__time_min(next, at->next_try_ns);
    }
    return next;
}

/* Returns 0 when the call rests until its next attempt. */
static int refuse_backing_off(struct bow__balancer *balancer, struct bow__client_call *call,
                              struct bow__text *reason)
{
    struct bow_status status = {.code = BOW_UNAVAILABLE, .not_processed = true};
    struct bow__text text;
    uint64_t now = now_of(balancer);

    bow__balancer_describe_failures(balancer, reason);
    if (balancer->subchannels.n_addresses == 0) {
        return -ENOTCONN;
    }
    bow__text_printf(reason, "; that was ");
    bow__text_duration(reason, now - bow__balancer_last_failed(balancer)->failed_at_ns);
    bow__text_printf(reason, " ago, and ");
    if (next_try_of(balancer) == BOW_NEVER) {
        bow__text_printf(reason, "the client waits to be told otherwise");
    } else {
        bow__text_printf(reason, "the next try is due in ");
        bow__text_duration(reason, bow__time_left(next_try_of(balancer), now));
    }
    status.message = reason->bytes;
    if (bow__call_retry_failed(call, &status, &text)) {
        return 0;
    }
    if (status.message == text.bytes) {
        *reason = text;
    }
    return -ENOTCONN;
}

int bow__balancer_refuse_queued(const struct bow__balancer *balancer, struct bow__text *reason)
{
    bow__text_printf(reason, "as many calls wait for ");
    bow__target_describe(&config_of(balancer)->target, reason);
    bow__text_printf(reason, " as max_queued_calls (%u) allows",
                     config_of(balancer)->options.max_queued_calls);
    return -EAGAIN;
}

/* Returns 0 or -EAGAIN. One call may be larger than all that may wait. */
static int check_queue(const struct bow__balancer *balancer, const struct bow__client_call *call,
                       struct bow__text *reason)
{
    const struct bow_client_options *options = &config_of(balancer)->options;
    unsigned n = atomic_load_explicit(&balancer->calls.n_queued, memory_order_relaxed);
    bool many = n >= options->max_queued_calls;

    if (!many && (n == 0 || balancer->calls.queued_bytes + bow__client_call_bytes(call) <=
                                options->max_queued_bytes)) {
        return 0;
    }
    if (many) {
        return bow__balancer_refuse_queued(balancer, reason);
    }
    bow__text_printf(reason, "%u calls wait for ", n);
    bow__target_describe(&config_of(balancer)->target, reason);
    bow__text_printf(
        reason, " already, of %zu bytes, and another %zu are more than %zu (max_queued_bytes)",
        balancer->calls.queued_bytes, bow__client_call_bytes(call), options->max_queued_bytes);
    return -EAGAIN;
}

/* A server takes calls, and this one not now. */
static void count_without_stream(struct bow__balancer *balancer)
{
    if (bow__balancer_lacks_streams(balancer)) {
        balancer->calls.counters.now.calls_without_stream++;
        bow__counters_touch(&balancer->calls.counters);
    }
}

int bow__balancer_submit(struct bow__balancer *balancer, struct bow__client_call *call,
                         struct bow__text *reason)
{
    if (balancer->calls.closing) {
        return -ESHUTDOWN;
    }
    if (balancer->subchannels.has_idle) {
        request_connections(balancer, false);
    }
    struct bow__client_conn *conn = conn_for(balancer, call);
    if (conn != NULL) {
        int sent = send_in_turn(balancer, conn, call);
        if (sent == 0) {
            return 0;
        }
        if (!is_temporary(sent)) {
            return explain_unsent(conn, call, sent, reason);
        }
    }
    if (!call->waits_for_ready && is_too_early(balancer)) {
        return refuse_backing_off(balancer, call, reason);
    }
    int rc = check_queue(balancer, call, reason);
    if (rc < 0) {
        return rc;
    }
    bow__client_call_queue_back(call);
    count_without_stream(balancer);
    connect_for_queue(balancer);
    return 0;
}

/* Its completion may run in here, for nobody has just begun it. */
static void resubmit(struct bow__client_call *call)
{
    struct bow__text reason;

    bow__text_clear(&reason);
    int rc = bow__balancer_submit(bow__balancer_of(call), call, &reason);
    if (rc == -EAGAIN) {
        bow__client_call_count_refused(call);
    }
    if (rc < 0) {
        enum bow_code code = rc == -ENOTCONN ? BOW_UNAVAILABLE : bow__code_from_errno(rc);
        bow__client_call_fail(call, code,
                              reason.len > 0 ? reason.bytes : "the request cannot be sent again");
    }
}

/* Names */

/* One that is wrong changes nothing: the last good one stays. */
static void take_service_config(struct bow__balancer *balancer, const char *json)
{
    struct bow_context *context = config_of(balancer)->context;
    struct bow__text reason;

    bow__text_clear(&reason);
    if (bow__retry_config_update(&balancer->calls.retries, json, &reason) < 0) {
        bow__log(context, BOW_LOG_WARNING, "client of %s: of its resolver's service config: %s",
                 config_of(balancer)->target.text, reason.bytes);
    }
}

static int on_set(void *owner, const struct bow__address_set *said)
{
    struct bow__balancer *balancer = owner;
    struct bow__subchannel_list *list = &balancer->subchannels;
    /* What idles goes on to do so; the first set is there for a call. */
    bool is_in_use = list->n_addresses == 0 || !bow__list_is_empty(&balancer->calls.queue) ||
                     list->n_in[BOW__CONNECTIVITY_CONNECTING] > 0 || list->n_ready > 0;

    int rc = bow__subchannel_set_update(&balancer->set, said);
    if (rc < 0) {
        return rc;
    }
    take_service_config(balancer, said->service_config);
    if (is_in_use) {
        request_connections(balancer, false);
    } else {
        list->has_idle = true;
    }
    update_state(balancer);
    return 0;
}

/* An error is no reason to leave servers that are there. */
static void on_unresolved(void *owner)
{
    struct bow__balancer *balancer = owner;
    struct bow__text text;

    if (balancer->subchannels.n_addresses > 0) {
        return;
    }
    balancer->subchannels.has_idle = true;
    update_state(balancer);
    bow__text_clear(&text);
    bow__balancer_describe_failures(balancer, &text);
    fail_fast_calls(balancer, BOW_UNAVAILABLE, text.bytes);
}

/* The end */

static bool has_attempt(const struct bow__balancer *balancer)
{
    bool has = bow__subchannel_set_has_attempt(&balancer->set);

    for (const struct bow__subchannel *at = first_of(balancer); at != NULL && !has;
         at = bow__subchannel_next(at)) {
        for (uint32_t i = 0; i < bow__subchannels_each(at->list) && !has; i++) {
            has = at[i].connect != NULL;
        }
    }
    return has;
}

static void check_closed(struct bow__balancer *balancer)
{
    if (!balancer->calls.closing || balancer->calls.n_calls > 0 ||
        !bow__list_is_empty(&balancer->subchannels.conns) || has_attempt(balancer) ||
        bow__counters_is_posted(&balancer->calls.counters)) {
        return;
    }
    bow__counters_publish(&balancer->calls.counters);
    bow__loop_compression_stop(&balancer->calls.compression);
    if (balancer->opened) {
        bow_loop_remove_hook(balancer->calls.loop, &balancer->hook);
        balancer->opened = false;
    }
    balancer->ops->on_settled(balancer);
}

static void fail_all(struct bow__balancer *balancer, enum bow_code code, const char *message)
{
    struct bow__client_call *call;

    while ((call = bow__client_calls_first_queued(&balancer->calls)) != NULL) {
        bow__client_call_fail(call, code, message);
    }
    while (!bow__list_is_empty(&balancer->calls.resting)) {
        bow__client_call_fail(
            BOW__CONTAINER(balancer->calls.resting.next, struct bow__client_call, at), code,
            message);
    }
    while (!bow__list_is_empty(&balancer->calls.held)) {
        bow__client_call_fail(
            BOW__CONTAINER(balancer->calls.held.next, struct bow__client_call, at), code, message);
    }
    while (!bow__list_is_empty(&balancer->calls.open)) {
        call = BOW__CONTAINER(balancer->calls.open.next, struct bow__client_call, at);
        bow__client_call_abandon(call, BOW_CANCELLED);
        bow__client_call_fail(call, code, message);
    }
}

/* Nothing is connected to or resolved any more. */
static void close_subchannels(struct bow__balancer *balancer)
{
    if (balancer->names != NULL) {
        bow__resolver_watch_stop(balancer->names);
    }
    bow__subchannel_set_stop(&balancer->set);
    for (struct bow__subchannel *at = first_of(balancer); at != NULL;
         at = bow__subchannel_next(at)) {
        for (uint32_t i = 0; i < bow__subchannels_each(at->list); i++) {
            bow__subchannel_close(&at[i]);
        }
    }
}

/* Callbacks run in here, so the balancer is held open by a call that is none. */
static void close_balancer(struct bow__balancer *balancer, enum bow_code code, const char *message)
{
    struct bow__link *next;

    balancer->calls.closing = true;
    balancer->calls.n_calls++;
    show_state(balancer);
    close_subchannels(balancer);
    fail_all(balancer, code, message);
    for (struct bow__link *at = balancer->subchannels.conns.next;
         at != &balancer->subchannels.conns; at = next) {
        struct bow__client_conn *conn = BOW__CONTAINER(at, struct bow__client_conn, at);
        next = at->next;
        bow__conn_goaway(&conn->conn, "the client is done");
        bow__conn_close(&conn->conn, "the client was closed", GOAWAY_FLUSH_NS);
    }
    balancer->calls.n_calls--;
    check_closed(balancer);
}

static int close_task(void *user)
{
    struct bow__balancer *balancer = user;

    close_balancer(balancer, BOW_CANCELLED, "the client was closed");
    balancer->ops->on_close_done(balancer);
    return 0;
}

static void on_loop_shutdown(struct bow_loop_hook *hook)
{
    struct bow__balancer *balancer = BOW__CONTAINER(hook, struct bow__balancer, hook);

    balancer->opened = false;
    close_balancer(balancer, BOW_UNAVAILABLE, "the client's loop has shut down");
}

static void check_table_closed(struct bow__client_calls *calls)
{
    check_closed(BOW__CONTAINER(calls, struct bow__balancer, calls));
}

/* Life */

void bow__balancer_init(struct bow__balancer *balancer, struct bow_client *client,
                        const struct bow__client_config *config, struct bow__call_ids *ids,
                        const struct bow__balancer_ops *ops, struct bow_loop *loop,
                        struct bow__subchannel *subchannels, struct bow_resolver_watch *names)
{
    static const struct bow__resolver_watch_ops names_ops = {
        .on_set = on_set,
        .on_error = on_unresolved,
    };
    static const struct bow__client_calls_ops calls_ops = {
        .requeue = requeue,
        .resubmit = resubmit,
        .check_closed = check_table_closed,
    };
    static const struct bow__subchannel_ops subchannel_ops = {
        .on_state = on_state,
        .on_failed = on_failed,
        .on_change = on_change,
        .on_silence = on_silence,
        .on_doubt = on_doubt,
        .on_drained = on_drained,
    };
    const struct bow__compression_options compression = {
        .compression = config->options.compression,
        .threshold_bytes = config->options.compression_threshold_bytes,
        .level = config->options.compression_level,
        .max_message_bytes = config->options.max_message_bytes,
    };

    balancer->client = client;
    balancer->ops = ops;
    balancer->settled = true;
    balancer->state = BOW__CONNECTIVITY_IDLE;
    balancer->calls.context = config->context;
    bow__loop_hold(loop);
    balancer->calls.loop = loop;
    balancer->calls.ids = ids;
    balancer->calls.ops = &calls_ops;
    balancer->calls.max_resting = config->options.max_queued_calls;
    balancer->calls.max_held_bytes = config->options.max_queued_bytes;
    bow__client_calls_init(&balancer->calls, &compression, &config->retry);
    balancer->subchannels.calls = &balancer->calls;
    balancer->subchannels.config = config;
    balancer->subchannels.ops = &subchannel_ops;
    bow__subchannel_list_init(&balancer->subchannels);
    bow__subchannel_list_add_target(&balancer->subchannels, subchannels);
    bow__subchannel_set_init(&balancer->set, &balancer->subchannels);
    balancer->names = names;
    if (names != NULL) {
        bow__resolver_watch_bind(names, loop, &names_ops, balancer);
        balancer->subchannels.has_idle = true; /* the first call asks for addresses */
    }
    balancer->hook.fn = on_loop_shutdown;
    bow_task_init(&balancer->close_task, "close client", close_task, balancer);
    bow_task_init(&balancer->state_task, "client state", notify_task, balancer);
}

void bow__balancer_fini(struct bow__balancer *balancer)
{
    bow__subchannel_set_fini(&balancer->set);
    bow__resolver_watch_free(balancer->names);
    bow__client_calls_fini(&balancer->calls);
    bow__loop_release(balancer->calls.loop);
}
