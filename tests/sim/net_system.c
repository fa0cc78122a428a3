/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The system table of a node: the calls that a program makes, over the network's
 * sockets. There are no threads and no names.
 */

#include "net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

uint64_t sim_node_now(const struct sim_node *node)
{
    uint64_t now = node->net->now_ns + node->ahead_ns;

    return now > node->busy_until_ns ? now : node->busy_until_ns;
}

void sim_node_work(struct sim_node *node, uint64_t for_ns)
{
    node->ahead_ns += for_ns;
}

void sim_node_rest(struct sim_node *node)
{
    if (node->ahead_ns > 0) {
        node->busy_until_ns = sim_node_now(node);
        node->ahead_ns = 0;
    }
    sim_node_touch(node);
}

static uint64_t now_ns(void *user)
{
    return sim_node_now(user);
}

static int random_bytes(void *user, void *bytes, size_t len)
{
    struct sim_node *node = user;
    uint8_t *at = bytes;

    for (size_t i = 0; i < len; i++) {
        at[i] = (uint8_t)sim_random(node->net);
    }
    return 0;
}

static bool is_short_of_fds(struct sim_node *node)
{
    if (node->net->now_ns >= node->no_fds_until_ns) {
        return false;
    }
    node->fds_failed_ns = node->net->now_ns;
    return true;
}

/* The lowest number that is free, as on Unix. */
static int new_fd(struct sim_node *node, enum sim_socket_kind kind)
{
    struct sim_net *net = node->net;

    for (int i = 0; i < SIM_MAX_FDS; i++) {
        if (net->sockets[i].kind == SIM_FREE) {
            net->sockets[i] =
                (struct sim_socket){.kind = kind, .node = node, .reset_ns = BOW_NEVER};
            return SIM_FIRST_FD + i;
        }
    }
    return -EMFILE;
}

static int sim_socket_open(void *user, int domain, int type, int protocol)
{
    (void)type;
    (void)protocol;
    if (domain != AF_INET) {
        return -EAFNOSUPPORT;
    }
    return is_short_of_fds(user) ? -EMFILE : new_fd(user, SIM_NEW);
}

static uint16_t port_of(const struct bow_sockaddr *address)
{
    struct sockaddr_in in;

    memcpy(&in, &address->storage, sizeof(in));
    return ntohs(in.sin_port);
}

static void fill_address(uint16_t port, struct bow_sockaddr *ret_address)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(port)};

    in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    memset(ret_address, 0, sizeof(*ret_address));
    memcpy(&ret_address->storage, &in, sizeof(in));
    ret_address->len = sizeof(in);
}

static int find_listener(const struct sim_net *net, uint16_t port)
{
    for (int i = 0; i < SIM_MAX_FDS; i++) {
        if (net->sockets[i].kind == SIM_LISTENING && net->sockets[i].port == port) {
            return SIM_FIRST_FD + i;
        }
    }
    return -1;
}

static int sim_bind(void *user, int fd, const struct bow_sockaddr *address)
{
    struct sim_node *node = user;
    uint16_t port = port_of(address);

    if (find_listener(node->net, port) >= 0) {
        return -EADDRINUSE;
    }
    sim_socket_of(node->net, fd)->port = port;
    return 0;
}

static int sim_listen(void *user, int fd, int backlog)
{
    struct sim_node *node = user;
    struct sim_socket *socket = sim_socket_of(node->net, fd);

    (void)backlog;
    socket->kind = SIM_LISTENING;
    socket->bits_until_ns = 0;
    return 0;
}

static int sim_accept(void *user, int fd, struct bow_sockaddr *ret_address)
{
    struct sim_node *node = user;
    struct sim_net *net = node->net;
    struct sim_conn *conn = net->conns;

    while (conn != NULL && (conn->listener != fd || conn->accept_ns > net->now_ns)) {
        conn = conn->next;
    }
    if (conn == NULL) {
        return -EAGAIN;
    }
    int accepted = is_short_of_fds(node) ? -EMFILE : new_fd(node, SIM_OPEN);
    if (accepted < 0) {
        return accepted;
    }
    struct sim_socket *socket = sim_socket_of(net, accepted);
    socket->conn = conn;
    socket->side = 1;
    socket->port = conn->port;
    conn->fds[1] = accepted;
    conn->nodes[1] = node;
    sim_conn_touch(net, conn);
    conn->listener = -1;
    fill_address(1, ret_address);
    return accepted;
}

static struct sim_conn *new_conn(struct sim_net *net, uint16_t port)
{
    static const uint64_t delays[] = {20 * SIM_US, 100 * SIM_US, SIM_MS, 10 * SIM_MS};
    static const size_t caps[] = {1000, 4096, 16384, 65536, 262144};
    struct sim_conn *conn = calloc(1, sizeof(*conn));
    size_t delay = sim_below(net, 4);

    for (int side = 0; side < 2; side++) {
        /* A long path with little room would carry next to nothing. */
        size_t cap = caps[delay == 3 ? 3 + sim_below(net, 2) : sim_below(net, 5)];
        if (conn == NULL || sim_pipe_init(&conn->pipes[side], cap) < 0) {
            abort();
        }
    }
    conn->delay_ns = delays[delay];
    conn->port = port;
    conn->fds[0] = conn->fds[1] = -1;
    conn->next = net->conns;
    net->conns = conn;
    return conn;
}

static uint64_t delay_of(struct sim_net *net, const struct sim_conn *conn)
{
    return conn->delay_ns + sim_below(net, conn->delay_ns);
}

static int sim_connect(void *user, int fd, const struct bow_sockaddr *address)
{
    struct sim_node *node = user;
    struct sim_net *net = node->net;
    struct sim_socket *socket = sim_socket_of(net, fd);
    int listener = find_listener(net, port_of(address));

    socket->kind = SIM_CONNECTING;
    socket->bits_until_ns = 0;
    socket->port = port_of(address);
    socket->at_ns = net->now_ns + 10 * SIM_US + sim_below(net, SIM_MS);
    if (listener < 0) {
        socket->connect_error = ECONNREFUSED;
        return -EINPROGRESS;
    }
    struct sim_conn *conn = new_conn(net, socket->port);
    uint64_t stalled_ns = sim_stalled_until(net, socket->port);
    conn->fds[0] = fd;
    conn->nodes[0] = node;
    conn->nodes[1] = sim_socket_of(net, listener)->node;
    conn->listener = listener;
    conn->pipes[0].stalled_until_ns = conn->pipes[1].stalled_until_ns = stalled_ns;
    conn->accept_ns = (stalled_ns > net->now_ns ? stalled_ns : net->now_ns) + delay_of(net, conn);
    sim_conn_touch(net, conn);
    socket->conn = conn;
    socket->at_ns = conn->accept_ns + delay_of(net, conn);
    return -EINPROGRESS;
}

/* Takes the error off. */
static int take_error(struct sim_socket *socket)
{
    int error = socket->error;

    socket->error = 0;
    socket->bits_until_ns = 0;
    return error;
}

static ssize_t sim_recv(void *user, int fd, void *bytes, size_t len)
{
    struct sim_node *node = user;
    struct sim_net *net = node->net;

    (void)sim_readiness(net, fd);
    struct sim_socket *socket = sim_socket_of(net, fd);
    if (socket->broken) {
        int error = take_error(socket);
        return error != 0 ? -error : 0;
    }
    struct sim_pipe *in = &socket->conn->pipes[1 - socket->side];
    size_t n = sim_pipe_arrived(in, net->now_ns);
    if (n == 0) {
        return sim_pipe_ended(in, net->now_ns) ? 0 : -EAGAIN;
    }
    n = n < len ? n : len;
    if (n > 1 && sim_chance(net, 4)) {
        n = 1 + sim_below(net, n - 1);
        net->n_partial++;
    }
    sim_pipe_take(in, bytes, n);
    sim_conn_touch(net, socket->conn);
    return (ssize_t)n;
}

/* The peer is gone: what is sent is lost, and its RST comes back. */
static void expect_reset(struct sim_net *net, struct sim_socket *socket)
{
    if (socket->reset_ns == BOW_NEVER) {
        socket->reset_ns = net->now_ns + delay_of(net, socket->conn);
        socket->bits_until_ns = 0;
    }
}

static size_t put_pieces(struct sim_net *net, struct sim_socket *socket,
                         const struct msghdr *message, size_t room)
{
    struct sim_pipe *out = &socket->conn->pipes[socket->side];
    uint64_t at = sim_node_now(socket->node) + delay_of(net, socket->conn);
    size_t sent = 0;

    for (size_t i = 0; i < message->msg_iovlen && sent < room; i++) {
        size_t n = message->msg_iov[i].iov_len;
        n = n < room - sent ? n : room - sent;
        size_t free_room = sim_pipe_room(out);
        n = n < free_room ? n : free_room;
        if (n == 0) {
            continue;
        }
        sim_pipe_put(out, message->msg_iov[i].iov_base, n, at);
        sent += n;
    }
    sim_conn_touch(net, socket->conn);
    return sent;
}

static ssize_t sim_sendmsg(void *user, int fd, const struct msghdr *message, int flags)
{
    struct sim_node *node = user;
    struct sim_net *net = node->net;
    size_t wanted = 0;

    (void)flags;
    (void)sim_readiness(net, fd);
    struct sim_socket *socket = sim_socket_of(net, fd);
    if (socket->broken) {
        int error = take_error(socket);
        return error != 0 ? -error : -EPIPE;
    }
    struct sim_conn *conn = socket->conn;
    if (conn->pipes[socket->side].fin_ns != BOW_NEVER) {
        return -EPIPE;
    }
    for (size_t i = 0; i < message->msg_iovlen; i++) {
        wanted += message->msg_iov[i].iov_len;
    }
    if (conn->closed[1 - socket->side]) {
        expect_reset(net, socket);
        return (ssize_t)wanted;
    }
    if (wanted > 1 && sim_chance(net, 8)) {
        wanted = 1 + sim_below(net, wanted - 1);
        net->n_partial++;
    }
    size_t sent = put_pieces(net, socket, message, wanted);
    return sent > 0 ? (ssize_t)sent : -EAGAIN;
}

static void end_output(struct sim_net *net, struct sim_socket *socket)
{
    struct sim_pipe *out = &socket->conn->pipes[socket->side];

    if (out->fin_ns == BOW_NEVER) {
        uint64_t at = sim_node_now(socket->node) + delay_of(net, socket->conn);
        out->fin_ns = at > out->last_ns ? at : out->last_ns;
    }
    sim_conn_touch(net, socket->conn);
}

static int sim_shutdown(void *user, int fd, int how)
{
    struct sim_node *node = user;
    struct sim_socket *socket = sim_socket_of(node->net, fd);

    if (how != SHUT_WR || socket->conn == NULL || socket->broken) {
        return -ENOTCONN;
    }
    end_output(node->net, socket);
    return 0;
}

static void free_if_closed(struct sim_net *net, struct sim_conn *conn)
{
    struct sim_conn **at = &net->conns;

    if (!conn->closed[0] || !(conn->closed[1] || conn->listener < 0) || conn->fds[1] >= 0) {
        return;
    }
    while (*at != conn) {
        at = &(*at)->next;
    }
    *at = conn->next;
    sim_pipe_fini(&conn->pipes[0]);
    sim_pipe_fini(&conn->pipes[1]);
    free(conn);
}

/* With bytes unread, or for a socket that was reset, the peer gets an RST. */
static void close_conn(struct sim_net *net, struct sim_socket *socket)
{
    struct sim_conn *conn = socket->conn;
    int other = 1 - socket->side;
    bool has_unread = sim_pipe_arrived(&conn->pipes[other], net->now_ns) > 0;

    conn->fds[socket->side] = -1;
    conn->closed[socket->side] = true;
    if (socket->side == 0 && conn->is_faulty) {
        socket->node->n_faulty--;
        socket->node->faulty_until_ns = net->now_ns;
    }
    if (!socket->broken && has_unread && conn->fds[other] >= 0) {
        struct sim_socket *peer = sim_socket_of(net, conn->fds[other]);
        peer->reset_ns = net->now_ns + delay_of(net, conn);
    }
    end_output(net, socket);
    free_if_closed(net, conn);
}

static void drop_pending(struct sim_net *net, int fd)
{
    struct sim_conn *next = NULL;

    for (struct sim_conn *conn = net->conns; conn != NULL; conn = next) {
        next = conn->next;
        if (conn->listener == fd) {
            conn->listener = -1;
            conn->closed[1] = true;
            if (conn->fds[0] >= 0) {
                sim_socket_of(net, conn->fds[0])->reset_ns = net->now_ns;
            }
            sim_conn_touch(net, conn);
            free_if_closed(net, conn);
        }
    }
}

static int sim_close(void *user, int fd)
{
    struct sim_node *node = user;
    struct sim_net *net = node->net;
    struct sim_socket *socket = sim_socket_of(net, fd);

    if (socket->kind == SIM_LISTENING) {
        drop_pending(net, fd);
    }
    if (socket->conn != NULL) {
        close_conn(net, socket);
    }
    memset(socket, 0, sizeof(*socket));
    return 0;
}

static int sim_getsockopt(void *user, int fd, int level, int name, void *value, socklen_t *len)
{
    struct sim_node *node = user;
    int result = 0;

    if (level != SOL_SOCKET || *len < sizeof(int)) {
        return -ENOPROTOOPT;
    }
    (void)sim_readiness(node->net, fd);
    if (name == SO_ERROR) {
        result = take_error(sim_socket_of(node->net, fd));
    } else if (name == SO_TYPE) {
        result = SOCK_STREAM;
    } else {
        return -ENOPROTOOPT;
    }
    memcpy(value, &result, sizeof(result));
    *len = sizeof(result);
    return 0;
}

static int sim_setsockopt(void *user, int fd, int level, int name, const void *value, socklen_t len)
{
    struct sim_node *node = user;

    (void)level;
    (void)name;
    (void)value;
    (void)len;
    (void)sim_socket_of(node->net, fd);
    return 0;
}

static int sim_getpeername(void *user, int fd, struct bow_sockaddr *ret_address)
{
    struct sim_node *node = user;

    fill_address(sim_socket_of(node->net, fd)->port, ret_address);
    return 0;
}

/* Who connects has a port of its own, on which nobody listens. */
static int sim_getsockname(void *user, int fd, struct bow_sockaddr *ret_address)
{
    struct sim_node *node = user;
    const struct sim_socket *socket = sim_socket_of(node->net, fd);

    fill_address(socket->kind == SIM_LISTENING ? socket->port : UINT16_MAX, ret_address);
    return 0;
}

static int sim_wake_open(void *user)
{
    return new_fd(user, SIM_WAKE);
}

static void signal_wake(struct sim_node *node, int fd, bool signalled)
{
    struct sim_socket *socket = sim_socket_of(node->net, fd);

    socket->signalled = signalled;
    socket->bits_until_ns = 0;
}

static int sim_wake_signal(void *user, int fd)
{
    struct sim_node *node = user;

    signal_wake(node, fd, true);
    sim_node_touch(node);
    return 0;
}

static int sim_wake_drain(void *user, int fd)
{
    signal_wake(user, fd, false);
    return 0;
}

static void sim_wake_wait(void *user, int fd, uint64_t timeout_ns)
{
    (void)user;
    (void)fd;
    (void)timeout_ns;
}

static int sim_thread_start(void *user, const struct bow_thread_options *options,
                            void (*run)(void *argument), void *argument,
                            struct bow_thread **ret_thread)
{
    (void)user;
    (void)options;
    (void)run;
    (void)argument;
    (void)ret_thread;
    return -ENOTSUP;
}

static uint32_t sim_cpus(void *user)
{
    (void)user;
    return 1;
}

void sim_node_init(struct sim_node *node, struct sim_net *net, const char *name)
{
    *node = (struct sim_node){.net = net, .name = name};
    node->system = *bow_system_default();
    node->system.user = node;
    node->system.now_ns = now_ns;
    node->system.random = random_bytes;
    node->system.poller = &sim_poller_ops;
    node->system.socket = sim_socket_open;
    node->system.bind = sim_bind;
    node->system.listen = sim_listen;
    node->system.accept = sim_accept;
    node->system.connect = sim_connect;
    node->system.recv = sim_recv;
    node->system.sendmsg = sim_sendmsg;
    node->system.shutdown = sim_shutdown;
    node->system.close = sim_close;
    node->system.getsockopt = sim_getsockopt;
    node->system.setsockopt = sim_setsockopt;
    node->system.getsockname = sim_getsockname;
    node->system.getpeername = sim_getpeername;
    node->system.wake_open = sim_wake_open;
    node->system.wake_signal = sim_wake_signal;
    node->system.wake_drain = sim_wake_drain;
    node->system.wake_wait = sim_wake_wait;
    node->system.thread_start = sim_thread_start;
    node->system.cpus = sim_cpus;
}
