/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How a link's connection stands, for who wants to know: shown to any thread, told to the
 * client's owner on its loop. Decides nothing.
 */

#include "rpc/client_state.h"

static enum bow_client_state state_of(const struct bow__client_link *link)
{
    static const enum bow_client_state states[] = {
        [BOW__LINK_IDLE] = BOW_CLIENT_IDLE,
        [BOW__LINK_CONNECTING] = BOW_CLIENT_CONNECTING,
        [BOW__LINK_READY] = BOW_CLIENT_READY,
        [BOW__LINK_BACKING_OFF] = BOW_CLIENT_TRANSIENT_FAILURE,
    };

    return link->closing ? BOW_CLIENT_SHUTDOWN : states[link->state];
}

static void tell(struct bow__client_link *link)
{
    const struct bow_client_options *options = &link->client->options;
    enum bow_client_state state = state_of(link);

    if (state != link->told_state) {
        link->told_state = state;
        options->on_state(link->client, link->loop, state, options->state_user);
    }
}

static int tell_task(void *user)
{
    struct bow__client_link *link = user;

    link->tells_state = false;
    tell(link);
    link->n_calls--;
    bow__link_check_closed(link);
    return 0;
}

void bow__link_state_init(struct bow__client_link *link)
{
    bow_task_init(&link->state_task, "client state", tell_task, link);
}

void bow__link_show_state(struct bow__client_link *link)
{
    atomic_store_explicit(&link->shown_state, (int)state_of(link), memory_order_relaxed);
    if (link->client->options.on_state == NULL || link->tells_state) {
        return;
    }
    if (bow__loop_post_internal(link->loop, &link->state_task, 0) < 0) {
        /* The loop shuts down, which is where this is called from. */
        tell(link);
        return;
    }
    link->tells_state = true;
    link->n_calls++;
}

enum bow_client_state bow_client_get_state(const struct bow_client *client)
{
    static const int ranks[] = {
        [BOW_CLIENT_IDLE] = 1,     [BOW_CLIENT_CONNECTING] = 3,
        [BOW_CLIENT_READY] = 4,    [BOW_CLIENT_TRANSIENT_FAILURE] = 2,
        [BOW_CLIENT_SHUTDOWN] = 0,
    };
    enum bow_client_state best = BOW_CLIENT_SHUTDOWN;

    for (uint32_t i = 0; i < client->n_links && !atomic_load(&client->closing); i++) {
        int state = atomic_load_explicit(&client->links[i].shown_state, memory_order_relaxed);
        if (ranks[state] > ranks[best]) {
            best = (enum bow_client_state)state;
        }
    }
    return best;
}
