/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What listens at an address, told by what it answers to the first bytes of either protocol: HTTP/2
 * begins with a SETTINGS frame, Bowline's own protocol with its four bytes, TLS with a record.
 */
#include "diagnose.h"

#include <netdb.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#define PATIENCE_MS 1000

static const char http2_preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                                    "\0\0\0\4\0\0\0\0\0"; /* and empty SETTINGS */
static const char native_preface[] = "\xb0OW\1";
/* A ClientHello that is none: TLS answers it with an alert. */
static const char tls_record[] = "\x16\3\1\0\4\1\0\0\0";

enum spoken {
    SPOKEN_UNKNOWN,
    SPOKEN_REFUSED, /* nobody listens */
    SPOKEN_NOTHING, /* it takes the connection, and is silent */
    SPOKEN_HTTP1,
    SPOKEN_HTTP2,
    SPOKEN_NATIVE,
    SPOKEN_TLS,
};

static int connect_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd >= 0 && strlen(path) < sizeof(address.sun_path)) {
        memcpy(address.sun_path, path, strlen(path) + 1);
        if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) == 0) {
            return fd;
        }
    }
    if (fd >= 0) {
        close(fd);
    }
    return -1;
}

/* "HOST:PORT", "[v6]:PORT". */
static int connect_tcp(const char *address)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    const struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    const char *colon = strrchr(address, ':');
    struct addrinfo *found = NULL;
    char host[256];
    int fd = -1;

    if (colon == NULL || (size_t)(colon - address) >= sizeof(host)) {
        return -1;
    }
    bool is_v6 = address[0] == '[' && colon[-1] == ']';
    snprintf(host, sizeof(host), "%.*s", (int)(colon - address) - (is_v6 ? 2 : 0),
             address + (is_v6 ? 1 : 0));
    if (getaddrinfo(host, colon + 1, &hints, &found) != 0) {
        return -1;
    }
    for (const struct addrinfo *at = found; at != NULL && fd < 0; at = at->ai_next) {
        fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0) { /* of Linux, it also bounds connect() */
            setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
        }
        if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) < 0) {
            close(fd);
            fd = -1;
        }
    }
    freeaddrinfo(found);
    return fd;
}

static enum spoken told_by(const uint8_t *bytes, size_t n)
{
    if (n >= 5 && memcmp(bytes, "HTTP/", 5) == 0) {
        return SPOKEN_HTTP1;
    }
    if (n >= 3 && memcmp(bytes, native_preface, 3) == 0) {
        return SPOKEN_NATIVE;
    }
    if (n >= 2 && (bytes[0] == 0x15 || bytes[0] == 0x16) && bytes[1] == 3) {
        return SPOKEN_TLS;
    }
    return n >= 4 && bytes[0] == 0 && bytes[3] == 4 ? SPOKEN_HTTP2 : SPOKEN_UNKNOWN;
}

/* What comes back on `first`, the first bytes of a protocol. */
static enum spoken ask(const char *address, const char *first, size_t n)
{
    bool is_unix = strncmp(address, "unix:", 5) == 0;
    int fd = is_unix ? connect_unix(address + 5) : connect_tcp(address);
    enum spoken spoken = SPOKEN_NOTHING;
    uint8_t bytes[16];

    if (fd < 0) {
        return SPOKEN_REFUSED;
    }
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    if (send(fd, first, n, MSG_NOSIGNAL) == (ssize_t)n && poll(&wait, 1, PATIENCE_MS) == 1) {
        ssize_t got = recv(fd, bytes, sizeof(bytes), 0);
        spoken = got > 0 ? told_by(bytes, (size_t)got) : SPOKEN_UNKNOWN;
    }
    close(fd);
    return spoken;
}

static const char *advise(const char *address, bool is_grpc, bool with_tls)
{
    enum spoken spoken = is_grpc ? ask(address, http2_preface, sizeof(http2_preface) - 1)
                                 : ask(address, native_preface, sizeof(native_preface) - 1);

    if (spoken == SPOKEN_REFUSED) {
        return ""; /* the library says so */
    }
    if (with_tls) {
        return spoken == SPOKEN_HTTP2 || spoken == SPOKEN_NATIVE
                   ? "; the server speaks no TLS: leave --tls, --ca, --cert and --insecure out"
                   : "";
    }
    if (spoken == SPOKEN_TLS ||
        (spoken != SPOKEN_HTTP2 && spoken != SPOKEN_NATIVE && spoken != SPOKEN_HTTP1 &&
         ask(address, tls_record, sizeof(tls_record) - 1) == SPOKEN_TLS)) {
        return "; the server expects TLS: --tls, or --ca FILE for a CA of your own";
    }
    if (spoken == SPOKEN_HTTP1) {
        return "; the server speaks HTTP/1, neither gRPC nor Bowline's own protocol";
    }
    if (!is_grpc && spoken != SPOKEN_NATIVE &&
        (spoken == SPOKEN_HTTP2 ||
         ask(address, http2_preface, sizeof(http2_preface) - 1) == SPOKEN_HTTP2)) {
        return "; the server speaks gRPC: put grpc: in front of the target";
    }
    if (is_grpc && spoken != SPOKEN_HTTP2 &&
        ask(address, native_preface, sizeof(native_preface) - 1) == SPOKEN_NATIVE) {
        return "; the server speaks Bowline's own protocol: leave grpc: out of the target";
    }
    return spoken == SPOKEN_NOTHING ? "; it takes connections, and says nothing" : "";
}

void diagnose(const char *target, bool with_tls, char *advice, size_t size)
{
    bool is_grpc = strncmp(target, "grpc:", 5) == 0;
    const char *address = target + (is_grpc ? 5 : 0);

    advice[0] = '\0';
    if (strncmp(address, "list:", 5) != 0 && strstr(address, "///") == NULL &&
        strncmp(address, "unix-abstract:", 14) != 0) {
        snprintf(advice, size, "%s", advise(address, is_grpc, with_tls));
    }
}
