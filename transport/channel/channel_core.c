/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a channel is: its references, what it asks of its loop, what can be asked of it. Knows
 * nothing of how it begins, ends or moves bytes.
 */

#include "transport/channel/channel_core.h"
#include "base/alloc.h"

#include <errno.h>
#include <string.h>

/* What it asks of its loop */

void bow__channel_schedule_phase(struct bow_channel *channel)
{
    if (!channel->has_ended) {
        bow__loop_defer_flush(channel->loop, &channel->phase);
    }
}

void bow__channel_schedule_reap(struct bow_channel *channel)
{
    if (!channel->is_reaped) {
        bow__loop_defer_free(channel->loop, &channel->reap);
    }
}

void bow__channel_schedule_turn(struct bow_channel *channel)
{
    if (bow__channel_state(channel) == BOW__CHANNEL_ACTIVE) {
        channel->wants_turn = true;
        bow_timer_start(&channel->timer, 0);
    }
}

/* References */

void bow__channel_hold(struct bow_channel *channel)
{
    /* relaxed: who takes a reference already holds one */
    atomic_fetch_add_explicit(&channel->refs, 1, memory_order_relaxed);
}

static void free_name(struct bow_channel *channel)
{
    if (channel->is_renamed) {
        /* The block's constness is that of its readers. */
        char *name = (char *)(uintptr_t)bow_channel_peer(channel);
        bow__free(channel->context, name, strlen(name) + 1);
    }
}

void bow__channel_release(struct bow_channel *channel)
{
    /* acq_rel, its own partner: the last holder sees what the others did before they let go */
    if (atomic_fetch_sub_explicit(&channel->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    struct bow_loop *loop = channel->loop;
    void (*on_gone)(void *user) = channel->on_gone;
    void *user = channel->owner_user;

    free_name(channel);
    bow__free(channel->context, channel, channel->alloc_bytes);
    if (on_gone != NULL) {
        on_gone(user);
    }
    bow__loop_release(loop);
}

struct bow_channel *bow_channel_ref(struct bow_channel *channel)
{
    bow__channel_hold(channel);
    return channel;
}

struct bow_channel *bow_channel_unref(struct bow_channel *channel)
{
    if (channel != NULL) {
        bow__channel_release(channel);
    }
    return NULL;
}

/* What can be asked */

struct bow_loop *bow_channel_loop(const struct bow_channel *channel)
{
    return channel->loop;
}

void *bow_channel_data(struct bow_channel *channel)
{
    return (char *)channel + BOW__CHANNEL_DATA_AT;
}

const char *bow_channel_peer(const struct bow_channel *channel)
{
    return atomic_load_explicit(&channel->peer, memory_order_acquire);
}

int bow__channel_name_peer(struct bow_channel *channel, const char *name)
{
    if (channel->is_renamed) {
        return -EALREADY;
    }
    char *copy = bow__dup(channel->context, name, strlen(name));
    if (copy == NULL) {
        return -ENOMEM;
    }
    channel->is_renamed = true;
    atomic_store_explicit(&channel->peer, copy, memory_order_release);
    return 0;
}

int bow_channel_peer_credentials(const struct bow_channel *channel,
                                 struct bow_peer_credentials *ret_credentials)
{
    if (!channel->has_credentials) {
        return -ENOTSUP;
    }
    *ret_credentials = channel->credentials;
    return 0;
}

bool bow_channel_is_active(const struct bow_channel *channel)
{
    return bow__channel_state(channel) == BOW__CHANNEL_ACTIVE;
}
