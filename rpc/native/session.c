/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The native session's life: how it begins, what feed() and time do to it, when it stops reading
 * because its peer does not (is_clogged), how it ends, and the table through which the host holds
 * it.
 */

#include "rpc/native/session.h"
#include "base/alloc.h"
#include "rpc/core/header_limit.h"
#include "rpc/native/internal.h"

#include <bowline/limits.h>
#include <errno.h>

/* What we ask of the peer; 100 a second are where we break with it. */
#define MIN_PING_INTERVAL_US 20000

static void say_due_events(struct bow__native *session)
{
    if (session->ready_due) {
        session->ready_due = false;
        session->base.events->on_ready(session->base.owner);
    }
    if (session->retire_due) {
        struct bow_status reason = {.code = BOW_UNAVAILABLE,
                                    .message = "the connection's stream ids are used up"};
        session->retire_due = false;
        bow__native_goaway(&session->base, &reason);
        session->base.events->on_goaway(session->base.owner, &reason);
    }
}

/* The end of feed() or on_time(): events that no frame brings, then what waited for it. Returns
 * what they have to return, if it is not 0. */
static int end_feeding(struct bow__native *session)
{
    if (!session->broken) {
        say_due_events(session);
        if (session->probe_due) {
            bow__native_heartbeat_probe(session);
        }
    }
    session->feeding = false;
    bow__native_streams_recycle(session);
    if (session->broken || !session->out_of_memory) {
        return session->broken ? session->broken_rc : 0;
    }
    bow__native_break(session, BOW_RESOURCE_EXHAUSTED, "out of memory for a frame to the peer");
    session->broken_rc = -ENOMEM;
    return -ENOMEM;
}

static void begin_feeding(struct bow__native *session, size_t n, uint64_t now_ns)
{
    session->now_ns = now_ns;
    if (n > 0) {
        session->last_byte_ns = now_ns;
        session->ping_is_out = false;
    }
    session->feeding = true;
}

static ssize_t feed(struct bow__session *base, const uint8_t *bytes, size_t n, uint64_t now_ns)
{
    struct bow__native *session = bow__native_of(base);

    if (session->broken) {
        return session->broken_rc;
    }
    begin_feeding(session, n, now_ns);
    ssize_t used = bow__native_receive(session, bytes, n);
    int rc = end_feeding(session);
    return rc < 0 ? rc : used;
}

static int received(struct bow__session *base, size_t n, uint64_t now_ns)
{
    struct bow__native *session = bow__native_of(base);

    begin_feeding(session, n, now_ns);
    int rc = bow__native_receive_filled(session, n);
    int end_rc = end_feeding(session);
    return end_rc < 0 ? end_rc : rc;
}

static int on_time(struct bow__session *base, uint64_t now_ns)
{
    struct bow__native *session = bow__native_of(base);

    if (session->broken) {
        return session->broken_rc;
    }
    session->now_ns = now_ns;
    int rc = bow__native_heartbeat(session);
    if (rc < 0) {
        return rc;
    }
    session->feeding = true;
    return end_feeding(session);
}

static void sent(struct bow__session *base, size_t n)
{
    struct bow__native *session = bow__native_of(base);

    bow__native_drop_room(session);
    bow__outbuf_sent(&session->out, n);
    session->is_behind = session->out.n_bytes > 0;
    session->unsent_id = session->next_id;
    bow__native_heartbeat_sent(session, n);
}

static bool is_done(const struct bow__session *base)
{
    const struct bow__native *session = bow__native_of_const(base);
    bool leaving = session->peer_leaves || session->drain == BOW__NATIVE_FINAL;

    return leaving && base->n_streams == 0 && session->out.n_bytes == 0;
}

static size_t unsent(const struct bow__session *base)
{
    return base->n_waiting + bow__outbuf_memory(&bow__native_of_const(base)->out);
}

static bool is_clogged(const struct bow__session *base)
{
    const struct bow__native *session = bow__native_of_const(base);
    size_t n_out = session->out.n_bytes;

    /* What waits for credit alone must not stop us: the credit comes with what we read. A client
     * goes on reading, so that two sides can't each wait for the other. */
    if (base->server && n_out > 0 && session->n_queued > BOW__CLOGGED_BYTES) {
        return true;
    }
    /* Messages alone do not get that far, for the same reason. */
    return n_out > BOW__NATIVE_IN_PLACE_AHEAD_BYTES + BOW_LIMIT_CONTROL_BYTES;
}

static struct bow__native_stream *first_stream(struct bow__native *session)
{
    struct bow__link *link = session->streams.next;

    return link == &session->streams ? NULL : BOW__CONTAINER(link, struct bow__native_stream, link);
}

static void end_with_status(struct bow__native *session, struct bow__native_stream *stream,
                            const struct bow_status *status)
{
    bow__native_stream_end(session, stream);
    bow__session_end_own(&session->base, stream->id, stream->user, status);
}

static void fail(struct bow__session *base, const struct bow_status *status)
{
    struct bow__native *session = bow__native_of(base);

    session->broken = true;
    session->broken_rc = session->broken_rc < 0 ? session->broken_rc : -EPIPE;
    session->feeding = true;
    for (struct bow__native_stream *stream = first_stream(session); stream != NULL;
         stream = first_stream(session)) {
        if (base->server) {
            bow__native_end_with_reset(session, stream, status);
        } else {
            end_with_status(session, stream, status);
        }
    }
    session->feeding = false;
    bow__native_streams_recycle(session);
}

static struct bow__session_rest rest(const struct bow__session *base)
{
    const struct bow__native *session = bow__native_of_const(base);
    struct bow__session_rest rest = {.n_calls = base->n_streams};

    if (!base->server) {
        return rest;
    }
    rest.n_bytes = session->n_queued;
    for (struct bow__link *link = session->streams.next; link != &session->streams;
         link = link->next) {
        rest.n_calls -= BOW__CONTAINER(link, struct bow__native_stream, link)->out_ended ? 1 : 0;
    }
    return rest;
}

static void cut(struct bow__session *base, const struct bow_status *status)
{
    struct bow__native *session = bow__native_of(base);

    session->feeding = true;
    for (struct bow__native_stream *stream = first_stream(session);
         stream != NULL && !session->broken; stream = first_stream(session)) {
        (void)bow__native_refuse(session, stream, status);
    }
    session->feeding = false;
    bow__native_streams_recycle(session);
}

static uint32_t encodings(const struct bow__session *base, uint64_t key)
{
    (void)key;
    return bow__native_of_const(base)->peer.encodings | 1u << BOW__ENCODING_IDENTITY;
}

static void free_bound(struct bow__native *session)
{
    struct bow_context *context = session->base.context;

    for (uint32_t i = 0; session->bound != NULL && i < session->n_bound; i++) {
        struct bow__native_bound *bound = session->bound[i];
        bow__free(context, bound, sizeof(*bound) + bound->len);
    }
    bow__free(context, session->bound, session->bound_cap * sizeof(*session->bound));
}

static void free_session(struct bow__session *base)
{
    struct bow__native *session = bow__native_of(base);

    session->broken = true; /* nothing is put out any more */
    for (struct bow__native_stream *stream = first_stream(session); stream != NULL;
         stream = first_stream(session)) {
        bow__native_stream_end(session, stream);
    }
    bow__native_streams_trim(session);
    free_bound(session);
    bow__map_fini(&session->numbers);
    bow__map_fini(&session->by_id);
    bow__outbuf_fini(&session->out);
    bow__free(base->context, session, sizeof(*session));
}

static bool never_left(const struct bow__session *base, uint64_t key)
{
    const struct bow__native *session = bow__native_of_const(base);

    return (session->broken || session->peer_leaves) && key >= session->unsent_id;
}

static void condemn(struct bow__session *base, const struct bow_status *reason)
{
    struct bow__native *session = bow__native_of(base);

    if (!session->broken) {
        (void)bow__native_break(session, reason->code, "%s", reason->message);
    }
}

static const struct bow__session_ops ops = {
    .name = "native",
    .feed = feed,
    .room = bow__native_receive_room,
    .received = received,
    .next_time = bow__native_next_time,
    .on_time = on_time,
    .doubt = bow__native_doubt,
    .set_reading = bow__native_set_reading,
    .can_open = bow__native_can_open,
    .open = bow__native_open,
    .abandon = bow__native_abandon,
    .begin = bow__native_begin,
    .half_close = bow__native_half_close,
    .respond = bow__native_respond,
    .check_trailing = bow__native_check_trailing,
    .encodings = encodings,
    .queued = bow__native_queued,
    .take_writable = bow__native_take_writable,
    .reserve = bow__native_reserve,
    .commit = bow__native_commit,
    .send = bow__native_send,
    .finish = bow__native_finish,
    .refill = bow__native_refill,
    .consumed = bow__native_consumed,
    .cancel = bow__native_cancel,
    .never_left = never_left,
    .goaway = bow__native_goaway,
    .leave = bow__native_leave,
    .condemn = condemn,
    .is_done = is_done,
    .rest = rest,
    .cut = cut,
    .unsent = unsent,
    .is_clogged = is_clogged,
    .drain = bow__native_drain,
    .sent = sent,
    .fail = fail,
    .free = free_session,
};

static uint32_t clip(size_t value, uint32_t low, uint32_t high)
{
    return value < low ? low : value > high ? high : (uint32_t)value;
}

/* What we accept; SETTINGS cannot go below what the protocol promises, so calls above less than
 * that are taken, and wait for their turn behind the session. */
static void set_limits(struct bow__native *session, const struct bow__session_options *options)
{
    struct bow__header_settings *own = &session->own;

    session->max_message_bytes = options->max_message_bytes;
    session->max_header_bytes = bow__header_limit_or_default(options->max_header_bytes);
    own->max_message_bytes = clip(options->max_message_bytes, own->max_message_bytes, UINT32_MAX);
    own->max_header_bytes = clip(session->max_header_bytes, own->max_header_bytes, UINT32_MAX);
    if (options->server) {
        own->max_calls = clip(options->max_calls, own->max_calls, UINT32_MAX);
    }
    session->max_calls = own->max_calls;
    own->max_frame_bytes = clip(BOW_LIMIT_FRAME_BYTES, own->max_frame_bytes, UINT32_MAX);
    own->stream_window_bytes = BOW__NATIVE_STREAM_WINDOW;
    own->max_bound_methods = BOW_LIMIT_BOUND_METHODS;
    own->min_ping_interval_us = MIN_PING_INTERVAL_US;
    own->unattended = options->unattended;
    own->encodings = options->encodings;
    session->receive_credit = own->connection_window_bytes;
    session->window.size = own->connection_window_bytes;
    session->window.n_granted = own->connection_window_bytes;
    session->send_credit = session->peer.connection_window_bytes;
    session->peer.encodings = options->assumed_encodings; /* until SETTINGS have come */
}

static void init(struct bow__native *session, const struct bow__session_options *options)
{
    *session = (struct bow__native){
        .base = {.ops = &ops,
                 .events = options->events,
                 .owner = options->owner,
                 .context = options->context,
                 .in_flight = options->in_flight,
                 .server = options->server,
                 .retry_after_ns = options->retry_after_ns,
                 .n_stream_bytes = sizeof(struct bow__native_stream)},
        .own = BOW__HEADER_SETTINGS_INIT,
        .peer = BOW__HEADER_SETTINGS_INIT,
        .next_id = options->first_key | 1,
        .accepted_id = BOW__FRAME_STREAM_MAX,
        .unattended = options->unattended,
        .reading = true,
        .now_ns = options->now_ns,
        .heartbeat_ns = options->heartbeat_ns,
        .heartbeat_timeout_ns = options->heartbeat_timeout_ns,
        .last_byte_ns = options->now_ns,
    };
    bow__outbuf_init(&session->out, options->pool);
    bow__map_init(&session->by_id, options->context);
    bow__map_init(&session->numbers, options->context);
    bow__list_init(&session->base.work.waiting);
    bow__list_init(&session->streams);
    bow__list_init(&session->ended);
    bow__list_init(&session->idle);
    bow__list_init(&session->senders);
    bow__list_init(&session->unbegun);
    bow__list_init(&session->writables);
    set_limits(session, options);
}

int bow__native_session_new(const struct bow__session_options *options,
                            struct bow__session **ret_session)
{
    struct bow__native *session = bow__alloc(options->context, sizeof(*session));
    if (session == NULL) {
        return -ENOMEM;
    }
    init(session, options);
    if (bow__native_put_opening(session) < 0) {
        free_session(&session->base);
        return -ENOMEM;
    }
    *ret_session = &session->base;
    return 0;
}
