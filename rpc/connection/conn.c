/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Bytes between a channel and a session, and the connection's times: until when a client has to
 * show itself (first_frame_timeout_ns), a write that is stalled, heartbeats, age; and when it does
 * not read, for others have their turn or the peer does not take what waits. Knows no calls:
 * events go to the owner.
 */

#include "rpc/connection/conn.h"
#include "base/clock.h"
#include "base/log.h"
#include "rpc/connection/detect.h"
#include "rpc/connection/end_reason.h"
#include "rpc/connection/http2_built.h"
#include "rpc/core/errors.h"
#include "rpc/http1/session.h"
#include "rpc/http2/session.h"
#include "rpc/native/session.h"
#include "transport/address/address.h"
#include "transport/channel/channel.h"
#include <bowline/limits.h>
#include <bowline/server.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* How long a connection that ends badly may take to tell its peer why. */
#define LAST_WORDS_NS UINT64_C(1000000000)

/* What is read in several turns and has come at once: as much as a channel reads in one. */
#define AT_ONCE_BYTES ((uint32_t)256 << 10)

static struct bow__conn *conn_of(struct bow_handler *handler)
{
    return BOW__CONTAINER(handler, struct bow__conn, handler);
}

static uint64_t now_of(const struct bow__conn *conn)
{
    return bow_loop_now(conn->loop);
}

/* The end */

static void enter_session(struct bow__conn *conn)
{
    conn->in_session = true;
    conn->batch_ns = now_of(conn);
    conn->session->work.now_ns = conn->batch_ns;
}

static void end_batch(struct bow__conn *conn)
{
    conn->in_session = false;
    if (conn->ops->on_batch_end != NULL) {
        conn->ops->on_batch_end(conn);
    }
    if (conn->touched) {
        conn->touched = false;
        bow__conn_touch_now(conn);
    }
}

static void end(struct bow__conn *conn)
{
    struct bow_status why = BOW_STATUS_OK_INIT;
    struct bow__text text;

    bow_timer_stop(&conn->timer);
    bow__list_remove(&conn->settle.link);
    conn->timer_at = BOW_NEVER;
    bow__conn_describe_end(conn, &text, &why);
    if (conn->server && conn->session == NULL && *bow__conn_security_failure(conn) != '\0') {
        bow__log(conn->context, BOW_LOG_DEBUG, "client %s: %s", bow_channel_peer(conn->channel),
                 bow__conn_security_failure(conn));
    }
    conn->ops->on_down(conn, &why);
    if (conn->session != NULL) {
        enter_session(conn);
        conn->session->ops->fail(conn->session, &why);
        end_batch(conn);
        bow__work_go_on(&conn->session->work);
        conn->session->ops->free(conn->session);
        conn->session = NULL;
    }
    conn->counters->now.connections_closed++;
    bow__counters_touch(conn->counters);
    conn->ops->on_gone(conn);
}

/* After feed or on_time: what waited for their return. False: the conn is gone. */
static bool leave_session(struct bow__conn *conn)
{
    end_batch(conn);
    if (conn->inactive) {
        conn->inactive = false;
        end(conn);
        return false;
    }
    return true;
}

static void on_inactive(struct bow_handler *handler, int error)
{
    struct bow__conn *conn = conn_of(handler);

    conn->closing = true;
    conn->error = error;
    if (conn->in_session) {
        conn->inactive = true;
        return;
    }
    end(conn);
}

/* It ends by itself, so it is no pause: what has come by then is read also when the peer is lost
 * meanwhile. */
static void set_rest(struct bow__conn *conn, bool rests)
{
    if (conn->rests == rests) {
        return;
    }
    conn->rests = rests;
    if (rests) {
        bow__channel_hold_read(conn->channel);
    } else {
        bow__channel_release_read(conn->channel);
    }
}

void bow__conn_close(struct bow__conn *conn, const char *reason, uint64_t timeout_ns)
{
    if (conn->closing) {
        return;
    }
    conn->closing = true;
    conn->close_reason = reason;
    set_rest(conn, false); /* nothing is made of what comes now */
    bow_channel_close_after_flush(conn->channel, timeout_ns);
}

/* The address as the peer wrote it may be another one, but this is what the server's own log and
 * its operators know. */
static void name_server(const struct bow__conn *conn, struct bow__text *text)
{
    char address[BOW__ADDRESS_TEXT_BYTES];

    bool is_known = bow__channel_local(conn->channel, address) == 0;
    bow__text_printf(text, "%s", is_known || conn->listening == NULL ? address : conn->listening);
}

/* What the session says last is sent by what closes the channel. */
void bow__conn_cut(struct bow__conn *conn, const char *reason, uint64_t timeout_ns)
{
    struct bow__text text;
    struct bow_status status = {.code = BOW_UNAVAILABLE, .message = text.bytes};

    if (conn->closing) {
        bow_channel_close_after_flush(conn->channel, timeout_ns); /* no later than that */
        return;
    }
    if (conn->server && conn->session != NULL) {
        bow__text_clear(&text);
        bow__text_printf(&text, "server ");
        name_server(conn, &text);
        bow__text_printf(&text, ": %s", reason);
        enter_session(conn);
        conn->session->ops->leave(conn->session);
        conn->session->ops->cut(conn->session, &status);
        if (!leave_session(conn)) {
            return;
        }
    }
    bow__conn_close(conn, reason, timeout_ns);
}

/* When it came */

/* What waits for the next turn has come with what was fed in the last, also what is in the socket
 * by then: a call does not begin to count its deadline with its connection's turn. Behind as much
 * as is read at once, and after a turn in which nothing waited, it comes just now. */
static bool has_waited(const struct bow__conn *conn)
{
    return conn->n_since > 0 && conn->n_since < AT_ONCE_BYTES &&
           (uint32_t)bow__loop_n_turns(conn->loop) - conn->waited_turn <= 1;
}

bool bow__conn_may_hold(const struct bow__conn *conn, uint64_t by_ns)
{
    return conn->session != NULL && !conn->closing && has_waited(conn) &&
           conn->session->work.came_ns <= by_ns;
}

/* Messages that wait have this turn, and what is to be read waits on. */
static void give_turn_to_waiters(struct bow__conn *conn)
{
    conn->waiters_are_next = false;
    conn->waiters_were_last = true;
    if (has_waited(conn)) {
        conn->waited_turn = (uint32_t)bow__loop_n_turns(conn->loop);
    }
}

/* Times */

/* When the peer has taken nothing for too long. Heartbeats do not tell: what it sends counts as
 * life, and while we do not read for its sake they stand still. */
static uint64_t stalled_at(const struct bow__conn *conn)
{
    uint64_t since = bow__channel_stalled_since(conn->channel);

    return since == 0 ? BOW_NEVER : bow__time_add(since, conn->write_timeout_ns);
}

/* Messages that have come wait for it as well. */
static uint64_t next_turn_at(const struct bow__conn *conn)
{
    return conn->rest_until == BOW_NEVER && !bow__list_is_empty(&conn->session->work.waiting)
               ? now_of(conn)
               : conn->rest_until;
}

static void watch_times(struct bow__conn *conn)
{
    uint64_t at = conn->first_frame_at;

    if (conn->session != NULL) {
        if (conn->session->is_peer_unattended) {
            bow__age_bound_idle(&conn->age, BOW_LIMIT_UNATTENDED_NS);
        }
        at = bow__time_min(at, stalled_at(conn));
        at = bow__time_min(at, conn->session->ops->next_time(conn->session));
        at = bow__time_min(at, next_turn_at(conn));
        at = bow__time_min(at, conn->age.next_ns);
    }

    /* A timer that fires too early looks again; moving it for each batch would cost more. */
    if (at < conn->timer_at) {
        conn->timer_at = at;
        bow_timer_start_at(&conn->timer, at);
    }
}

static void count_heartbeats(struct bow__conn *conn)
{
    uint64_t sent = conn->session->heartbeats_sent;

    conn->counters->now.heartbeats_sent += sent - conn->heartbeats_sent;
    conn->heartbeats_sent = sent;
}

static void count_refused(struct bow__conn *conn)
{
    conn->counters->now.calls_refused_connection += conn->session->calls_refused;
    conn->counters->now.requests_refused += conn->session->requests_refused;
    conn->session->calls_refused = 0;
    conn->session->requests_refused = 0;
}

static void log_failure(const struct bow__conn *conn)
{
    bow__log(conn->context, BOW_LOG_DEBUG, "%s %s: %s", conn->server ? "client" : "server",
             bow_channel_peer(conn->channel), conn->session->failure.bytes);
}

/* The session is broken; what it has to say to the peer is ready to drain. */
static void on_broken(struct bow__conn *conn)
{
    bool is_lost = conn->session->heartbeats_lost > 0;

    count_refused(conn);
    if (is_lost) {
        conn->counters->now.heartbeats_lost++;
    } else {
        conn->counters->now.protocol_errors++;
    }
    log_failure(conn);
    if (is_lost) {
        /* Nobody is there to hear last words, and the calls need not wait for them. */
        conn->closing = true;
        bow_channel_close(conn->channel, -ETIMEDOUT);
        return;
    }
    bow__conn_close(conn, NULL, LAST_WORDS_NS);
}

void bow__conn_drop(struct bow__conn *conn, const struct bow__text *why)
{
    conn->session->failure = *why;
    bow__counters_touch(conn->counters);
    log_failure(conn);
    conn->closing = true;
    bow_channel_close(conn->channel, -ETIMEDOUT);
}

static void on_stalled(struct bow__conn *conn)
{
    struct bow__text why;

    bow__text_clear(&why);
    bow__text_printf(&why, "the peer took nothing of what was sent to it for ");
    bow__text_duration(&why, conn->write_timeout_ns);
    bow__text_printf(&why, " (write_timeout_ns)");
    conn->counters->now.connections_stalled++;
    bow__conn_drop(conn, &why);
}

static const char *describe_idle(const struct bow__conn *conn)
{
    return conn->session->is_peer_unattended && conn->age.idle_ns == BOW_LIMIT_UNATTENDED_NS
               ? "there was no call on the connection for 30 min (BOW_LIMIT_UNATTENDED_NS), and "
                 "its peer had said that nobody attends to it"
               : "there was no call on the connection for its idle_timeout_ns";
}

/* It keeps its socket alive, so only what its calls wait with tells. */
static void on_age_stalled(struct bow__conn *conn)
{
    conn->counters->now.connections_stalled++;
    bow__log(conn->context, BOW_LOG_DEBUG,
             "client %s gave no credit for its replies in time (write_timeout_ns), and the "
             "connection is to end",
             bow_channel_peer(conn->channel));
    bow__conn_cut(conn,
                  "the connection was to end, and its client took nothing of the replies that wait "
                  "for it for write_timeout_ns",
                  LAST_WORDS_NS);
}

static struct bow__age_load load_of(const struct bow__conn *conn)
{
    struct bow__session_rest rest = {.n_calls = bow__conn_n_calls(conn)};

    if (conn->age.is_leaving) {
        rest = conn->session->ops->rest(conn->session);
    }
    return (struct bow__age_load){
        .n_calls = rest.n_calls,
        .n_bytes = rest.n_bytes,
        .is_blocked = conn->server && bow__channel_stalled_since(conn->channel) != 0,
        .is_unattended = conn->session->is_peer_unattended,
    };
}

static void on_aged(struct bow__conn *conn, uint64_t now)
{
    struct bow_metrics *counts = &conn->counters->now;
    struct bow__age_load load = load_of(conn);

    switch (bow__age_look(&conn->age, now, &load)) {
    case BOW__AGE_IDLE:
        conn->ops->on_aged(conn, describe_idle(conn));
        counts->connections_idle += conn->age.is_leaving;
        break;
    case BOW__AGE_OLD:
        conn->ops->on_aged(conn, "the connection has reached its max_age_ns");
        counts->connections_aged += conn->age.is_leaving;
        break;
    case BOW__AGE_LAST_WORD:
        conn->session->ops->leave(conn->session);
        break;
    case BOW__AGE_CUT:
        /* With calls on it that is no client's connection: those have no such time. */
        bow__conn_cut(conn,
                      "the connection had reached its max_age_ns, and its max_age_grace_ns is over",
                      LAST_WORDS_NS);
        break;
    case BOW__AGE_STALLED:
        on_age_stalled(conn);
        break;
    case BOW__AGE_OVER:
        bow__conn_close(conn, "it was to end, and nothing was left on it", LAST_WORDS_NS);
        break;
    case BOW__AGE_NOTHING:
        break;
    }
}

static void on_timer(struct bow_timer *timer, void *user)
{
    struct bow__conn *conn = user;
    uint64_t now = now_of(conn);

    (void)timer;
    conn->timer_at = BOW_NEVER;
    if (conn->first_frame_at <= now) {
        conn->first_frame_at = BOW_NEVER;
        conn->counters->now.first_frame_timeouts++;
        bow__log(conn->context, BOW_LOG_DEBUG,
                 "client %s sent no frame in time (first_frame_timeout_ns)",
                 bow_channel_peer(conn->channel));
        bow_channel_close(conn->channel, -ETIMEDOUT);
        return;
    }
    if (conn->session == NULL || conn->closing) {
        return;
    }
    if (stalled_at(conn) <= now) {
        on_stalled(conn);
        return;
    }
    if (conn->session->ops->next_time(conn->session) <= now) {
        enter_session(conn);
        int rc = conn->session->ops->on_time(conn->session, now);
        if (!leave_session(conn)) {
            return;
        }
        count_heartbeats(conn);
        if (rc < 0) {
            on_broken(conn);
            return;
        }
    }
    if (conn->age.next_ns <= now) {
        on_aged(conn, now);
        if (conn->session == NULL) {
            return;
        }
    }
    if (conn->waiters_are_next) {
        give_turn_to_waiters(conn);
        bow__work_go_on(&conn->session->work);
    } else if (conn->rest_until == BOW_NEVER) {
        bow__work_go_on(&conn->session->work);
    }
    bow__conn_touch(conn);
    watch_times(conn);
}

/* Work */

/* The peer asks for work in vain, too often or too much. */
static void on_hostile(struct bow__conn *conn)
{
    struct bow_status status = BOW_STATUS_OK_INIT;
    struct bow__text why;

    bow__text_clear(&why);
    if (bow__work_is_vain(&conn->session->work)) {
        bow__text_printf(&why,
                         "messages that cannot be decoded expand to more than "
                         "BOW_LIMIT_VAIN_BYTES (%zu)",
                         BOW_LIMIT_VAIN_BYTES);
    } else {
        bow__text_printf(&why,
                         "more messages in a second that cannot be decoded than "
                         "BOW_LIMIT_UNDECODABLE_PER_SECOND (%u)",
                         BOW_LIMIT_UNDECODABLE_PER_SECOND);
    }
    status.code = BOW_RESOURCE_EXHAUSTED;
    status.message = why.bytes;
    conn->session->ops->condemn(conn->session, &status);
    on_broken(conn);
}

/* Output */

/* Unless the peer reads too little, or costs so much that others are to have their turn. */
static void update_reading(struct bow__conn *conn)
{
    bool clogged = conn->session->ops->is_clogged(conn->session);
    bool rests = conn->rest_until != BOW_NEVER;

    if (conn->paused != (clogged || rests)) {
        conn->paused = clogged || rests;
        conn->session->ops->set_reading(conn->session, !conn->paused, now_of(conn));
    }
    set_rest(conn, rests);
    if (clogged) {
        bow_channel_pause_read(conn->channel);
    } else {
        bow_channel_resume_read(conn->channel);
    }
}

/* In a phase of its own of the loop, so that no stream's owner is called back from inside what it
 * does. False: the conn is gone. */
static bool tell_settled(struct bow__conn *conn)
{
    const struct bow__session_ops *ops = conn->session->ops;
    uint64_t key = 0;
    void *stream;

    enter_session(conn);
    while ((stream = ops->take_writable(conn->session, &key)) != NULL) {
        conn->ops->events->on_writable(conn, key, stream);
    }
    if (conn->ops->on_settled != NULL) {
        conn->ops->on_settled(conn);
    }
    return leave_session(conn);
}

/* The rest is over. Where what is read fills each turn, those that wait have every other one. */
static void end_rest(struct bow__conn *conn)
{
    bool any = !bow__list_is_empty(&conn->session->work.waiting);

    conn->waiters_are_next = any && !conn->waiters_were_last;
    conn->waiters_were_last = false;
    if (!conn->waiters_are_next) {
        conn->rest_until = BOW_NEVER;
    }
}

static void go_on_reading(struct bow__conn *conn)
{
    struct bow__work *work = &conn->session->work;

    if (!conn->waiters_are_next && conn->rest_until <= now_of(conn)) {
        work->now_ns = now_of(conn);
        uint64_t at = bow__work_next_turn(work);
        if (at > work->now_ns) {
            conn->rest_until = at;
        } else {
            end_rest(conn);
        }
    }
    bow__work_end_turn(work);
    update_reading(conn);
}

/* After the session has taken bytes in, or streams messages that had waited. */
static void look_at_work(struct bow__conn *conn)
{
    if (conn->closing || !bow__work_is_enough(&conn->session->work)) {
        return; /* one that closes reads on, to hear its peer's end */
    }
    if (bow__work_is_hostile(&conn->session->work)) {
        on_hostile(conn);
        return;
    }
    if (conn->rest_until == BOW_NEVER) {
        conn->rest_until = conn->batch_ns;
        update_reading(conn);
    }
}

/* After the channel has sent what it could. */
static void settle(struct bow__deferred *deferred)
{
    struct bow__conn *conn = BOW__CONTAINER(deferred, struct bow__conn, settle);

    if (conn->session == NULL || conn->closing) {
        return;
    }
    if (!tell_settled(conn) || conn->closing) {
        return;
    }
    if (conn->session->ops->is_done(conn->session)) {
        /* Replies may still be on their way through TLS and the kernel. */
        bow__conn_close(conn, "it was closed in good order",
                        conn->server ? conn->write_timeout_ns : LAST_WORDS_NS);
        return;
    }
    look_at_work(conn);
    if (conn->closing) {
        return;
    }
    go_on_reading(conn);
    watch_times(conn);
}

void bow__conn_touch_now(struct bow__conn *conn)
{
    if (conn->session != NULL && !conn->closing) {
        /* In this order: the channel's phase runs before ours. */
        bow_channel_flush(conn->channel);
        bow__loop_defer_flush(conn->loop, &conn->settle);
        bow__counters_touch(conn->counters);
    }
}

static int on_drain(struct bow_handler *handler, struct iovec *pieces, int max)
{
    struct bow__conn *conn = conn_of(handler);

    return conn->session != NULL ? conn->session->ops->drain(conn->session, pieces, max) : 0;
}

static void on_sent(struct bow_handler *handler, size_t n)
{
    struct bow__conn *conn = conn_of(handler);

    conn->counters->now.bytes_sent += n;
    conn->session->ops->sent(conn->session, n);
    bow__loop_defer_flush(conn->loop, &conn->settle);
}

/* A client that has just connected may have sent calls by now, and is to be told of them what it
 * can't know when its connection is reset. */
static void hear_client(struct bow__conn *conn)
{
    uint64_t until = bow__time_add(now_of(conn), LAST_WORDS_NS);

    conn->first_frame_at = bow__time_min(conn->first_frame_at, until);
    watch_times(conn);
}

void bow__conn_goaway(struct bow__conn *conn, const char *reason)
{
    struct bow_status status = BOW_STATUS_OK_INIT;

    if (conn->session == NULL && conn->server && !conn->closing) {
        hear_client(conn);
        return;
    }
    if (conn->session == NULL) {
        bow__conn_close(conn, reason, 0);
        return;
    }
    status.code = BOW_UNAVAILABLE;
    status.message = reason;
    conn->session->ops->goaway(conn->session, &status);
    bow__age_leave(&conn->age, now_of(conn), conn->write_timeout_ns);
    bow__conn_touch(conn);
}

/* Input */

static int new_session(enum bow__protocol protocol, const struct bow__session_options *options,
                       struct bow__session **ret_session)
{
    switch (protocol) {
    case BOW__PROTOCOL_NATIVE:
        return bow__native_session_new(options, ret_session);
    case BOW__PROTOCOL_HTTP2:
        return bow__http2_session_new(options, ret_session);
    case BOW__PROTOCOL_HTTP1:
        return bow__http1_session_new(options, ret_session);
    case BOW__PROTOCOL_UNDECIDED:
    case BOW__PROTOCOL_UNKNOWN:
        break;
    }
    return -ENOTSUP;
}

static int start_session(struct bow__conn *conn, enum bow__protocol protocol)
{
    struct bow__session_options options = {
        .context = conn->context,
        .pool = bow__loop_pool(conn->loop),
        .events = conn->ops->events,
        .owner = conn,
        .server = conn->server,
        .protocols = conn->protocols,
        .heartbeat_ns = BOW_NEVER,
        .heartbeat_timeout_ns = BOW_NEVER,
        .now_ns = now_of(conn),
    };

    conn->ops->configure(conn, &options);
    int rc = new_session(protocol, &options, &conn->session);
    if (rc < 0) {
        return rc;
    }
    conn->up = true;
    conn->ops->on_up(conn);
    bow__conn_touch(conn);
    return 0;
}

static void refuse_opening(struct bow__conn *conn, const struct bow_buf *bytes, bool http1)
{
    static const char answer[] = "HTTP/1.1 400 Bad Request\r\n"
                                 "Content-Type: text/plain; charset=utf-8\r\n"
                                 "Content-Length: 46\r\n"
                                 "Connection: close\r\n"
                                 "\r\n"
                                 "This port speaks Bowline and gRPC, not HTTP/1\n";
    struct bow_buf buf = bow_buf_borrow(answer, sizeof(answer) - 1);
    struct bow__text text;

    conn->counters->now.bad_prefaces++;
    bow__counters_touch(conn->counters);
    bow__text_clear(&text);
    bow__text_escape(&text, (struct bow_slice){bytes->data, bytes->len}, 64);
    bow__log(conn->context, BOW_LOG_DEBUG, "client %s speaks no protocol of this port: \"%s\"",
             bow_channel_peer(conn->channel), text.bytes);
    if (http1 && bow_channel_write(conn->channel, &buf, NULL, NULL) == 0) {
        bow__conn_close(conn, "it spoke HTTP/1", LAST_WORDS_NS);
        return;
    }
    conn->closing = true;
    bow_channel_close(conn->channel, -EPROTO);
}

static bool is_spoken(const struct bow__conn *conn, enum bow__protocol protocol)
{
    const uint32_t web = BOW_PROTOCOL_CONNECT | BOW_PROTOCOL_GRPC_WEB;

    switch (protocol) {
    case BOW__PROTOCOL_NATIVE:
        return (conn->protocols & BOW_PROTOCOL_NATIVE) != 0;
    case BOW__PROTOCOL_HTTP2:
        return bow__http2_is_built() && (conn->protocols & (BOW_PROTOCOL_GRPC | web)) != 0;
    case BOW__PROTOCOL_HTTP1:
        return (conn->protocols & web) != 0;
    case BOW__PROTOCOL_UNDECIDED:
    case BOW__PROTOCOL_UNKNOWN:
        break;
    }
    return false;
}

/* Returns whether there is a session to feed. */
static bool detect(struct bow__conn *conn, const struct bow_buf *bytes)
{
    enum bow__protocol protocol = bow__detect((struct bow_slice){bytes->data, bytes->len});

    if (protocol == BOW__PROTOCOL_UNDECIDED) {
        return false;
    }
    if (!is_spoken(conn, protocol)) {
        refuse_opening(conn, bytes, protocol == BOW__PROTOCOL_HTTP1);
        return false;
    }
    int rc = start_session(conn, protocol);
    if (rc < 0) {
        conn->closing = true;
        bow_channel_close(conn->channel, rc);
    }
    return rc == 0;
}

static void tell_when_it_came(struct bow__conn *conn)
{
    if (!has_waited(conn)) {
        conn->n_since = 0;
        conn->session->work.came_ns = conn->batch_ns;
    }
}

/* `n` of `len` bytes were taken. As long as they are but what is left of earlier ones, what is in
 * the socket waits on. */
static void note_fed(struct bow__conn *conn, size_t n, size_t len)
{
    bool is_enough = bow__work_is_enough(&conn->session->work);

    if (is_enough || conn->n_since > 0) {
        bool waits = is_enough || len <= conn->n_left;
        conn->n_since += (uint32_t)n;
        conn->n_left = (uint32_t)(len - n);
        conn->waited_turn = waits ? (uint32_t)bow__loop_n_turns(conn->loop) : conn->waited_turn;
    }
}

static size_t on_read(struct bow_handler *handler, const struct bow_buf *bytes)
{
    struct bow__conn *conn = conn_of(handler);

    if (conn->closing) {
        return bytes->len;
    }
    conn->heard = true;
    if (conn->session == NULL && !detect(conn, bytes)) {
        return conn->closing ? bytes->len : 0;
    }
    enter_session(conn);
    conn->touched = true; /* by what the session itself has to answer */
    tell_when_it_came(conn);
    ssize_t n = conn->session->ops->feed(conn->session, bytes->data, bytes->len, conn->batch_ns);
    if (!leave_session(conn)) {
        return bytes->len;
    }
    if (n < 0) {
        conn->counters->now.bytes_received += bytes->len;
        on_broken(conn);
        return bytes->len;
    }
    conn->counters->now.bytes_received += (size_t)n;
    count_refused(conn);
    note_fed(conn, (size_t)n, bytes->len);
    look_at_work(conn);
    return (size_t)n;
}

static bool on_read_room(struct bow_handler *handler, struct bow_read_room *ret_room)
{
    struct bow__conn *conn = conn_of(handler);

    if (conn->closing || conn->session == NULL || conn->session->ops->room == NULL) {
        return false;
    }
    ret_room->bytes = conn->session->ops->room(conn->session, &ret_room->len, &ret_room->n_behind);
    return ret_room->bytes != NULL;
}

static void on_read_filled(struct bow_handler *handler, size_t n)
{
    struct bow__conn *conn = conn_of(handler);

    enter_session(conn);
    conn->touched = true;
    tell_when_it_came(conn);
    int rc = conn->session->ops->received(conn->session, n, conn->batch_ns);
    if (!leave_session(conn)) {
        return;
    }
    conn->counters->now.bytes_received += n;
    if (rc < 0) {
        on_broken(conn);
        return;
    }
    look_at_work(conn);
}

static void on_active(struct bow_handler *handler)
{
    struct bow__conn *conn = conn_of(handler);

    if (conn->server) {
        watch_times(conn);
        return;
    }
    int rc = start_session(conn, conn->http2 ? BOW__PROTOCOL_HTTP2 : BOW__PROTOCOL_NATIVE);
    if (rc < 0) {
        bow_channel_close(conn->channel, rc);
    }
}

/* The peer can send nothing more, so it is gone or as good as: what it asked for is given up. Only
 * a client is sent what is ready for it; of a server nothing is to be had any more, and calls that
 * are begun meanwhile would be lost with the connection. */
static void on_eof(struct bow_handler *handler)
{
    struct bow__conn *conn = conn_of(handler);

    if (conn->server && conn->session != NULL && conn->session->n_streams == 0) {
        bow__conn_close(conn, NULL, LAST_WORDS_NS);
        return;
    }
    bow_channel_close(conn->channel, 0);
}

static void on_error(struct bow_handler *handler, int error)
{
    bow_channel_close(handler->channel, error);
}

void bow__conn_init(struct bow__conn *conn, struct bow_channel *channel,
                    const struct bow__conn_ops *ops, struct bow__counters *counters, bool server)
{
    static const struct bow_handler_ops handler_ops = {
        .name = "rpc",
        .on_active = on_active,
        .on_read = on_read,
        .on_eof = on_eof,
        .on_error = on_error,
        .on_inactive = on_inactive,
        .on_drain = on_drain,
        .on_sent = on_sent,
        .on_read_room = on_read_room,
        .on_read_filled = on_read_filled,
    };

    conn->handler.ops = &handler_ops;
    conn->ops = ops;
    conn->channel = channel;
    conn->loop = bow_channel_loop(channel);
    conn->context = bow_loop_context(conn->loop);
    conn->counters = counters;
    conn->server = server;
    conn->timer_at = BOW_NEVER;
    conn->first_frame_at = BOW_NEVER;
    conn->rest_until = BOW_NEVER;
    bow__age_init(&conn->age);
    conn->settle.fn = settle;
    bow__list_init(&conn->settle.link);
    bow_timer_init(&conn->timer, conn->loop, on_timer, conn);
    counters->now.connections_opened++;
    bow__counters_touch(counters);
    bow_channel_add_last(channel, &conn->handler);
}
