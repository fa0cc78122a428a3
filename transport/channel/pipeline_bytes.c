/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Bytes on their way through the pipeline: whom they are offered, and where those
 * wait that nobody takes. They are never out of order: what a handler kept is older than
 * what comes, and what was kept further down is older than that. Knows nothing of the socket.
 */

#include "transport/channel/bound.h"
#include "transport/channel/pipeline.h"

#include <assert.h>

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

void bow__pipeline_hand_on_kept(struct bow_handler *removed)
{
    struct bow_channel *channel = removed->channel;

    if (removed->unread == NULL) {
        return;
    }
    keep_behind(removed, bow__unread_bytes(removed->unread));
    bow__unread_free(channel->context, &removed->unread);
    channel->wants_delivery = true;
    bow__channel_again(channel);
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
 * The kept bytes are taken out meanwhile: a predecessor that is removed by the
 * callback hands its own on, and they belong behind these.
 */
static void deliver_kept(struct bow_handler *handler)
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
        bow__pipeline_hand_on_kept(handler);
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
            deliver_kept(reader);
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
        return bow__bound_fire_read(handler, bytes);
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

    /* Tail to head: what was kept further down is older. */
    for (; handler != &channel->head; handler = handler->prev) {
        if (bow__handler_is_live(handler) && handler->unread != NULL &&
            bow__pipeline_can_read(channel)) {
            deliver_kept(handler);
        }
    }
}
