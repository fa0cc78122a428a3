/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A channel whose system is two byte queues and a number for a clock. The loop and
 * the channel are the ordinary ones, so nothing about handlers is imitated here.
 * Knows nothing of handlers.
 *
 * The system table holds only what a loop that its owner drives and a connected
 * channel ask for; resolving, connecting and threads go through the context's own.
 */

#include "base/alloc.h"
#include "base/clock.h"
#include "base/options.h"
#include "base/refuse.h"
#include "transport/address/address.h"
#include "transport/channel/channel.h"

#include <bowline/embedded.h>
#include <bowline/limits.h>
#include <errno.h>
#include <limits.h>

#define MAX_TURNS 10000
/* Time since a start that a handler could take for "never" would hide its mistakes. */
#define START_NS (UINT64_C(3600) * 1000000000u)

/* Not descriptors: a real system call answers EBADF. */
#define WAKE_FD (INT_MAX - 1)
#define SOCKET_FD INT_MAX

struct interest {
    uint32_t events;
    void *data;
};

struct bow_poller {
    struct bow_embedded *embedded;
};

struct bow_embedded {
    struct bow_context *context;
    struct bow_system system;
    struct bow_poller poller;
    struct bow_embedded_options options;
    struct bow_sockaddr peer;
    struct bow_loop *loop;
    struct bow_channel *channel;
    uint64_t now_ns;
    atomic_bool is_signalled; /* release by any thread; acquire by the loop's */
    struct interest wake;
    struct interest socket;
    struct bow__unread *input;
    struct bow__unread *output;
    int start_error;
    bool has_peer_ended;
    bool is_reset;
    bool is_ended;
    bool is_closed;
};

/* The clock and the poller */

static uint64_t embedded_now_ns(void *user)
{
    const struct bow_embedded *embedded = user;
    return embedded->now_ns;
}

static size_t room(const struct bow_embedded *embedded)
{
    size_t max = embedded->options.socket_bytes;
    size_t len = bow__unread_len(embedded->output);

    if (max == 0 || max > BOW_LIMIT_UNREAD_BYTES) {
        max = BOW_LIMIT_UNREAD_BYTES;
    }
    return len < max ? max - len : 0;
}

static uint32_t socket_events(const struct bow_embedded *embedded)
{
    const bool is_over = embedded->is_reset || (embedded->has_peer_ended && embedded->is_ended);
    uint32_t events = 0;

    if (embedded->input != NULL || embedded->has_peer_ended || embedded->is_reset) {
        events |= BOW_POLL_IN;
    }
    if (room(embedded) > 0 || embedded->is_reset) {
        events |= BOW_POLL_OUT;
    }
    if (embedded->has_peer_ended) {
        events |= BOW_POLL_RDHUP;
    }
    events &= embedded->socket.events;
    if (is_over) {
        events |= BOW_POLL_HUP;
    }
    if (embedded->is_reset) {
        events |= BOW_POLL_ERR;
    }
    return embedded->socket.events != 0 ? events : 0;
}

static uint32_t wake_events(const struct bow_embedded *embedded)
{
    bool is_signalled = atomic_load_explicit(&embedded->is_signalled, memory_order_acquire);
    return is_signalled ? embedded->wake.events : 0;
}

static int poller_open(void *user, struct bow_poller **ret_poller)
{
    struct bow_embedded *embedded = user;

    embedded->poller.embedded = embedded;
    *ret_poller = &embedded->poller;
    return 0;
}

static void poller_close(struct bow_poller *poller)
{
    (void)poller;
}

static int poller_set(struct bow_poller *poller, int fd, uint32_t events, void *data)
{
    struct bow_embedded *embedded = poller->embedded;

    if (fd != WAKE_FD && fd != SOCKET_FD) {
        return -ENOTSUP; /* of something else than this channel */
    }
    struct interest *interest = fd == WAKE_FD ? &embedded->wake : &embedded->socket;
    *interest = (struct interest){events, data};
    return 0;
}

static int poller_remove(struct bow_poller *poller, int fd)
{
    return poller_set(poller, fd, 0, NULL);
}

/* Never waits: time is the test's to move. */
static int poller_wait(struct bow_poller *poller, struct bow_poll_event *events, int max,
                       uint64_t timeout_ns)
{
    const struct bow_embedded *embedded = poller->embedded;
    uint32_t of_wake = wake_events(embedded);
    uint32_t of_socket = socket_events(embedded);
    int n = 0;

    (void)timeout_ns;
    if (of_wake != 0 && n < max) {
        events[n++] = (struct bow_poll_event){embedded->wake.data, of_wake};
    }
    if (of_socket != 0 && n < max) {
        events[n++] = (struct bow_poll_event){embedded->socket.data, of_socket};
    }
    return n;
}

static int poller_fd(struct bow_poller *poller)
{
    (void)poller;
    return -ENOTSUP;
}

static int poller_arm(struct bow_poller *poller, uint64_t timeout_ns)
{
    (void)poller;
    (void)timeout_ns;
    return -ENOTSUP;
}

static const struct bow_poller_ops poller_ops = {
    .open = poller_open,
    .close = poller_close,
    .add = poller_set,
    .modify = poller_set,
    .remove = poller_remove,
    .wait = poller_wait,
    .fd = poller_fd,
    .arm = poller_arm,
};

static int embedded_wake_open(void *user)
{
    (void)user;
    return WAKE_FD;
}

static int embedded_wake_signal(void *user, int fd)
{
    struct bow_embedded *embedded = user;
    (void)fd;

    atomic_store_explicit(&embedded->is_signalled, true, memory_order_release);
    return 0;
}

static int embedded_wake_drain(void *user, int fd)
{
    struct bow_embedded *embedded = user;
    (void)fd;

    atomic_store_explicit(&embedded->is_signalled, false, memory_order_relaxed);
    return 0;
}

/* The socket */

static ssize_t embedded_recv(void *user, int fd, void *bytes, size_t len)
{
    struct bow_embedded *embedded = user;
    struct bow_slice input = bow__unread_bytes(embedded->input);
    (void)fd;

    if (input.len > 0) {
        size_t n = input.len < len ? input.len : len;
        memcpy(bytes, input.data, n);
        bow__unread_consume(embedded->context, &embedded->input, n);
        return (ssize_t)n;
    }
    if (embedded->is_reset) {
        return -ECONNRESET;
    }
    return embedded->has_peer_ended ? 0 : -EAGAIN;
}

static ssize_t embedded_sendmsg(void *user, int fd, const struct msghdr *message, int flags)
{
    struct bow_embedded *embedded = user;
    size_t n_sent = 0;
    (void)fd;
    (void)flags;

    if (embedded->is_reset || embedded->is_ended) {
        return -EPIPE;
    }
    if (room(embedded) == 0) {
        return -EAGAIN;
    }
    for (size_t i = 0; i < message->msg_iovlen && room(embedded) > 0; i++) {
        const struct iovec *piece = &message->msg_iov[i];
        size_t n = piece->iov_len < room(embedded) ? piece->iov_len : room(embedded);
        int rc = bow__unread_append(embedded->context, &embedded->output,
                                    (struct bow_slice){piece->iov_base, n});
        if (rc < 0) {
            return n_sent > 0 ? (ssize_t)n_sent : rc;
        }
        n_sent += n;
    }
    return (ssize_t)n_sent;
}

static int embedded_shutdown(void *user, int fd, int how)
{
    struct bow_embedded *embedded = user;
    (void)fd;
    (void)how; /* a channel shuts down its writing side only */

    embedded->is_ended = true;
    return 0;
}

static int embedded_close(void *user, int fd)
{
    struct bow_embedded *embedded = user;

    if (fd == SOCKET_FD) {
        embedded->is_ended = true;
        embedded->is_closed = true;
        bow__unread_free(embedded->context, &embedded->input);
    }
    return 0;
}

static int give_credentials(const struct bow_embedded *embedded, void *value, socklen_t *len)
{
    const struct bow_peer_credentials *given = embedded->options.credentials;

    if (given == NULL || *len < sizeof(struct ucred)) {
        return -ENOPROTOOPT;
    }
    const struct ucred credentials = {.pid = given->pid, .uid = given->uid, .gid = given->gid};
    memcpy(value, &credentials, sizeof(credentials));
    *len = sizeof(credentials);
    return 0;
}

static int embedded_getsockopt(void *user, int fd, int level, int name, void *value, socklen_t *len)
{
    const struct bow_embedded *embedded = user;
    (void)fd;

    if (level == SOL_SOCKET && name == SO_PEERCRED) {
        return give_credentials(embedded, value, len);
    }
    if (level == SOL_SOCKET && name == SO_ERROR && *len >= sizeof(int)) {
        const int error = embedded->is_reset ? ECONNRESET : 0;
        memcpy(value, &error, sizeof(error));
        return 0;
    }
    return -ENOPROTOOPT;
}

static int embedded_setsockopt(void *user, int fd, int level, int name, const void *value,
                               socklen_t len)
{
    (void)user;
    (void)fd;
    (void)level;
    (void)name;
    (void)value;
    (void)len;
    return 0;
}

static int embedded_getpeername(void *user, int fd, struct bow_sockaddr *ret_address)
{
    const struct bow_embedded *embedded = user;
    (void)fd;

    *ret_address = embedded->peer;
    return 0;
}

static const struct bow_system embedded_system = {
    .size = sizeof(struct bow_system),
    .now_ns = embedded_now_ns,
    .poller = &poller_ops,
    .recv = embedded_recv,
    .sendmsg = embedded_sendmsg,
    .shutdown = embedded_shutdown,
    .close = embedded_close,
    .getsockopt = embedded_getsockopt,
    .setsockopt = embedded_setsockopt,
    .getpeername = embedded_getpeername,
    .wake_open = embedded_wake_open,
    .wake_signal = embedded_wake_signal,
    .wake_drain = embedded_wake_drain,
};

/* Birth and end */

static int read_peer(const char *text, struct bow_sockaddr *ret_peer)
{
    struct bow__address address;
    struct bow__text why;

    if (text == NULL || strcmp(text, "unix:") == 0) {
        *ret_peer = (struct bow_sockaddr){.storage.ss_family = AF_UNIX, .len = sizeof(sa_family_t)};
        return 0;
    }
    bow__text_clear(&why);
    int rc = bow__address_parse(text, &address, &why);
    if (rc < 0) {
        return rc;
    }
    if (address.kind != BOW__ADDRESS_NUMERIC && address.kind != BOW__ADDRESS_UNIX) {
        return -EINVAL;
    }
    *ret_peer = address.sockaddr;
    return 0;
}

static int read_options(const struct bow_embedded_options *given,
                        struct bow_embedded_options *ret_options)
{
    struct bow_embedded_options options = BOW_EMBEDDED_OPTIONS_INIT;
    struct bow_channel_options channel = BOW_CHANNEL_OPTIONS_INIT;

    int rc = bow__options_read(&options, sizeof(options), given);
    if (rc == 0) {
        rc = bow__options_read(&channel, sizeof(channel), &options.channel);
    }
    if (rc < 0) {
        return rc;
    }
    options.channel = channel;
    *ret_options = options;
    return 0;
}

static void on_started(struct bow_channel *channel, int error, void *user)
{
    struct bow_embedded *embedded = user;
    (void)channel;

    embedded->start_error = error;
}

static int start(struct bow_embedded *embedded)
{
    struct bow_loop_options loop = BOW_LOOP_OPTIONS_INIT;

    loop.thread = BOW_LOOP_OWNER;
    loop.max_early_polls = 0; /* its poller never waits */
    int rc = bow__loop_new_over(embedded->context, &embedded->system, &loop, &embedded->loop);
    if (rc < 0) {
        return rc;
    }
    const struct bow__socket socket = {SOCKET_FD, &embedded->system, NULL};
    const struct bow__channel_birth birth = {
        .loop = embedded->loop,
        .socket = &socket,
        .peer = &embedded->peer,
        .options = &embedded->options.channel,
        .on_started = on_started,
        .user = embedded,
    };
    rc = bow__channel_new(&birth, &embedded->channel);
    embedded->options.credentials = NULL; /* borrowed */
    if (rc < 0) {
        return rc;
    }
    bow__channel_hold(embedded->channel);
    rc = bow__channel_start(embedded->channel);
    if (rc == 0) {
        rc = bow_embedded_run(embedded);
    }
    return rc < 0 ? rc : embedded->start_error;
}

int bow_embedded_new(struct bow_context *context, const struct bow_embedded_options *given,
                     struct bow_embedded **ret_embedded)
{
    struct bow_embedded_options options;
    struct bow_sockaddr peer;

    int rc = read_options(given, &options);
    if (rc == 0) {
        rc = read_peer(options.peer, &peer);
    }
    if (rc < 0) {
        return bow__refuse(context, rc,
                           "bow_embedded_new: begin with BOW_EMBEDDED_OPTIONS_INIT; options.peer, "
                           "if set, is an address of IP with its port, or unix:PATH");
    }
    struct bow_embedded *embedded = bow__alloc_zero(context, sizeof(*embedded));
    if (embedded == NULL) {
        return -ENOMEM;
    }
    embedded->context = bow_context_ref(context);
    embedded->system = embedded_system;
    embedded->system.user = embedded;
    embedded->options = options;
    embedded->options.peer = NULL; /* not ours to keep */
    embedded->peer = peer;
    embedded->now_ns = START_NS;
    atomic_init(&embedded->is_signalled, false);
    rc = start(embedded);
    if (rc < 0) {
        bow_embedded_free(embedded);
        return rc;
    }
    *ret_embedded = embedded;
    return 0;
}

void bow_embedded_free(struct bow_embedded *embedded)
{
    if (embedded == NULL) {
        return;
    }
    struct bow_context *context = embedded->context;

    bow_loop_unref(embedded->loop);
    bow_channel_unref(embedded->channel);
    bow__unread_free(context, &embedded->input);
    bow__unread_free(context, &embedded->output);
    bow__free(context, embedded, sizeof(*embedded));
    bow_context_unref(context);
}

struct bow_channel *bow_embedded_channel(const struct bow_embedded *embedded)
{
    return embedded->channel;
}

struct bow_loop *bow_embedded_loop(const struct bow_embedded *embedded)
{
    return embedded->loop;
}

/* Being the peer */

/* A callback's run goes on with what it did. */
static int run_unless_running(struct bow_embedded *embedded)
{
    int rc = bow_embedded_run(embedded);
    return rc == -EBUSY ? 0 : rc;
}

int bow_embedded_feed(struct bow_embedded *embedded, const void *bytes, size_t len)
{
    if (embedded->is_closed || embedded->has_peer_ended || embedded->is_reset) {
        return -EPIPE;
    }
    if (len > 0) {
        int rc =
            bow__unread_append(embedded->context, &embedded->input, (struct bow_slice){bytes, len});
        if (rc < 0) {
            return rc;
        }
    }
    return run_unless_running(embedded);
}

int bow_embedded_end(struct bow_embedded *embedded)
{
    embedded->has_peer_ended = true;
    return run_unless_running(embedded);
}

int bow_embedded_reset(struct bow_embedded *embedded)
{
    embedded->is_reset = true;
    return run_unless_running(embedded);
}

struct bow_slice bow_embedded_output(const struct bow_embedded *embedded)
{
    return bow__unread_bytes(embedded->output);
}

void bow_embedded_consume(struct bow_embedded *embedded, size_t len)
{
    if (embedded->output != NULL && len > 0) {
        size_t all = bow__unread_len(embedded->output);
        bow__unread_consume(embedded->context, &embedded->output, len < all ? len : all);
    }
}

bool bow_embedded_is_ended(const struct bow_embedded *embedded)
{
    return embedded->is_ended;
}

bool bow_embedded_is_closed(const struct bow_embedded *embedded)
{
    return embedded->is_closed;
}

int bow_embedded_close_error(const struct bow_embedded *embedded)
{
    return embedded->channel->close_error;
}

/* Time */

int bow_embedded_run(struct bow_embedded *embedded)
{
    for (int i = 0; i < MAX_TURNS; i++) {
        int rc = bow_loop_run_once(embedded->loop, 0);
        if (rc < 0) {
            return rc;
        }
        if (bow_loop_next_timeout(embedded->loop) > 0 && socket_events(embedded) == 0) {
            return 0;
        }
    }
    return -ELOOP;
}

int bow_embedded_advance(struct bow_embedded *embedded, uint64_t by_ns)
{
    uint64_t until_ns = bow__time_add(embedded->now_ns, by_ns);

    int rc = bow_embedded_run(embedded);
    while (rc == 0 && embedded->now_ns < until_ns) {
        uint64_t next_ns = bow__time_add(embedded->now_ns, bow_loop_next_timeout(embedded->loop));
        embedded->now_ns = bow__time_min(next_ns, until_ns);
        rc = bow_embedded_run(embedded);
    }
    return rc;
}

uint64_t bow_embedded_now(const struct bow_embedded *embedded)
{
    return embedded->now_ns;
}

uint64_t bow_embedded_next_timeout(const struct bow_embedded *embedded)
{
    return socket_events(embedded) != 0 ? 0 : bow_loop_next_timeout(embedded->loop);
}
