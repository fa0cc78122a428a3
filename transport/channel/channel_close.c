/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Closing a channel: now, when all has left, when both ways have ended. Knows nothing of
 * handlers: what they hear of it comes later, in the channel's phase.
 */

#include "base/clock.h"
#include "transport/channel/channel.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

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

void bow__channel_shut_socket(struct bow_channel *channel)
{
    if (!channel->is_shut) {
        channel->is_shut = true;
        /* Fails only when the connection is gone already: reading will tell. */
        (void)channel->system->shutdown(channel->system->user, channel->watch.fd, SHUT_WR);
    }
    bow__channel_close_if_over(channel);
}

/* Lingering: our last byte has left for the kernel. Before the peer has taken it, or while what the
 * peer sends tells that it reads on, to close would lose what the kernel still has for it, for it
 * answers what comes to a closed socket with a reset. */

void bow__channel_linger_on(struct bow_channel *channel)
{
    uint64_t until_ns = bow__time_add(bow_loop_now(channel->loop), BOW__CHANNEL_LINGER_NS);

    bow__channel_close_at(channel, bow__time_min(until_ns, channel->linger_end_ns));
}

void bow__channel_linger(struct bow_channel *channel)
{
    channel->wants_shut = true;
    channel->is_lingering = true;
    channel->linger_end_ns = channel->close_at_ns;
    bow__channel_shut_socket(channel);
    if (bow__channel_is_open(channel)) {
        bow__channel_linger_on(channel);
    }
}

/* Our FIN stands behind all that we have sent. */
static bool is_all_taken(const struct bow_channel *channel)
{
    const struct bow_system *system = channel->system;
    struct tcp_info info = {.tcpi_state = 0};
    socklen_t len = sizeof(info);

    /* What is no TCP hands on at once what it takes. */
    return system->getsockopt == NULL ||
           system->getsockopt(system->user, channel->watch.fd, IPPROTO_TCP, TCP_INFO, &info, &len) <
               0 ||
           (info.tcpi_state != TCP_FIN_WAIT1 && info.tcpi_state != TCP_CLOSING);
}

bool bow__channel_lingers_on(struct bow_channel *channel)
{
    if (bow_loop_now(channel->loop) >= channel->linger_end_ns || is_all_taken(channel)) {
        return false;
    }
    bow__channel_linger_on(channel);
    return true;
}

static void shorten_linger(struct bow_channel *channel, uint64_t end_ns)
{
    channel->linger_end_ns = bow__time_min(channel->linger_end_ns, end_ns);
    if (channel->close_at_ns > channel->linger_end_ns) {
        bow__channel_close_at(channel, channel->linger_end_ns);
    }
}

void bow_channel_close_after_flush(struct bow_channel *channel, uint64_t timeout_ns)
{
    uint64_t end_ns = bow__time_add(bow_loop_now(channel->loop), timeout_ns);

    assert(bow__loop_may_touch(channel->loop));
    if (!bow__channel_is_open(channel)) {
        return;
    }
    if (channel->is_lingering) {
        shorten_linger(channel, end_ns);
    } else {
        bow__channel_close_at(channel, end_ns);
    }
    channel->is_closing = true;
    bow__channel_flush_all(channel);
}
