/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The writes of a channel that wait, and those whose completion is due. Knows nothing of how they
 * are sent.
 */

#include "base/alloc.h"
#include "base/block.h"
#include "base/hints.h"
#include "transport/channel/channel.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* Small copies that stand together share a block, up to this size: with an echo of 36-byte frames,
 * 64 a flush, an allocation and a piece for each made it a third slower. */
#define MAX_SHARED_BYTES ((size_t)4 << 10)

static void push(struct bow__write_list *list, struct bow__write *write)
{
    write->next = NULL;
    if (list->first == NULL) {
        list->first = write;
    } else {
        list->last->next = write;
    }
    list->last = write;
}

static struct bow__write *pop(struct bow__write_list *list)
{
    struct bow__write *write = list->first;

    if (write != NULL) {
        list->first = write->next;
    }
    return write;
}

/* `n_inline` bytes come with it, of which a borrowed buf takes the first. */
static struct bow__write *make(struct bow_context *context, const struct bow_buf *buf,
                               size_t n_inline, bow_write_fn done, void *user)
{
    size_t size = 0;

    if (__builtin_add_overflow(sizeof(struct bow__write), n_inline, &size)) {
        return NULL;
    }
    struct bow__write *write = bow__alloc(context, size);
    if (write == NULL) {
        return NULL;
    }
    *write = (struct bow__write){.buf = *buf, .done = done, .user = user, .n_inline = n_inline};
    if (buf->block != NULL) {
        bow__block_ref(buf->block);
    } else {
        if (buf->len > 0) {
            memcpy(write->inline_bytes, buf->data, buf->len);
        }
        write->buf.data = write->inline_bytes;
    }
    return write;
}

struct bow__write *bow__write_new(struct bow_context *context, const struct bow_buf *buf,
                                  bow_write_fn done, void *user)
{
    return make(context, buf, buf->block == NULL ? buf->len : 0, done, user);
}

void bow__write_free(struct bow_context *context, struct bow__write *write)
{
    bow_buf_unref(&write->buf);
    bow__free(context, write, sizeof(*write) + write->n_inline);
}

bool bow__channel_accepts_writes(const struct bow_channel *channel)
{
    return bow__channel_is_open(channel) && !channel->wants_shut;
}

void bow__channel_count_queued(struct bow_channel *channel, size_t n)
{
    channel->queued_bytes += n;
    if (channel->queued_bytes > channel->high_bytes && !channel->is_over_high) {
        channel->is_over_high = true;
        bow__channel_schedule_phase(channel);
    }
}

void bow__channel_enqueue(struct bow_channel *channel, struct bow__write *write)
{
    push(&channel->writes, write);
    channel->n_writes++;
    bow__channel_count_queued(channel, write->buf.len);
}

/* The last write, when more may stand in the same piece: a copy that nobody waits for and no flush
 * has let go. */
static struct bow__write *open_copy(const struct bow_channel *channel)
{
    struct bow__write *last = channel->writes.last;

    if (channel->n_writes == channel->n_flushed || last->done != NULL || last->buf.block != NULL) {
        return NULL;
    }
    return last;
}

/* False when it does not fit. The bytes come last, so that nothing has to be saved for after. */
static bool append(struct bow_channel *channel, struct bow__write *copy, const struct bow_buf *buf,
                   bow_write_fn done, void *user)
{
    size_t at = copy->buf.len;

    if (buf->len > copy->n_inline - at) {
        return false;
    }
    assert(copy->buf.data == copy->inline_bytes); /* nothing of it has left */
    copy->buf.len += buf->len;
    copy->done = done;
    copy->user = user;
    bow__channel_count_queued(channel, buf->len);
    if (buf->len > 0) {
        memcpy(copy->inline_bytes + at, buf->data, buf->len);
    }
    return true;
}

/* Room in proportion to what stands before it, so that few bytes never hold much memory. */
static size_t room_after(const struct bow__write *copy, size_t len)
{
    size_t room = copy != NULL ? 4 * copy->buf.len : 0;

    room = room < MAX_SHARED_BYTES ? room : MAX_SHARED_BYTES;
    return room > len ? room : len;
}

BOW__LONG_WAY static int queue_alone(struct bow_channel *channel, struct bow_buf *buf,
                                     size_t n_inline, bow_write_fn done, void *user)
{
    struct bow__write *write = make(channel->context, buf, n_inline, done, user);
    if (write == NULL) {
        return -ENOMEM;
    }
    bow_buf_unref(buf); /* the write holds its own reference */
    bow__channel_enqueue(channel, write);
    return 0;
}

int bow__channel_queue(struct bow_channel *channel, struct bow_buf *buf, bow_write_fn done,
                       void *user)
{
    if (!bow__channel_accepts_writes(channel)) {
        return -EPIPE;
    }
    if (buf->block != NULL) {
        return queue_alone(channel, buf, 0, done, user);
    }
    struct bow__write *last = open_copy(channel);
    if (last != NULL && append(channel, last, buf, done, user)) {
        return 0;
    }
    return queue_alone(channel, buf, room_after(last, buf->len), done, user);
}

void bow__channel_complete(struct bow_channel *channel, struct bow__write *write, int error)
{
    write->error = error;
    push(&channel->completed, write);
}

void bow__channel_complete_first(struct bow_channel *channel, int error)
{
    struct bow__write *write = pop(&channel->writes);

    channel->n_writes--;
    if (channel->n_flushed > 0) {
        channel->n_flushed--;
    }
    channel->queued_bytes -= write->buf.len;
    bow__channel_complete(channel, write, error);
}

void bow__channel_fail_writes(struct bow_channel *channel, int error)
{
    while (channel->writes.first != NULL) {
        bow__channel_complete_first(channel, error);
    }
}

void bow__channel_run_completions(struct bow_channel *channel)
{
    struct bow__write *write;

    while ((write = pop(&channel->completed)) != NULL) {
        bow_write_fn done = write->done;
        void *user = write->user;
        int error = write->error;
        bow__write_free(channel->context, write);
        if (done != NULL) {
            done(channel, error, user);
        }
    }
}

void bow__channel_flush_all(struct bow_channel *channel)
{
    if (!bow__channel_is_open(channel)) {
        return;
    }
    channel->n_flushed = channel->n_writes;
    channel->wants_output = true;
    bow__channel_schedule_phase(channel);
}
