/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The relay of the matrix test; see matrix_relay.h. Knows the frames' lengths, and nothing of what
 * is in them. */

#include "matrix_relay.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

/* Frames */

static size_t big_endian(const uint8_t *bytes, int n)
{
    size_t value = 0;

    for (int i = 0; i < n; i++) {
        value = value << 8 | bytes[i];
    }
    return value;
}

/* The whole length of the frame that begins at `bytes`; 0 while its header is not there. */
static size_t frame_length(const struct relay_flow *flow, const uint8_t *bytes, size_t n)
{
    switch (flow->framing) {
    case RELAY_NATIVE:
        if (!flow->has_begun) {
            return 4;
        }
        return n < 12 ? 0 : 12 + big_endian(bytes, 4);
    case RELAY_HTTP2:
        if (!flow->has_begun && flow->direction == RELAY_UP) {
            return 24;
        }
        return n < 9 ? 0 : 9 + big_endian(bytes, 3);
    case RELAY_TLS:
        return n < 5 ? 0 : 5 + big_endian(bytes + 3, 2);
    }
    return 0;
}

/* Sockets */

static socklen_t to_sockaddr(const struct relay *relay, const char *address,
                             struct sockaddr_storage *ret_address)
{
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const char *name = strchr(address, ':') + 1;

    memset(ret_address, 0, sizeof(*ret_address));
    if (relay->is_unix) {
        size_t len = strlen(name);
        memcpy(un.sun_path + 1, name, len);
        memcpy(ret_address, &un, sizeof(un));
        return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
    }
    in.sin_port = htons((uint16_t)strtoul(name, NULL, 10));
    memcpy(ret_address, &in, sizeof(in));
    return sizeof(in);
}

/* Each frame goes on at once: what waits for an acknowledgement is lost with a reset. */
static void send_at_once(const struct relay *relay, int fd)
{
    int on = 1;

    if (!relay->is_unix) {
        assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), 0);
    }
}

static int new_socket(const struct relay *relay, int flags)
{
    int fd = socket(relay->is_unix ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);

    assert_true(fd >= 0);
    return fd;
}

void relay_start(struct relay *relay, bool is_unix, enum relay_framing framing, const char *server)
{
    static int n_relays;
    struct sockaddr_storage address;
    struct sockaddr_in bound;
    socklen_t bound_len = sizeof(bound);

    memset(relay, 0, sizeof(*relay));
    relay->is_unix = is_unix;
    relay->framing = framing;
    snprintf(relay->server, sizeof(relay->server), "%s", server);
    snprintf(relay->address, sizeof(relay->address),
             is_unix ? "unix-abstract:bowline-relay-%d-%d" : "127.0.0.1:0", (int)getpid(),
             n_relays++);
    socklen_t len = to_sockaddr(relay, relay->address, &address);
    relay->listening = new_socket(relay, SOCK_NONBLOCK);
    assert_int_equal(bind(relay->listening, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(relay->listening, 8), 0);
    if (!is_unix) {
        assert_int_equal(getsockname(relay->listening, (struct sockaddr *)&bound, &bound_len), 0);
        snprintf(relay->address, sizeof(relay->address), "127.0.0.1:%u", ntohs(bound.sin_port));
    }
}

static void close_link(struct relay_link *link, bool is_reset)
{
    struct linger at_once = {.l_onoff = 1, .l_linger = 0};

    for (int i = 0; i < 2; i++) {
        if (link->fds[i] < 0) {
            continue;
        }
        if (is_reset) {
            (void)setsockopt(link->fds[i], SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
        }
        close(link->fds[i]);
        link->fds[i] = -1;
    }
}

void relay_stop(struct relay *relay)
{
    for (int i = 0; i < relay->n_links; i++) {
        close_link(&relay->links[i], false);
    }
    close(relay->listening);
}

/* Cuts */

void relay_arm(struct relay *relay, const struct relay_cut *cut)
{
    relay->cut = *cut;
    relay->is_armed = true;
    for (int i = 0; i < relay->n_links; i++) {
        relay->links[i].flows[RELAY_UP].n_frames = 0;
        relay->links[i].flows[RELAY_DOWN].n_frames = 0;
    }
}

static void cut_now(struct relay *relay, struct relay_link *link)
{
    relay->is_armed = false;
    relay->has_cut = true;
    close_link(link, relay->cut.is_reset);
}

static bool is_last_frame(const struct relay *relay, const struct relay_flow *flow)
{
    return relay->is_armed && relay->cut.direction == flow->direction &&
           relay->cut.n_frames == flow->n_frames;
}

/* How much of what has been read may go on now: to the end of a frame, or to where the cut is. */
static size_t passable(const struct relay *relay, struct relay_flow *flow, bool *ret_cut)
{
    size_t n = flow->end - flow->begin;

    *ret_cut = false;
    if (n == 0) {
        return 0;
    }
    if (flow->frame_left == 0) {
        size_t length = frame_length(flow, flow->bytes + flow->begin, n);
        if (length == 0) {
            return 0;
        }
        flow->has_begun = true;
        flow->frame_left = length;
        if (is_last_frame(relay, flow) && relay->cut.is_half) {
            flow->frame_left = length / 2;
        }
    }
    *ret_cut = is_last_frame(relay, flow) && relay->cut.is_half && n >= flow->frame_left;
    return n < flow->frame_left ? n : flow->frame_left;
}

/* Passing on */

static bool fill(struct relay_flow *flow, int from)
{
    if (flow->begin > 0) {
        memmove(flow->bytes, flow->bytes + flow->begin, flow->end - flow->begin);
        flow->end -= flow->begin;
        flow->begin = 0;
    }
    ssize_t n = recv(from, flow->bytes + flow->end, sizeof(flow->bytes) - flow->end, MSG_DONTWAIT);
    if (n > 0) {
        flow->end += (size_t)n;
        return true;
    }
    flow->is_over =
        flow->end == 0 && (n == 0 || (errno != EAGAIN && errno != EINTR)) ? true : flow->is_over;
    return false;
}

/* One frame, or what there is of it. Returns the bytes passed on. */
static size_t pass_on(struct relay *relay, struct relay_link *link, struct relay_flow *flow, int to)
{
    bool is_cut = false;
    size_t n = passable(relay, flow, &is_cut);

    if (n == 0) {
        return 0;
    }
    ssize_t sent = send(to, flow->bytes + flow->begin, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent <= 0) {
        return 0;
    }
    flow->begin += (size_t)sent;
    flow->n_bytes += (size_t)sent;
    flow->frame_left -= (size_t)sent;
    if (is_cut && (size_t)sent == n) {
        cut_now(relay, link);
        return n;
    }
    if (flow->frame_left == 0) {
        flow->n_frames++;
        if (is_last_frame(relay, flow) && !relay->cut.is_half) {
            cut_now(relay, link);
        }
    }
    return (size_t)sent;
}

static bool pump_flow(struct relay *relay, struct relay_link *link, enum relay_direction direction)
{
    struct relay_flow *flow = &link->flows[direction];
    int from = direction == RELAY_UP ? 0 : 1;
    bool moved = false;

    if (link->fds[0] < 0 || flow->is_over) {
        return false;
    }
    moved = fill(flow, link->fds[from]);
    while (link->fds[0] >= 0 && pass_on(relay, link, flow, link->fds[1 - from]) > 0) {
        moved = true;
    }
    if (link->fds[0] >= 0 && flow->is_over) {
        (void)shutdown(link->fds[1 - from], SHUT_WR);
        moved = true;
    }
    return moved;
}

static bool accept_one(struct relay *relay)
{
    struct sockaddr_storage address;
    int fd = accept4(relay->listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    if (fd < 0) {
        return false;
    }
    assert_true(relay->n_links < RELAY_MAX_LINKS);
    struct relay_link *link = &relay->links[relay->n_links++];
    for (int i = 0; i < 2; i++) {
        link->flows[i].framing = relay->framing;
        link->flows[i].direction = (enum relay_direction)i;
    }
    socklen_t len = to_sockaddr(relay, relay->server, &address);
    link->fds[0] = fd;
    link->fds[1] = new_socket(relay, 0);
    assert_int_equal(connect(link->fds[1], (struct sockaddr *)&address, len), 0);
    send_at_once(relay, link->fds[0]);
    send_at_once(relay, link->fds[1]);
    if (relay->is_armed && relay->cut.n_frames == 0 && !relay->cut.is_half) {
        cut_now(relay, link);
    }
    return true;
}

bool relay_pump(struct relay *relay)
{
    bool moved = accept_one(relay);

    for (int i = 0; i < relay->n_links; i++) {
        struct relay_link *link = &relay->links[i];
        moved = pump_flow(relay, link, RELAY_UP) || moved;
        moved = pump_flow(relay, link, RELAY_DOWN) || moved;
        if (link->flows[RELAY_UP].is_over && link->flows[RELAY_DOWN].is_over) {
            close_link(link, false);
        }
    }
    return moved;
}

uint64_t relay_bytes(const struct relay *relay, enum relay_direction direction)
{
    uint64_t n = 0;

    for (int i = 0; i < relay->n_links; i++) {
        n += relay->links[i].flows[direction].n_bytes;
    }
    return n;
}

unsigned relay_frames(const struct relay *relay, enum relay_direction direction)
{
    return relay->n_links > 0 ? relay->links[0].flows[direction].n_frames : 0;
}
