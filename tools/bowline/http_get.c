/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A GET on a channel of the library's. What an answer of HTTP is, is http_answer.c's; what it says,
 * nobody's business here.
 */
#include "http_get.h"
#include "say.h"
#include <bowline/channel.h>
#include <bowline/handler.h>
#include <bowline/timer.h>
#include <bowline/transport_error.h>

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_BYTES ((size_t)64 << 10)
#define MAX_BYTES (HTTP_MAX_HEAD_BYTES + HTTP_MAX_BODY_BYTES + 1)
#define MAX_TARGET 300

struct get {
    struct bow_handler handler;
    struct bow_timer timer;
    struct bow_loop *loop;
    uint64_t timeout_ns, begun_ns;
    http_got_fn done; /* NULL: it has run */
    void *user;
    char target[MAX_TARGET];
    char request[2 * MAX_TARGET + 200];
    char *bytes;
    size_t len, size;
};

static void finish(struct get *get, const struct http_answer *answer, const char *failure, int code)
{
    http_got_fn done = get->done;

    get->done = NULL;
    bow_timer_stop(&get->timer);
    if (done != NULL) {
        done(answer, failure, code, get->user);
    }
}

static void fail(struct get *get, int code, const char *format, ...) BOW_PRINTF(3, 4);

static void fail(struct get *get, int code, const char *format, ...)
{
    char failure[700];
    va_list args;

    va_start(args, format);
    vsnprintf(failure, sizeof(failure), format, args);
    va_end(args);
    finish(get, NULL, failure, code);
}

/* What came instead of an answer */

static bool begins_with(const struct get *get, const char *bytes, size_t n)
{
    return get->len >= n && memcmp(get->bytes, bytes, n) == 0;
}

/* Who speaks something else says so with its first bytes. */
static const char *what_speaks(const struct get *get)
{
    if (begins_with(get, "\xb0OW", 3)) {
        return "speaks Bowline's own protocol there: that is a port for calls";
    }
    if (get->len >= 4 && get->bytes[0] == 0 && get->bytes[3] == 4) {
        return "speaks gRPC there: that is a port for calls";
    }
    if (get->len >= 2 && (get->bytes[0] == 0x15 || get->bytes[0] == 0x16) && get->bytes[1] == 3) {
        return "expects TLS there";
    }
    if (get->len == 0) {
        return "has closed the connection without a word: it may expect TLS, or be a port for "
               "calls";
    }
    return begins_with(get, "HTTP/", 5) ? "ended its answer too early"
                                        : "does not speak HTTP there";
}

static void fail_to_read(struct get *get, int error)
{
    if (error == -EMSGSIZE) {
        fail(get, EXIT_FAILED, "the answer of %s has more than 16 MiB", get->target);
    } else {
        fail(get, EXIT_FAILED,
             "%s %s; the operations listener speaks HTTP, at the address of the server's "
             "options.operations_listen",
             get->target, what_speaks(get));
    }
}

/* The channel */

static struct get *get_of(struct bow_handler *handler)
{
    return (struct get *)(void *)handler;
}

static bool keep(struct get *get, const struct bow_buf *buf)
{
    while (get->len + buf->len > get->size) {
        size_t size = get->size > 0 ? get->size * 2 : FIRST_BYTES;
        char *larger = size < 2 * MAX_BYTES ? realloc(get->bytes, size) : NULL;
        if (larger == NULL) {
            return false;
        }
        get->bytes = larger;
        get->size = size;
    }
    if (buf->len > 0) {
        memcpy(get->bytes + get->len, buf->data, buf->len);
        get->len += buf->len;
    }
    return true;
}

static void look(struct get *get, bool is_over)
{
    struct http_answer answer;

    int rc = http_answer_read(get->bytes, get->len, is_over, &answer);
    if (rc == -EAGAIN) {
        return;
    }
    if (rc == 0) {
        finish(get, &answer, NULL, EXIT_OK);
    } else {
        fail_to_read(get, rc);
    }
    bow_channel_close(get->handler.channel, 0);
}

static size_t on_read(struct bow_handler *handler, const struct bow_buf *buf)
{
    struct get *get = get_of(handler);

    if (get->done == NULL) {
        return buf->len;
    }
    if (keep(get, buf)) {
        look(get, false);
    } else {
        fail(get, EXIT_FAILED, "no memory for the answer of %s", get->target);
        bow_channel_close(handler->channel, 0);
    }
    return buf->len;
}

static void on_eof(struct bow_handler *handler)
{
    struct get *get = get_of(handler);

    if (get->done != NULL) {
        look(get, true);
    }
}

static void on_error(struct bow_handler *handler, int error)
{
    bow_channel_close(handler->channel, error);
}

static void on_inactive(struct bow_handler *handler, int error)
{
    struct get *get = get_of(handler);

    if (get->len > 0 || error == 0) {
        fail_to_read(get, -EBADMSG);
    } else {
        fail(get, exit_of(BOW_UNAVAILABLE), "%s has ended the connection: %s", get->target,
             strerror(-error));
    }
}

static void free_get(struct get *get)
{
    free(get->bytes);
    free(get);
}

static void on_removed(struct bow_handler *handler)
{
    free_get(get_of(handler));
}

static void on_late(struct bow_timer *timer, void *user)
{
    struct get *get = user;

    (void)timer;
    fail(get, exit_of(BOW_DEADLINE_EXCEEDED),
         "%s takes connections, and has not answered for %.3g s%s", get->target,
         (double)get->timeout_ns / 1e9,
         get->len > 0 ? "" : ": is it an operations listener, and is its loop held?");
    bow_channel_close(get->handler.channel, 0);
}

static int on_channel(struct bow_channel *channel, void *user)
{
    static const struct bow_handler_ops ops = {
        .name = "get",
        .on_read = on_read,
        .on_eof = on_eof,
        .on_error = on_error,
        .on_inactive = on_inactive,
        .on_removed = on_removed,
    };
    struct get *get = user;

    get->handler.ops = &ops;
    bow_channel_add_last(channel, &get->handler);
    return 0;
}

static void on_connected(struct bow_channel *channel, const struct bow_transport_error *error,
                         void *user)
{
    struct get *get = user;

    if (channel == NULL) {
        finish(get, NULL, error->text,
               exit_of(error->error == -ETIMEDOUT ? BOW_DEADLINE_EXCEEDED : BOW_UNAVAILABLE));
        if (get->handler.channel == NULL) { /* else on_removed is to come */
            free_get(get);
        }
        return;
    }
    bow_timer_start_at(&get->timer, get->begun_ns + get->timeout_ns);
    struct bow_buf request = bow_buf_borrow(get->request, strlen(get->request));
    if (bow_channel_write(channel, &request, NULL, NULL) < 0) {
        fail(get, EXIT_FAILED, "no memory for a request");
        bow_channel_close(channel, 0);
        return;
    }
    bow_channel_flush(channel);
}

int http_get(struct bow_loop *loop, const char *target, const char *path, uint64_t timeout_ns,
             http_got_fn done, void *user)
{
    struct bow_channel_options options = BOW_CHANNEL_OPTIONS_INIT;
    struct bow_transport_error error = {0};
    struct bow_connect *connect = NULL;
    struct get *get = calloc(1, sizeof(*get));
    bool is_unix = strncmp(target, "unix", 4) == 0;

    if (get == NULL) {
        return say_failed(EXIT_FAILED, "no memory");
    }
    *get = (struct get){.loop = loop,
                        .timeout_ns = timeout_ns,
                        .begun_ns = bow_loop_now(loop),
                        .done = done,
                        .user = user};
    snprintf(get->target, sizeof(get->target), "%s", target);
    snprintf(get->request, sizeof(get->request),
             "GET %s HTTP/1.1\r\nHost: %s\r\nAccept: application/json\r\n"
             "Connection: close\r\nUser-Agent: bowline-tool/" BOWLINE_VERSION "\r\n\r\n",
             path, is_unix ? "localhost" : get->target);
    bow_timer_init(&get->timer, loop, on_late, get);
    options.on_channel = on_channel;
    options.user = get;
    if (bow_connect_start(loop, target, &options, timeout_ns, on_connected, get, &connect, &error) <
        0) {
        free(get);
        return say_failed(EXIT_USAGE, "%s", error.text[0] != '\0' ? error.text : "no memory");
    }
    return EXIT_OK;
}
