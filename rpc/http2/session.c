/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * gRPC over HTTP/2 as a session: the table, the session's life, when it stops reading because its
 * peer does not (is_clogged), and the two places where nghttp2 runs. Owns the nghttp2 session and
 * the output; what frames mean is in the other files.
 */

#include "rpc/http2/session.h"
#include "base/alloc.h"
#include "base/clock.h"
#include "rpc/core/compression/encodings.h"
#include "rpc/core/header_limit.h"
#include "rpc/http2/internal.h"
#include <bowline/server.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

/** Frames queued in nghttp2 beyond what its streams need: replies to a peer that asks and does not
 * read. nghttp2 itself gives up at 1000 acknowledgements. */
#define CLOGGED_FRAMES ((size_t)500)
#define FRAMES_PER_STREAM ((size_t)4)

/** What nghttp2 takes for a stream beside ours. */
#define NGHTTP2_STREAM_BYTES ((size_t)256)

static struct bow__http2_session *session_of(struct bow__session *base)
{
    return (struct bow__http2_session *)base;
}

static void put_u32(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 24);
    at[1] = (uint8_t)(value >> 16);
    at[2] = (uint8_t)(value >> 8);
    at[3] = (uint8_t)value;
}

/* A connection that breaks in its first bytes has said nothing yet, and what a peer reads first
 * has to be SETTINGS (RFC 9113, 3.4). A client would have to say its magic, too, to a server that
 * has nothing to learn from it. */
static bool put_first_settings(struct bow__http2_session *session)
{
    static const uint8_t no_settings[9] = {[3] = NGHTTP2_SETTINGS};

    if (session->has_begun) {
        return true;
    }
    return session->base.server &&
           bow__outbuf_append(&session->out, no_settings, sizeof(no_settings)) == 0;
}

/* GOAWAY by hand, for nghttp2 may not be asked any more. */
static void put_goaway(struct bow__http2_session *session)
{
    const struct bow__text *why = &session->base.failure;
    uint32_t len =
        (uint32_t)(why->len < BOW__HTTP2_GOAWAY_TEXT_BYTES ? why->len
                                                           : BOW__HTTP2_GOAWAY_TEXT_BYTES);
    uint8_t frame[17 + BOW__HTTP2_GOAWAY_TEXT_BYTES] = {0};

    if (session->has_put_goaway) {
        return;
    }
    session->has_put_goaway = true;
    if (!put_first_settings(session)) {
        return;
    }
    put_u32(frame, (len + 8) << 8 | NGHTTP2_GOAWAY);
    put_u32(frame + 9, (uint32_t)nghttp2_session_get_last_proc_stream_id(session->ng));
    put_u32(frame + 13, session->http2_error);
    memcpy(frame + 17, why->bytes, len);
    /* Without memory for it the connection just closes. */
    (void)bow__outbuf_append(&session->out, frame, 17 + len);
}

static int failed(struct bow__http2_session *session)
{
    session->is_failed = true;
    put_goaway(session);
    return session->error;
}

static void break_by_receive(struct bow__http2_session *session, int error)
{
    struct bow__text first;
    uint32_t http2_error = error == NGHTTP2_ERR_FLOODED || error == NGHTTP2_ERR_TOO_MANY_SETTINGS ||
                                   error == NGHTTP2_ERR_TOO_MANY_CONTINUATIONS
                               ? NGHTTP2_ENHANCE_YOUR_CALM
                               : NGHTTP2_PROTOCOL_ERROR;

    if (error == NGHTTP2_ERR_NOMEM) {
        bow__http2_check(session, error);
        return;
    }
    if (error != NGHTTP2_ERR_BAD_CLIENT_MAGIC) {
        bow__http2_break(session, http2_error, -EPROTO,
                         http2_error == NGHTTP2_ENHANCE_YOUR_CALM ? BOW_RESOURCE_EXHAUSTED
                                                                  : BOW_INTERNAL,
                         "receiving over HTTP/2: %s (after a frame of type %u on stream %d)",
                         nghttp2_strerror(error), session->frame.type, session->frame.stream_id);
        return;
    }
    bow__text_clear(&first);
    bow__text_escape(&first, (struct bow_slice){session->first, session->n_first},
                     session->n_first);
    bow__http2_break(session, http2_error, -EPROTO, BOW_INTERNAL,
                     "the client does not begin with HTTP/2's preface but with \"%s\"",
                     first.bytes);
}

static void keep_first(struct bow__http2_session *session, const uint8_t *bytes, size_t n)
{
    size_t room = sizeof(session->first) - session->n_first;

    n = n < room ? n : room;
    memcpy(session->first + session->n_first, bytes, n);
    session->n_first += n;
}

static bool is_ready_due(const struct bow__http2_session *session)
{
    return session->is_ready_wanted && !session->broken && bow__http2_can_open(&session->base);
}

static bool is_goaway_due(const struct bow__http2_session *session)
{
    return session->are_ids_used_up && !session->is_goaway_told;
}

static bool has_late(const struct bow__http2_session *session)
{
    return !bow__list_is_empty(&session->late) || is_ready_due(session) || is_goaway_due(session);
}

/* Emit what became known while no event could be. */
static void emit_late(struct bow__http2_session *session)
{
    struct bow__session *base = &session->base;

    bow__http2_streams_end_late(session);
    if (is_goaway_due(session)) {
        struct bow_status reason = {.code = BOW_UNAVAILABLE,
                                    .message = "the connection's stream ids are used up"};
        session->is_goaway_told = true;
        bow__http2_goaway(base, &reason);
        base->events->on_goaway(base->owner, &reason);
    }
    if (is_ready_due(session)) {
        session->is_ready_wanted = false;
        base->events->on_ready(base->owner);
    }
}

/* One go of nghttp2. Returns how many bytes were used; those that were inspected and are not come
 * first in the next. */
static size_t receive(struct bow__http2_session *session, const uint8_t *bytes, size_t n)
{
    if (session->n_inspected == 0) {
        session->n_inspected = bow__http2_inspect(session, bytes, n);
        keep_first(session, bytes, session->n_inspected);
    }
    if (session->broken) {
        return n;
    }
    session->is_receiving = true;
    session->fed_end = bytes + session->n_inspected;
    ssize_t used = nghttp2_session_mem_recv(session->ng, bytes, session->n_inspected);
    session->is_receiving = false;
    if (used < 0) {
        break_by_receive(session, (int)used);
        return n;
    }
    session->n_inspected -= (size_t)used;
    return (size_t)used;
}

/* Returns how many bytes were used: not all when there is work enough for this turn. */
static size_t receive_turn(struct bow__http2_session *session, const uint8_t *bytes, size_t n)
{
    size_t at = 0;

    while (at < n && !session->broken) {
        at += receive(session, bytes + at, n - at);
        if (bow__work_is_enough(&session->base.work)) {
            break;
        }
    }
    return session->broken ? n : at;
}

static ssize_t feed(struct bow__session *base, const uint8_t *bytes, size_t n, uint64_t now_ns)
{
    struct bow__http2_session *session = session_of(base);

    session->now_ns = now_ns;
    if (n > 0) {
        session->life_ns = now_ns;
        session->pinged_ns = 0;
    }
    size_t used = receive_turn(session, bytes, n);
    /* Here, too, for what nghttp2 has against the peer shows in its output. */
    bow__http2_pump(session);
    emit_late(session);
    return session->broken ? failed(session) : (ssize_t)used;
}

/* The stream of the DATA frame of which something is still missing, when all that was fed is used;
 * or NULL. */
static struct bow__http2_stream *receiving_stream(const struct bow__http2_session *session)
{
    bool is_data = session->frame.type == NGHTTP2_DATA && session->frame_left != SIZE_MAX;

    if (session->broken || !is_data || session->frames.n_skip == 0 || session->n_inspected > 0) {
        return NULL;
    }
    return bow__http2_stream_of_id(session, session->frame.stream_id);
}

static uint8_t *room(struct bow__session *base, size_t *ret_len, size_t *ret_behind)
{
    struct bow__http2_session *session = session_of(base);
    struct bow__http2_stream *stream = receiving_stream(session);

    return stream == NULL ? NULL
                          : bow__http2_message_room(session, stream, session->frames.n_skip,
                                                    ret_len, ret_behind);
}

/* nghttp2 is shown the bytes where they lie, which is where they belong. */
static int received(struct bow__session *base, size_t n, uint64_t now_ns)
{
    const struct bow__http2_stream *stream = receiving_stream(session_of(base));
    const struct bow__http2_incoming *incoming = &stream->incoming;

    ssize_t used = feed(base, incoming->block->data + incoming->n_bytes, n, now_ns);
    assert(used < 0 || (size_t)used == n);
    return used < 0 ? (int)used : 0;
}

static uint64_t next_time(const struct bow__session *base)
{
    const struct bow__http2_session *session = (const struct bow__http2_session *)base;

    if ((session->broken && !session->is_failed) || has_late(session)) {
        return 0;
    }
    return bow__http2_heartbeat_time(session);
}

static int on_time(struct bow__session *base, uint64_t now_ns)
{
    struct bow__http2_session *session = session_of(base);

    session->now_ns = now_ns;
    emit_late(session);
    bow__http2_heartbeat(session);
    return session->broken ? failed(session) : 0;
}

static int drain(struct bow__session *base, struct iovec *pieces, int max)
{
    struct bow__http2_session *session = session_of(base);

    bow__http2_pump(session);
    bow__http2_trim_chunk(session);
    return bow__outbuf_drain(&session->out, pieces, max);
}

static void sent(struct bow__session *base, size_t n)
{
    struct bow__http2_session *session = session_of(base);

    bow__outbuf_sent(&session->out, n);
    session->is_behind = session->out.n_bytes > 0;
    session->unsent_key = session->next_key;
    bow__http2_heartbeat_sent(session, n);
}

static bool never_left(const struct bow__session *base, uint64_t key)
{
    const struct bow__http2_session *session = (const struct bow__http2_session *)base;

    return (session->broken || session->has_peer_goaway) && key >= session->unsent_key;
}

static bool is_done(const struct bow__session *base)
{
    const struct bow__http2_session *session = (const struct bow__http2_session *)base;

    if (session->out.n_bytes > 0) {
        return false;
    }
    if (session->broken) {
        return true;
    }
    return (session->has_left || session->has_peer_goaway) &&
           bow__list_is_empty(&session->streams) && nghttp2_session_want_write(session->ng) == 0;
}

static struct bow__session_rest rest(const struct bow__session *base)
{
    const struct bow__http2_session *session = (const struct bow__http2_session *)base;

    return (struct bow__session_rest){
        .n_calls = base->n_streams,
        .n_bytes = base->server ? session->n_queued : 0,
    };
}

static size_t unsent(const struct bow__session *base)
{
    return base->n_waiting + bow__outbuf_memory(&((const struct bow__http2_session *)base)->out);
}

static bool is_clogged(const struct bow__session *base)
{
    const struct bow__http2_session *session = (const struct bow__http2_session *)base;

    /* What waits for credit alone must not stop us: the credit comes with what we read. A client
     * goes on reading, so that two sides cannot each wait for the other. */
    if (base->server && session->out.n_bytes > 0 && session->n_queued > BOW__CLOGGED_BYTES) {
        return true;
    }
    return nghttp2_session_get_outbound_queue_size(session->ng) >
           CLOGGED_FRAMES + FRAMES_PER_STREAM * session->n_live;
}

static void fail(struct bow__session *base, const struct bow_status *status)
{
    struct bow__http2_session *session = session_of(base);

    if (!session->broken) {
        bow__http2_break(session, NGHTTP2_NO_ERROR, -EPIPE, status->code, "%s", status->message);
    }
    session->is_failed = true;
    session->is_goaway_told = true;
    emit_late(session);
    bow__http2_streams_end(session, 0, status);
}

static void session_free(struct bow__session *base)
{
    struct bow__http2_session *session = session_of(base);
    struct bow_context *context = base->context;

    session->broken = true;
    nghttp2_session_del(session->ng);
    while (!bow__list_is_empty(&session->streams)) {
        bow__http2_stream_free(
            session, BOW__CONTAINER(session->streams.next, struct bow__http2_stream, link));
    }
    bow__block_unref(session->chunk);
    bow__block_unref(session->metadata.chunk);
    bow__http2_web_header_end(session);
    bow__outbuf_fini(&session->out);
    bow__map_fini(&session->by_key);
    bow__free(context, session->authority, session->authority_size);
    if (session->leaving_why != NULL) {
        bow__free(context, session->leaving_why, strlen(session->leaving_why) + 1);
    }
    bow__free(context, session, sizeof(*session));
}

static const char *protocol(const struct bow__session *base, uint64_t key)
{
    const struct bow__http2_stream *stream =
        bow__http2_stream_find((const struct bow__http2_session *)base, key);

    return stream != NULL && stream->web != NULL ? bow__web_protocol(stream->web) : base->ops->name;
}

static uint32_t encodings(const struct bow__session *base, uint64_t key)
{
    const struct bow__http2_session *session = (const struct bow__http2_session *)base;
    uint32_t identity = 1u << BOW__ENCODING_IDENTITY;

    if (!base->server) {
        return session->peer_encodings;
    }
    const struct bow__http2_stream *stream = bow__http2_stream_find(session, key);
    return identity | (stream != NULL ? stream->header.accepts : 0);
}

static void condemn(struct bow__session *base, const struct bow_status *reason)
{
    struct bow__http2_session *session = session_of(base);

    bow__http2_pump(session); /* what its calls were answered */
    if (!session->broken) {
        bow__http2_break(session, NGHTTP2_ENHANCE_YOUR_CALM, -EPROTO, reason->code, "%s",
                         reason->message);
        (void)failed(session);
    }
}

static const struct bow__session_ops http2_ops = {
    .name = "grpc",
    .feed = feed,
    .room = room,
    .received = received,
    .next_time = next_time,
    .on_time = on_time,
    .doubt = bow__http2_doubt,
    .set_reading = bow__http2_set_reading,
    .can_open = bow__http2_can_open,
    .open = bow__http2_open,
    .abandon = bow__http2_abandon,
    .begin = bow__http2_begin,
    .half_close = bow__http2_half_close,
    .respond = bow__http2_respond,
    .check_trailing = bow__http2_check_trailing,
    .encodings = encodings,
    .protocol = protocol,
    .queued = bow__http2_queued,
    .take_writable = bow__http2_take_writable,
    .reserve = bow__http2_reserve,
    .commit = bow__http2_commit,
    .send = bow__http2_send,
    .finish = bow__http2_finish,
    .refill = bow__http2_refill,
    .consumed = bow__http2_consumed,
    .cancel = bow__http2_cancel,
    .never_left = never_left,
    .goaway = bow__http2_goaway,
    .condemn = condemn,
    .leave = bow__http2_leave,
    .is_done = is_done,
    .rest = rest,
    .cut = bow__http2_cut,
    .unsent = unsent,
    .is_clogged = is_clogged,
    .drain = drain,
    .sent = sent,
    .fail = fail,
    .free = session_free,
};

static nghttp2_option *new_option(void)
{
    nghttp2_option *option = NULL;

    if (nghttp2_option_new(&option) < 0) {
        return NULL;
    }
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_no_closed_streams(option, 1);
    /* Ours counts by the session's clock, with a limit that has a name. */
    bow__http2_option_no_reset_limit(option);
    /* It counts 12 a field where we count 32. */
    nghttp2_option_set_max_send_header_block_length(option, BOW_LIMIT_HEADER_BYTES_MAX);
    /* gRPC lets its senders have blanks around values, which would reset their streams. */
    bow__http2_option_blanks(option);
    return option;
}

/* nghttp2 copies callbacks and options, so both live only here. They come from malloc, for that is
 * the only place it takes them from. */
static int new_nghttp2(struct bow__http2_session *session)
{
    nghttp2_session_callbacks *callbacks = NULL;
    nghttp2_mem memory = bow__http2_memory(session->out.pool);
    int rv = NGHTTP2_ERR_NOMEM;

    nghttp2_option *option = new_option();
    if (option == NULL || nghttp2_session_callbacks_new(&callbacks) < 0) {
        nghttp2_option_del(option);
        return -ENOMEM;
    }
    bow__http2_set_receive_callbacks(callbacks);
    bow__http2_set_send_callbacks(callbacks);
    if (session->base.server) {
        rv = nghttp2_session_server_new3(&session->ng, callbacks, session, option, &memory);
    } else {
        rv = nghttp2_session_client_new3(&session->ng, callbacks, session, option, &memory);
    }
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
    return rv < 0 ? -ENOMEM : 0;
}

/* What we say of the encodings that we decode, and the set of them. */
static void init_encodings(struct bow__http2_session *session,
                           const struct bow__session_options *options)
{
    size_t n = 0;

    session->encodings =
        (options->encodings & bow__encodings_built()) | 1u << BOW__ENCODING_IDENTITY;
    session->peer_encodings = options->assumed_encodings | 1u << BOW__ENCODING_IDENTITY;
    session->assumes_encodings = options->assumed_encodings != 0;
    for (unsigned i = 0; i < BOW__N_ENCODINGS; i++) {
        const char *name = bow__encoding_name((enum bow__encoding)i);
        if ((session->encodings >> i & 1u) == 0) {
            continue;
        }
        if (n > 0) {
            session->accept_encoding[n++] = ',';
        }
        memcpy(session->accept_encoding + n, name, strlen(name));
        n += strlen(name);
    }
    session->accept_encoding[n] = '\0';
    session->n_accept_encoding = n;
}

static void init(struct bow__http2_session *session, const struct bow__session_options *options)
{
    session->base = (struct bow__session){
        .ops = &http2_ops,
        .events = options->events,
        .owner = options->owner,
        .context = options->context,
        .in_flight = options->in_flight,
        .server = options->server,
        .retry_after_ns = options->retry_after_ns,
        .n_stream_bytes = sizeof(struct bow__http2_stream) + NGHTTP2_STREAM_BYTES,
    };
    bow__outbuf_init(&session->out, options->pool);
    bow__list_init(&session->base.work.waiting);
    bow__list_init(&session->streams);
    bow__list_init(&session->late);
    bow__list_init(&session->writables);
    bow__map_init(&session->by_key, options->context);
    session->next_key = 1;
    session->max_message_bytes = options->max_message_bytes;
    session->max_header_bytes = bow__header_limit_or_default(options->max_header_bytes);
    session->max_calls = options->max_calls;
    session->web = options->web;
    session->web_protocols = options->protocols & (BOW_PROTOCOL_CONNECT | BOW_PROTOCOL_GRPC_WEB);
    session->takes_grpc = session->web == NULL || (options->protocols & BOW_PROTOCOL_GRPC) != 0;
    session->unattended = options->unattended;
    session->user_agent = options->user_agent != NULL ? options->user_agent : BOW__USER_AGENT;
    session->scheme = options->secured ? "https" : "http";
    bow__http2_choose_fields(session);
    init_encodings(session, options);
    session->now_ns = options->now_ns;
    session->life_ns = options->now_ns;
    session->window.size = (uint32_t)BOW__HTTP2_CONNECTION_WINDOW;
    session->window.since_ns = options->now_ns;
    bow__http2_inspect_init(session);
    session->heartbeat_ns = options->heartbeat_ns;
    session->heartbeat_timeout_ns = options->heartbeat_timeout_ns;
}

static int copy_authority(struct bow__http2_session *session, struct bow_slice authority)
{
    static const char none[] = "localhost";

    if (authority.len == 0) {
        authority = (struct bow_slice){(const uint8_t *)none, sizeof(none) - 1};
    }
    session->authority =
        bow__dup(session->base.context, (const char *)authority.data, authority.len);
    if (session->authority == NULL) {
        return -ENOMEM;
    }
    session->authority_size = authority.len + 1;
    return 0;
}

static int begin(struct bow__http2_session *session, const struct bow__session_options *options)
{
    int rc = copy_authority(session, options->authority);
    if (rc < 0) {
        return rc;
    }
    rc = new_nghttp2(session);
    if (rc < 0) {
        return rc;
    }
    if (!options->server && options->first_key != 0) {
        (void)nghttp2_session_set_next_stream_id(session->ng, (int32_t)options->first_key);
    }
    return bow__http2_submit_settings(session) < 0 ? -ENOMEM : 0;
}

int bow__http2_session_new(const struct bow__session_options *options,
                           struct bow__session **ret_session)
{
    struct bow__http2_session *session = bow__alloc_zero(options->context, sizeof(*session));
    if (session == NULL) {
        return -ENOMEM;
    }
    init(session, options);
    int rc = begin(session, options);
    if (rc < 0) {
        session_free(&session->base);
        return rc;
    }
    *ret_session = &session->base;
    return 0;
}
