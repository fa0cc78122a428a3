/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The chain of handlers: adding and removing them, and passing events from one to
 * the next. The two ends are handlers of the channel itself: the head is where
 * output ends, the tail where inbound events end. Knows nothing of the socket.
 *
 * A removed handler stays linked to its neighbours until the turn ends, so that a
 * callback that removes its own handler can go on passing events.
 *
 * Bytes that nobody takes wait with the handler they are for. They are never out of order: what a
 * handler has not consumed is older than what comes, and what waits further down is older than
 * that.
 */

#include "transport/channel/pipeline.h"
#include "base/hints.h"
#include "base/log.h"
#include "base/text.h"

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

static struct bow__binding *binding_of(struct bow_handler *bound)
{
    return BOW__CONTAINER(bound->next, struct bow__binding, handler);
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

void bow__channel_fail(struct bow_channel *channel, int error)
{
    bow_handler_fire_error(&channel->head, error);
    bow__channel_close_now(channel, error);
}

/* Bytes */

bool bow__pipeline_can_read(const struct bow_channel *channel)
{
    return bow__channel_is_open(channel) && channel->n_pauses == 0;
}

bool bow__pipeline_has_reader(struct bow_channel *channel)
{
    return bow__handler_next(&channel->head, BOW__OP(on_read)) != NULL;
}

static void keep(struct bow_handler *handler, struct bow_slice bytes)
{
    struct bow_channel *channel = handler->channel;

    if (!bow__channel_is_open(channel)) {
        return;
    }
    int rc = bow__unread_append(channel->context, &handler->unread, bytes);
    if (rc < 0) {
        bow__channel_fail(channel, rc);
    }
}

/* Keep bytes for whoever reads behind `from`; with nobody there, for one who is added. */
static void keep_behind(struct bow_handler *from, struct bow_slice bytes)
{
    struct bow_handler *reader = bow__handler_next(from, BOW__OP(on_read));

    keep(reader != NULL ? reader : &from->channel->tail, bytes);
}

void bow__pipeline_keep_behind(struct bow_handler *handler, const struct bow_buf *bytes)
{
    keep_behind(handler, (struct bow_slice){bytes->data, bytes->len});
}

/* What a handler that is being removed has not consumed is its successor's. */
static void hand_on_unread(struct bow_handler *removed)
{
    struct bow_channel *channel = removed->channel;

    if (removed->unread == NULL) {
        return;
    }
    keep_behind(removed, bow__unread_bytes(removed->unread));
    bow__unread_free(channel->context, &removed->unread);
    channel->wants_delivery = true;
    bow__channel_schedule_turn(channel);
}

static size_t call_on_read(struct bow_handler *handler, const struct bow_buf *bytes)
{
    struct bow__watchdog watchdog;

    handler->flags |= BOW__HANDLER_READING;
    bow__handler_enter(&watchdog, handler);
    size_t n = handler->ops->on_read(handler, bytes);
    bow__watchdog_end(&watchdog);
    handler->flags &= ~(uint32_t)BOW__HANDLER_READING;
    assert(n <= bytes->len);
    return n;
}

/*
 * The unread bytes are taken out meanwhile: a predecessor that is removed by the
 * callback hands its own on, and they belong behind these.
 */
static void deliver_unread(struct bow_handler *handler)
{
    struct bow_channel *channel = handler->channel;
    struct bow__unread *unread = handler->unread;
    struct bow_slice slice = bow__unread_bytes(unread);
    struct bow_buf bytes = bow_buf_borrow(slice.data, slice.len);

    handler->unread = NULL;
    size_t n = call_on_read(handler, &bytes);
    bow__unread_consume(channel->context, &unread, n);
    struct bow__unread *newer = handler->unread;
    handler->unread = unread;
    if (newer != NULL) {
        keep(handler, bow__unread_bytes(newer));
        bow__unread_free(channel->context, &newer);
    }
    if (!bow__handler_is_live(handler)) {
        hand_on_unread(handler);
    }
}

/*
 * Offer bytes to `reader`, who is ready and the one behind `from`, and when it is replaced or
 * removed meanwhile, what it left to the one who follows. Returns how many were consumed.
 */
static size_t deliver(struct bow_handler *from, struct bow_handler *reader,
                      const struct bow_buf *bytes)
{
    struct bow_channel *channel = from->channel;
    const struct bow_buf *offered = bytes;
    struct bow_buf rest;
    size_t done = 0;

    for (;;) {
        if (reader->unread != NULL) {
            keep(reader, (struct bow_slice){offered->data, offered->len});
            deliver_unread(reader);
            return bytes->len;
        }
        uint32_t n_removed = channel->n_removed;
        done += call_on_read(reader, offered);
        if (done == bytes->len) {
            return done;
        }
        struct bow_handler *now = bow__handler_next(from, BOW__OP(on_read));
        if (now == NULL || !bow__pipeline_can_read(channel) ||
            (now == reader && channel->n_removed == n_removed)) {
            return done;
        }
        rest = (struct bow_buf){bytes->data + done, bytes->len - done, bytes->block};
        offered = &rest;
        reader = now;
    }
}

size_t bow__pipeline_offer(struct bow_channel *channel, const struct bow_buf *bytes)
{
    struct bow_handler *reader = bow__handler_next(&channel->head, BOW__OP(on_read));

    if (reader == NULL || !bow__pipeline_can_read(channel)) {
        return 0;
    }
    return deliver(&channel->head, reader, bytes);
}

/* The one who would get bytes of `from` now, or NULL. */
static struct bow_handler *ready_reader(struct bow_handler *from)
{
    struct bow_handler *reader = bow__handler_next(from, BOW__OP(on_read));

    if (reader == NULL || (reader->flags & BOW__HANDLER_READING) != 0 ||
        !bow__pipeline_can_read(from->channel)) {
        return NULL;
    }
    return reader;
}

/* Deliver all, or keep what is left for whoever reads then. */
static void deliver_or_keep(struct bow_handler *from, struct bow_handler *reader,
                            const struct bow_buf *bytes)
{
    size_t done = deliver(from, reader, bytes);

    if (done < bytes->len) {
        keep_behind(from, (struct bow_slice){bytes->data + done, bytes->len - done});
    }
}

bool bow_handler_can_fire_read(struct bow_handler *handler)
{
    if ((handler->flags & BOW__HANDLER_BOUND) != 0) {
        return true;
    }
    return bow__handler_is_live(handler) && ready_reader(handler) != NULL;
}

bool bow__pipeline_fire(struct bow_handler *handler, const struct bow_buf *bytes)
{
    struct bow_handler *reader = bow__handler_is_live(handler) ? ready_reader(handler) : NULL;

    if (reader == NULL) {
        return false;
    }
    deliver_or_keep(handler, reader, bytes);
    return true;
}

size_t bow_handler_fire_read(struct bow_handler *handler, const struct bow_buf *bytes)
{
    if ((handler->flags & BOW__HANDLER_BOUND) != 0) {
        return binding_of(handler)->ops->fire_read(handler, bytes);
    }
    struct bow_handler *reader = ready_reader(handler);
    if (reader == NULL) {
        return 0;
    }
    deliver_or_keep(handler, reader, bytes);
    return bytes->len;
}

/* What it has kept is older than what comes. */
static struct bow_handler *reader_with_room(struct bow_handler *handler)
{
    if ((handler->flags & BOW__HANDLER_BOUND) != 0 || !bow__handler_is_live(handler)) {
        return NULL;
    }
    struct bow_handler *reader = ready_reader(handler);
    bool has_room = reader != NULL && reader->unread == NULL && reader->ops->on_read_room != NULL;
    return has_room ? reader : NULL;
}

bool bow_handler_read_room(struct bow_handler *handler, struct bow_read_room *ret_room)
{
    struct bow_handler *reader = reader_with_room(handler);

    return reader != NULL && reader->ops->on_read_room(reader, ret_room);
}

void bow_handler_fire_read_filled(struct bow_handler *handler, size_t n)
{
    struct bow_handler *reader = bow__handler_next(handler, BOW__OP(on_read));
    struct bow__watchdog watchdog;

    reader->flags |= BOW__HANDLER_READING;
    bow__handler_enter(&watchdog, reader);
    reader->ops->on_read_filled(reader, n);
    bow__watchdog_end(&watchdog);
    reader->flags &= ~(uint32_t)BOW__HANDLER_READING;
}

void bow__pipeline_redeliver(struct bow_channel *channel)
{
    struct bow_handler *handler = channel->tail.prev;

    /* Tail to head: what is unread further down is older. */
    for (; handler != &channel->head; handler = handler->prev) {
        if (bow__handler_is_live(handler) && handler->unread != NULL &&
            bow__pipeline_can_read(channel)) {
            deliver_unread(handler);
        }
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

    if (!prev->channel->has_watchdog) {
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
        bow__channel_schedule_turn(channel);
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
        handler = binding_of(handler)->ops->proxy(handler);
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
        binding_of(handler)->ops->remove(handler);
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
    hand_on_unread(handler);
    if (channel->unread != NULL) {
        channel->wants_delivery = true;
        bow__channel_schedule_turn(channel);
    }
    *channel->gone_end = handler;
    channel->gone_end = &handler->gone_next;
    bow__channel_schedule_reap(channel);
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
