/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A DNS server that says what a test wrote.
 */

#include "dns_server.h"

#include <arpa/inet.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define HEADER_BYTES 12
#define MAX_BYTES 4096

struct message {
    uint8_t bytes[MAX_BYTES];
    size_t n;
};

static void put16(struct message *message, unsigned value)
{
    message->bytes[message->n++] = (uint8_t)(value >> 8);
    message->bytes[message->n++] = (uint8_t)value;
}

static void put_name(struct message *message, const char *name)
{
    while (*name != '\0') {
        size_t n = strcspn(name, ".");
        message->bytes[message->n++] = (uint8_t)n;
        memcpy(message->bytes + message->n, name, n);
        message->n += n;
        name += n + (name[n] == '.');
    }
    message->bytes[message->n++] = 0;
}

/* The name of the question, and where its type stands. */
static size_t read_name(const uint8_t *bytes, size_t n, char name[256])
{
    size_t at = HEADER_BYTES;
    size_t len = 0;

    while (at < n && bytes[at] != 0 && at + bytes[at] < n && len + bytes[at] + 1 < 256) {
        memcpy(name + len, bytes + at + 1, bytes[at]);
        len += bytes[at];
        name[len++] = '.';
        at += bytes[at] + 1u;
    }
    name[len > 0 ? len - 1 : 0] = '\0';
    return at + 1;
}

static struct dns_answer *find(struct dns_server *server, const char *name)
{
    for (int i = 0; i < server->n_answers; i++) {
        if (strcasecmp(server->answers[i].name, name) == 0) {
            return &server->answers[i];
        }
    }
    return NULL;
}

static void put_data(struct message *message, const struct dns_record *record)
{
    size_t at = message->n;

    message->n += 2;
    if (record->type == DNS_A) {
        assert_int_equal(inet_pton(AF_INET, record->text, message->bytes + message->n), 1);
        message->n += 4;
    } else if (record->type == DNS_AAAA) {
        assert_int_equal(inet_pton(AF_INET6, record->text, message->bytes + message->n), 1);
        message->n += 16;
    } else {
        if (record->type == DNS_SRV) {
            put16(message, record->priority);
            put16(message, record->weight);
            put16(message, record->port);
        }
        put_name(message, record->text);
    }
    message->bytes[at] = (uint8_t)((message->n - at - 2) >> 8);
    message->bytes[at + 1] = (uint8_t)(message->n - at - 2);
}

static void put_record(struct message *message, const char *owner, const struct dns_record *record)
{
    put_name(message, owner);
    put16(message, (unsigned)record->type);
    put16(message, 1);
    put16(message, record->ttl >> 16);
    put16(message, record->ttl & 0xFFFF);
    put_data(message, record);
}

/* The records of a name, and behind a CNAME those of what it stands for. */
static int put_records(struct dns_server *server, struct message *message, const char *name,
                       int type)
{
    const struct dns_answer *answer = find(server, name);
    int n = 0;

    for (int i = 0; answer != NULL && i < answer->n_records; i++) {
        const struct dns_record *record = &answer->records[i];
        if (record->type == type || record->type == DNS_CNAME) {
            put_record(message, name, record);
            n++;
        }
        if (record->type == DNS_CNAME && type != DNS_CNAME) {
            n += put_records(server, message, record->text, type);
        }
    }
    return n;
}

/* Returns whether there is one. */
static bool answer_to(struct dns_server *server, const uint8_t *bytes, size_t n, bool by_tcp,
                      struct message *message)
{
    char name[256];
    size_t at = read_name(bytes, n, name);

    if (n < HEADER_BYTES || at + 4 > n) {
        return false;
    }
    int type = bytes[at] << 8 | bytes[at + 1];
    struct dns_answer *answer = find(server, name);
    bool is_truncated = answer != NULL && answer->is_truncated && !by_tcp;
    int rcode = answer == NULL ? 3 : answer->rcode;
    if (answer != NULL) {
        answer->n_asked++;
        answer->n_asked_by_tcp += by_tcp;
        if (answer->is_silent) {
            return false;
        }
    }
    memcpy(message->bytes, bytes, at + 4);
    message->n = at + 4;
    message->bytes[2] = (uint8_t)(0x84 | (is_truncated ? 2 : 0) | (bytes[2] & 1));
    message->bytes[3] = (uint8_t)(0x80 | rcode);
    memset(message->bytes + 4, 0, 8);
    message->bytes[5] = 1;
    int n_records = rcode == 0 && !is_truncated ? put_records(server, message, name, type) : 0;
    message->bytes[7] = (uint8_t)n_records;
    return true;
}

static void serve_udp(struct dns_server *server)
{
    uint8_t bytes[MAX_BYTES];
    struct message message;
    struct sockaddr_in from;
    socklen_t n_from = sizeof(from);

    ssize_t n = recvfrom(server->udp, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &n_from);
    if (n > 0 && answer_to(server, bytes, (size_t)n, false, &message)) {
        (void)!sendto(server->udp, message.bytes, message.n, 0, (struct sockaddr *)&from, n_from);
    }
}

/* One question a connection, which c-ares' second one takes for the end of it: it connects again.
 */
static void serve_tcp(struct dns_server *server)
{
    uint8_t bytes[MAX_BYTES + 2];
    struct message message = {.n = 0};
    int fd = accept4(server->tcp, NULL, NULL, SOCK_CLOEXEC);
    size_t n = 0;

    while (n < 2 || n < 2u + (size_t)(bytes[0] << 8 | bytes[1])) {
        ssize_t got = read(fd, bytes + n, sizeof(bytes) - n);
        if (got <= 0) {
            close(fd);
            return;
        }
        n += (size_t)got;
    }
    for (size_t at = 0; at + 2 < n;) {
        size_t len = (size_t)(bytes[at] << 8 | bytes[at + 1]);
        if (at + 2 + len <= n && answer_to(server, bytes + at + 2, len, true, &message)) {
            uint8_t prefix[2] = {(uint8_t)(message.n >> 8), (uint8_t)message.n};
            (void)!send(fd, prefix, 2, MSG_NOSIGNAL | MSG_MORE);
            (void)!send(fd, message.bytes, message.n, MSG_NOSIGNAL);
        }
        at += 2 + len;
    }
    close(fd);
}

static void *run(void *user)
{
    struct dns_server *server = user;

    for (;;) {
        struct pollfd fds[] = {{.fd = server->udp, .events = POLLIN},
                               {.fd = server->tcp, .events = POLLIN},
                               {.fd = server->stop[0], .events = POLLIN}};
        (void)!poll(fds, 3, -1);
        if (fds[2].revents != 0) {
            return NULL;
        }
        pthread_mutex_lock(&server->lock);
        if (fds[0].revents != 0) {
            serve_udp(server);
        }
        if (fds[1].revents != 0) {
            serve_tcp(server);
        }
        pthread_mutex_unlock(&server->lock);
    }
}

/* UDP's port may be another's over TCP. */
static bool bind_both(struct dns_server *server)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof(in);

    server->udp = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    server->tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server->udp, (struct sockaddr *)&in, sizeof(in)), 0);
    assert_int_equal(getsockname(server->udp, (struct sockaddr *)&in, &n), 0);
    if (bind(server->tcp, (struct sockaddr *)&in, sizeof(in)) == 0 &&
        listen(server->tcp, 16) == 0) {
        snprintf(server->address, sizeof(server->address), "127.0.0.1:%u", ntohs(in.sin_port));
        return true;
    }
    close(server->udp);
    close(server->tcp);
    return false;
}

void dns_server_start(struct dns_server *server)
{
    memset(server, 0, sizeof(*server));
    pthread_mutex_init(&server->lock, NULL);
    while (!bind_both(server)) {
    }
    assert_int_equal(pipe(server->stop), 0);
    assert_int_equal(pthread_create(&server->thread, NULL, run, server), 0);
}

void dns_server_stop(struct dns_server *server)
{
    assert_int_equal(write(server->stop[1], "", 1), 1);
    pthread_join(server->thread, NULL);
    close(server->stop[0]);
    close(server->stop[1]);
    close(server->udp);
    close(server->tcp);
    pthread_mutex_destroy(&server->lock);
}

struct dns_answer *dns_server_lock(struct dns_server *server, const char *name)
{
    pthread_mutex_lock(&server->lock);
    struct dns_answer *answer = find(server, name);
    if (answer == NULL) {
        answer = &server->answers[server->n_answers++];
        snprintf(answer->name, sizeof(answer->name), "%s", name);
    }
    answer->rcode = 0;
    answer->is_silent = false;
    answer->is_truncated = false;
    answer->n_records = 0;
    return answer;
}

void dns_server_unlock(struct dns_server *server)
{
    pthread_mutex_unlock(&server->lock);
}

void dns_answer_add(struct dns_answer *answer, int type, uint32_t ttl, const char *text)
{
    answer->records[answer->n_records++] =
        (struct dns_record){.type = type, .ttl = ttl, .text = text};
}

int dns_server_asked(struct dns_server *server, const char *name)
{
    pthread_mutex_lock(&server->lock);
    const struct dns_answer *answer = find(server, name);
    int n = answer != NULL ? answer->n_asked : 0;
    pthread_mutex_unlock(&server->lock);
    return n;
}
