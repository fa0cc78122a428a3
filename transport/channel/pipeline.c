/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The chain of handlers: adding and removing them, and passing events from one to
 * the next. The two ends are handlers of the channel itself: the head is where
 * output ends, the tail where inbound events end. Knows nothing of the socket.
 *
 * A removed handler stays linked to its neighbours until the turn ends, so that a
 * callback that removes its own handler can go on passing events.
 */

#include "transport/channel/pipeline.h"
#include "base/hints.h"
#include "base/log.h"
#include "base/text.h"
#include "transport/channel/bound.h"

#include <assert.h>
#include <errno.h>

/* The previous handler towards the head that has `op`, one of those the head has. */
static struct bow_handler *prev_with(struct bow_handler *handler, size_t op)
{
    struct bow_handler *prev = handler->prev;

    while (!bow__handler_is_live(prev) || !bow__handler_has(prev, op)) {
        prev = prev->prev;
    }
    return prev;
}

/* Events of a closed channel go nowhere: on_inactive is what comes next. */
static struct bow_handler *receiver(struct bow_handler *handler, size_t op)
{
    return bow__channel_is_open(handler->channel) ? bow__handler_next(handler, op) : NULL;
}

/* Inbound events */

void bow_handler_fire_active(struct bow_handler *handler)
{
    struct bow_handler *next = receiver(handler, BOW__OP(on_active));
    struct bow__watchdog watchdog;

    if (next != NULL) {
        bow__handler_enter(&watchdog, next);
        next->ops->on_active(next);
        bow__watchdog_end(&watchdog);
    }
}

void bow_handler_fire_read_complete(struct bow_handler *handler)
{
    struct bow_handler *next = receiver(handler, BOW__OP(on_read_complete));
    struct bow__watchdog watchdog;

    if (next != NULL) {
        bow__handler_enter(&watchdog, next);
        next->ops->on_read_complete(next);
        bow__watchdog_end(&watchdog);
    }
}

void bow_handler_fire_eof(struct bow_handler *handler)
{
    struct bow_handler *next = receiver(handler, BOW__OP(on_eof));
    struct bow__watchdog watchdog;

    if (next != NULL) {
        bow__handler_enter(&watchdog, next);
        next->ops->on_eof(next);
        bow__watchdog_end(&watchdog);
    }
}

void bow_handler_fire_writable(struct bow_handler *handler, bool writable)
{
    struct bow_handler *next = receiver(handler, BOW__OP(on_writable));
    struct bow__watchdog watchdog;

    if (next != NULL) {
        bow__handler_enter(&watchdog, next);
        next->ops->on_writable(next, writable);
        bow__watchdog_end(&watchdog);
    }
}

void bow_handler_fire_error(struct bow_handler *handler, int error)
{
    struct bow_handler *next = receiver(handler, BOW__OP(on_error));
    struct bow__watchdog watchdog;

    if (next != NULL) {
        bow__handler_enter(&watchdog, next);
        next->ops->on_error(next, error);
        bow__watchdog_end(&watchdog);
    }
}

/* Outbound operations */

int bow_handler_drain(struct bow_handler *handler, struct iovec *pieces, int max)
{
    struct bow_handler *next = receiver(handler, BOW__OP(on_drain));

    return next != NULL ? next->ops->on_drain(next, pieces, max) : 0;
}

void bow_handler_sent(struct bow_handler *handler, size_t n)
{
    struct bow_handler *next = bow__handler_next(handler, BOW__OP(on_drain));

    if (next != NULL) {
        next->ops->on_sent(next, n);
    }
}

BOW__LONG_WAY static int write_watched(struct bow_handler *handler, struct bow_buf *buf,
                                       bow_write_fn done, void *user)
{
    struct bow__watchdog watchdog;

    bow__handler_enter(&watchdog, handler);
    int rc = handler->ops->on_write(handler, buf, done, user);
    bow__watchdog_end(&watchdog);
    return rc;
}

int bow_handler_write(struct bow_handler *handler, struct bow_buf *buf, bow_write_fn done,
                      void *user)
{
    struct bow_handler *prev = prev_with(handler, BOW__OP(on_write));

    if (!prev->channel->is_held_to_time) {
        return prev->ops->on_write(prev, buf, done, user);
    }
    return write_watched(prev, buf, done, user);
}

void bow_handler_flush(struct bow_handler *handler)
{
    struct bow_handler *prev = prev_with(handler, BOW__OP(on_flush));
    struct bow__watchdog watchdog;

    bow__handler_enter(&watchdog, prev);
    prev->ops->on_flush(prev);
    bow__watchdog_end(&watchdog);
}

void bow_handler_close(struct bow_handler *handler, int error)
{
    struct bow_handler *prev = prev_with(handler, BOW__OP(on_close));
    struct bow__watchdog watchdog;

    bow__handler_enter(&watchdog, prev);
    prev->ops->on_close(prev, error);
    bow__watchdog_end(&watchdog);
}

struct bow_handler *bow__pipeline_drain_handler(struct bow_channel *channel)
{
    return bow__handler_next(&channel->head, BOW__OP(on_drain));
}

bool bow__pipeline_filters_writes(struct bow_channel *channel)
{
    return prev_with(&channel->tail, BOW__OP(on_write)) != &channel->head;
}

/* Adding and removing */

/* What came while nobody read is the new handler's. */
static void take_waiting(struct bow_handler *handler)
{
    struct bow_channel *channel = handler->channel;

    if (handler->ops->on_read == NULL) {
        return;
    }
    if (bow__handler_next(handler, BOW__OP(on_read)) == NULL) {
        handler->unread = channel->tail.unread;
        channel->tail.unread = NULL;
    }
    if (handler->unread != NULL || channel->unread != NULL) {
        channel->wants_delivery = true;
        bow__channel_again(channel);
    }
}

static void insert(struct bow_handler *prev, struct bow_handler *handler)
{
    struct bow_channel *channel = prev->channel;

    assert(bow__loop_may_touch(channel->loop));
    assert(!channel->has_ended);
    handler->channel = channel;
    handler->unread = NULL;
    handler->gone_next = NULL;
    handler->flags = 0;
    handler->prev = prev;
    handler->next = prev->next;
    prev->next->prev = handler;
    prev->next = handler;
    take_waiting(handler);
    if (handler->ops->on_added != NULL) {
        handler->ops->on_added(handler);
    }
}

void bow_channel_add_last(struct bow_channel *channel, struct bow_handler *handler)
{
    insert(channel->tail.prev, handler);
}

void bow_channel_add_first(struct bow_channel *channel, struct bow_handler *handler)
{
    insert(&channel->head, handler);
}

void bow_channel_add_after(struct bow_handler *handler, struct bow_handler *added)
{
    if ((handler->flags & BOW__HANDLER_BOUND) != 0) {
        handler = bow__bound_proxy(handler);
    }
    while (!bow__handler_is_live(handler)) {
        handler = handler->prev;
    }
    insert(handler, added);
}

void bow_channel_remove(struct bow_handler *handler)
{
    struct bow_channel *channel = handler->channel;

    if ((handler->flags & BOW__HANDLER_BOUND) != 0) {
        bow__bound_remove(handler);
        return;
    }
    assert(bow__loop_may_touch(channel->loop));
    if (!bow__handler_is_live(handler)) {
        return;
    }
    handler->flags |= BOW__HANDLER_REMOVED;
    handler->prev->next = handler->next;
    handler->next->prev = handler->prev;
    channel->n_removed++;
    bow__pipeline_hand_on_kept(handler);
    if (channel->unread != NULL) {
        channel->wants_delivery = true;
        bow__channel_again(channel);
    }
    *channel->gone_end = handler;
    channel->gone_end = &handler->gone_next;
    bow__channel_touch_reap(channel);
}

bool bow__pipeline_is_in(const struct bow_handler *handler)
{
    return bow__handler_is_live(handler);
}

void bow__pipeline_inactive(struct bow_channel *channel, int error)
{
    struct bow_handler *handler = channel->head.next;
    struct bow__watchdog watchdog;

    for (; handler != &channel->tail; handler = handler->next) {
        if (bow__handler_is_live(handler) && handler->ops->on_inactive != NULL) {
            bow__handler_enter(&watchdog, handler);
            handler->ops->on_inactive(handler, error);
            bow__watchdog_end(&watchdog);
        }
    }
}

void bow__pipeline_run_removed(struct bow_channel *channel)
{
    while (channel->gone != NULL) {
        struct bow_handler *handler = channel->gone;
        channel->gone = handler->gone_next;
        if (channel->gone == NULL) {
            channel->gone_end = &channel->gone;
        }
        bow__unread_free(channel->context, &handler->unread);
        /* Its memory may go with this. */
        if (handler->ops->on_removed != NULL) {
            handler->ops->on_removed(handler);
        }
    }
}

void bow__pipeline_clear(struct bow_channel *channel)
{
    while (channel->tail.prev != &channel->head) {
        struct bow_handler *last = channel->tail.prev;
        bow__unread_free(channel->context, &last->unread);
        bow_channel_remove(last);
    }
    bow__unread_free(channel->context, &channel->tail.unread);
    bow__pipeline_run_removed(channel);
}

/* The ends */

static int head_write(struct bow_handler *head, struct bow_buf *buf, bow_write_fn done, void *user)
{
    return bow__channel_queue(head->channel, buf, done, user);
}

static void head_flush(struct bow_handler *head)
{
    bow__channel_flush_all(head->channel);
}

static void head_close(struct bow_handler *head, int error)
{
    bow__channel_close_now(head->channel, error);
}

static const struct bow_handler_ops head_ops = {
    .name = "head",
    .on_write = head_write,
    .on_flush = head_flush,
    .on_close = head_close,
};

static void tail_eof(struct bow_handler *tail)
{
    bow_channel_close_after_flush(tail->channel, BOW__CHANNEL_EOF_FLUSH_NS);
}

static void tail_error(struct bow_handler *tail, int error)
{
    struct bow_channel *channel = tail->channel;
    struct bow__text text;

    bow__text_clear(&text);
    bow__text_errno(&text, error);
    bow__log(channel->context, error == -ECONNRESET ? BOW_LOG_DEBUG : BOW_LOG_WARNING,
             "channel with %s: no handler for error %s", bow_channel_peer(channel), text.bytes);
}

static const struct bow_handler_ops tail_ops = {
    .name = "tail",
    .on_eof = tail_eof,
    .on_error = tail_error,
};

void bow__pipeline_init(struct bow_channel *channel)
{
    channel->head = (struct bow_handler){
        .ops = &head_ops, .channel = channel, .next = &channel->tail, .prev = &channel->head};
    channel->tail = (struct bow_handler){
        .ops = &tail_ops, .channel = channel, .next = &channel->tail, .prev = &channel->head};
    channel->gone_end = &channel->gone;
}
