/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The operating system as a struct bow_system: clock, random bytes, sockets and
 * wake-ups, each a system call with errno turned into a result. Descriptors are
 * non-blocking and close-on-exec from birth, and no write can raise SIGPIPE.
 * Knows nothing of loops or channels.
 */

#include "transport/system/system_linux.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

static int result_of(int rc)
{
    return rc < 0 ? -errno : rc;
}

uint64_t bow__linux_now_ns(void *user)
{
    (void)user;
    return bow__linux_read_clock(CLOCK_MONOTONIC);
}

static int linux_random(void *user, void *bytes, size_t len)
{
    uint8_t *next = bytes;

    (void)user;
    while (len > 0) {
        ssize_t n = getrandom(next, len, 0);
        if (n < 0 && errno != EINTR) {
            return -errno;
        }
        if (n > 0) {
            next += n;
            len -= (size_t)n;
        }
    }
    return 0;
}

static int linux_socket(void *user, int domain, int type, int protocol)
{
    (void)user;
    return result_of(socket(domain, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol));
}

static int linux_bind(void *user, int fd, const struct bow_sockaddr *address)
{
    (void)user;
    return result_of(bind(fd, (const struct sockaddr *)&address->storage, address->len));
}

static int linux_listen(void *user, int fd, int backlog)
{
    (void)user;
    return result_of(listen(fd, backlog));
}

static int linux_accept(void *user, int fd, struct bow_sockaddr *ret_address)
{
    struct bow_sockaddr address = {.len = sizeof(address.storage)};
    int accepted;

    (void)user;
    do {
        accepted = accept4(fd, (struct sockaddr *)&address.storage, &address.len,
                           SOCK_NONBLOCK | SOCK_CLOEXEC);
    } while (accepted < 0 && errno == EINTR);
    if (accepted < 0) {
        return -errno;
    }
    if (ret_address != NULL) {
        *ret_address = address;
    }
    return accepted;
}

static int linux_connect(void *user, int fd, const struct bow_sockaddr *address)
{
    (void)user;
    int rc = connect(fd, (const struct sockaddr *)&address->storage, address->len);
    /* An interrupted connect goes on by itself, like one in progress (POSIX, connect()). */
    return rc < 0 && errno == EINTR ? -EINPROGRESS : result_of(rc);
}

static ssize_t linux_recv(void *user, int fd, void *bytes, size_t len)
{
    ssize_t n;

    (void)user;
    do {
        n = recv(fd, bytes, len, 0);
    } while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

static ssize_t linux_sendmsg(void *user, int fd, const struct msghdr *message, int flags)
{
    ssize_t n;

    (void)user;
    do {
        n = sendmsg(fd, message, flags | MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

static int linux_shutdown(void *user, int fd, int how)
{
    (void)user;
    return result_of(shutdown(fd, how));
}

static int linux_close(void *user, int fd)
{
    (void)user;
    return result_of(close(fd));
}

static int linux_getsockopt(void *user, int fd, int level, int name, void *value, socklen_t *len)
{
    (void)user;
    return result_of(getsockopt(fd, level, name, value, len));
}

static int linux_setsockopt(void *user, int fd, int level, int name, const void *value,
                            socklen_t len)
{
    (void)user;
    return result_of(setsockopt(fd, level, name, value, len));
}

static int linux_getsockname(void *user, int fd, struct bow_sockaddr *ret_address)
{
    struct bow_sockaddr address = {.len = sizeof(address.storage)};

    (void)user;
    if (getsockname(fd, (struct sockaddr *)&address.storage, &address.len) < 0) {
        return -errno;
    }
    *ret_address = address;
    return 0;
}

static int linux_getpeername(void *user, int fd, struct bow_sockaddr *ret_address)
{
    struct bow_sockaddr address = {.len = sizeof(address.storage)};

    (void)user;
    if (getpeername(fd, (struct sockaddr *)&address.storage, &address.len) < 0) {
        return -errno;
    }
    *ret_address = address;
    return 0;
}

static int linux_wake_open(void *user)
{
    (void)user;
    return result_of(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
}

static int linux_wake_signal(void *user, int fd)
{
    const uint64_t one = 1;
    ssize_t n;

    (void)user;
    do {
        n = write(fd, &one, sizeof(one));
    } while (n < 0 && errno == EINTR);
    /* EAGAIN: the count is at its maximum, so the descriptor is readable as it should be. */
    return n < 0 && errno != EAGAIN ? -errno : 0;
}

static int linux_wake_drain(void *user, int fd)
{
    uint64_t count;

    (void)user;
    ssize_t n = read(fd, &count, sizeof(count));
    return n < 0 && errno != EAGAIN && errno != EINTR ? -errno : 0;
}

static void linux_wake_wait(void *user, int fd, uint64_t timeout_ns)
{
    struct pollfd wake = {.fd = fd, .events = POLLIN};
    const struct timespec timeout = {.tv_sec = (time_t)(timeout_ns / 1000000000u),
                                     .tv_nsec = (long)(timeout_ns % 1000000000u)};

    (void)user;
    (void)ppoll(&wake, 1, &timeout, NULL);
}

static const struct bow_system linux_system = {
    .size = sizeof(struct bow_system),
    .now_ns = bow__linux_now_ns,
    .random = linux_random,
    .poller = &bow__poller_epoll,
    .socket = linux_socket,
    .bind = linux_bind,
    .listen = linux_listen,
    .accept = linux_accept,
    .connect = linux_connect,
    .recv = linux_recv,
    .sendmsg = linux_sendmsg,
    .shutdown = linux_shutdown,
    .close = linux_close,
    .getsockopt = linux_getsockopt,
    .setsockopt = linux_setsockopt,
    .getsockname = linux_getsockname,
    .getpeername = linux_getpeername,
    .wake_open = linux_wake_open,
    .wake_signal = linux_wake_signal,
    .wake_drain = linux_wake_drain,
    .wake_wait = linux_wake_wait,
    .thread_start = bow__linux_thread_start,
    .thread_join = bow__linux_thread_join,
    .thread_detach = bow__linux_thread_detach,
    .cpus = bow__linux_cpus,
    .resolve = bow__linux_resolve,
};

const struct bow_system *bow_system_default(void)
{
    return &linux_system;
}
