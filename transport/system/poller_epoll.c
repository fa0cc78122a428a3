/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The poller over epoll, level-triggered, with time-outs in nanoseconds.
 *
 * Where epoll_pwait2 is missing (ENOSYS before Linux 5.11) or forbidden (EPERM by
 * a sandbox), a timerfd in the same set ends the wait instead, so a time-out is
 * never rounded up to a millisecond. The same timerfd makes the epoll descriptor
 * itself readable when another loop polls it (arm). It is opened by its first use.
 */

#include "transport/system/system_linux.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

struct bow_poller {
    int fd;
    int timer_fd;               /* -1: not opened; its events carry the poller as their data */
    bool lacks_pwait2;          /* found out by trying */
    struct epoll_event *events; /* what the kernel fills, before it is translated */
    int cap;
};

static uint32_t to_epoll(uint32_t events)
{
    return ((events & BOW_POLL_IN) != 0 ? (uint32_t)EPOLLIN : 0) |
           ((events & BOW_POLL_OUT) != 0 ? (uint32_t)EPOLLOUT : 0) |
           ((events & BOW_POLL_RDHUP) != 0 ? (uint32_t)EPOLLRDHUP : 0);
}

static uint32_t from_epoll(uint32_t events)
{
    return ((events & EPOLLIN) != 0 ? (uint32_t)BOW_POLL_IN : 0) |
           ((events & EPOLLOUT) != 0 ? (uint32_t)BOW_POLL_OUT : 0) |
           ((events & EPOLLRDHUP) != 0 ? (uint32_t)BOW_POLL_RDHUP : 0) |
           ((events & EPOLLHUP) != 0 ? (uint32_t)BOW_POLL_HUP : 0) |
           ((events & EPOLLERR) != 0 ? (uint32_t)BOW_POLL_ERR : 0);
}

static struct timespec to_timespec(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000u),
                             .tv_nsec = (long)(ns % 1000000000u)};
}

static int epoll_open(void *user, struct bow_poller **ret_poller)
{
    (void)user;
    struct bow_poller *poller = calloc(1, sizeof(*poller));
    if (poller == NULL) {
        return -ENOMEM;
    }
    poller->timer_fd = -1;
    poller->fd = epoll_create1(EPOLL_CLOEXEC);
    if (poller->fd < 0) {
        int rc = -errno;
        free(poller);
        return rc;
    }
    *ret_poller = poller;
    return 0;
}

static void epoll_close(struct bow_poller *poller)
{
    if (poller->timer_fd >= 0) {
        close(poller->timer_fd);
    }
    close(poller->fd);
    free(poller->events);
    free(poller);
}

static int control(struct bow_poller *poller, int op, int fd, uint32_t events, void *data)
{
    struct epoll_event event = {.events = events, .data.ptr = data};
    return epoll_ctl(poller->fd, op, fd, &event) < 0 ? -errno : 0;
}

static int epoll_add(struct bow_poller *poller, int fd, uint32_t events, void *data)
{
    return control(poller, EPOLL_CTL_ADD, fd, to_epoll(events), data);
}

static int epoll_modify(struct bow_poller *poller, int fd, uint32_t events, void *data)
{
    return control(poller, EPOLL_CTL_MOD, fd, to_epoll(events), data);
}

static int epoll_remove(struct bow_poller *poller, int fd)
{
    return control(poller, EPOLL_CTL_DEL, fd, 0, NULL);
}

static int open_timer(struct bow_poller *poller)
{
    if (poller->timer_fd >= 0) {
        return 0;
    }
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    int rc = control(poller, EPOLL_CTL_ADD, fd, EPOLLIN, poller);
    if (rc < 0) {
        close(fd);
        return rc;
    }
    poller->timer_fd = fd;
    return 0;
}

static int epoll_arm(struct bow_poller *poller, uint64_t timeout_ns)
{
    struct itimerspec at = {.it_value = {0, 0}};

    if (timeout_ns == BOW_NEVER && poller->timer_fd < 0) {
        return 0;
    }
    int rc = open_timer(poller);
    if (rc < 0) {
        return rc;
    }
    if (timeout_ns != BOW_NEVER) {
        /* A value of zero would disarm it. */
        at.it_value = to_timespec(timeout_ns > 0 ? timeout_ns : 1);
    }
    return timerfd_settime(poller->timer_fd, 0, &at, NULL) < 0 ? -errno : 0;
}

/* Its own array follows the caller's; where memory is short a smaller batch does as well. */
static int reserve(struct bow_poller *poller, int max)
{
    if (max <= poller->cap) {
        return max;
    }
    struct epoll_event *events =
        realloc(poller->events, (size_t)max * sizeof(*events)); /* max is bounded by the loop */
    if (events == NULL) {
        return poller->cap;
    }
    poller->events = events;
    poller->cap = max;
    return max;
}

static int wait_without_pwait2(struct bow_poller *poller, int max, uint64_t timeout_ns)
{
    if (timeout_ns == 0) {
        return epoll_wait(poller->fd, poller->events, max, 0);
    }
    int rc = epoll_arm(poller, timeout_ns);
    if (rc < 0) {
        /* Without a timer, wake early rather than late: the loop then asks again. */
        int ms = timeout_ns / 1000000u < INT_MAX ? (int)(timeout_ns / 1000000u) : INT_MAX;
        return epoll_wait(poller->fd, poller->events, max, ms);
    }
    return epoll_wait(poller->fd, poller->events, max, -1);
}

static int wait_epoll(struct bow_poller *poller, int max, uint64_t timeout_ns)
{
    if (!poller->lacks_pwait2) {
        struct timespec timeout = to_timespec(timeout_ns);
        int n = epoll_pwait2(poller->fd, poller->events, max,
                             timeout_ns == BOW_NEVER ? NULL : &timeout, NULL);
        if (n >= 0 || (errno != ENOSYS && errno != EPERM)) {
            return n;
        }
        poller->lacks_pwait2 = true;
    }
    return wait_without_pwait2(poller, max, timeout_ns);
}

static int translate(struct bow_poller *poller, int n_ready, struct bow_poll_event *events)
{
    int n = 0;

    for (int i = 0; i < n_ready; i++) {
        void *data = poller->events[i].data.ptr;
        if (data == poller) {
            uint64_t expirations;
            ssize_t unused = read(poller->timer_fd, &expirations, sizeof(expirations));
            (void)unused; /* EAGAIN when it was armed anew meanwhile */
            continue;
        }
        events[n].data = data;
        events[n].events = from_epoll(poller->events[i].events);
        n++;
    }
    return n;
}

static int epoll_wait_events(struct bow_poller *poller, struct bow_poll_event *events, int max,
                             uint64_t timeout_ns)
{
    max = reserve(poller, max);
    if (max == 0) {
        return -ENOMEM;
    }
    int n = wait_epoll(poller, max, timeout_ns);
    return n < 0 ? -errno : translate(poller, n, events);
}

static int epoll_fd(struct bow_poller *poller)
{
    return poller->fd;
}

const struct bow_poller_ops bow__poller_epoll = {
    .open = epoll_open,
    .close = epoll_close,
    .add = epoll_add,
    .modify = epoll_modify,
    .remove = epoll_remove,
    .wait = epoll_wait_events,
    .fd = epoll_fd,
    .arm = epoll_arm,
};
