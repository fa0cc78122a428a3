/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * First bytes, a limit, a time-out, and a function that decides. Knows no protocol.
 */

#include "transport/channel/channel.h"

#include <bowline/detect.h>
#include <bowline/limits.h>
#include <errno.h>
#include <string.h>

#define DEFAULT_MAX_BYTES 64

static struct bow_detect *detect_of(struct bow_handler *handler)
{
    return (struct bow_detect *)(void *)handler;
}

static void stop(struct bow_detect *detect)
{
    detect->is_over = true;
    bow_timer_stop(&detect->timer);
}

static void fail(struct bow_detect *detect, int error)
{
    if (detect->is_over) {
        return;
    }
    stop(detect);
    if (detect->options.on_failed != NULL) {
        detect->options.on_failed(detect, error, detect->options.user);
    }
    bow_handler_close(&detect->handler, error);
}

static void on_timer(struct bow_timer *timer, void *user)
{
    (void)timer;
    fail(user, -ETIMEDOUT);
}

static void on_added(struct bow_handler *handler)
{
    struct bow_detect *detect = detect_of(handler);

    bow_timer_init(&detect->timer, bow_channel_loop(handler->channel), on_timer, detect);
    bow_timer_start(&detect->timer, detect->options.timeout_ns);
}

static void on_active(struct bow_handler *handler)
{
    detect_of(handler)->holds_active = true;
}

/* What is behind becomes active first; the bytes follow when on_read returns. */
static void leave(struct bow_detect *detect)
{
    stop(detect);
    bow_channel_remove(&detect->handler);
    if (detect->holds_active) {
        bow_handler_fire_active(&detect->handler);
    }
}

static size_t on_read(struct bow_handler *handler, const struct bow_buf *bytes)
{
    struct bow_detect *detect = detect_of(handler);
    const struct bow_slice slice = {bytes->data, bytes->len};

    if (detect->is_over || bytes->len == 0) {
        return 0;
    }
    detect->n_seen = bytes->len;
    int rc = detect->options.decide(detect, slice, detect->options.user);
    if (!bow__channel_is_open(handler->channel) || !bow__pipeline_is_in(handler)) {
        return 0; /* it closed, or took us out, by itself */
    }
    if (rc == 0) {
        leave(detect);
    } else if (rc != -EAGAIN) {
        fail(detect, rc);
    } else if (bytes->len >= detect->options.max_bytes) {
        fail(detect, -EMSGSIZE);
    }
    return 0;
}

/* Goes no further: nobody behind has heard of the channel yet. */
static void on_read_complete(struct bow_handler *handler)
{
    (void)handler;
}

static void on_eof(struct bow_handler *handler)
{
    struct bow_detect *detect = detect_of(handler);

    if (detect->n_seen > 0) {
        fail(detect, -EBADMSG);
        return;
    }
    stop(detect);
    bow_handler_close(handler, 0);
}

static void on_inactive(struct bow_handler *handler, int error)
{
    (void)error;
    stop(detect_of(handler));
}

static void on_removed(struct bow_handler *handler)
{
    stop(detect_of(handler));
}

static const struct bow_handler_ops detect_ops = {
    .name = "detect",
    .on_added = on_added,
    .on_removed = on_removed,
    .on_active = on_active,
    .on_read = on_read,
    .on_read_complete = on_read_complete,
    .on_eof = on_eof,
    .on_inactive = on_inactive,
};

int bow_detect_init(struct bow_detect *detect, const struct bow_detect_options *options)
{
    if (options->decide == NULL) {
        return -EINVAL;
    }
    memset(detect, 0, sizeof(*detect));
    detect->options = *options;
    if (detect->options.max_bytes == 0) {
        detect->options.max_bytes = DEFAULT_MAX_BYTES;
    }
    if (detect->options.timeout_ns == 0) {
        detect->options.timeout_ns = BOW_LIMIT_FIRST_FRAME_NS;
    }
    detect->handler.ops = &detect_ops;
    return 0;
}
