/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Wraps entries of the default system table; `user` is the counts. */

#include "counted_system.h"
#include <netinet/in.h>
#include <netinet/tcp.h>

static ssize_t counted_recv(void *user, int fd, void *bytes, size_t len)
{
    const struct bow_system *os = bow_system_default();
    ((struct io_counts *)user)->receives++;
    return os->recv(os->user, fd, bytes, len);
}

static ssize_t counted_sendmsg(void *user, int fd, const struct msghdr *message, int flags)
{
    const struct bow_system *os = bow_system_default();
    ((struct io_counts *)user)->sends++;
    return os->sendmsg(os->user, fd, message, flags);
}

/* An accepted socket inherits its listener's congestion control. */
static int reno_socket(void *user, int domain, int type, int protocol)
{
    const struct bow_system *os = bow_system_default();
    (void)user;
    int fd = os->socket(os->user, domain, type, protocol);
    if (fd >= 0 && domain != AF_UNIX) {
        (void)os->setsockopt(os->user, fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
    }
    return fd;
}

/* The default table ignores `user`, so the other entries may be given ours. */
struct bow_system counted_system(struct io_counts *counts)
{
    struct bow_system system = *bow_system_default();
    system.user = counts;
    system.recv = counted_recv;
    system.sendmsg = counted_sendmsg;
    system.socket = reno_socket;
    return system;
}

/* A poller is not told `user`. */
static struct io_counts *poller_counts;

static int counted_add(struct bow_poller *poller, int fd, uint32_t events, void *data)
{
    poller_counts->others++;
    return bow_system_default()->poller->add(poller, fd, events, data);
}

static int counted_modify(struct bow_poller *poller, int fd, uint32_t events, void *data)
{
    poller_counts->others++;
    return bow_system_default()->poller->modify(poller, fd, events, data);
}

static int counted_remove(struct bow_poller *poller, int fd)
{
    poller_counts->others++;
    return bow_system_default()->poller->remove(poller, fd);
}

static int counted_wait(struct bow_poller *poller, struct bow_poll_event *events, int max,
                        uint64_t timeout_ns)
{
    poller_counts->others++;
    return bow_system_default()->poller->wait(poller, events, max, timeout_ns);
}

void counted_system_poller(struct bow_system *system, struct io_counts *counts)
{
    static struct bow_poller_ops ops;
    ops = *bow_system_default()->poller;
    ops.add = counted_add;
    ops.modify = counted_modify;
    ops.remove = counted_remove;
    ops.wait = counted_wait;
    poller_counts = counts;
    system->poller = &ops;
}
