/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The channel as a filtering handler sees it. Knows nothing of what the filter does
 * to the bytes.
 */

#include "transport/channel/filter.h"

#include <errno.h>

bool bow__filter_can_read(const struct bow_channel *channel)
{
    return bow__pipeline_can_read(channel);
}

struct bow_handler *bow__filter_find(const struct bow_channel *channel,
                                     const struct bow_handler_ops *ops)
{
    struct bow_handler *handler = channel->head.next;

    while (handler != &channel->tail) {
        if (handler->ops == ops) {
            return handler;
        }
        handler = handler->next;
    }
    return NULL;
}

struct bow__write *bow__filter_queue(struct bow_channel *channel, struct bow_buf *buf,
                                     bow_write_fn done, void *user, int *ret_error)
{
    if (!bow__channel_is_open(channel) || channel->wants_shut) {
        *ret_error = -EPIPE;
        return NULL;
    }
    struct bow__write *write = bow__write_new(channel->context, buf, done, user);
    if (write == NULL) {
        *ret_error = -ENOMEM;
        return NULL;
    }
    bow_buf_unref(buf); /* the write holds its own reference */
    bow__channel_count_queued(channel, write->buf.len);
    return write;
}

void bow__filter_taken(struct bow_channel *channel, size_t n)
{
    channel->queued_bytes -= n;
}

void bow__filter_complete(struct bow_channel *channel, struct bow__write *write, int error)
{
    bow__channel_complete(channel, write, error);
}

void bow__filter_abandon(struct bow_channel *channel, struct bow__write *write, int error)
{
    bow_write_fn done = write->done;
    void *user = write->user;

    bow__write_free(channel->context, write);
    if (done != NULL) {
        done(channel, error, user);
    }
}

bool bow__filter_is_ending(const struct bow_channel *channel)
{
    return channel->wants_shut || channel->is_closing;
}

void bow__filter_send_now(struct bow_channel *channel, struct iovec *pieces, int n)
{
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = (size_t)n};

    if (bow__channel_is_open(channel) && !channel->is_blocked && !channel->is_shut) {
        (void)channel->system->sendmsg(channel->system->user, channel->watch.fd, &message,
                                       MSG_NOSIGNAL);
    }
}

void bow__filter_close_after_flush(struct bow_channel *channel, uint64_t timeout_ns, int error)
{
    channel->flush_close_error = error;
    bow_channel_close_after_flush(channel, timeout_ns);
}

void bow__filter_end(struct bow_channel *channel)
{
    if (!channel->is_closing) {
        bow_channel_close_after_flush(channel, BOW__CHANNEL_EOF_FLUSH_NS);
    }
}
