/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_SYSTEM_H
#define BOWLINE_SYSTEM_H

/*
 * Everything that is not deterministic reaches Bowline through struct bow_system:
 * clock, random bytes, readiness, sockets, wake-ups, threads and names. The
 * default is the operating system (bow_system_default()); a simulator puts in
 * its own and runs whole systems in one thread.
 *
 * Rules for an implementation: functions return 0 or a count, or a negative
 * errno; none sets errno for the caller to read. Every function may be called from
 * any thread unless its comment says otherwise. Descriptors are non-blocking
 * and close-on-exec from birth. `user` is the table's own `user`.
 */

#include <bowline/visibility.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/** The deadline that does not come; the time-out that does not end. */
#define BOW_NEVER UINT64_MAX

/** Readiness bits. HUP and ERR are always reported. */
enum bow_poll_events {
    BOW_POLL_IN = 1,
    BOW_POLL_OUT = 2,
    BOW_POLL_RDHUP = 4, /* the peer shut its writing side down */
    BOW_POLL_HUP = 8,
    BOW_POLL_ERR = 16,
};

/** That something is ready. */
struct bow_poll_event {
    void *data;      /* what add() or modify() gave */
    uint32_t events; /* BOW_POLL_ bits */
};

struct bow_poller; /* of the implementation */

/** A level-triggered poller. All but open() are called on the loop's thread only. */
struct bow_poller_ops {
    int (*open)(void *user, struct bow_poller **ret_poller);
    void (*close)(struct bow_poller *poller);
    int (*add)(struct bow_poller *poller, int fd, uint32_t events, void *data);
    int (*modify)(struct bow_poller *poller, int fd, uint32_t events, void *data);
    int (*remove)(struct bow_poller *poller, int fd);
    /** Wait at most `timeout_ns` (0: poll, BOW_NEVER: for ever); returns how many of `max`. -EINTR
     * on a signal. */
    int (*wait)(struct bow_poller *poller, struct bow_poll_event *events, int max,
                uint64_t timeout_ns);
    /** One descriptor that is readable when wait(0) would return events, or -ENOTSUP. */
    int (*fd)(struct bow_poller *poller);
    /** Make fd() readable by itself `timeout_ns` from now (0: now, BOW_NEVER: not any more). The
     * last call counts; a wait() takes notice of it and returns no event for it. */
    int (*arm)(struct bow_poller *poller, uint64_t timeout_ns);
};

/** A socket address with its length. */
struct bow_sockaddr {
    struct sockaddr_storage storage;
    socklen_t len;
};

/** Bytes of a thread's name, its NUL included: what Linux shows. */
#define BOW_THREAD_NAME_BYTES 16

/** What a thread is started with. */
struct bow_thread_options {
    char name[BOW_THREAD_NAME_BYTES]; /* cut to fit; "" for none */
    size_t stack_bytes;               /* 0: the system's default */
    int cpu;                          /* pin to this CPU; -1: anywhere */
};

struct bow_thread; /* of the implementation */

/** The table: each function is called with `user` first. None may be NULL. */
struct bow_system {
    size_t size; /* sizeof this struct */
    void *user;

    /** Monotonic nanoseconds since some fixed point; never 0, never steps with the wall clock. */
    uint64_t (*now_ns)(void *user);
    int (*random)(void *user, void *bytes, size_t len);

    const struct bow_poller_ops *poller;

    int (*socket)(void *user, int domain, int type, int protocol);
    int (*bind)(void *user, int fd, const struct bow_sockaddr *address);
    int (*listen)(void *user, int fd, int backlog);
    int (*accept)(void *user, int fd, struct bow_sockaddr *ret_address);
    /** 0 when connected at once, -EINPROGRESS otherwise: POLL_OUT, then SO_ERROR. */
    int (*connect)(void *user, int fd, const struct bow_sockaddr *address);
    ssize_t (*recv)(void *user, int fd, void *bytes, size_t len);
    /** MSG_NOSIGNAL is always added to `flags`. */
    ssize_t (*sendmsg)(void *user, int fd, const struct msghdr *message, int flags);
    int (*shutdown)(void *user, int fd, int how);
    int (*close)(void *user, int fd);
    int (*getsockopt)(void *user, int fd, int level, int name, void *value, socklen_t *len);
    int (*setsockopt)(void *user, int fd, int level, int name, const void *value, socklen_t len);
    int (*getsockname)(void *user, int fd, struct bow_sockaddr *ret_address);
    int (*getpeername)(void *user, int fd, struct bow_sockaddr *ret_address);

    /** A descriptor that wake_signal() from any thread makes readable until wake_drain(). */
    int (*wake_open)(void *user);
    int (*wake_signal)(void *user, int fd);
    int (*wake_drain)(void *user, int fd);
    /** Wait at most `timeout_ns` for wake_signal(), without a poller: what is left to a loop whose
     * poller fails. */
    void (*wake_wait)(void *user, int fd, uint64_t timeout_ns);

    /** The thread starts with all signals blocked. */
    int (*thread_start)(void *user, const struct bow_thread_options *options,
                        void (*run)(void *argument), void *argument,
                        struct bow_thread **ret_thread);
    /** Wait for the end of `thread` and free it. */
    void (*thread_join)(void *user, struct bow_thread *thread);
    /** Instead of a join, called by `thread` itself as its last act: free it when it ends. */
    void (*thread_detach)(void *user, struct bow_thread *thread);
    /** CPUs this process may keep busy: by affinity and by quota; at least 1. */
    uint32_t (*cpus)(void *user);

    /**
     * Resolve a name, blocking: fills at most `max` addresses in order of
     * preference (getaddrinfo's), all with `port`. Returns how many, or a negative errno
     * (-ENOENT: the name does not exist, -EAGAIN: the name server does not
     * answer). `*ret_reason` is then set to a text that lives for ever.
     *
     * Several threads may be in here at once, each for another name. The end of a context does not
     * wait for them: one that is in here then comes back later, calls thread_detach(), and is gone.
     * `user`, and whatever these two need, lives that long.
     */
    int (*resolve)(void *user, const char *host, uint16_t port, struct bow_sockaddr *addresses,
                   int max, const char **ret_reason);
};

/** The operating system. Constant; lives for ever. Thread: any. */
BOW_EXPORT const struct bow_system *bow_system_default(void);

#ifdef __cplusplus
}
#endif
#endif
