/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A connection of the operations listener: HTTP/1.1 read, answered, sent, and each of these bounded
 * in time. What is answered is routes.c's. */
#include "rpc/server/operations/operations_conn.h"

#include <bowline/limits.h>
#include <errno.h>
#include <string.h>

/* Time for the last answer to leave, when the server ends. */
#define CLOSE_NS (UINT64_C(1) * 1000000000u)
/* Time for loops that are busy. */
#define GATHER_NS (UINT64_C(1) * 1000000000u)

static struct bow__operations_conn *conn_of(struct bow_handler *handler)
{
    return (struct bow__operations_conn *)(void *)handler;
}

static void enter(struct bow__operations_conn *conn, enum bow__operations_conn_state state)
{
    static const uint64_t limits[] = {
        [BOW__OPERATIONS_IDLE] = BOW_LIMIT_OPERATIONS_IDLE_NS,
        [BOW__OPERATIONS_READING] = BOW_LIMIT_OPERATIONS_REQUEST_NS,
        [BOW__OPERATIONS_GATHERING] = 2 * GATHER_NS,
        [BOW__OPERATIONS_SENDING] = BOW_LIMIT_OPERATIONS_SEND_NS,
    };

    conn->state = state;
    bow_timer_start(&conn->timer, limits[state]);
}

/* The channel keeps the time itself. */
static void close_when_sent(struct bow__operations_conn *conn, uint64_t timeout_ns)
{
    conn->state = BOW__OPERATIONS_CLOSING;
    bow_timer_stop(&conn->timer);
    bow_channel_close_after_flush(conn->handler.channel, timeout_ns);
}

/* Sending */

/* Nothing that is said here is to be kept, shown inside of another page, or taken for another type.
 */
static void write_head(struct bow__http1_writer *writer,
                       const struct bow__operations_answer *answer)
{
    bow__http1_write_status(writer, answer->status);
    bow__http1_write_field(writer, "Content-Type", answer->type);
    bow__http1_write_field(writer, "Cache-Control", "no-store");
    bow__http1_write_field(writer, "Content-Security-Policy",
                           answer->policy != NULL
                               ? answer->policy
                               : "default-src 'none'; frame-ancestors 'none'; sandbox");
    bow__http1_write_field(writer, "Cross-Origin-Resource-Policy", "same-origin");
    bow__http1_write_field(writer, "Referrer-Policy", "no-referrer");
    bow__http1_write_field(writer, "X-Content-Type-Options", "nosniff");
    if (answer->allow != NULL) {
        bow__http1_write_field(writer, "Allow", answer->allow);
    }
}

static int write_bytes(struct bow__operations_conn *conn, const void *bytes, size_t len,
                       bow_write_fn done)
{
    struct bow_buf buf = bow_buf_borrow(bytes, len);

    return bow_channel_write(conn->handler.channel, &buf, done, conn);
}

static void on_sent(struct bow_channel *channel, int error, void *user);

static void drop_answer(struct bow__operations_conn *conn)
{
    if (conn->answer_is_made) {
        conn->answer_is_made = false;
        bow__operations_answer_fini(&conn->answer);
    }
}

/* The peer is not read from before the answer has left: what it asks for waits with it. */
static void send_answer(struct bow__operations_conn *conn)
{
    char head[2048];
    struct bow__http1_writer writer;

    bow__http1_writer_init(&writer, head, sizeof(head));
    write_head(&writer, &conn->answer);
    enum bow__http1_framing framing =
        bow__http1_end_head(&writer, conn->answer.status, &conn->asked, conn->answer.n_body);
    bool has_body = framing == BOW__HTTP1_SENDS_LENGTH && conn->answer.n_body > 0;

    enter(conn, BOW__OPERATIONS_SENDING);
    bow_channel_pause_read(conn->handler.channel);
    int rc = writer.error;
    if (rc == 0) {
        rc = write_bytes(conn, head, writer.len, has_body ? NULL : on_sent);
    }
    if (rc == 0 && has_body) {
        rc = write_bytes(conn, conn->answer.body, conn->answer.n_body, on_sent);
    }
    drop_answer(conn);
    if (rc < 0) {
        bow_channel_close(conn->handler.channel, rc);
        return;
    }
    bow_channel_flush(conn->handler.channel);
    if (!conn->asked.keep_alive) {
        close_when_sent(conn, BOW_LIMIT_OPERATIONS_SEND_NS);
    }
}

static void on_sent(struct bow_channel *channel, int error, void *user)
{
    struct bow__operations_conn *conn = user;

    if (error == 0 && conn->state == BOW__OPERATIONS_SENDING) {
        enter(conn, BOW__OPERATIONS_IDLE);
        bow_channel_resume_read(channel);
    }
}

/* Asking loops */

static void on_gathered(struct bow__gather *gather, void *user)
{
    struct bow__operations_conn *conn = user;

    conn->gather = NULL;
    bow__operations_finish(conn->host, &conn->request, gather, &conn->answer);
    bow__gather_unref(gather);
    send_answer(conn);
}

static void start_gather(struct bow__operations_conn *conn)
{
    struct bow__gather *gather = NULL;

    int rc = conn->host->gather(conn->host->server, &conn->limits, &gather);
    if (rc < 0) {
        bow__operations_answer_say(&conn->answer, 503, "the server has no memory for the answer");
        send_answer(conn);
        return;
    }
    enter(conn, BOW__OPERATIONS_GATHERING);
    bow_channel_pause_read(conn->handler.channel);
    conn->gather = gather;
    bow__gather_start(gather, bow_channel_loop(conn->handler.channel), GATHER_NS, on_gathered,
                      conn);
}

/* Reading */

/* The answer is made with the head, for that is gone when the end of the request has come. */
static void on_head(struct bow__operations_conn *conn, const struct bow__http1_request *request)
{
    conn->asked = bow__http1_asked_of(request);
    drop_answer(conn);
    bow__operations_answer_init(&conn->answer, conn->context);
    conn->answer_is_made = true;
    if (bow__operations_begin(conn->host, request, &conn->request, &conn->answer, &conn->limits)) {
        conn->request.route = NULL;
    }
}

static void on_end(struct bow__operations_conn *conn)
{
    if (conn->request.route != NULL) {
        start_gather(conn);
    } else {
        send_answer(conn);
    }
}

/* It is not known where the next request begins, so there is none. */
static void refuse(struct bow__operations_conn *conn)
{
    conn->asked = bow__http1_asked_of_nothing();
    drop_answer(conn);
    bow__operations_answer_init(&conn->answer, conn->context);
    conn->answer_is_made = true;
    bow__operations_answer_say(&conn->answer, conn->parser.error.status, conn->parser.error.text);
    send_answer(conn);
}

static bool is_reading(const struct bow__operations_conn *conn)
{
    return conn->state == BOW__OPERATIONS_IDLE || conn->state == BOW__OPERATIONS_READING;
}

static size_t on_read(struct bow_handler *handler, const struct bow_buf *buf)
{
    struct bow__operations_conn *conn = conn_of(handler);
    struct bow_slice bytes = {buf->data, buf->len};
    struct bow__http1_event event;
    ssize_t n = 0;

    while (is_reading(conn)) {
        n = bow__http1_next(&conn->parser, bytes, &event);
        if (n < 0) {
            break;
        }
        bytes.data += n;
        bytes.len -= (size_t)n;
        if (event.kind == BOW__HTTP1_HEAD) {
            on_head(conn, &event.request);
        } else if (event.kind == BOW__HTTP1_END) {
            on_end(conn);
        }
    }
    if (n == -EBADMSG) {
        refuse(conn);
        return buf->len;
    }
    if (conn->state == BOW__OPERATIONS_IDLE && !bow__http1_parser_is_idle(&conn->parser)) {
        enter(conn, BOW__OPERATIONS_READING);
    }
    return conn->state == BOW__OPERATIONS_CLOSING ? buf->len : buf->len - bytes.len;
}

static void on_timer(struct bow_timer *timer, void *user)
{
    struct bow__operations_conn *conn = user;

    (void)timer;
    bow_channel_close(conn->handler.channel, conn->state == BOW__OPERATIONS_IDLE ? 0 : -ETIMEDOUT);
}

static void on_inactive(struct bow_handler *handler, int error)
{
    struct bow__operations_conn *conn = conn_of(handler);

    (void)error;
    bow_timer_stop(&conn->timer);
    bow__gather_unref(conn->gather);
    conn->gather = NULL;
    drop_answer(conn);
    bow__list_remove(&conn->link);
    conn->on_gone(conn->user);
}

/* Its timers and peers' ends are no errors of anybody's. */
static void on_error(struct bow_handler *handler, int error)
{
    bow_channel_close(handler->channel, error);
}

void bow__operations_conn_init(struct bow__operations_conn *conn, struct bow_channel *channel,
                               struct bow_context *context, const struct bow__operations_host *host,
                               struct bow__link *conns, void (*on_gone)(void *user), void *user)
{
    static const struct bow_handler_ops ops = {
        .name = "operations",
        .on_read = on_read,
        .on_inactive = on_inactive,
        .on_error = on_error,
    };
    struct bow__http1_limits limits = BOW__HTTP1_LIMITS_INIT;

    limits.max_body_bytes = 0;
    conn->handler.ops = &ops;
    conn->context = context;
    conn->host = host;
    conn->on_gone = on_gone;
    conn->user = user;
    bow__http1_parser_init(&conn->parser, &limits);
    bow__list_push_back(conns, &conn->link);
    bow_channel_add_last(channel, &conn->handler);
    bow_timer_init(&conn->timer, bow_channel_loop(channel), on_timer, conn);
    /* Who connects has something to ask. */
    enter(conn, BOW__OPERATIONS_IDLE);
    bow_timer_start(&conn->timer, BOW_LIMIT_OPERATIONS_REQUEST_NS);
}

void bow__operations_conn_close(struct bow__operations_conn *conn)
{
    if (conn->state == BOW__OPERATIONS_SENDING || conn->state == BOW__OPERATIONS_CLOSING) {
        close_when_sent(conn, CLOSE_NS);
    } else {
        bow_channel_close(conn->handler.channel, 0);
    }
}
