/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Bytes and sockets of hostile peers, and what is asked of the victim meanwhile. */

#include "hostile.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

/* Bytes */

void hostile_put(struct hostile_bytes *to, const void *bytes, size_t n)
{
    assert_true(n <= sizeof(to->data) - to->n);
    if (n > 0) { /* nothing may be NULL */
        memcpy(to->data + to->n, bytes, n);
    }
    to->n += n;
}

void hostile_put_text(struct hostile_bytes *to, const char *text)
{
    hostile_put(to, text, strlen(text));
}

void hostile_put_u8(struct hostile_bytes *to, uint8_t value)
{
    hostile_put(to, &value, 1);
}

void hostile_put_u32(struct hostile_bytes *to, uint32_t value)
{
    uint32_t big = htonl(value);

    hostile_put(to, &big, sizeof(big));
}

void hostile_native_header(struct hostile_bytes *to, uint32_t length, uint8_t type, uint8_t flags,
                           uint64_t stream)
{
    hostile_put_u32(to, length);
    hostile_put_u8(to, type);
    hostile_put_u8(to, flags);
    hostile_put_u8(to, (uint8_t)(stream >> 40));
    hostile_put_u8(to, (uint8_t)(stream >> 32));
    hostile_put_u32(to, (uint32_t)stream);
}

void hostile_native_opening(struct hostile_bytes *to)
{
    hostile_put(to, "\xb0OW\x01", 4);
    hostile_native_header(to, 0, 0, 0, 0);
}

void hostile_native_request(struct hostile_bytes *to, uint64_t stream, const char *path,
                            const void *message, size_t n)
{
    size_t len = strlen(path);

    hostile_native_header(to, (uint32_t)(3 + len + n), 1, 1 | 8, stream);
    hostile_put_u8(to, (uint8_t)(len + 2));
    hostile_put_u8(to, 0x12);
    hostile_put_u8(to, (uint8_t)len);
    hostile_put_text(to, path);
    hostile_put(to, message, n);
}

void hostile_http2_header(struct hostile_bytes *to, uint32_t length, uint8_t type, uint8_t flags,
                          uint32_t stream)
{
    hostile_put_u32(to, length << 8 | type);
    hostile_put_u8(to, flags);
    hostile_put_u32(to, stream);
}

void hostile_http2_opening(struct hostile_bytes *to)
{
    hostile_put_text(to, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    hostile_http2_header(to, 0, 4, 0, 0);
}

/* A literal without indexing. */
static void put_field(struct hostile_bytes *to, const char *name, const char *value)
{
    hostile_put_u8(to, 0);
    hostile_put_u8(to, (uint8_t)strlen(name));
    hostile_put_text(to, name);
    hostile_put_u8(to, (uint8_t)strlen(value));
    hostile_put_text(to, value);
}

void hostile_http2_request(struct hostile_bytes *to, uint32_t stream, const char *path)
{
    static _Thread_local struct hostile_bytes block;

    block.n = 0;
    hostile_put_u8(&block, 0x83); /* :method POST */
    hostile_put_u8(&block, 0x86); /* :scheme http */
    put_field(&block, ":path", path);
    put_field(&block, ":authority", "lab");
    put_field(&block, "te", "trailers");
    put_field(&block, "content-type", "application/grpc");
    hostile_http2_header(to, (uint32_t)block.n, 1, 4, stream);
    hostile_put(to, block.data, block.n);
}

/* Sockets */

bool hostile_try_connect(struct hostile *peer, uint16_t port)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;

    *peer = (struct hostile){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    assert_true(peer->fd >= 0);
    if (connect(peer->fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
        close(peer->fd);
        return false;
    }
    assert_int_equal(setsockopt(peer->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), 0);
    peer->answer = malloc(HOSTILE_ANSWER_BYTES);
    assert_non_null(peer->answer);
    return true;
}

void hostile_connect(struct hostile *peer, uint16_t port)
{
    assert_true(hostile_try_connect(peer, port));
}

void hostile_close(struct hostile *peer)
{
    close(peer->fd);
    free(peer->answer);
}

static void read_some(struct hostile *peer)
{
    static _Thread_local uint8_t scratch[65536];
    ssize_t n;

    while ((n = recv(peer->fd, scratch, sizeof(scratch), MSG_DONTWAIT)) > 0) {
        size_t room = HOSTILE_ANSWER_BYTES - peer->n_answer;
        size_t kept = (size_t)n < room ? (size_t)n : room;
        memcpy(peer->answer + peer->n_answer, scratch, kept);
        peer->n_answer += kept;
        peer->n_read += (uint64_t)n;
    }
    if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        peer->closed = true;
    }
}

/* False: nothing happened for that long. */
static bool wait_for(struct hostile *peer, short events, int ms)
{
    struct pollfd watch = {.fd = peer->fd, .events = events};

    if (!peer->never_reads) {
        watch.events |= POLLIN;
    }
    if (poll(&watch, 1, ms) <= 0) {
        return false;
    }
    if ((watch.revents & POLLIN) != 0) {
        read_some(peer);
    } else if ((watch.revents & (POLLERR | POLLHUP)) != 0) {
        peer->closed = true;
    }
    return true;
}

bool hostile_send(struct hostile *peer, const struct hostile_bytes *bytes, int stall_ms)
{
    size_t at = 0;

    while (at < bytes->n && !peer->closed) {
        ssize_t n = send(peer->fd, bytes->data + at, bytes->n - at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n > 0) {
            at += (size_t)n;
        } else if (errno != EAGAIN) {
            (void)hostile_read(peer, 0);
            peer->closed = true;
        } else if (!wait_for(peer, POLLOUT, stall_ms)) {
            return false;
        }
    }
    return at == bytes->n;
}

bool hostile_read(struct hostile *peer, int ms)
{
    while (!peer->closed && wait_for(peer, POLLIN, ms)) {
    }
    return peer->closed;
}

bool hostile_heard(const struct hostile *peer, const void *bytes, size_t n)
{
    return memmem(peer->answer, peer->n_answer, bytes, n) != NULL;
}

void hostile_wait_heard(struct hostile *peer, const char *name, const void *bytes, size_t n)
{
    while (!hostile_heard(peer, bytes, n)) {
        if (peer->closed || !wait_for(peer, POLLIN, 10000)) {
            fail_msg("%s: never heard what was expected in %zu bytes", name, peer->n_answer);
        }
    }
}

int hostile_listen(uint16_t *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

/* The victim */

uint64_t hostile_counter(const struct lab *lab, size_t offset)
{
    struct bow_metrics metrics = BOW_METRICS_INIT;
    uint64_t value;

    assert_int_equal(bow_server_metrics(lab->server, &metrics), 0);
    memcpy(&value, (const char *)&metrics + offset, sizeof(value));
    return value;
}

void hostile_wait_counter(const struct lab *lab, size_t offset, uint64_t above, const char *name)
{
    uint64_t end = lab_now_ns() + 10000 * LAB_MS;

    while (hostile_counter(lab, offset) <= above) {
        if (lab_now_ns() > end) {
            fail_msg("%s: the counter did not grow", name);
        }
        sched_yield();
    }
}

struct bow_client *hostile_neighbour(const struct lab *lab, const char *prefix)
{
    struct bow_client_options options = BOW_CLIENT_OPTIONS_INIT;
    struct bow_client *client = NULL;
    char target[80];

    snprintf(target, sizeof(target), "%s127.0.0.1:%u", prefix, lab->port);
    options.target = target;
    assert_int_equal(bow_client_new(&options, &client), 0);
    return client;
}

void hostile_neighbour_works(struct bow_client *client, const char *name)
{
    struct bow_call_options options = BOW_CALL_OPTIONS_INIT;
    struct bow_result result = BOW_RESULT_INIT;
    Lab__Blob request = LAB__BLOB__INIT;

    request.id = 7;
    options.timeout_ns = 5000 * LAB_MS;
    const Lab__Blob *reply = lab__lab__echo__call(client, &request, &options, &result);
    if (reply == NULL) {
        fail_msg("%s: the good neighbour was hurt: %s", name, result.status.message);
    }
    assert_int_equal(reply->id, 7);
    bow_result_fini(&result);
}
