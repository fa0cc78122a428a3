/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * When a channel has been idle. Reading only notes the time; the timer compares.
 * Knows nothing of what is done about it.
 */

#include "base/clock.h"
#include "base/log.h"
#include "transport/channel/channel.h"

#include <bowline/idle.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define NS_PER_MS UINT64_C(1000000)

static struct bow_idle *idle_of(struct bow_handler *handler)
{
    return (struct bow_idle *)(void *)handler;
}

static uint64_t timeout_of(const struct bow_idle *idle, enum bow_idle_kind kind)
{
    const uint64_t timeouts[BOW_IDLE_N_KINDS] = {
        idle->options.reader_ns,
        idle->options.writer_ns,
        idle->options.all_ns,
    };
    return timeouts[kind];
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* When there was last a sign of life of that kind; a paused channel lives by itself. */
static uint64_t active_ns(const struct bow_idle *idle, enum bow_idle_kind kind, uint64_t now)
{
    const struct bow_channel *channel = idle->handler.channel;
    uint64_t read_ns = channel->n_pauses > 0 ? now : later(idle->read_ns, channel->resumed_ns);

    switch (kind) {
    case BOW_IDLE_READER:
        return read_ns;
    case BOW_IDLE_WRITER:
        return channel->sent_ns;
    case BOW_IDLE_ALL:
        break;
    }
    return later(read_ns, channel->sent_ns);
}

static uint64_t deadline_of(const struct bow_idle *idle, enum bow_idle_kind kind, uint64_t now)
{
    uint64_t timeout_ns = timeout_of(idle, kind);

    if (timeout_ns == 0) {
        return BOW_NEVER;
    }
    return bow__time_add(later(active_ns(idle, kind, now), idle->told_ns[kind]), timeout_ns);
}

static void arm(struct bow_idle *idle, uint64_t now)
{
    uint64_t at_ns = BOW_NEVER;

    for (int kind = 0; kind < BOW_IDLE_N_KINDS; kind++) {
        at_ns = bow__time_min(at_ns, deadline_of(idle, (enum bow_idle_kind)kind, now));
    }
    bow_timer_start_at(&idle->timer, at_ns);
}

static void close_idle(struct bow_idle *idle, enum bow_idle_kind kind)
{
    static const char *const events[] = {"received", "sent", "received or sent"};
    struct bow_channel *channel = idle->handler.channel;

    bow__log(channel->context, BOW_LOG_DEBUG,
             "channel with %s: nothing was %s for %" PRIu64 " ms; closing it",
             bow_channel_peer(channel), events[kind], timeout_of(idle, kind) / NS_PER_MS);
    bow_channel_close(channel, -ETIMEDOUT);
}

static void tell(struct bow_idle *idle, enum bow_idle_kind kind, uint64_t now)
{
    if (active_ns(idle, kind, now) > idle->told_ns[kind]) {
        idle->n_told[kind] = 0;
    }
    uint32_t n = idle->n_told[kind]++;
    idle->told_ns[kind] = now;
    if (idle->options.on_idle != NULL) {
        idle->options.on_idle(idle, kind, n, idle->options.user);
    } else {
        close_idle(idle, kind);
    }
}

static void on_timer(struct bow_timer *timer, void *user)
{
    struct bow_idle *idle = user;
    struct bow_handler *handler = &idle->handler;
    uint64_t now = bow_loop_now(timer->loop);

    for (int kind = 0; kind < BOW_IDLE_N_KINDS; kind++) {
        if (deadline_of(idle, (enum bow_idle_kind)kind, now) <= now) {
            tell(idle, (enum bow_idle_kind)kind, now);
        }
        if (!bow__channel_is_open(handler->channel) || !bow__pipeline_is_in(handler)) {
            return;
        }
    }
    arm(idle, now);
}

static void on_added(struct bow_handler *handler)
{
    struct bow_idle *idle = idle_of(handler);
    struct bow_loop *loop = bow_channel_loop(handler->channel);
    uint64_t now = bow_loop_now(loop);

    idle->read_ns = now;
    for (int kind = 0; kind < BOW_IDLE_N_KINDS; kind++) {
        idle->told_ns[kind] = now;
        idle->n_told[kind] = 0;
    }
    bow_timer_init(&idle->timer, loop, on_timer, idle);
    arm(idle, now);
}

static size_t on_read(struct bow_handler *handler, const struct bow_buf *bytes)
{
    idle_of(handler)->read_ns = bow_loop_now(bow_channel_loop(handler->channel));
    return bow_handler_fire_read(handler, bytes);
}

static void on_inactive(struct bow_handler *handler, int error)
{
    (void)error;
    bow_timer_stop(&idle_of(handler)->timer);
}

static void on_removed(struct bow_handler *handler)
{
    bow_timer_stop(&idle_of(handler)->timer);
}

static const struct bow_handler_ops idle_ops = {
    .name = "idle",
    .on_added = on_added,
    .on_removed = on_removed,
    .on_read = on_read,
    .on_inactive = on_inactive,
};

void bow_idle_init(struct bow_idle *idle, const struct bow_idle_options *options)
{
    memset(idle, 0, sizeof(*idle));
    idle->options = *options;
    idle->handler.ops = &idle_ops;
}
