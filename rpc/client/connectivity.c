/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How a balancer's connection stands, for who wants to know: shown to any thread, told to the
 * client's owner on its loop. Decides nothing.
 */

#include "rpc/client/client_state.h"

static enum bow_client_state state_of(const struct bow__balancer *balancer)
{
    static const enum bow_client_state states[] = {
        [BOW__CONNECTIVITY_IDLE] = BOW_CLIENT_IDLE,
        [BOW__CONNECTIVITY_CONNECTING] = BOW_CLIENT_CONNECTING,
        [BOW__CONNECTIVITY_READY] = BOW_CLIENT_READY,
        [BOW__CONNECTIVITY_BACKING_OFF] = BOW_CLIENT_TRANSIENT_FAILURE,
    };

    return balancer->closing ? BOW_CLIENT_SHUTDOWN : states[balancer->state];
}

static void tell(struct bow__balancer *balancer)
{
    const struct bow_client_options *options = &balancer->client->options;
    enum bow_client_state state = state_of(balancer);

    if (state != balancer->told_state) {
        balancer->told_state = state;
        options->on_state(balancer->client, balancer->loop, state, options->state_user);
    }
}

static int tell_task(void *user)
{
    struct bow__balancer *balancer = user;

    balancer->tells_state = false;
    tell(balancer);
    balancer->n_calls--;
    bow__balancer_check_closed(balancer);
    return 0;
}

void bow__balancer_state_init(struct bow__balancer *balancer)
{
    bow_task_init(&balancer->state_task, "client state", tell_task, balancer);
}

void bow__balancer_show_state(struct bow__balancer *balancer)
{
    atomic_store_explicit(&balancer->shown_state, (int)state_of(balancer), memory_order_relaxed);
    if (balancer->client->options.on_state == NULL || balancer->tells_state) {
        return;
    }
    if (bow__loop_post_internal(balancer->loop, &balancer->state_task, 0) < 0) {
        /* The loop shuts down, which is where this is called from. */
        tell(balancer);
        return;
    }
    balancer->tells_state = true;
    balancer->n_calls++;
}

enum bow_client_state bow_client_get_state(const struct bow_client *client)
{
    static const int ranks[] = {
        [BOW_CLIENT_IDLE] = 1,     [BOW_CLIENT_CONNECTING] = 3,
        [BOW_CLIENT_READY] = 4,    [BOW_CLIENT_TRANSIENT_FAILURE] = 2,
        [BOW_CLIENT_SHUTDOWN] = 0,
    };
    enum bow_client_state best = BOW_CLIENT_SHUTDOWN;

    for (uint32_t i = 0; i < client->n_balancers && !atomic_load(&client->closing); i++) {
        int state = atomic_load_explicit(&client->balancers[i].shown_state, memory_order_relaxed);
        if (ranks[state] > ranks[best]) {
            best = (enum bow_client_state)state;
        }
    }
    return best;
}
