/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Closing a channel: now, when all has left, when both ways have ended. Knows nothing of
 * handlers: what they hear of it comes later, in the channel's phase.
 */

#include "base/clock.h"
#include "transport/channel/channel.h"

#include <assert.h>
#include <errno.h>

static void close_fd(struct bow_channel *channel)
{
    channel->system->close(channel->system->user, channel->watch.fd);
    channel->watch.fd = -1;
}

void bow__channel_close_now(struct bow_channel *channel, int error)
{
    if (!bow__channel_is_open(channel)) {
        return;
    }
    atomic_store_explicit(&channel->state, BOW__CHANNEL_CLOSED, memory_order_release);
    channel->close_error = error;
    bow_timer_stop(&channel->timer);
    bow__loop_unwatch(channel->loop, &channel->watch);
    close_fd(channel);
    bow__channel_fail_writes(channel, error < 0 ? error : -ECANCELED);
    bow__channel_schedule_phase(channel);
}

void bow__channel_close_if_over(struct bow_channel *channel)
{
    if (channel->is_shut && channel->is_eof) {
        bow__channel_close_now(channel, channel->flush_close_error);
    }
}

void bow__channel_close_at(struct bow_channel *channel, uint64_t deadline_ns)
{
    channel->close_at_ns = deadline_ns;
    if (!channel->wants_turn) {
        bow_timer_start_at(&channel->timer, deadline_ns);
    }
}

void bow_channel_close_after_flush(struct bow_channel *channel, uint64_t timeout_ns)
{
    assert(bow__loop_may_touch(channel->loop));
    if (!bow__channel_is_open(channel)) {
        return;
    }
    if (!channel->is_lingering) {
        bow__channel_close_at(channel, bow__time_add(bow_loop_now(channel->loop), timeout_ns));
    }
    channel->is_closing = true;
    bow__channel_flush_all(channel);
}
