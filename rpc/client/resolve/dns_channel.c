/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * c-ares driven by a loop.
 */

#include "rpc/client/resolve/dns_channel.h"
#include "base/clock.h"
#include <bowline/limits.h>
#include <bowline/system.h>

#include <string.h>

#define MILLISECOND UINT64_C(1000000)

static void on_timer(struct bow_timer *timer, void *user)
{
    struct bow__dns_channel *channel = user;

    (void)timer;
    ares_process_fd(channel->ares, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    bow__dns_channel_arm(channel);
}

void bow__dns_channel_arm(struct bow__dns_channel *channel)
{
    struct timeval room;
    const struct timeval *left = ares_timeout(channel->ares, NULL, &room);

    if (left == NULL) {
        bow_timer_stop(&channel->timer);
        return;
    }
    uint64_t left_ns = (uint64_t)left->tv_sec * 1000 * MILLISECOND + (uint64_t)left->tv_usec * 1000;
    bow_timer_start(&channel->timer, left_ns + MILLISECOND); /* its clock has no finer steps */
}

/* Sockets */

static void on_events(struct bow__watch *watch, uint32_t events)
{
    struct bow__dns_socket *own = BOW__CONTAINER(watch, struct bow__dns_socket, watch);
    struct bow__dns_channel *channel = own->channel;
    ares_socket_t fd = watch->fd;
    bool is_bad = (events & (BOW_POLL_HUP | BOW_POLL_ERR)) != 0;
    bool reads = is_bad || (events & (BOW_POLL_IN | BOW_POLL_RDHUP)) != 0;
    bool writes = (events & BOW_POLL_OUT) != 0;

    ares_process_fd(channel->ares, reads ? fd : ARES_SOCKET_BAD, writes ? fd : ARES_SOCKET_BAD);
    bow__dns_channel_arm(channel);
}

static void forget(struct bow__dns_socket *own)
{
    bow__loop_unwatch(own->channel->loop, &own->watch);
    own->channel = NULL;
}

static struct bow__dns_socket *find(struct bow__dns_channel *channel, ares_socket_t fd)
{
    struct bow__dns_socket *unused = NULL;

    for (size_t i = 0; i < BOW__DNS_SOCKETS; i++) {
        struct bow__dns_socket *own = &channel->sockets[i];
        if (own->channel != NULL && own->watch.fd == fd) {
            return own;
        }
        unused = own->channel == NULL ? own : unused;
    }
    return unused;
}

/* One that cannot be watched is not answered: the query goes to the next server, or fails in
 * time. */
static void watch(struct bow__dns_channel *channel, struct bow__dns_socket *own, ares_socket_t fd,
                  uint32_t events)
{
    static const struct bow__watch_ops ops = {.on_events = on_events};

    if (own->channel != NULL) {
        (void)!bow__loop_rewatch(channel->loop, &own->watch, events);
        return;
    }
    memset(&own->watch, 0, sizeof(own->watch));
    own->watch.ops = &ops;
    bow__list_init(&own->watch.link);
    if (bow__loop_watch(channel->loop, &own->watch, fd, events) == 0) {
        own->channel = channel;
    }
}

/* With neither, c-ares closes it next. */
static void on_socket(void *user, ares_socket_t fd, int reads, int writes)
{
    struct bow__dns_channel *channel = user;
    struct bow__dns_socket *own = find(channel, fd);
    uint32_t events = (reads ? BOW_POLL_IN : 0u) | (writes ? BOW_POLL_OUT : 0u);

    if (own == NULL) {
        return;
    }
    if (events != 0) {
        watch(channel, own, fd, events);
    } else if (own->channel != NULL) {
        forget(own);
    }
}

/* Life */

int bow__dns_channel_init(struct bow__dns_channel *channel, struct bow_loop *loop,
                          const char *servers)
{
    struct ares_options options = {
        .timeout = (int)(BOW_LIMIT_DNS_TRY_NS / MILLISECOND),
        .tries = BOW_LIMIT_DNS_TRIES,
        .sock_state_cb = on_socket,
        .sock_state_cb_data = channel,
    };

    memset(channel, 0, sizeof(*channel));
    channel->loop = loop;
    bow_timer_init(&channel->timer, loop, on_timer, channel);
    int status = ares_library_init(ARES_LIB_INIT_ALL);
    if (status != ARES_SUCCESS) {
        return status;
    }
    status = ares_init_options(&channel->ares, &options,
                               ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB);
    if (status != ARES_SUCCESS) {
        channel->ares = NULL;
        ares_library_cleanup();
        return status;
    }
    if (servers != NULL) {
        status = ares_set_servers_ports_csv(channel->ares, servers);
    }
    if (status != ARES_SUCCESS) {
        bow__dns_channel_fini(channel);
    }
    return status;
}

void bow__dns_channel_fini(struct bow__dns_channel *channel)
{
    if (channel->ares == NULL) {
        return;
    }
    bow_timer_stop(&channel->timer);
    ares_destroy(channel->ares);
    channel->ares = NULL;
    ares_library_cleanup();
}
