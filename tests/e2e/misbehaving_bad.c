/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Clients that do not behave. Each has its kind and its times; one that the server
 * closes comes back. A turn looks at all of them, every millisecond.
 */

#include "hostile.h"
#include "misbehaving_child.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TURN_MS 1
#define GARBAGE_BYTES 64
/* What a client that never reads asks for at a time: 64 KiB each. */
#define N_ASKED 1u
#define MAX_ASKED 64u

enum kind { SILENT, DRIP, GARBAGE, RESET, NEVER_READ, N_KINDS };

struct bad {
    int fd; /* -1: none */
    enum kind kind;
    bool http2;
    uint64_t due_ns;
    size_t n_sent;    /* of what it drips */
    uint32_t n_asked; /* replies it never reads */
};

static struct hostile_bytes scripts[2]; /* opening and one call, by protocol */
static struct crowd_deeds deeds;
static uint16_t port;

static uint64_t after(unsigned ms)
{
    /* Spread, so that they do not march in step. */
    return lab_now_ns() + LAB_MS * (ms / 2 + (unsigned)rand() % (ms + 1));
}

static void put_call(struct hostile_bytes *to, bool http2, uint32_t stream)
{
    static const char wants_64k[] = "\x18\x80\x80\x04"; /* reply_bytes */

    if (!http2) {
        hostile_native_request(to, stream, "/lab.Lab/Echo", wants_64k, 4);
        return;
    }
    hostile_http2_request(to, stream, "/lab.Lab/Echo");
    hostile_http2_header(to, 9, 0, 1, stream);
    hostile_put_u8(to, 0);
    hostile_put_u32(to, 4);
    hostile_put(to, wants_64k, 4);
}

static void put_opening(struct hostile_bytes *to, bool http2)
{
    to->n = 0;
    if (http2) {
        hostile_http2_opening(to);
    } else {
        hostile_native_opening(to);
    }
}

static void leave(struct bad *bad)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};

    if (bad->fd < 0) {
        return;
    }
    if (bad->kind == RESET) {
        setsockopt(bad->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    }
    close(bad->fd);
    bad->fd = -1;
}

static void come(struct bad *bad)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int small = 4096;

    bad->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    child_assert(bad->fd >= 0);
    if (bad->kind == NEVER_READ) {
        setsockopt(bad->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    }
    int rc = connect(bad->fd, (struct sockaddr *)&address, sizeof(address));
    child_assert(rc == 0 || errno == EINPROGRESS || errno == EADDRNOTAVAIL);
    bad->n_sent = 0;
    bad->n_asked = 0;
    deeds.n_connects++;
}

/* False: the connection is over. */
static bool say(struct bad *bad, const void *bytes, size_t n)
{
    ssize_t rc = send(bad->fd, bytes, n, MSG_NOSIGNAL);

    return rc >= 0 || errno == EAGAIN || errno == ENOTCONN;
}

static bool is_closed(const struct bad *bad)
{
    char byte;
    ssize_t n = recv(bad->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    return n == 0 || (n < 0 && errno != EAGAIN && errno != ENOTCONN);
}

static bool be_silent(struct bad *bad)
{
    bad->due_ns = after(200);
    return !is_closed(bad);
}

static bool drip(struct bad *bad)
{
    const struct hostile_bytes *script = &scripts[bad->http2];

    bad->due_ns = after(50);
    return bad->n_sent < script->n && say(bad, script->data + bad->n_sent++, 1);
}

static bool send_garbage(struct bad *bad)
{
    uint8_t bytes[GARBAGE_BYTES];

    bad->due_ns = after(250);
    if (bad->n_sent++ > 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (uint8_t)rand();
    }
    return say(bad, bytes, sizeof(bytes));
}

static bool call_and_reset(struct bad *bad)
{
    bad->due_ns = after(250);
    return bad->n_sent++ == 0 && say(bad, scripts[bad->http2].data, scripts[bad->http2].n);
}

static bool ask_and_never_read(struct bad *bad)
{
    static struct hostile_bytes bytes;

    bad->due_ns = after(250);
    bytes.n = 0;
    if (bad->n_asked == 0) {
        put_opening(&bytes, bad->http2);
    }
    for (uint32_t i = 0; i < N_ASKED && bad->n_asked < MAX_ASKED; i++) {
        put_call(&bytes, bad->http2, 2 * bad->n_asked++ + 1);
    }
    /* The answer is left in the socket, so one cannot tell from it whether the server closed. */
    return say(bad, bytes.data, bytes.n);
}

static void act(struct bad *bad)
{
    static bool (*const acts[N_KINDS])(struct bad * bad) = {
        [SILENT] = be_silent,
        [DRIP] = drip,
        [GARBAGE] = send_garbage,
        [RESET] = call_and_reset,
        [NEVER_READ] = ask_and_never_read,
    };

    if (bad->fd < 0) {
        come(bad);
        bad->due_ns = after(20);
        return;
    }
    if (!acts[bad->kind](bad)) {
        deeds.n_closed += bad->kind == SILENT || bad->kind == NEVER_READ;
        leave(bad);
    }
}

static void make(struct bad *bads, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        bads[i] = (struct bad){.fd = -1, .kind = i % N_KINDS, .http2 = i / N_KINDS % 2 != 0};
    }
    for (int http2 = 0; http2 < 2; http2++) {
        put_opening(&scripts[http2], http2 != 0);
        put_call(&scripts[http2], http2 != 0, 1);
    }
}

static void set_going(struct bad *bads, unsigned n, bool go)
{
    for (unsigned i = 0; i < n; i++) {
        leave(&bads[i]);
        bads[i].due_ns = go ? after(300) : UINT64_MAX;
    }
}

void child_run_bad(int from_parent, int to_parent, unsigned n)
{
    struct pollfd commands = {.fd = from_parent, .events = POLLIN};
    struct bad *bads = calloc(n, sizeof(*bads));
    char word = 's';

    child_assert(bads != NULL);
    make(bads, n);
    if (!child_read(from_parent, &port, sizeof(port))) {
        return;
    }
    set_going(bads, n, false);
    for (;;) {
        if (poll(&commands, 1, TURN_MS) == 1) {
            if (!child_read(from_parent, &word, 1)) {
                return;
            }
            set_going(bads, n, word == 'g');
            child_write(to_parent, &deeds, sizeof(deeds));
        }
        uint64_t now = lab_now_ns();
        for (unsigned i = 0; i < n; i++) {
            if (bads[i].due_ns <= now) {
                act(&bads[i]);
            }
        }
    }
}
