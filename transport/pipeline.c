/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The chain of handlers: adding and removing them, and passing events from one to
 * the next. The two ends are handlers of the channel itself: the head is where
 * output ends, the tail where inbound events end. Knows nothing of the socket.
 *
 * A removed handler stays linked to its neighbours until the turn ends, so that a
 * callback that removes its own handler can go on passing events.
 */

#include "base/log.h"
#include "base/text.h"
#include "transport/bound.h"
#include "transport/channel.h"
#include "transport/hold.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

enum handler_flags {
    HANDLER_REMOVED = 1,
    HANDLER_READING = 2, /* its on_read is running: more would come out of order */
    /* 4: BOW__HANDLER_BOUND */
};

#define OP(name) offsetof(struct bow_handler_ops, name)

static bool is_live(const struct bow_handler *handler)
{
    return (handler->flags & HANDLER_REMOVED) == 0;
}

static bool has_op(const struct bow_handler *handler, size_t op)
{
    void (*fn)(void);

    memcpy(&fn, (const char *)handler->ops + op, sizeof(fn));
    return fn != NULL;
}

/* The next handler towards the tail that has `op`; NULL when not even the tail has it. */
static struct bow_handler *next_with(struct bow_handler *handler, size_t op)
{
    struct bow_handler *tail = &handler->channel->tail;

    for (struct bow_handler *next = handler; next != tail;) {
        next = next->next;
        if (is_live(next) && has_op(next, op)) {
            return next;
        }
    }
    return NULL;
}

/* The previous handler towards the head that has `op`, one of those the head has. */
static struct bow_handler *prev_with(struct bow_handler *handler, size_t op)
{
    struct bow_handler *prev = handler->prev;

    while (!is_live(prev) || !has_op(prev, op)) {
        prev = prev->prev;
    }
    return prev;
}

/* Events of a closed channel go nowhere: on_inactive is what comes next. */
static struct bow_handler *receiver(struct bow_handler *handler, size_t op)
{
    return bow__channel_is_open(handler->channel) ? next_with(handler, op) : NULL;
}

/* The handler may be gone when its callback returns; the hold needs it no more then. */
static void enter(struct bow__hold *hold, const struct bow_handler *handler)
{
    hold->loop = NULL;
    if (handler->channel->is_held_to_time) {
        bow__hold_begin(hold, handler->channel->loop, "handler", handler->ops->name,
                        (uintptr_t)handler->ops);
    }
}

/* Inbound events */

void bow_handler_fire_active(struct bow_handler *handler)
{
    struct bow_handler *next = receiver(handler, OP(on_active));
    struct bow__hold hold;

    if (next != NULL) {
        enter(&hold, next);
        next->ops->on_active(next);
        bow__hold_end(&hold);
    }
}

void bow_handler_fire_read_complete(struct bow_handler *handler)
{
    struct bow_handler *next = receiver(handler, OP(on_read_complete));
    struct bow__hold hold;

    if (next != NULL) {
        enter(&hold, next);
        next->ops->on_read_complete(next);
        bow__hold_end(&hold);
    }
}

void bow_handler_fire_eof(struct bow_handler *handler)
{
    struct bow_handler *next = receiver(handler, OP(on_eof));
    struct bow__hold hold;

    if (next != NULL) {
        enter(&hold, next);
        next->ops->on_eof(next);
        bow__hold_end(&hold);
    }
}

void bow_handler_fire_writable(struct bow_handler *handler, bool writable)
{
    struct bow_handler *next = receiver(handler, OP(on_writable));
    struct bow__hold hold;

    if (next != NULL) {
        enter(&hold, next);
        next->ops->on_writable(next, writable);
        bow__hold_end(&hold);
    }
}

void bow_handler_fire_error(struct bow_handler *handler, int error)
{
    struct bow_handler *next = receiver(handler, OP(on_error));
    struct bow__hold hold;

    if (next != NULL) {
        enter(&hold, next);
        next->ops->on_error(next, error);
        bow__hold_end(&hold);
    }
}

/* Bytes */

bool bow__pipeline_can_read(const struct bow_channel *channel)
{
    return bow__channel_is_open(channel) && channel->n_pauses == 0;
}

bool bow__pipeline_has_reader(struct bow_channel *channel)
{
    return next_with(&channel->head, OP(on_read)) != NULL;
}

static void keep(struct bow_handler *handler, struct bow_slice bytes)
{
    struct bow_channel *channel = handler->channel;

    if (!bow__channel_is_open(channel)) {
        return;
    }
    int rc = bow__kept_append(channel->context, &handler->kept, bytes);
    if (rc < 0) {
        bow__channel_fail(channel, rc);
    }
}

/* Keep bytes for whoever reads behind `from`; with nobody there, for one who is added. */
static void keep_behind(struct bow_handler *from, struct bow_slice bytes)
{
    struct bow_handler *reader = next_with(from, OP(on_read));

    keep(reader != NULL ? reader : &from->channel->tail, bytes);
}

void bow__pipeline_keep_behind(struct bow_handler *handler, const struct bow_buf *bytes)
{
    keep_behind(handler, (struct bow_slice){bytes->data, bytes->len});
}

static void hand_on_kept(struct bow_handler *removed)
{
    struct bow_channel *channel = removed->channel;

    if (removed->kept == NULL) {
        return;
    }
    keep_behind(removed, bow__kept_bytes(removed->kept));
    bow__kept_free(channel->context, &removed->kept);
    channel->wants_delivery = true;
    bow__channel_again(channel);
}

static size_t call_on_read(struct bow_handler *handler, const struct bow_buf *bytes)
{
    struct bow__hold hold;

    handler->flags |= HANDLER_READING;
    enter(&hold, handler);
    size_t n = handler->ops->on_read(handler, bytes);
    bow__hold_end(&hold);
    handler->flags &= ~(uint32_t)HANDLER_READING;
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
    struct bow__kept *kept = handler->kept;
    struct bow_slice slice = bow__kept_bytes(kept);
    struct bow_buf bytes = bow_buf_borrow(slice.data, slice.len);

    handler->kept = NULL;
    size_t n = call_on_read(handler, &bytes);
    bow__kept_consume(channel->context, &kept, n);
    struct bow__kept *newer = handler->kept;
    handler->kept = kept;
    if (newer != NULL) {
        keep(handler, bow__kept_bytes(newer));
        bow__kept_free(channel->context, &newer);
    }
    if (!is_live(handler)) {
        hand_on_kept(handler);
    }
}

/*
 * Offer bytes to `reader`, the one behind `from`, and when it is replaced or removed
 * meanwhile, what it left to the one who follows. Returns how many were consumed.
 */
static size_t deliver(struct bow_handler *from, struct bow_handler *reader,
                      const struct bow_buf *bytes)
{
    struct bow_channel *channel = from->channel;
    size_t done = 0;

    /* An empty frame is a frame: it is delivered too. */
    while ((done < bytes->len || bytes->len == 0) && reader != NULL &&
           bow__pipeline_can_read(channel)) {
        struct bow_buf rest = {bytes->data + done, bytes->len - done, bytes->block};
        if (reader->kept != NULL) {
            keep(reader, (struct bow_slice){rest.data, rest.len});
            deliver_kept(reader);
            return bytes->len;
        }
        uint32_t n_removed = channel->n_removed;
        uint32_t n_changes = channel->n_changes;
        done += call_on_read(reader, &rest);
        if (channel->n_changes == n_changes || bytes->len == 0) {
            return done;
        }
        struct bow_handler *now = next_with(from, OP(on_read));
        if (now == reader && channel->n_removed == n_removed) {
            return done;
        }
        reader = now;
    }
    return done;
}

size_t bow__pipeline_offer(struct bow_channel *channel, const struct bow_buf *bytes)
{
    return deliver(&channel->head, next_with(&channel->head, OP(on_read)), bytes);
}

/* The one who would get bytes of `from` now, or NULL. */
static struct bow_handler *ready_reader(struct bow_handler *from)
{
    struct bow_handler *reader = next_with(from, OP(on_read));

    if (reader == NULL || (reader->flags & HANDLER_READING) != 0 ||
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

bool bow__pipeline_is_in(const struct bow_handler *handler)
{
    return is_live(handler);
}

bool bow__pipeline_can_fire(struct bow_handler *handler)
{
    return is_live(handler) && ready_reader(handler) != NULL;
}

bool bow__pipeline_fire(struct bow_handler *handler, const struct bow_buf *bytes)
{
    struct bow_handler *reader = is_live(handler) ? ready_reader(handler) : NULL;

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

void bow__pipeline_redeliver(struct bow_channel *channel)
{
    struct bow_handler *handler = channel->tail.prev;

    /* Tail to head: what was kept further down is older. */
    for (; handler != &channel->head; handler = handler->prev) {
        if (is_live(handler) && handler->kept != NULL && bow__pipeline_can_read(channel)) {
            deliver_kept(handler);
        }
    }
}

/* Outbound operations */

int bow_handler_drain(struct bow_handler *handler, struct iovec *pieces, int max)
{
    struct bow_handler *next = receiver(handler, OP(on_drain));

    return next != NULL ? next->ops->on_drain(next, pieces, max) : 0;
}

void bow_handler_sent(struct bow_handler *handler, size_t n)
{
    struct bow_handler *next = next_with(handler, OP(on_drain));

    if (next != NULL) {
        next->ops->on_sent(next, n);
    }
}

int bow_handler_write(struct bow_handler *handler, struct bow_buf *buf, bow_write_fn done,
                      void *user)
{
    struct bow_handler *prev = prev_with(handler, OP(on_write));
    struct bow__hold hold;

    enter(&hold, prev);
    int rc = prev->ops->on_write(prev, buf, done, user);
    bow__hold_end(&hold);
    return rc;
}

void bow_handler_flush(struct bow_handler *handler)
{
    struct bow_handler *prev = prev_with(handler, OP(on_flush));
    struct bow__hold hold;

    enter(&hold, prev);
    prev->ops->on_flush(prev);
    bow__hold_end(&hold);
}

void bow_handler_close(struct bow_handler *handler, int error)
{
    struct bow_handler *prev = prev_with(handler, OP(on_close));
    struct bow__hold hold;

    enter(&hold, prev);
    prev->ops->on_close(prev, error);
    bow__hold_end(&hold);
}

struct bow_handler *bow__pipeline_drain_handler(struct bow_channel *channel)
{
    return next_with(&channel->head, OP(on_drain));
}

bool bow__pipeline_filters_writes(struct bow_channel *channel)
{
    return prev_with(&channel->tail, OP(on_write)) != &channel->head;
}

/* Adding and removing */

/* What came while nobody read is the new handler's. */
static void take_waiting(struct bow_handler *handler)
{
    struct bow_channel *channel = handler->channel;

    if (handler->ops->on_read == NULL) {
        return;
    }
    if (next_with(handler, OP(on_read)) == NULL) {
        handler->kept = channel->tail.kept;
        channel->tail.kept = NULL;
    }
    if (handler->kept != NULL || channel->unread != NULL) {
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
    handler->kept = NULL;
    handler->gone_next = NULL;
    handler->flags = 0;
    handler->prev = prev;
    handler->next = prev->next;
    channel->n_changes++;
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
    while (!is_live(handler)) {
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
    if (!is_live(handler)) {
        return;
    }
    handler->flags |= HANDLER_REMOVED;
    handler->prev->next = handler->next;
    handler->next->prev = handler->prev;
    channel->n_removed++;
    channel->n_changes++;
    hand_on_kept(handler);
    if (channel->unread != NULL) {
        channel->wants_delivery = true;
        bow__channel_again(channel);
    }
    *channel->gone_end = handler;
    channel->gone_end = &handler->gone_next;
    bow__channel_touch_reap(channel);
}

void bow__pipeline_inactive(struct bow_channel *channel, int error)
{
    struct bow_handler *handler = channel->head.next;
    struct bow__hold hold;

    for (; handler != &channel->tail; handler = handler->next) {
        if (is_live(handler) && handler->ops->on_inactive != NULL) {
            enter(&hold, handler);
            handler->ops->on_inactive(handler, error);
            bow__hold_end(&hold);
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
        bow__kept_free(channel->context, &handler->kept);
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
        bow__kept_free(channel->context, &last->kept);
        bow_channel_remove(last);
    }
    bow__kept_free(channel->context, &channel->tail.kept);
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
