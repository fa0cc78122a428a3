/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Chance, sockets, what may be read or written now, and what goes wrong between
 * machines. The calls of the system table are in net_system.c.
 */

#include "net.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sim_net_init(struct sim_net *net, uint64_t seed, bool story)
{
    memset(net, 0, sizeof(*net));
    net->seed = seed;
    net->random = seed;
    net->story = story;
    net->now_ns = 1000 * SIM_S;
}

static void free_conn(struct sim_net *net, struct sim_conn *conn)
{
    struct sim_conn **at = &net->conns;

    while (*at != conn) {
        at = &(*at)->next;
    }
    *at = conn->next;
    sim_pipe_fini(&conn->pipes[0]);
    sim_pipe_fini(&conn->pipes[1]);
    free(conn);
}

void sim_net_fini(struct sim_net *net)
{
    while (net->conns != NULL) {
        free_conn(net, net->conns);
    }
}

/* SplitMix64 (Steele, Lea, Flood 2014). */
uint64_t sim_random(struct sim_net *net)
{
    uint64_t z = (net->random += UINT64_C(0x9E3779B97F4A7C15));

    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

uint64_t sim_below(struct sim_net *net, uint64_t n)
{
    return sim_random(net) % n;
}

bool sim_chance(struct sim_net *net, uint64_t n)
{
    return sim_below(net, n) == 0;
}

void sim_tell(struct sim_net *net, const char *format, ...)
{
    va_list args;

    if (!net->story) {
        return;
    }
    printf("%12.3f ms  ", (double)(net->now_ns - 1000 * SIM_S) / 1e6);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    printf("\n");
}

struct sim_socket *sim_socket_of(struct sim_net *net, int fd)
{
    if (fd < SIM_FIRST_FD || fd >= SIM_FIRST_FD + SIM_MAX_FDS) {
        fprintf(stderr, "seed %" PRIu64 ": descriptor %d is none\n", net->seed, fd);
        abort();
    }
    struct sim_socket *socket = &net->sockets[fd - SIM_FIRST_FD];
    if (socket->kind == SIM_FREE) {
        fprintf(stderr, "seed %" PRIu64 ": descriptor %d is closed\n", net->seed, fd);
        abort();
    }
    return socket;
}

int sim_n_fds(const struct sim_net *net)
{
    int n = 0;

    for (int i = 0; i < SIM_MAX_FDS; i++) {
        n += net->sockets[i].kind != SIM_FREE;
    }
    return n;
}

static uint64_t min_time(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Readiness */

static bool has_pending(const struct sim_net *net, int fd)
{
    for (const struct sim_conn *conn = net->conns; conn != NULL; conn = conn->next) {
        if (conn->listener == fd && conn->accept_ns <= net->now_ns) {
            return true;
        }
    }
    return false;
}

static void break_socket(struct sim_socket *socket, int error)
{
    socket->error = error;
    socket->broken = true;
    socket->reset_ns = BOW_NEVER;
}

/* What time has done to the socket. */
static void settle(struct sim_net *net, struct sim_socket *socket)
{
    if (socket->kind == SIM_CONNECTING && socket->at_ns <= net->now_ns) {
        socket->kind = SIM_OPEN;
        if (socket->connect_error != 0) {
            break_socket(socket, socket->connect_error);
        }
    }
    if (socket->kind == SIM_OPEN && socket->reset_ns <= net->now_ns) {
        break_socket(socket, ECONNRESET);
        if (socket->conn != NULL) {
            sim_pipe_clear(&socket->conn->pipes[0]);
            sim_pipe_clear(&socket->conn->pipes[1]);
            sim_conn_touch(net, socket->conn);
        }
    }
}

static uint32_t open_readiness(const struct sim_net *net, const struct sim_socket *socket)
{
    const struct sim_pipe *in = &socket->conn->pipes[1 - socket->side];
    const struct sim_pipe *out = &socket->conn->pipes[socket->side];
    bool ended = sim_pipe_ended(in, net->now_ns);
    uint32_t bits = 0;

    if (sim_pipe_arrived(in, net->now_ns) > 0 || ended) {
        bits |= BOW_POLL_IN;
    }
    if (ended) {
        bits |= BOW_POLL_RDHUP;
        bits |= out->fin_ns != BOW_NEVER ? BOW_POLL_HUP : 0;
    }
    /* As Linux does: not for every byte, but when a third is free. */
    if (out->fin_ns != BOW_NEVER || sim_pipe_room(out) >= out->cap / 3) {
        bits |= BOW_POLL_OUT;
    }
    return bits;
}

static uint32_t look(struct sim_net *net, struct sim_socket *socket, int fd)
{
    settle(net, socket);
    switch (socket->kind) {
    case SIM_LISTENING:
        return has_pending(net, fd) ? BOW_POLL_IN : 0;
    case SIM_WAKE:
        return socket->signalled ? BOW_POLL_IN : 0;
    case SIM_OPEN:
        if (socket->broken) {
            return BOW_POLL_IN | BOW_POLL_OUT | BOW_POLL_RDHUP | BOW_POLL_HUP |
                   (socket->error != 0 ? BOW_POLL_ERR : 0);
        }
        return open_readiness(net, socket);
    case SIM_NEW:
        return BOW_POLL_OUT | BOW_POLL_HUP;
    case SIM_CONNECTING:
    case SIM_FREE:
        break;
    }
    return 0;
}

static uint64_t next_pending(const struct sim_net *net, int fd)
{
    uint64_t next = BOW_NEVER;

    for (const struct sim_conn *conn = net->conns; conn != NULL; conn = conn->next) {
        if (conn->listener == fd && conn->accept_ns > net->now_ns) {
            next = min_time(next, conn->accept_ns);
        }
    }
    return next;
}

static uint64_t next_change(const struct sim_net *net, const struct sim_socket *socket, int fd)
{
    switch (socket->kind) {
    case SIM_LISTENING:
        return next_pending(net, fd);
    case SIM_CONNECTING:
        return socket->at_ns;
    case SIM_OPEN:
        return socket->conn == NULL
                   ? BOW_NEVER
                   : min_time(socket->reset_ns > net->now_ns ? socket->reset_ns : BOW_NEVER,
                              sim_pipe_next(&socket->conn->pipes[1 - socket->side], net->now_ns));
    default:
        return BOW_NEVER;
    }
}

uint32_t sim_readiness(struct sim_net *net, int fd)
{
    struct sim_socket *socket = sim_socket_of(net, fd);

    if (socket->bits_until_ns <= net->now_ns) {
        socket->bits = look(net, socket, fd);
        socket->bits_until_ns = next_change(net, socket, fd);
    }
    return socket->bits;
}

uint64_t sim_readiness_changes(const struct sim_net *net, int fd)
{
    return net->sockets[fd - SIM_FIRST_FD].bits_until_ns;
}

static void touch_fd(struct sim_net *net, int fd)
{
    if (fd >= 0) {
        net->sockets[fd - SIM_FIRST_FD].bits_until_ns = 0;
    }
}

void sim_conn_touch(struct sim_net *net, const struct sim_conn *conn)
{
    touch_fd(net, conn->listener);
    for (int side = 0; side < 2; side++) {
        touch_fd(net, conn->fds[side]);
        if (conn->nodes[side] != NULL) {
            sim_node_touch(conn->nodes[side]);
        }
    }
}

/* What goes wrong */

/* Its client may lose it from now on until it has closed it. */
static void harm(struct sim_net *net, struct sim_conn *conn)
{
    sim_conn_touch(net, conn);
    if (!conn->is_faulty && conn->fds[0] >= 0) {
        conn->nodes[0]->n_faulty++;
    }
    conn->is_faulty = true;
}

static void reset_side(struct sim_net *net, struct sim_conn *conn, int side)
{
    if (conn->fds[side] >= 0) {
        sim_socket_of(net, conn->fds[side])->reset_ns = net->now_ns;
        net->n_resets++;
    }
}

static struct sim_conn *choose(struct sim_net *net, uint16_t port)
{
    struct sim_conn *chosen = NULL;
    uint64_t n = 0;

    for (struct sim_conn *conn = net->conns; conn != NULL; conn = conn->next) {
        if (conn->port == port && (conn->fds[0] >= 0 || conn->fds[1] >= 0) &&
            sim_chance(net, ++n)) {
            chosen = conn;
        }
    }
    return chosen;
}

bool sim_reset_one(struct sim_net *net, uint16_t port)
{
    struct sim_conn *conn = choose(net, port);
    uint64_t which = sim_below(net, 4);

    if (conn == NULL) {
        return false;
    }
    harm(net, conn);
    sim_pipe_clear(&conn->pipes[0]);
    sim_pipe_clear(&conn->pipes[1]);
    if (which != 0) {
        reset_side(net, conn, 0);
    }
    if (which != 1) {
        reset_side(net, conn, 1);
    }
    if (which <= 1) {
        /* The other end hears nothing, ever. */
        conn->pipes[0].stalled_until_ns = BOW_NEVER;
        conn->pipes[1].stalled_until_ns = BOW_NEVER;
    }
    return true;
}

uint64_t sim_stalled_until(const struct sim_net *net, uint16_t port)
{
    uint64_t until = 0;

    for (int i = 0; i < net->n_stalls; i++) {
        if (net->stalls[i].port == port && net->stalls[i].until_ns > until) {
            until = net->stalls[i].until_ns;
        }
    }
    return until;
}

void sim_stall(struct sim_net *net, uint16_t port, uint64_t until_ns)
{
    if (net->n_stalls < SIM_MAX_STALLS) {
        net->stalls[net->n_stalls].port = port;
        net->stalls[net->n_stalls++].until_ns = until_ns;
    }
    for (struct sim_conn *conn = net->conns; conn != NULL; conn = conn->next) {
        for (int side = 0; conn->port == port && side < 2; side++) {
            struct sim_pipe *pipe = &conn->pipes[side];
            pipe->stalled_until_ns =
                pipe->stalled_until_ns > until_ns ? pipe->stalled_until_ns : until_ns;
        }
        sim_conn_touch(net, conn);
    }
}

bool sim_cut_one(struct sim_net *net, uint16_t port)
{
    struct sim_conn *conn = choose(net, port);

    if (conn == NULL) {
        return false;
    }
    harm(net, conn);
    conn->pipes[0].stalled_until_ns = BOW_NEVER;
    conn->pipes[1].stalled_until_ns = BOW_NEVER;
    return true;
}

void sim_kill(struct sim_net *net, struct sim_node *node)
{
    for (int i = 0; i < SIM_MAX_FDS; i++) {
        struct sim_socket *socket = &net->sockets[i];
        if (socket->kind == SIM_FREE || socket->node != node) {
            continue;
        }
        if (socket->kind == SIM_LISTENING) {
            socket->port = 0;
        }
        if (socket->conn != NULL) {
            harm(net, socket->conn);
            reset_side(net, socket->conn, 0);
            reset_side(net, socket->conn, 1);
        }
    }
    for (struct sim_conn *conn = net->conns; conn != NULL; conn = conn->next) {
        if (conn->listener >= 0 && sim_socket_of(net, conn->listener)->node == node) {
            harm(net, conn);
            conn->listener = -1;
            conn->closed[1] = true;
            reset_side(net, conn, 0);
        }
    }
}
