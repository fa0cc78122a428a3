/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Hex dump lines of what passes. Bytes that come again because nobody consumed them are not
 * shown again. Knows nothing of what they mean.
 */

#include "base/log.h"
#include "base/text.h"
#include "transport/channel/channel.h"

#include <bowline/trace.h>
#include <string.h>

#define LINE_BYTES 16
#define DEFAULT_MAX_BYTES 256
#define LABEL_BYTES 128

static struct bow_trace *trace_of(struct bow_handler *handler)
{
    return (struct bow_trace *)(void *)handler;
}

static bool is_on(const struct bow_trace *trace)
{
    return trace->options.line != NULL ||
           bow__log_shows(trace->handler.channel->context, trace->options.level);
}

static void begin(const struct bow_trace *trace, struct bow__text *text)
{
    const char *label = trace->options.label;

    if (label == NULL) {
        label = bow_channel_peer(trace->handler.channel);
    }
    bow__text_clear(text);
    bow__text_escape(text, (struct bow_slice){(const uint8_t *)label, strlen(label)}, LABEL_BYTES);
}

static void emit(const struct bow_trace *trace, const struct bow__text *text)
{
    if (trace->options.line != NULL) {
        trace->options.line(text->bytes, trace->options.user);
    } else {
        bow__log(trace->handler.channel->context, trace->options.level, "%s", text->bytes);
    }
}

static void show_event(const struct bow_trace *trace, const char *event)
{
    struct bow__text text;

    if (is_on(trace)) {
        begin(trace, &text);
        bow__text_printf(&text, " %s", event);
        emit(trace, &text);
    }
}

static void show_error(const struct bow_trace *trace, const char *event, int error)
{
    struct bow__text text;

    if (!is_on(trace)) {
        return;
    }
    begin(trace, &text);
    bow__text_printf(&text, " %s", event);
    if (error != 0) {
        bow__text_printf(&text, ": ");
        bow__text_errno(&text, error);
    }
    emit(trace, &text);
}

static void show_line(const struct bow_trace *trace, const char *way, uint64_t position,
                      struct bow_slice bytes)
{
    struct bow__text text;
    char shown[LINE_BYTES + 1] = {0};

    begin(trace, &text);
    bow__text_printf(&text, " %-3s %08llx ", way, (unsigned long long)position);
    for (size_t i = 0; i < LINE_BYTES; i++) {
        if (i < bytes.len) {
            uint8_t byte = bytes.data[i];
            shown[i] = (char)(byte >= 0x20 && byte < 0x7F ? byte : '.');
            bow__text_printf(&text, " %02x", byte);
        } else {
            bow__text_printf(&text, "   ");
        }
    }
    bow__text_printf(&text, "  |%s|", shown);
    emit(trace, &text);
}

static void show_bytes(const struct bow_trace *trace, const char *way, uint64_t position,
                       struct bow_slice bytes)
{
    size_t max = trace->options.max_bytes;
    struct bow__text text;

    if (!is_on(trace)) {
        return;
    }
    size_t n = bytes.len < max ? bytes.len : max;
    for (size_t at = 0; at < n; at += LINE_BYTES) {
        size_t len = n - at < LINE_BYTES ? n - at : LINE_BYTES;
        show_line(trace, way, position + at, (struct bow_slice){bytes.data + at, len});
    }
    if (n < bytes.len) {
        begin(trace, &text);
        bow__text_printf(&text, " %-3s ... and %zu bytes more", way, bytes.len - n);
        emit(trace, &text);
    }
}

/* Inbound */

static void on_active(struct bow_handler *handler)
{
    show_event(trace_of(handler), "active");
    bow_handler_fire_active(handler);
}

static size_t on_read(struct bow_handler *handler, const struct bow_buf *bytes)
{
    struct bow_trace *trace = trace_of(handler);
    size_t n_old = trace->n_shown < bytes->len ? trace->n_shown : bytes->len;
    const struct bow_slice fresh = {bytes->data + n_old, bytes->len - n_old};

    show_bytes(trace, "in", trace->n_in, fresh);
    trace->n_in += fresh.len;
    trace->n_shown = bytes->len;
    size_t n = bow_handler_fire_read(handler, bytes);
    trace->n_shown -= n;
    return n;
}

static void on_eof(struct bow_handler *handler)
{
    show_event(trace_of(handler), "eof");
    bow_handler_fire_eof(handler);
}

static void on_writable(struct bow_handler *handler, bool writable)
{
    show_event(trace_of(handler), writable ? "writable" : "not writable");
    bow_handler_fire_writable(handler, writable);
}

static void on_error(struct bow_handler *handler, int error)
{
    show_error(trace_of(handler), "error", error);
    bow_handler_fire_error(handler, error);
}

static void on_inactive(struct bow_handler *handler, int error)
{
    show_error(trace_of(handler), "closed", error);
}

/* Outbound */

static int on_write(struct bow_handler *handler, struct bow_buf *buf, bow_write_fn done, void *user)
{
    struct bow_trace *trace = trace_of(handler);
    const struct bow_slice bytes = {buf->data, buf->len};

    show_bytes(trace, "out", trace->n_out, bytes);
    trace->n_out += bytes.len;
    return bow_handler_write(handler, buf, done, user);
}

static void on_close(struct bow_handler *handler, int error)
{
    show_error(trace_of(handler), "close", error);
    bow_handler_close(handler, error);
}

static int on_drain(struct bow_handler *handler, struct iovec *pieces, int max)
{
    struct bow_trace *trace = trace_of(handler);

    trace->n_pieces =
        bow_handler_drain(handler, pieces, max < BOW_TRACE_MAX_PIECES ? max : BOW_TRACE_MAX_PIECES);
    if (trace->n_pieces > 0) {
        memcpy(trace->pieces, pieces, (size_t)trace->n_pieces * sizeof(*pieces));
    }
    return trace->n_pieces;
}

static void on_sent(struct bow_handler *handler, size_t n)
{
    struct bow_trace *trace = trace_of(handler);
    size_t left = n;

    for (int i = 0; i < trace->n_pieces && left > 0; i++) {
        const struct iovec *piece = &trace->pieces[i];
        size_t len = piece->iov_len < left ? piece->iov_len : left;
        show_bytes(trace, "out", trace->n_out, (struct bow_slice){piece->iov_base, len});
        trace->n_out += len;
        left -= len;
    }
    trace->n_pieces = 0;
    bow_handler_sent(handler, n);
}

static const struct bow_handler_ops trace_ops = {
    .name = "trace",
    .on_active = on_active,
    .on_read = on_read,
    .on_eof = on_eof,
    .on_writable = on_writable,
    .on_error = on_error,
    .on_inactive = on_inactive,
    .on_write = on_write,
    .on_close = on_close,
    .on_drain = on_drain,
    .on_sent = on_sent,
};

void bow_trace_init(struct bow_trace *trace, const struct bow_trace_options *options)
{
    memset(trace, 0, sizeof(*trace));
    trace->options = *options;
    if (trace->options.max_bytes == 0) {
        trace->options.max_bytes = DEFAULT_MAX_BYTES;
    }
    trace->handler.ops = &trace_ops;
}
