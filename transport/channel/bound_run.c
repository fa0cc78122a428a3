/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The side of a bound handler that is on the executor: its callbacks, one after the
 * other, with what it does not consume kept for it; and the gate, by which what it passes on
 * gets back to the loop. The design stands in bound.h.
 */

#include "transport/channel/bound.h"

#include <assert.h>
#include <errno.h>

/* Back to the loop */

static void fire(struct bow__bound *bound, enum bow__bound_kind kind, int value,
                 const struct bow_buf *bytes)
{
    struct bow__bound_event *event = bow__bound_event_new(bound, kind, value, bytes);
    if (event == NULL) {
        bow_channel_close(bound->channel, -ENOMEM);
        return;
    }
    event->task.fn = bow__bound_run_fired;
    if (bow__bound_post_to_loop(bound, &event->task) < 0) {
        bow__bound_event_free(event); /* all is over */
    }
}

/* What can't be delivered now is kept for whoever reads behind; each piece is a batch of its own.
 */
static void fire_read_here(struct bow__bound *bound, const struct bow_buf *bytes)
{
    if (bow_handler_fire_read(&bound->proxy, bytes) < bytes->len) {
        bow__pipeline_keep_behind(&bound->proxy, bytes);
    }
    bow_handler_fire_read_complete(&bound->proxy);
}

static void fire_here(struct bow__bound *bound, const struct bow__bound_event *event)
{
    struct bow_handler *proxy = &bound->proxy;

    switch (event->kind) {
    case BOW__BOUND_ACTIVE:
        bow_handler_fire_active(proxy);
        break;
    case BOW__BOUND_READ:
        fire_read_here(bound, &event->bytes);
        break;
    case BOW__BOUND_READ_COMPLETE:
        bow_handler_fire_read_complete(proxy);
        break;
    case BOW__BOUND_EOF:
        bow_handler_fire_eof(proxy);
        break;
    case BOW__BOUND_WRITABLE:
        bow_handler_fire_writable(proxy, event->value != 0);
        break;
    default:
        bow_handler_fire_error(proxy, event->value);
        break;
    }
}

int bow__bound_run_fired(void *user)
{
    struct bow__bound_event *event = user;
    struct bow__bound *bound = event->bound;

    if (bow__channel_is_open(bound->channel) && bow__pipeline_is_in(&bound->proxy)) {
        fire_here(bound, event);
    }
    bow__bound_event_free(event);
    bow__bound_unref(bound);
    return 0;
}

/* The gate */

static struct bow__bound *of_gate(struct bow_handler *gate)
{
    return BOW__CONTAINER(gate, struct bow__bound, gate);
}

static void gate_active(struct bow_handler *gate)
{
    fire(of_gate(gate), BOW__BOUND_ACTIVE, 0, NULL);
}

static void gate_read_complete(struct bow_handler *gate)
{
    fire(of_gate(gate), BOW__BOUND_READ_COMPLETE, 0, NULL);
}

static void gate_eof(struct bow_handler *gate)
{
    fire(of_gate(gate), BOW__BOUND_EOF, 0, NULL);
}

static void gate_writable(struct bow_handler *gate, bool writable)
{
    fire(of_gate(gate), BOW__BOUND_WRITABLE, writable, NULL);
}

static void gate_error(struct bow_handler *gate, int error)
{
    fire(of_gate(gate), BOW__BOUND_ERROR, error, NULL);
}

size_t bow__bound_fire_read(struct bow_handler *handler, const struct bow_buf *bytes)
{
    fire(bow__bound_of(handler), BOW__BOUND_READ, 0, bytes);
    return bytes->len;
}

/* The channel's own functions are for any thread; they begin at the tail. */
static int gate_write(struct bow_handler *gate, struct bow_buf *buf, bow_write_fn done, void *user)
{
    int rc = bow_channel_write(gate->channel, buf, done, user);
    if (rc == 0) {
        bow_buf_unref(buf);
    }
    return rc;
}

static void gate_flush(struct bow_handler *gate)
{
    bow_channel_flush(gate->channel);
}

static void gate_close(struct bow_handler *gate, int error)
{
    bow_channel_close(gate->channel, error);
}

const struct bow_handler_ops bow__bound_gate_ops = {
    .name = "gate",
    .on_active = gate_active,
    .on_read_complete = gate_read_complete,
    .on_eof = gate_eof,
    .on_writable = gate_writable,
    .on_error = gate_error,
    .on_write = gate_write,
    .on_flush = gate_flush,
    .on_close = gate_close,
};

/* The handler's callbacks */

static void keep(struct bow__bound *bound, struct bow_slice bytes)
{
    struct bow_channel *channel = bound->channel;

    int rc = bow__unread_append(channel->context, &bound->unread, bytes);
    if (rc < 0) {
        bow_channel_close(channel, rc);
    }
}

static size_t call_on_read(struct bow__bound *bound, struct bow_buf bytes)
{
    size_t n = bound->handler->ops->on_read(bound->handler, &bytes);
    assert(n <= bytes.len);
    return n;
}

static void run_read(struct bow__bound *bound, const struct bow_buf *bytes)
{
    const bool has_more_before = bound->unread != NULL;
    size_t n = 0;

    if (!has_more_before && !bow__bound_is_leaving(bound)) {
        n = call_on_read(bound, *bytes);
    }
    if (n < bytes->len) {
        keep(bound, (struct bow_slice){bytes->data + n, bytes->len - n});
    }
    if (has_more_before && !bow__bound_is_leaving(bound)) {
        struct bow_slice all = bow__unread_bytes(bound->unread);
        n = call_on_read(bound, bow_buf_borrow(all.data, all.len));
        bow__unread_consume(bound->channel->context, &bound->unread, n);
    }
}

static void run_added(struct bow__bound *bound)
{
    if (bound->handler->ops->on_added != NULL) {
        bound->handler->ops->on_added(bound->handler);
    }
}

static void run_eof(struct bow__bound *bound)
{
    if (bound->handler->ops->on_eof != NULL) {
        bound->handler->ops->on_eof(bound->handler);
    } else {
        gate_eof(&bound->gate);
    }
}

static void run_removed(struct bow__bound *bound)
{
    struct bow_channel *channel = bound->channel;
    struct bow_handler *handler = bound->handler;

    /* Its memory may go with this. */
    if (handler->ops->on_removed != NULL) {
        handler->ops->on_removed(handler);
    }
    if (bow__channel_is_open(channel)) {
        (void)bow__bound_post_to_loop(bound, &bound->hand_over_task); /* or all is over */
    }
}

/* On its way to a handler that leaves: it is for those behind. */
static void pass_by(struct bow__bound *bound, const struct bow__bound_event *event)
{
    switch (event->kind) {
    case BOW__BOUND_READ:
        run_read(bound, &event->bytes);
        break;
    case BOW__BOUND_EOF:
        bound->has_late_eof = true; /* behind the bytes, which come with the hand-over */
        break;
    case BOW__BOUND_REMOVED:
        run_removed(bound);
        break;
    case BOW__BOUND_ADDED:
        run_added(bound);
        break;
    case BOW__BOUND_INACTIVE:
        break;
    default:
        fire(bound, event->kind, event->value, NULL);
        break;
    }
}

static void call_handler(struct bow__bound *bound, const struct bow__bound_event *event)
{
    struct bow_handler *handler = bound->handler;
    const struct bow_handler_ops *ops = handler->ops;

    switch (event->kind) {
    case BOW__BOUND_ADDED:
        run_added(bound);
        break;
    case BOW__BOUND_ACTIVE:
        ops->on_active(handler);
        break;
    case BOW__BOUND_READ:
        run_read(bound, &event->bytes);
        break;
    case BOW__BOUND_READ_COMPLETE:
        ops->on_read_complete(handler);
        break;
    case BOW__BOUND_EOF:
        run_eof(bound);
        break;
    case BOW__BOUND_WRITABLE:
        ops->on_writable(handler, event->value != 0);
        break;
    case BOW__BOUND_ERROR:
        ops->on_error(handler, event->value);
        break;
    case BOW__BOUND_INACTIVE:
        ops->on_inactive(handler, event->value);
        break;
    case BOW__BOUND_REMOVED:
        run_removed(bound);
        break;
    }
}

int bow__bound_run(void *user)
{
    struct bow__bound_event *event = user;
    struct bow__bound *bound = event->bound;
    const enum bow__bound_kind kind = event->kind;
    const size_t cost = bow__bound_cost(&event->bytes);

    if (bow__bound_is_leaving(bound)) {
        pass_by(bound, event);
    } else {
        call_handler(bound, event);
    }
    if (kind == BOW__BOUND_READ) {
        bow__bound_took(bound, cost);
    }
    if (event != &bound->added && event != &bound->inactive && event != &bound->removed) {
        bow__bound_event_free(event);
    }
    bow__bound_unref(bound);
    return 0;
}
