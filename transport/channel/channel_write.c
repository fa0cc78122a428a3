/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * From the queue and the pipeline into the socket: what was pushed first, then
 * what handlers have to be pulled, many pieces a call, until the socket is full
 * or the turn's share is used up. Completions are collected and run later.
 *
 * Order: a flush lets all queued writes leave; while they are on their way
 * nothing is pulled. Our side is shut down, and the channel closed, when neither
 * has anything left.
 */

#include "base/clock.h"
#include "transport/channel/channel.h"

#include <assert.h>
#include <errno.h>

#define MAX_PIECES 64
/* What one channel sends in one phase before others have their turn. */
#define MAX_SEND_BYTES ((size_t)1 << 20)

/* Water marks */

static void tell_writable(struct bow_channel *channel)
{
    if (channel->is_over_high != channel->is_over_told) {
        channel->is_over_told = channel->is_over_high;
        bow_handler_fire_writable(&channel->head, !channel->is_over_told);
    }
}

static void check_low(struct bow_channel *channel)
{
    if (channel->queued_bytes < channel->low_bytes || channel->queued_bytes == 0) {
        channel->is_over_high = false;
    }
}

bool bow_channel_is_writable(const struct bow_channel *channel)
{
    return bow__channel_accepts_writes(channel) && !channel->is_over_high;
}

void bow_channel_set_water_marks(struct bow_channel *channel, size_t low, size_t high)
{
    assert(bow__loop_may_touch(channel->loop));
    channel->low_bytes = low < high ? low : high;
    channel->high_bytes = high;
    if (channel->queued_bytes > high) {
        channel->is_over_high = true;
    }
    check_low(channel);
    if (bow__channel_is_open(channel)) {
        bow__channel_schedule_phase(channel);
    }
}

/* Sending */

/* How a round of sending ended. */
enum sending {
    SENT_ALL,     /* nothing is left */
    SENT_SOME,    /* the turn's share is used up */
    SENT_BLOCKED, /* the socket is full */
    SENT_WAITS,   /* a handler has output to come, and will flush */
    SENT_FAILED,
};

static void complete_empty(struct bow_channel *channel)
{
    while (channel->n_flushed > 0 && channel->writes.first->buf.len == 0) {
        bow__channel_complete_first(channel, 0);
    }
}

static int gather(struct bow_channel *channel, struct iovec *pieces)
{
    struct bow__write *write = channel->writes.first;
    int n = 0;

    for (size_t i = 0; i < channel->n_flushed && n < MAX_PIECES; i++, write = write->next) {
        pieces[n].iov_base = (void *)(uintptr_t)write->buf.data; /* sendmsg only reads it */
        pieces[n].iov_len = write->buf.len;
        n++;
    }
    return n;
}

static void on_queue_sent(struct bow_channel *channel, size_t n)
{
    channel->queued_bytes -= n;
    while (n > 0) {
        struct bow__write *write = channel->writes.first;
        size_t taken = n < write->buf.len ? n : write->buf.len;
        write->buf.data += taken;
        write->buf.len -= taken;
        n -= taken;
        complete_empty(channel);
    }
}

static size_t total_of(const struct iovec *pieces, int n)
{
    size_t total = 0;

    for (int i = 0; i < n; i++) {
        total += pieces[i].iov_len;
    }
    return total;
}

static bool is_share_used(const struct bow_channel *channel, size_t n_sent)
{
    return n_sent >= MAX_SEND_BYTES || bow__channel_turn_is_long(channel, n_sent);
}

/* One sendmsg. Returns the bytes that left, 0 when there was nothing, or a negative errno; -ENODATA
 * when a handler has nothing yet, -EBUSY when there is more after the turn's share, `n_sent`. */
static ssize_t send_once(struct bow_channel *channel, size_t n_sent, bool *ret_is_full)
{
    struct iovec pieces[MAX_PIECES];
    struct bow_handler *source = NULL;

    complete_empty(channel);
    int n_pieces = gather(channel, pieces);
    if (n_pieces == 0) {
        source = bow__pipeline_drain_handler(channel);
        n_pieces = source != NULL ? source->ops->on_drain(source, pieces, MAX_PIECES) : 0;
    }
    if (n_pieces < 0) {
        return -ENODATA;
    }
    size_t total = total_of(pieces, n_pieces);
    if (total == 0 || !bow__channel_is_open(channel)) {
        return 0;
    }
    if (is_share_used(channel, n_sent)) {
        return -EBUSY;
    }
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = (size_t)n_pieces};
    ssize_t n =
        channel->system->sendmsg(channel->system->user, channel->watch.fd, &message, MSG_NOSIGNAL);
    if (n < 0) {
        return n;
    }
    *ret_is_full = (size_t)n < total;
    channel->sent_ns = bow_loop_now(channel->loop);
    channel->progress_ns = channel->sent_ns;
    if (source != NULL) {
        source->ops->on_sent(source, (size_t)n);
    } else {
        on_queue_sent(channel, (size_t)n);
    }
    return n;
}

static enum sending send_round(struct bow_channel *channel, int *ret_error)
{
    size_t n_sent = 0;

    for (;;) {
        bool is_full = false;
        ssize_t n = send_once(channel, n_sent, &is_full);
        if (n == 0) {
            return SENT_ALL;
        }
        if (n == -EBUSY) {
            return SENT_SOME;
        }
        if (n == -EINTR) {
            continue;
        }
        if (n == -ENODATA) {
            return SENT_WAITS;
        }
        if (is_full || n == -EAGAIN) {
            return SENT_BLOCKED;
        }
        if (n < 0) {
            *ret_error = (int)n;
            return SENT_FAILED;
        }
        n_sent += (size_t)n;
    }
}

static void on_all_sent(struct bow_channel *channel)
{
    channel->wants_output = false;
    channel->progress_ns = 0;
    if (channel->is_closing && !channel->is_lingering) {
        bow__channel_linger(channel);
    } else if (channel->wants_shut) {
        bow__channel_shut_socket(channel);
    }
}

static void on_send_failed(struct bow_channel *channel, int error)
{
    channel->wants_output = false;
    bow__channel_fail_writes(channel, error);
    if (error == -EPIPE || error == -ECONNRESET) {
        /* What the peer sent before it went may say why. */
        bow__channel_read_out(channel, error);
    } else {
        bow__channel_fail(channel, error);
    }
}

static void on_round(struct bow_channel *channel, enum sending how, int error)
{
    switch (how) {
    case SENT_ALL:
        on_all_sent(channel);
        return;
    case SENT_SOME:
        bow__channel_schedule_turn(channel);
        return;
    case SENT_WAITS:
        return;
    case SENT_BLOCKED:
        channel->is_blocked = true;
        if (channel->progress_ns == 0) {
            channel->progress_ns = bow_loop_now(channel->loop);
        }
        return;
    case SENT_FAILED:
        on_send_failed(channel, error);
        return;
    }
}

void bow__channel_send(struct bow_channel *channel)
{
    int error = 0;

    tell_writable(channel);
    if (!bow__channel_is_open(channel) || !channel->wants_output || channel->is_blocked) {
        return;
    }
    if (channel->is_closing || channel->wants_shut) {
        channel->n_flushed = channel->n_writes;
    }
    enum sending how = send_round(channel, &error);
    if (!bow__channel_is_open(channel)) {
        return; /* closed by the handler that was drained */
    }
    on_round(channel, how, error);
    check_low(channel);
    tell_writable(channel);
}
