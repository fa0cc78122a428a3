/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A poller that misbehaves on purpose; see the header. */

#include "tests/support/bad_poller.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>

struct bow_poller {
    struct bad_poller *bad;
    bool is_bad;
    bool is_first;
    int n;
    struct pollfd fds[BAD_POLLER_FDS];
    void *data[BAD_POLLER_FDS];
};

static int bad_open(void *user, struct bow_poller **ret_poller)
{
    struct bad_poller *bad = user; /* begins with the fake system */

    if (bad->n_opened > 0 && bad->open_error != 0) {
        return bad->open_error;
    }
    struct bow_poller *poller = calloc(1, sizeof(*poller));
    if (poller == NULL) {
        return -ENOMEM;
    }
    poller->bad = bad;
    poller->is_first = bad->n_opened == 0;
    poller->is_bad = bad->n_opened < bad->n_bad;
    bad->n_opened++;
    bad->n_open++;
    *ret_poller = poller;
    return 0;
}

static void bad_close(struct bow_poller *poller)
{
    poller->bad->n_open--;
    free(poller);
}

static int find(const struct bow_poller *poller, int fd)
{
    for (int i = 0; i < poller->n; i++) {
        if (poller->fds[i].fd == fd) {
            return i;
        }
    }
    return -ENOENT;
}

static short to_poll(uint32_t events)
{
    return (short)(((events & BOW_POLL_IN) != 0 ? POLLIN : 0) |
                   ((events & BOW_POLL_OUT) != 0 ? POLLOUT : 0) |
                   ((events & BOW_POLL_RDHUP) != 0 ? POLLRDHUP : 0));
}

static uint32_t from_poll(short events)
{
    return ((events & POLLIN) != 0 ? (uint32_t)BOW_POLL_IN : 0) |
           ((events & POLLOUT) != 0 ? (uint32_t)BOW_POLL_OUT : 0) |
           ((events & POLLRDHUP) != 0 ? (uint32_t)BOW_POLL_RDHUP : 0) |
           ((events & POLLHUP) != 0 ? (uint32_t)BOW_POLL_HUP : 0) |
           ((events & (POLLERR | POLLNVAL)) != 0 ? (uint32_t)BOW_POLL_ERR : 0);
}

static int bad_add(struct bow_poller *poller, int fd, uint32_t events, void *data)
{
    const struct bad_poller *bad = poller->bad;

    if (!poller->is_first && bad->refused_error != 0 && fd == bad->refused_fd) {
        return bad->refused_error;
    }
    if (find(poller, fd) >= 0) {
        return -EEXIST;
    }
    if (poller->n == BAD_POLLER_FDS) {
        return -ENOSPC;
    }
    poller->fds[poller->n] = (struct pollfd){.fd = fd, .events = to_poll(events)};
    poller->data[poller->n] = data;
    poller->n++;
    return 0;
}

static int bad_modify(struct bow_poller *poller, int fd, uint32_t events, void *data)
{
    int i = find(poller, fd);

    if (i < 0) {
        return i;
    }
    poller->fds[i].events = to_poll(events);
    poller->data[i] = data;
    return 0;
}

static int bad_remove(struct bow_poller *poller, int fd)
{
    int i = find(poller, fd);

    if (i < 0) {
        return i;
    }
    poller->n--;
    poller->fds[i] = poller->fds[poller->n];
    poller->data[i] = poller->data[poller->n];
    return 0;
}

static int collect(struct bow_poller *poller, struct bow_poll_event *events, int max)
{
    int n = 0;

    for (int i = 0; i < poller->n && n < max; i++) {
        if (poller->fds[i].revents != 0) {
            events[n].data = poller->data[i];
            events[n].events = from_poll(poller->fds[i].revents);
            n++;
        }
    }
    return n;
}

static int bad_wait(struct bow_poller *poller, struct bow_poll_event *events, int max,
                    uint64_t timeout_ns)
{
    struct bad_poller *bad = poller->bad;

    bad->n_waits++;
    bad->n_sleeps += timeout_ns > 0;
    if (poller->is_bad && (bad->good_every == 0 || bad->n_waits % bad->good_every != 0)) {
        return bad->wait_result;
    }
    int rc = poll(poller->fds, (nfds_t)poller->n, timeout_ns == BOW_NEVER ? -1 : 0);
    if (rc < 0) {
        return -errno;
    }
    if (rc == 0 && timeout_ns > 0) {
        fake_system_advance(&bad->fake, timeout_ns);
    }
    return collect(poller, events, max);
}

static int bad_fd(struct bow_poller *poller)
{
    (void)poller;
    return -ENOTSUP;
}

static int bad_arm(struct bow_poller *poller, uint64_t timeout_ns)
{
    (void)poller;
    (void)timeout_ns;
    return -ENOTSUP;
}

void bad_poller_init(struct bad_poller *bad)
{
    *bad = (struct bad_poller){.refused_fd = -1};
    fake_system_init(&bad->fake);
    bad->ops = (struct bow_poller_ops){
        .open = bad_open,
        .close = bad_close,
        .add = bad_add,
        .modify = bad_modify,
        .remove = bad_remove,
        .wait = bad_wait,
        .fd = bad_fd,
        .arm = bad_arm,
    };
    bad->fake.system.poller = &bad->ops;
}
