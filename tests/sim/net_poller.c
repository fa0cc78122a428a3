/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The simulated poller: level-triggered, never waits. The events of one wait come in
 * an order that chance decides.
 */

#include "net.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct watch {
    int fd;
    uint32_t events;
    void *data;
};

struct bow_poller {
    struct sim_node *node;
    struct watch watches[SIM_MAX_WATCHES];
    int n;
    uint64_t armed_ns; /* BOW_NEVER: not */
};

static int poller_open(void *user, struct bow_poller **ret_poller)
{
    struct sim_node *node = user;
    struct bow_poller *poller = calloc(1, sizeof(*poller));

    if (poller == NULL) {
        return -ENOMEM;
    }
    poller->node = node;
    poller->armed_ns = BOW_NEVER;
    node->poller = poller;
    *ret_poller = poller;
    return 0;
}

static void poller_close(struct bow_poller *poller)
{
    if (poller->node->poller == poller) {
        poller->node->poller = NULL;
    }
    free(poller);
}

static struct watch *find(struct bow_poller *poller, int fd)
{
    for (int i = 0; i < poller->n; i++) {
        if (poller->watches[i].fd == fd) {
            return &poller->watches[i];
        }
    }
    return NULL;
}

static int poller_add(struct bow_poller *poller, int fd, uint32_t events, void *data)
{
    (void)sim_socket_of(poller->node->net, fd);
    if (find(poller, fd) != NULL) {
        return -EEXIST;
    }
    if (poller->n == SIM_MAX_WATCHES) {
        return -ENOSPC;
    }
    poller->watches[poller->n++] = (struct watch){fd, events, data};
    sim_node_touch(poller->node);
    return 0;
}

static int poller_modify(struct bow_poller *poller, int fd, uint32_t events, void *data)
{
    struct watch *watch = find(poller, fd);

    if (watch == NULL) {
        return -ENOENT;
    }
    *watch = (struct watch){fd, events, data};
    sim_node_touch(poller->node);
    return 0;
}

static int poller_remove(struct bow_poller *poller, int fd)
{
    struct watch *watch = find(poller, fd);

    if (watch == NULL) {
        return -ENOENT;
    }
    *watch = poller->watches[--poller->n];
    return 0;
}

static uint32_t bits_of(const struct bow_poller *poller, const struct watch *watch)
{
    return sim_readiness(poller->node->net, watch->fd) &
           (watch->events | BOW_POLL_HUP | BOW_POLL_ERR);
}

static int poller_wait(struct bow_poller *poller, struct bow_poll_event *events, int max,
                       uint64_t timeout_ns)
{
    int first = poller->n > 0 ? (int)sim_below(poller->node->net, (uint64_t)poller->n) : 0;
    int n = 0;

    (void)timeout_ns;
    if (poller->armed_ns <= sim_node_now(poller->node)) {
        poller->armed_ns = BOW_NEVER;
    }
    for (int i = 0; i < poller->n && n < max; i++) {
        const struct watch *watch = &poller->watches[(first + i) % poller->n];
        uint32_t bits = bits_of(poller, watch);
        if (bits != 0) {
            events[n++] = (struct bow_poll_event){watch->data, bits};
        }
    }
    return n;
}

/* Nobody looks at the number. */
static int poller_fd(struct bow_poller *poller)
{
    (void)poller;
    return SIM_FIRST_FD + SIM_MAX_FDS;
}

static int poller_arm(struct bow_poller *poller, uint64_t timeout_ns)
{
    uint64_t now = sim_node_now(poller->node);

    poller->armed_ns = timeout_ns < BOW_NEVER - now ? now + timeout_ns : BOW_NEVER;
    sim_node_touch(poller->node);
    return 0;
}

const struct bow_poller_ops sim_poller_ops = {
    .open = poller_open,
    .close = poller_close,
    .add = poller_add,
    .modify = poller_modify,
    .remove = poller_remove,
    .wait = poller_wait,
    .fd = poller_fd,
    .arm = poller_arm,
};

/* When a watched descriptor is ready; 0: now. */
static uint64_t next_event(const struct bow_poller *poller)
{
    uint64_t next = poller->armed_ns;

    for (int i = 0; i < poller->n; i++) {
        if (bits_of(poller, &poller->watches[i]) != 0) {
            return 0;
        }
        uint64_t at = sim_readiness_changes(poller->node->net, poller->watches[i].fd);
        next = at < next ? at : next;
    }
    return next;
}

void sim_node_touch(struct sim_node *node)
{
    node->quiet_until_ns = 0;
}

uint64_t sim_node_due(struct sim_node *node)
{
    if (node->poller == NULL) {
        return BOW_NEVER;
    }
    if (node->quiet_until_ns <= node->net->now_ns) {
        node->quiet_until_ns = next_event(node->poller);
    }
    return node->quiet_until_ns > node->busy_until_ns ? node->quiet_until_ns : node->busy_until_ns;
}
