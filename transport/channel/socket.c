/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Sockets of the system: connecting, binding and listening, the end of listening. Knows nothing of
 * loops.
 *
 * A Unix socket's file that no server listens on any more is replaced: it outlives a server that
 * was killed. A descriptor that was inherited is taken as it is, and listens already or is bound.
 *
 * Listening ends in two steps: first no further connection, then, when those that waited have been
 * accepted, none at all. The kernel would reset what still waits when a socket closes, with the
 * calls that were sent on it in good faith.
 */

#include "base/alloc.h"
#include "transport/address/transport_error.h"
#include "transport/channel/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_ADDRESSES 16
/* Where the flags of a TCP header are. */
#define FLAGS_AT 13u

static bool serves(enum bow__address_kind kind)
{
    return kind != BOW__ADDRESS_INPROC;
}

/* Connecting */

static int connect_socket(struct bow_context *context, const struct bow_sockaddr *address,
                          struct bow__socket *ret_socket)
{
    const struct bow_system *system = bow__context_system(context);

    int fd = system->socket(system->user, address->storage.ss_family, SOCK_STREAM, 0);
    if (fd < 0) {
        return fd;
    }
    int rc = system->connect(system->user, fd, address);
    if (rc < 0 && rc != -EINPROGRESS) {
        system->close(system->user, fd);
        return rc;
    }
    *ret_socket = (struct bow__socket){.fd = fd, .system = system};
    return rc == 0 ? 1 : 0;
}

static const char *advice(int error)
{
    (void)error;
    return NULL;
}

/* Binding */

static void set_option(const struct bow_system *system, int fd, int level, int name, int value)
{
    /* What the option is for then shows by itself, in bind(). */
    (void)system->setsockopt(system->user, fd, level, name, &value, sizeof(value));
}

static int try_bind(struct bow__listening *listening, const struct bow_system *system,
                    const struct bow_sockaddr *address)
{
    int family = address->storage.ss_family;

    int fd = system->socket(system->user, family, SOCK_STREAM, 0);
    if (fd < 0) {
        return fd;
    }
    if (family != AF_UNIX) {
        set_option(system, fd, SOL_SOCKET, SO_REUSEADDR, 1);
        if (listening->shares_port) {
            set_option(system, fd, SOL_SOCKET, SO_REUSEPORT, 1);
        }
    }
    if (family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)address;
        /* "*" is one dual-stack socket; a v6 address means itself. */
        set_option(system, fd, IPPROTO_IPV6, IPV6_V6ONLY,
                   IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr) ? 0 : 1);
    }
    int rc = system->bind(system->user, fd, address);
    if (rc < 0) {
        system->close(system->user, fd);
        return rc;
    }
    listening->fd = fd;
    return 0;
}

/* A file of another kind refuses connections as well, and is somebody's. */
static bool is_other_file(const char *path)
{
    struct stat stat;

    return lstat(path, &stat) == 0 && !S_ISSOCK(stat.st_mode);
}

static bool is_stale(const struct bow_system *system, const struct bow_sockaddr *address)
{
    int fd = system->socket(system->user, AF_UNIX, SOCK_STREAM, 0);

    if (fd < 0) {
        return false;
    }
    int rc = system->connect(system->user, fd, address);
    system->close(system->user, fd);
    return rc == -ECONNREFUSED;
}

static int bind_unix(const struct bow_system *system, const struct bow_sockaddr *address,
                     const char *text, struct bow__listening *listening,
                     struct bow_transport_error *ret_error)
{
    const char *path = bow__address_unix_path(address);

    if (listening->shares_port) {
        return bow__transport_error(ret_error, "binding", text, -EINVAL,
                                    "a Unix socket can't be listened on by each worker");
    }
    int rc = try_bind(listening, system, address);
    if (rc == -EADDRINUSE && path != NULL && is_other_file(path)) {
        return bow__transport_error(ret_error, "binding", text, rc,
                                    "the file there is not a socket: remove it, or choose another "
                                    "path");
    }
    if (rc == -EADDRINUSE && path != NULL && is_stale(system, address) && unlink(path) == 0) {
        rc = try_bind(listening, system, address);
    }
    if (rc < 0) {
        return bow__transport_error(ret_error, "binding", text, rc, NULL);
    }
    if (path != NULL) {
        snprintf(listening->unix_path, sizeof(listening->unix_path), "%s", path);
    }
    return 0;
}

static int bind_any(struct bow__listening *listening, const struct bow_system *system,
                    uint16_t port)
{
    struct bow_sockaddr address = {.len = sizeof(struct sockaddr_in6)};
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)&address.storage;
    struct sockaddr_in *in = (struct sockaddr_in *)(void *)&address.storage;

    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(port);
    int rc = try_bind(listening, system, &address);
    if (rc != -EAFNOSUPPORT && rc != -EADDRNOTAVAIL) {
        return rc;
    }
    /* A kernel without IPv6. */
    memset(&address, 0, sizeof(address));
    address.len = sizeof(*in);
    in->sin_family = AF_INET;
    in->sin_port = htons(port);
    return try_bind(listening, system, &address);
}

static int bind_name(struct bow__listening *listening, const struct bow_system *system,
                     const struct bow__address *address, const char *text,
                     struct bow_transport_error *ret_error)
{
    struct bow_sockaddr found[MAX_ADDRESSES];
    const char *reason = NULL;
    int rc = -ENOENT;

    int n =
        system->resolve(system->user, address->host, address->port, found, MAX_ADDRESSES, &reason);
    if (n <= 0) {
        return bow__transport_error(ret_error, "resolving", text, n < 0 ? n : rc, reason);
    }
    for (int i = 0; i < n; i++) {
        rc = try_bind(listening, system, &found[i]);
        if (rc == 0) {
            return 0;
        }
    }
    return bow__transport_error(ret_error, "binding", text, rc, NULL);
}

/* Made by somebody else: it may not be what we need, and it belongs to him until all is well. */
static int adopt(struct bow__listening *listening, const struct bow_system *system, int fd,
                 const char *text, struct bow_transport_error *ret_error)
{
    int type = 0;
    socklen_t len = sizeof(type);

    if (listening->shares_port) {
        return bow__transport_error(ret_error, "binding", text, -EINVAL,
                                    "one descriptor can't be listened on by each worker");
    }
    int rc = system->getsockopt(system->user, fd, SOL_SOCKET, SO_TYPE, &type, &len);
    if (rc < 0) {
        return bow__transport_error(ret_error, "binding", text, rc,
                                    "no socket was handed down under this number");
    }
    if (type != SOCK_STREAM) {
        return bow__transport_error(ret_error, "binding", text, -EPROTOTYPE,
                                    "this is not a stream socket");
    }
    int flags = fcntl(fd, F_GETFL);
    if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ||
        fcntl(fd, F_SETFD, FD_CLOEXEC) < 0) {
        return bow__transport_error(ret_error, "binding", text, -errno, NULL);
    }
    listening->fd = fd;
    listening->inherited = true;
    return 0;
}

static int bind_address(struct bow__listening *listening, const struct bow_system *system,
                        const struct bow__address *address, const char *text,
                        struct bow_transport_error *ret_error)
{
    int rc = 0;

    switch (address->kind) {
    case BOW__ADDRESS_NUMERIC:
        rc = try_bind(listening, system, &address->sockaddr);
        break;
    case BOW__ADDRESS_NAME:
        return bind_name(listening, system, address, text, ret_error);
    case BOW__ADDRESS_ANY:
        rc = bind_any(listening, system, address->port);
        break;
    case BOW__ADDRESS_UNIX:
        return bind_unix(system, &address->sockaddr, text, listening, ret_error);
    case BOW__ADDRESS_FD:
        return adopt(listening, system, address->fd, text, ret_error);
    case BOW__ADDRESS_INPROC:
        return -EINVAL; /* not served */
    }
    return rc < 0 ? bow__transport_error(ret_error, "binding", text, rc, NULL) : 0;
}

static uint16_t port_of(const struct bow_sockaddr *address)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)&address->storage;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)&address->storage;

    switch (address->storage.ss_family) {
    case AF_INET:
        return ntohs(in->sin_port);
    case AF_INET6:
        return ntohs(in6->sin6_port);
    default:
        return 0;
    }
}

static int begin_listening(struct bow__listening *listening, const struct bow_system *system,
                           int backlog)
{
    struct bow_sockaddr bound = {.len = 0};

    int rc = system->listen(system->user, listening->fd, backlog != 0 ? backlog : SOMAXCONN);
    if (rc == 0) {
        rc = system->getsockname(system->user, listening->fd, &bound);
    }
    if (rc == 0) {
        listening->port = port_of(&bound);
    }
    return rc;
}

/* The end of listening */

/*
 * A listening TCP socket can't be told to take no more, so it is made deaf to what begins a
 * connection: who sends that sends it again within a second, and finds who listens on the port
 * then, or nobody. Handshakes that have begun are let end. (Connections that are accepted from now
 * on inherit the filter, and see no such packet.)
 */
static void drop_syns(const struct bow_system *system, int fd)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, FLAGS_AT),
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, TH_SYN | TH_ACK),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TH_SYN, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    };
    struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

    /* A kernel without filters resets a little more. */
    (void)system->setsockopt(system->user, fd, SOL_SOCKET, SO_ATTACH_FILTER, &program,
                             sizeof(program));
}

static void unlink_path(struct bow__listening *listening)
{
    if (listening->unix_path[0] != '\0') {
        unlink(listening->unix_path);
        listening->unix_path[0] = '\0';
    }
}

static bool refuse_new(struct bow__listening *listening)
{
    const struct bow_system *system = listening->system;

    if (listening->inherited) {
        return false;
    }
    unlink_path(listening);
    if (listening->port > 0) {
        drop_syns(system, listening->fd);
    } else {
        (void)system->shutdown(system->user, listening->fd, SHUT_RD);
    }
    return true;
}

static void close_listening(struct bow__listening *listening)
{
    if (listening->fd < 0) {
        return;
    }
    unlink_path(listening);
    listening->system->close(listening->system->user, listening->fd);
    listening->fd = -1;
}

/* Listening */

static int listen_on(struct bow__listening *listening, struct bow_context *context,
                     const struct bow__address *address, const char *text, int backlog,
                     struct bow_transport_error *ret_error)
{
    const struct bow_system *system = bow__context_system(context);

    int rc = bind_address(listening, system, address, text, ret_error);
    if (rc < 0) {
        return rc;
    }
    rc = begin_listening(listening, system, backlog);
    if (rc < 0) {
        if (address->kind == BOW__ADDRESS_FD) {
            listening->fd = -1; /* still somebody else's */
        }
        close_listening(listening);
        return bow__transport_error(ret_error, "listening", text, rc, NULL);
    }
    return 0;
}

int bow__socket_listen_beside(struct bow__listening *listening, const struct bow__listening *first,
                              int backlog)
{
    struct bow_sockaddr address = {.len = 0};
    const struct bow_system *system = first->system;

    *listening = (struct bow__listening){
        .transport = first->transport, .system = system, .fd = -1, .shares_port = true};
    int rc = system->getsockname(system->user, first->fd, &address);
    if (rc == 0) {
        rc = try_bind(listening, system, &address);
    }
    if (rc == 0) {
        rc = begin_listening(listening, system, backlog);
    }
    if (rc < 0) {
        close_listening(listening);
    }
    return rc;
}

static int accept_socket(struct bow__listening *listening, struct bow__socket *ret_socket,
                         struct bow_sockaddr *ret_peer)
{
    const struct bow_system *system = listening->system;

    int fd = system->accept(system->user, listening->fd, ret_peer);
    if (fd < 0) {
        return fd;
    }
    *ret_socket = (struct bow__socket){.fd = fd, .system = system};
    return 0;
}

const struct bow__transport bow__socket_transport = {
    .serves = serves,
    .connect = connect_socket,
    .abandon = bow__socket_close,
    .advice = advice,
    .listen = listen_on,
    .accept = accept_socket,
    .refuse_new = refuse_new,
    .close = close_listening,
};
