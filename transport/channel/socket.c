/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Sockets of the system: connecting, binding and listening, the end of listening. Knows nothing of
 * loops.
 *
 * The files of Unix sockets are unix_file.c's. A descriptor that was inherited is taken as it is,
 * and listens already or is bound.
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
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Where the flags of a TCP header are. */
#define FLAGS_AT 13u

static const char no_lock[] =
    "is another server running there? If not, remove the file: to replace "
    "it, PATH.lock beside it could not be made";

static bool serves(enum bow__address_kind kind)
{
    return kind != BOW__ADDRESS_INPROC;
}

static void set_option(const struct bow_system *system, int fd, int level, int name, int value)
{
    /* What the option is for then shows by itself, in bind(). */
    (void)system->setsockopt(system->user, fd, level, name, &value, sizeof(value));
}

/* Connecting */

static bool is_inet(const struct bow_sockaddr *address)
{
    return address->storage.ss_family == AF_INET || address->storage.ss_family == AF_INET6;
}

static int bind_source(const struct bow_system *system, int fd, const struct bow_sockaddr *source)
{
    /* The port is chosen when it is known whereto, so that one serves for many peers. */
    set_option(system, fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1);
    return system->bind(system->user, fd, source);
}

static int connect_socket(struct bow_context *context, const struct bow_sockaddr *address,
                          const struct bow_sockaddr *source, struct bow__socket *ret_socket)
{
    const struct bow_system *system = bow__context_system(context);
    bool has_source = source->len > 0 && is_inet(address);

    if (has_source && source->storage.ss_family != address->storage.ss_family) {
        return -EAFNOSUPPORT;
    }
    int fd = system->socket(system->user, address->storage.ss_family, SOCK_STREAM, 0);
    if (fd < 0) {
        return fd;
    }
    int rc = has_source ? bind_source(system, fd, source) : 0;
    if (rc == 0) {
        rc = system->connect(system->user, fd, address);
    }
    if (rc < 0 && rc != -EINPROGRESS) {
        system->close(system->user, fd);
        return rc;
    }
    *ret_socket = (struct bow__socket){.fd = fd, .system = system};
    return rc == 0 ? 1 : 0;
}

static bool is_same_name(const struct bow_sockaddr *a, const struct bow_sockaddr *b)
{
    const struct sockaddr_in *a4 = (const struct sockaddr_in *)(const void *)&a->storage;
    const struct sockaddr_in *b4 = (const struct sockaddr_in *)(const void *)&b->storage;
    const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)(const void *)&a->storage;
    const struct sockaddr_in6 *b6 = (const struct sockaddr_in6 *)(const void *)&b->storage;

    if (a->storage.ss_family != b->storage.ss_family) {
        return false;
    }
    switch (a->storage.ss_family) {
    case AF_INET:
        return a4->sin_port == b4->sin_port && a4->sin_addr.s_addr == b4->sin_addr.s_addr;
    case AF_INET6:
        return a6->sin6_port == b6->sin6_port && a6->sin6_scope_id == b6->sin6_scope_id &&
               memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr)) == 0;
    default:
        return false; /* a Unix socket that connects has no name */
    }
}

/*
 * Where nobody listens on an ephemeral port of this machine, the kernel may take that very port for
 * the connection's own end, and its SYN answers itself. Then what is read is what was written, and
 * a server that starts on the port finds it in use; also after a close, for a minute, but not after
 * a reset.
 */
static bool is_own_peer(const struct bow__socket *socket)
{
    const struct bow_system *system = socket->system;
    const struct linger reset = {.l_onoff = 1, .l_linger = 0};
    struct bow_sockaddr own = {.len = 0};
    struct bow_sockaddr peer = {.len = 0};

    if (system->getsockname(system->user, socket->fd, &own) < 0 ||
        system->getpeername(system->user, socket->fd, &peer) < 0 || !is_same_name(&own, &peer)) {
        return false;
    }
    (void)system->setsockopt(system->user, socket->fd, SOL_SOCKET, SO_LINGER, &reset,
                             sizeof(reset));
    return true;
}

static const char *advice(int error)
{
    return error == -EAFNOSUPPORT ? "is this host, and the source address, of that family?" : NULL;
}

/* Binding */

static void close_listening(struct bow__listening *listening)
{
    if (listening->fd < 0) {
        return;
    }
    bow__unix_file_remove(&listening->unix_file);
    listening->system->close(listening->system->user, listening->fd);
    listening->fd = -1;
}

/* Made by somebody else, and his again. */
static void give_back(struct bow__listening *listening)
{
    (void)fcntl(listening->fd, F_SETFL, listening->inherited_flags);
    (void)fcntl(listening->fd, F_SETFD, listening->inherited_fd_flags);
    listening->fd = -1;
}

static void undo_listening(struct bow__listening *listening)
{
    if (listening->inherited && listening->fd >= 0) {
        give_back(listening);
    }
    close_listening(listening);
}

static const char shared_port[] = "is another server running there? To share the port with it, set "
                                  "shares_port";

/*
 * A port for several sockets of ours alone is bound and listened on without SO_REUSEPORT, which
 * fails when anybody listens on it, be it shared; only then it is said that the others, which say
 * so before, may come beside this one. (Said after bind(), it would let in who has bound the port
 * as well and does not listen yet: under SO_REUSEADDR both may.) Who is to share it with other
 * processes says so at once.
 */
static int try_bind(struct bow__listening *listening, const struct bow_system *system,
                    const struct bow_sockaddr *address)
{
    bool shares_first = listening->shares == BOW__SHARES_WITH_ALL;
    int family = address->storage.ss_family;

    int fd = system->socket(system->user, family, SOCK_STREAM, 0);
    if (fd < 0) {
        return fd;
    }
    if (family != AF_UNIX) {
        set_option(system, fd, SOL_SOCKET, SO_REUSEADDR, 1);
        if (shares_first) {
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

/* The file is there, and nobody can have connected yet. */
static int own_path(struct bow__listening *listening, const char *path, const char *text,
                    struct bow_transport_error *ret_error)
{
    const char *stage = "binding";

    int rc = bow__unix_file_own(&listening->unix_file, path);
    if (rc == 0) {
        rc = bow__unix_file_set_rights(&listening->unix_file, &listening->unix_rights, &stage);
    }
    if (rc < 0) {
        close_listening(listening);
        return bow__transport_error(ret_error, stage, text, rc, NULL);
    }
    return 0;
}

static int bind_unix(const struct bow_system *system, const struct bow_sockaddr *address,
                     const char *text, bool is_locked, struct bow__listening *listening,
                     struct bow_transport_error *ret_error)
{
    const char *path = bow__address_unix_path(address);

    if (listening->shares != BOW__SHARES_NOTHING) {
        return bow__transport_error(ret_error, "binding", text, -EINVAL,
                                    "a Unix socket can't be listened on by each worker");
    }
    int rc = try_bind(listening, system, address);
    if (rc == -EADDRINUSE && path != NULL) {
        rc = is_locked ? bow__unix_file_replace(path, address, system) : rc;
        if (rc == -ENOTSOCK) {
            return bow__transport_error(ret_error, "binding", text, -EADDRINUSE,
                                        "the file there is not a socket: remove it, or choose "
                                        "another path");
        }
        rc = rc == 0 ? try_bind(listening, system, address) : rc;
    }
    if (rc < 0) {
        bool wants_lock = rc == -EADDRINUSE && path != NULL && !is_locked;
        return bow__transport_error(ret_error, "binding", text, rc, wants_lock ? no_lock : NULL);
    }
    return path != NULL ? own_path(listening, path, text, ret_error) : 0;
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

/* Made by somebody else: it may not be what we need, and it belongs to him until all is well. */
static int adopt(struct bow__listening *listening, const struct bow_system *system, int fd,
                 const char *text, struct bow_transport_error *ret_error)
{
    int type = 0;
    socklen_t len = sizeof(type);

    if (listening->shares != BOW__SHARES_NOTHING) {
        return bow__transport_error(ret_error, "binding", text, -EINVAL,
                                    "one descriptor can't be listened on by each worker");
    }
    int rc = system->getsockopt(system->user, fd, SOL_SOCKET, SO_TYPE, &type, &len);
    if (rc < 0) {
        return bow__transport_error(ret_error, "binding", text, rc,
                                    rc == -EBADF ? "no descriptor of this number is open"
                                                 : "no socket was handed down under this number");
    }
    if (type != SOCK_STREAM) {
        return bow__transport_error(ret_error, "binding", text, -EPROTOTYPE,
                                    "this is not a stream socket");
    }
    int flags = fcntl(fd, F_GETFL);
    int fd_flags = fcntl(fd, F_GETFD);
    if (flags < 0 || fd_flags < 0 || fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ||
        fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
        return bow__transport_error(ret_error, "binding", text, -errno, NULL);
    }
    listening->fd = fd;
    listening->inherited = true;
    listening->inherited_flags = flags;
    listening->inherited_fd_flags = fd_flags;
    return 0;
}

static int bind_address(struct bow__listening *listening, const struct bow_system *system,
                        const struct bow__address *address, const char *text, bool is_locked,
                        struct bow_transport_error *ret_error)
{
    int rc = 0;

    switch (address->kind) {
    case BOW__ADDRESS_NUMERIC:
        rc = try_bind(listening, system, &address->sockaddr);
        break;
    case BOW__ADDRESS_ANY:
        rc = bind_any(listening, system, address->port);
        break;
    case BOW__ADDRESS_UNIX:
        return bind_unix(system, &address->sockaddr, text, is_locked, listening, ret_error);
    case BOW__ADDRESS_FD:
        return adopt(listening, system, address->fd, text, ret_error);
    case BOW__ADDRESS_NAME:
    case BOW__ADDRESS_INPROC:
        return -EINVAL; /* resolved before; not served */
    }
    if (rc == -EADDRINUSE && listening->shares == BOW__SHARES_AMONG_US) {
        return bow__transport_error(ret_error, "binding", text, rc, shared_port);
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
    if (rc == 0 && listening->shares == BOW__SHARES_AMONG_US) {
        set_option(system, listening->fd, SOL_SOCKET, SO_REUSEPORT, 1);
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

static bool refuse_new(struct bow__listening *listening)
{
    const struct bow_system *system = listening->system;

    if (listening->inherited) {
        return false;
    }
    bow__unix_file_remove(&listening->unix_file);
    if (listening->port > 0) {
        drop_syns(system, listening->fd);
    } else {
        (void)system->shutdown(system->user, listening->fd, SHUT_RD);
    }
    return true;
}

/* Listening */

static const char *why_not_listening(const struct bow__listening *listening,
                                     const struct bow__address *address, int error)
{
    if (error == -EINVAL && address->kind == BOW__ADDRESS_FD) {
        return "this socket is connected: hand down one that is bound, and listens or is still to";
    }
    return error == -EADDRINUSE && listening->shares == BOW__SHARES_AMONG_US ? shared_port : NULL;
}

static int bind_and_listen(struct bow__listening *listening, const struct bow__address *address,
                           const char *text, int backlog, struct bow__unix_lock *lock,
                           struct bow_transport_error *ret_error)
{
    const struct bow_system *system = listening->system;

    int rc = bind_address(listening, system, address, text, lock->fd >= 0, ret_error);
    if (rc < 0) {
        return rc;
    }
    rc = begin_listening(listening, system, backlog);
    if (rc < 0) {
        undo_listening(listening);
        return bow__transport_error(ret_error, "listening", text, rc,
                                    why_not_listening(listening, address, rc));
    }
    return 0;
}

static int listen_on(struct bow__listening *listening, struct bow_context *context,
                     const struct bow__address *address, const char *text, int backlog,
                     struct bow_transport_error *ret_error)
{
    struct bow__unix_lock lock = {.fd = -1};
    const char *path =
        address->kind == BOW__ADDRESS_UNIX ? bow__address_unix_path(&address->sockaddr) : NULL;
    (void)context;

    int rc = path != NULL ? bow__unix_lock_take(path, &lock) : 0;
    if (rc < 0) {
        return bow__transport_error(ret_error, "binding", text, rc,
                                    "another server is starting there at this moment");
    }
    rc = bind_and_listen(listening, address, text, backlog, &lock, ret_error);
    bow__unix_lock_release(&lock);
    return rc;
}

int bow__socket_listen_beside(struct bow__listening *listening, const struct bow__listening *first,
                              int backlog)
{
    struct bow_sockaddr address = {.len = 0};
    const struct bow_system *system = first->system;

    *listening = (struct bow__listening){
        .transport = first->transport, .system = system, .fd = -1, .shares = BOW__SHARES_WITH_ALL};
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

int bow__socket_listen_handed(struct bow__listening *listening, struct bow_context *context,
                              const struct bow__handed_socket *socket, int backlog)
{
    const struct bow_system *system = bow__context_system(context);
    const char *path = bow__address_unix_path(&socket->bound);

    if (path != NULL) {
        bow__unix_file_know(&listening->unix_file, path, socket->device, socket->inode);
    }
    listening->transport = &bow__socket_transport;
    listening->system = system;
    listening->fd = socket->fd;
    if (listening->shares == BOW__SHARES_WITH_ALL) {
        set_option(system, socket->fd, SOL_SOCKET, SO_REUSEPORT, 1);
    }
    int rc = begin_listening(listening, system, backlog);
    if (rc < 0) {
        listening->fd = -1;
        bow__unix_file_forget(&listening->unix_file);
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
    .is_own_peer = is_own_peer,
    .abandon = bow__socket_close,
    .advice = advice,
    .listen = listen_on,
    .accept = accept_socket,
    .refuse_new = refuse_new,
    .close = close_listening,
    .undo = undo_listening,
};
