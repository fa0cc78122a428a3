/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls over HTTP/1.1 as a server's session: one request at a time, as rpc/web/ reads and answers
 * it, on a connection that stays for the next. Knows nothing of what the bodies look like.
 *
 * Design: HTTP/1.1 has no credit and no streams. What a peer may send is held back by not taking
 * it: feed() stops before the next request while this one is not answered, while messages of its
 * stream wait to be read, and while the peer does not take what is written; then the session is
 * clogged, and its host does not read. It stops, too, when its turn has had enough requests, fields
 * and pieces of bodies. What is written lies in `out`, framed.
 *
 * A call whose client closes the connection is given up.
 */

#include "rpc/http1/session.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "rpc/core/header_limit.h"
#include "rpc/http1/exchange.h"

#include <assert.h>
#include <errno.h>

/** Output beyond which no request is taken until some of it has left. */
#define OUT_BYTES ((size_t)64 << 10)
/** Bytes of messages that the host has not consumed, beyond which no more are taken. */
#define UNREAD_BYTES ((size_t)256 << 10)

static struct bow__http1_session *session_of(struct bow__session *base)
{
    return (struct bow__http1_session *)base;
}

static const struct bow__http1_session *const_session_of(const struct bow__session *base)
{
    return (const struct bow__http1_session *)base;
}

/* Input */

/* Whether the next event may be taken. The end of a request may be of no bytes, and so nobody would
 * come back for it: it is never left behind. */
static bool takes_more(const struct bow__http1_session *session)
{
    bool is_enough = bow__work_is_enough(&session->base.work);

    if (session->broken) {
        return false;
    }
    if (!session->has_request) {
        return !session->is_closing && !is_enough && session->out.bytes.n_bytes < OUT_BYTES;
    }
    if (session->is_read) {
        return false;
    }
    return session->parser.state == BOW__HTTP1_AT_END ||
           (session->n_unread < UNREAD_BYTES && !is_enough);
}

/* Takes events off the front. Returns how many bytes they were. */
static size_t take_events(struct bow__http1_session *session, struct bow_slice bytes)
{
    struct bow__http1_event event;
    size_t used = 0;
    ssize_t n = 0;

    while (n >= 0 && takes_more(session)) {
        n = bow__http1_next(&session->parser,
                            (struct bow_slice){bytes.data + used, bytes.len - used}, &event);
        if (n >= 0) {
            used += (size_t)n;
            bow__http1_on_event(session, &event);
        }
    }
    if (n == -EBADMSG) {
        bow__http1_on_bad(session);
    }
    session->has_pending = n >= 0 && used < bytes.len;
    return used;
}

/* A head has begun, or has not yet. */
static void note_head(struct bow__http1_session *session, bool has_bytes)
{
    if (session->has_request || !has_bytes) {
        session->begun_ns = BOW_NEVER;
    } else if (session->begun_ns == BOW_NEVER) {
        session->begun_ns = session->now_ns;
    }
}

/* The call has ended, and what is still to come of its request comes for nobody. */
static bool is_in_vain(const struct bow__http1_session *session)
{
    return session->has_request && !session->open && !session->is_read;
}

/* When it ended is not told: it counts from when that is seen. */
static void note_vain(struct bow__http1_session *session)
{
    if (is_in_vain(session) && session->vain_ns == BOW_NEVER) {
        session->vain_ns = session->now_ns;
    }
}

static int failed(struct bow__http1_session *session)
{
    session->is_failed = true;
    return session->error;
}

static ssize_t feed(struct bow__session *base, const uint8_t *bytes, size_t n, uint64_t now_ns)
{
    struct bow__http1_session *session = session_of(base);

    session->now_ns = now_ns;
    if (n > 0) {
        session->life_ns = now_ns;
    }
    session->in_feed = true;
    size_t used = take_events(session, (struct bow_slice){bytes, n});
    session->in_feed = false;
    note_head(session, used < n && !session->has_pending);
    note_vain(session);
    if (session->broken) {
        return failed(session);
    }
    /* Of what comes behind the last request nothing is read. */
    return session->is_closing && !session->has_request ? (ssize_t)n : (ssize_t)used;
}

/* Times */

/* Whether it is the peer that everything waits for. */
static bool is_awaiting_body(const struct bow__http1_session *session)
{
    return session->has_request && !session->is_read && !session->takes_many &&
           !session->has_pending;
}

static uint64_t next_time(const struct bow__session *base)
{
    const struct bow__http1_session *session = const_session_of(base);

    if (session->broken) {
        return session->is_failed ? BOW_NEVER : 0;
    }
    if (session->is_paused) {
        return BOW_NEVER;
    }
    if (session->begun_ns != BOW_NEVER) {
        return bow__time_add(session->begun_ns, BOW_LIMIT_HTTP1_REQUEST_NS);
    }
    if (is_in_vain(session) && !session->has_pending) {
        uint64_t since_ns = session->vain_ns != BOW_NEVER ? session->vain_ns : session->life_ns;
        return bow__time_add(since_ns, BOW_LIMIT_HTTP1_REQUEST_NS);
    }
    if (is_awaiting_body(session)) {
        return bow__time_add(session->life_ns, BOW_LIMIT_HTTP1_REQUEST_NS);
    }
    if (session->has_request || session->is_closing || session->heartbeat_ns == BOW_NEVER) {
        return BOW_NEVER;
    }
    return bow__time_add(session->life_ns,
                         bow__time_add(session->heartbeat_ns, session->heartbeat_timeout_ns));
}

/* There are no heartbeats: one that says nothing for as long as those would wait is closed, which
 * between requests costs nobody anything. */
static int on_time(struct bow__session *base, uint64_t now_ns)
{
    struct bow__http1_session *session = session_of(base);

    session->now_ns = now_ns;
    if (!session->broken && next_time(base) <= now_ns) {
        if (session->begun_ns != BOW_NEVER) {
            bow__http1_answer_plainly(session, 408, "the request did not come in time");
            bow__http1_break(session, -ETIMEDOUT, BOW_DEADLINE_EXCEEDED,
                             "a request's head did not come in time (BOW_LIMIT_HTTP1_REQUEST_NS)");
        } else if (is_in_vain(session) && session->vain_ns == BOW_NEVER) {
            note_vain(session);
        } else if (is_in_vain(session)) {
            bow__http1_break(session, -ETIMEDOUT, BOW_DEADLINE_EXCEEDED,
                             "the rest of a request that was answered did not come in time "
                             "(BOW_LIMIT_HTTP1_REQUEST_NS)");
        } else if (session->has_request) {
            bow__http1_break(session, -ETIMEDOUT, BOW_DEADLINE_EXCEEDED,
                             "nothing of a request's body came in time "
                             "(BOW_LIMIT_HTTP1_REQUEST_NS)");
        } else {
            session->is_closing = true;
        }
    }
    return session->broken ? failed(session) : 0;
}

/* The time that nothing could come in does not count. */
static void set_reading(struct bow__session *base, bool reading, uint64_t now_ns)
{
    struct bow__http1_session *session = session_of(base);

    session->is_paused = !reading;
    session->life_ns = now_ns;
    session->begun_ns = session->begun_ns != BOW_NEVER ? now_ns : BOW_NEVER;
    session->vain_ns = session->vain_ns != BOW_NEVER ? now_ns : BOW_NEVER;
}

/* Operations */

/* After an operation of the host: what it was inside of goes on by itself. */
static void settle(struct bow__http1_session *session)
{
    if (!session->in_feed) {
        (void)bow__http1_next_request(session);
    }
}

static bool is_open(const struct bow__http1_session *session, uint64_t key)
{
    return session->open && key != 0 && session->key == key;
}

static int respond(struct bow__session *base, uint64_t key, const struct bow_metadata *metadata,
                   enum bow__encoding encoding)
{
    struct bow__http1_session *session = session_of(base);
    struct bow__web_output output;

    if (!is_open(session, key) || session->broken || session->answer == BOW__HTTP1_ANSWER_DONE) {
        return -ENOENT;
    }
    int rc = bow__web_respond(session->call, metadata, encoding, &output);
    if (rc == 0) {
        bow__http1_put(session, &output);
    }
    return rc;
}

/* What clients of HTTP/1.1 take nobody says; what may be sent is bounded as it is added. */
static int check_trailing(struct bow__session *base, const struct bow_metadata *metadata)
{
    (void)base;
    (void)metadata;
    return 0;
}

static uint32_t encodings(const struct bow__session *base, uint64_t key)
{
    const struct bow__http1_session *session = const_session_of(base);
    uint32_t identity = 1u << BOW__ENCODING_IDENTITY;

    return identity | (is_open(session, key) ? session->call->accepts : 0);
}

static const char *protocol(const struct bow__session *base, uint64_t key)
{
    const struct bow__http1_session *session = const_session_of(base);

    return is_open(session, key) ? bow__web_protocol(session->call) : base->ops->name;
}

static size_t queued(const struct bow__session *base, uint64_t key)
{
    const struct bow__http1_session *session = const_session_of(base);

    return is_open(session, key) ? session->out.bytes.n_bytes : 0;
}

static void *take_writable(struct bow__session *base, uint64_t *ret_key)
{
    struct bow__http1_session *session = session_of(base);

    if (!session->was_high || session->out.bytes.n_bytes > BOW__STREAM_LOW_BYTES) {
        return NULL;
    }
    session->was_high = false;
    if (!session->open || session->answer == BOW__HTTP1_ANSWER_DONE) {
        return NULL;
    }
    *ret_key = session->key;
    return session->user;
}

/* Messages have blocks of their own. */
static uint8_t *reserve(struct bow__session *base, uint64_t key, uint32_t flags, size_t *ret_cap)
{
    (void)base;
    (void)key;
    (void)flags;
    (void)ret_cap;
    return NULL;
}

static int commit(struct bow__session *base, uint64_t key, uint32_t flags, size_t len)
{
    (void)base;
    (void)key;
    (void)flags;
    (void)len;
    return -ENOENT;
}

static int send_message(struct bow__session *base, uint64_t key, uint32_t flags,
                        struct bow__block *block, size_t offset, size_t len)
{
    struct bow__http1_session *session = session_of(base);
    struct bow__web_output output;

    if (!is_open(session, key)) {
        return -ENOENT;
    }
    if (session->broken || session->answer == BOW__HTTP1_ANSWER_DONE) {
        if ((flags & BOW__SEND_END) != 0) {
            bow__http1_detach(session);
        }
        return -ENOENT;
    }
    int rc = bow__web_send(session->call, flags, block, offset, len, &output, &base->failure);
    if (rc < 0) {
        return rc;
    }
    bow__http1_put(session, &output);
    if ((flags & BOW__SEND_END) != 0) {
        bow__http1_detach(session);
    }
    settle(session);
    return 0;
}

static int finish(struct bow__session *base, uint64_t key, const struct bow_status *status)
{
    struct bow__http1_session *session = session_of(base);

    if (!is_open(session, key)) {
        return -ENOENT;
    }
    bow__http1_detach(session);
    bow__http1_answer_status(session, status);
    settle(session);
    return session->broken ? -ENOENT : 0;
}

static bool refill(struct bow__session *base)
{
    (void)base;
    return false;
}

static void consumed(struct bow__session *base, uint64_t key, size_t n)
{
    struct bow__http1_session *session = session_of(base);

    if (is_open(session, key)) {
        session->n_unread -= n < session->n_unread ? n : session->n_unread;
    }
}

/* The connection */

static void goaway(struct bow__session *base, const struct bow_status *reason)
{
    struct bow__http1_session *session = session_of(base);

    (void)reason;
    session->is_leaving = true;
    session->is_closing = session->is_closing || (!session->has_request && !session->has_pending &&
                                                  session->begun_ns == BOW_NEVER);
}

static void leave(struct bow__session *base)
{
    session_of(base)->is_closing = true;
}

static void condemn(struct bow__session *base, const struct bow_status *reason)
{
    bow__http1_break(session_of(base), -EPROTO, reason->code, "%s", reason->message);
}

/* Whether nothing that is still to come of a request is of interest. */
static bool has_heard_enough(const struct bow__http1_session *session)
{
    return !session->has_request ||
           (session->answer == BOW__HTTP1_ANSWER_DONE &&
            (session->is_read || session->n_discarded > BOW__HTTP1_DISCARDED_BYTES));
}

static bool is_done(const struct bow__session *base)
{
    const struct bow__http1_session *session = const_session_of(base);

    if (session->out.bytes.n_bytes > 0) {
        return false;
    }
    return session->broken || (session->is_closing && !session->open && has_heard_enough(session));
}

static struct bow__session_rest rest(const struct bow__session *base)
{
    return (struct bow__session_rest){
        .n_calls = base->n_streams,
        .n_bytes = const_session_of(base)->out.bytes.n_bytes,
    };
}

static void cut(struct bow__session *base, const struct bow_status *status)
{
    struct bow__http1_session *session = session_of(base);

    session->is_closing = true;
    if (session->open) {
        bow__http1_answer_status(session, status);
        bow__http1_end_call(session, status);
    }
}

static size_t unsent(const struct bow__session *base)
{
    return bow__outbuf_memory(&const_session_of(base)->out.bytes);
}

static bool is_clogged(const struct bow__session *base)
{
    const struct bow__http1_session *session = const_session_of(base);

    return session->has_pending && !session->broken && !takes_more(session) &&
           !(session->is_closing && !session->has_request);
}

static int drain(struct bow__session *base, struct iovec *pieces, int max)
{
    return bow__outbuf_drain(&session_of(base)->out.bytes, pieces, max);
}

static void sent(struct bow__session *base, size_t n)
{
    struct bow__http1_session *session = session_of(base);

    bow__outbuf_sent(&session->out.bytes, n);
    base->n_dequeued += n;
}

static void fail(struct bow__session *base, const struct bow_status *status)
{
    struct bow__http1_session *session = session_of(base);

    bow__http1_break(session, -EPIPE, status->code, "%s", status->message);
    session->is_failed = true;
    bow__http1_end_call(session, status);
}

static void session_free(struct bow__session *base)
{
    struct bow__http1_session *session = session_of(base);

    bow__web_call_free(session->call);
    bow__outbuf_fini(&session->out.bytes);
    bow__free(base->context, session, sizeof(*session));
}

/* Of a server alone: what a client asks of sessions is not here. */
static const struct bow__session_ops http1_ops = {
    .name = "http",
    .feed = feed,
    .next_time = next_time,
    .on_time = on_time,
    .set_reading = set_reading,
    .respond = respond,
    .check_trailing = check_trailing,
    .encodings = encodings,
    .protocol = protocol,
    .queued = queued,
    .take_writable = take_writable,
    .reserve = reserve,
    .commit = commit,
    .send = send_message,
    .finish = finish,
    .refill = refill,
    .consumed = consumed,
    .goaway = goaway,
    .leave = leave,
    .condemn = condemn,
    .is_done = is_done,
    .rest = rest,
    .cut = cut,
    .unsent = unsent,
    .is_clogged = is_clogged,
    .drain = drain,
    .sent = sent,
    .fail = fail,
    .free = session_free,
};

static void init(struct bow__http1_session *session, const struct bow__session_options *options)
{
    struct bow__http1_limits limits = BOW__HTTP1_LIMITS_INIT;

    limits.max_head_bytes = bow__header_limit_or_default(options->max_header_bytes);
    limits.max_body_bytes = UINT64_MAX;
    bow__http1_parser_init(&session->parser, &limits);
    session->base = (struct bow__session){
        .ops = &http1_ops,
        .events = options->events,
        .owner = options->owner,
        .context = options->context,
        .in_flight = options->in_flight,
        .server = true,
        .cancels_by_close = true,
        .retry_after_ns = options->retry_after_ns,
    };
    session->web = (struct bow__web_options){
        .web = options->web,
        .protocols = options->protocols,
        .pool = options->pool,
        .context = options->context,
        .in_flight = options->in_flight,
        .max_message_bytes = options->max_message_bytes,
        .encodings = options->encodings | 1u << BOW__ENCODING_IDENTITY,
    };
    bow__outbuf_init(&session->out.bytes, options->pool);
    bow__list_init(&session->base.work.waiting);
    session->next_key = 1;
    session->now_ns = options->now_ns;
    session->life_ns = options->now_ns;
    session->begun_ns = BOW_NEVER;
    session->vain_ns = BOW_NEVER;
    session->heartbeat_ns = options->heartbeat_ns;
    session->heartbeat_timeout_ns = options->heartbeat_timeout_ns;
}

int bow__http1_session_new(const struct bow__session_options *options,
                           struct bow__session **ret_session)
{
    assert(options->server && options->web != NULL);
    struct bow__http1_session *session = bow__alloc_zero(options->context, sizeof(*session));
    if (session == NULL) {
        return -ENOMEM;
    }
    init(session, options);
    *ret_session = &session->base;
    return 0;
}
