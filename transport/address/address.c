/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Reading and writing addresses. Peers' names of Unix sockets are bytes of a
 * stranger: they are escaped when they are written.
 */

#include "transport/address/address.h"

#include <arpa/inet.h>
#include <bowline/channel.h>
#include <errno.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#define UNIX_PREFIX "unix:"
#define ABSTRACT_PREFIX "unix-abstract:"
#define FD_PREFIX "fd:"
#define INPROC_PREFIX "inproc:"
/* With its prefix it is shown as a whole; and it fits into a sockaddr_storage. */
#define INPROC_NAME_BYTES 100
#define INPROC_OFFSET sizeof(sa_family_t)
/* A percent sign, and an interface's name or number. */
#define ZONE_BYTES (IF_NAMESIZE + 1)
#define PATH_BYTES sizeof(((struct sockaddr_un *)0)->sun_path)
#define PATH_OFFSET offsetof(struct sockaddr_un, sun_path)

/* Cut after `max` bytes: what is too long is shown by its beginning. */
#define SHOWN_BYTES 80

static int refuse(struct bow__text *why, const char *text, const char *reason)
{
    struct bow_slice shown = {(const uint8_t *)text, strlen(text)};

    bow__text_printf(why, "\"");
    bow__text_escape(why, shown, SHOWN_BYTES);
    bow__text_printf(why, "\": %s", reason);
    return -EINVAL;
}

static int parse_unix(const char *text, const char *name, bool abstract,
                      struct bow__address *address, struct bow__text *why)
{
    struct sockaddr_un *un = (struct sockaddr_un *)(void *)&address->sockaddr.storage;
    size_t len = strlen(name);

    if (len == 0) {
        return refuse(why, text, "a name must follow the colon");
    }
    /* A path keeps its NUL, an abstract name begins with one: either needs a byte more. */
    if (len + 1 > PATH_BYTES) {
        return refuse(why, text, "the name of a Unix socket has at most 107 bytes");
    }
    address->kind = BOW__ADDRESS_UNIX;
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path + (abstract ? 1 : 0), name, len);
    address->sockaddr.len = (socklen_t)(PATH_OFFSET + len + 1);
    return 0;
}

/* A URI of gRPC's: unix:///absolute_path. */
static const char *unix_path(const char *name)
{
    return strncmp(name, "///", 3) == 0 ? name + 2 : name;
}

static int parse_fd(const char *text, const char *digits, struct bow__address *address,
                    struct bow__text *why)
{
    char *end = NULL;

    errno = 0;
    long fd = strtol(digits, &end, 10);
    if (digits[0] < '0' || digits[0] > '9' || *end != '\0' || errno != 0 || fd > INT_MAX) {
        return refuse(why, text, "the number of a descriptor must follow \"fd:\"");
    }
    address->kind = BOW__ADDRESS_FD;
    address->fd = (int)fd;
    return 0;
}

/* In lists a comma separates, and people see it in messages. */
static bool is_inproc_name(const char *name)
{
    for (const unsigned char *c = (const unsigned char *)name; *c != '\0'; c++) {
        if (*c <= ' ' || *c == ',' || *c >= 0x7F) {
            return false;
        }
    }
    return true;
}

static int parse_inproc(const char *text, const char *name, struct bow__address *address,
                        struct bow__text *why)
{
    size_t len = strlen(name);

    if (len == 0) {
        return refuse(why, text, "a name must follow the colon");
    }
    if (len > INPROC_NAME_BYTES) {
        return refuse(why, text, "the name of an inproc address has at most 100 bytes");
    }
    if (!is_inproc_name(name)) {
        return refuse(why, text,
                      "the name of an inproc address is printable ASCII without blanks and commas");
    }
    address->kind = BOW__ADDRESS_INPROC;
    address->sockaddr.storage.ss_family = AF_UNSPEC;
    memcpy((char *)&address->sockaddr.storage + INPROC_OFFSET, name, len + 1);
    address->sockaddr.len = (socklen_t)(INPROC_OFFSET + len + 1);
    return 0;
}

static int parse_port(const char *digits, uint16_t *ret_port)
{
    uint32_t port = 0;

    if (*digits == '\0') {
        return -EINVAL;
    }
    for (const char *c = digits; *c != '\0'; c++) {
        if (*c < '0' || *c > '9') {
            return -EINVAL;
        }
        port = port * 10 + (uint32_t)(*c - '0');
        if (port > UINT16_MAX) {
            return -EINVAL;
        }
    }
    *ret_port = (uint16_t)port;
    return 0;
}

static bool set_v4(struct bow__address *address)
{
    struct sockaddr_in *in = (struct sockaddr_in *)(void *)&address->sockaddr.storage;

    if (inet_pton(AF_INET, address->host, &in->sin_addr) != 1) {
        return false;
    }
    in->sin_family = AF_INET;
    in->sin_port = htons(address->port);
    address->sockaddr.len = sizeof(*in);
    address->kind = BOW__ADDRESS_NUMERIC;
    return true;
}

static bool set_v6(struct bow__address *address)
{
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)&address->sockaddr.storage;

    if (inet_pton(AF_INET6, address->host, &in6->sin6_addr) != 1) {
        return false;
    }
    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(address->port);
    address->sockaddr.len = sizeof(*in6);
    address->kind = BOW__ADDRESS_NUMERIC;
    return true;
}

/* Split at the colon before the port; brackets around an IPv6 address are left out of the host. */
static int split(const char *text, const char *host, struct bow__address *address,
                 bool *ret_bracketed, struct bow__text *why)
{
    const char *colon = strrchr(host, ':');

    if (colon == NULL) {
        return refuse(why, text, "no port: write HOST:PORT");
    }
    size_t len = (size_t)(colon - host);
    *ret_bracketed = host[0] == '[';
    if (*ret_bracketed) {
        if (len < 2 || colon[-1] != ']') {
            return refuse(why, text, "write [ADDRESS]:PORT");
        }
        host++;
        len -= 2;
    }
    if (len == 0) {
        return refuse(why, text, "no host before the port; \"*\" means every local address");
    }
    if (len >= sizeof(address->host)) {
        return refuse(why, text, "the host's name is too long");
    }
    if (parse_port(colon + 1, &address->port) < 0) {
        return refuse(why, text, "the port must be a number from 0 to 65535");
    }
    memcpy(address->host, host, len);
    return 0;
}

static bool is_name(const char *host)
{
    for (const unsigned char *c = (const unsigned char *)host; *c != '\0'; c++) {
        if (*c <= ' ' || *c == 0x7F || strchr("[]/\\:,*\"'", *c) != NULL) {
            return false;
        }
    }
    return true;
}

static int parse_inet(const char *text, const char *rest, struct bow__address *address,
                      struct bow__text *why)
{
    bool bracketed = false;

    int rc = split(text, rest, address, &bracketed, why);
    if (rc < 0) {
        return rc;
    }
    if (bracketed) {
        if (set_v6(address)) {
            return 0;
        }
        /* With a zone ("fe80::1%eth0") only the resolver can tell the interface's number. */
        if (strchr(address->host, '%') == NULL) {
            return refuse(why, text, "what is in brackets must be an IPv6 address");
        }
        address->kind = BOW__ADDRESS_NAME;
        return 0;
    }
    if (strcmp(address->host, "*") == 0) {
        address->kind = BOW__ADDRESS_ANY;
        return 0;
    }
    if (strchr(address->host, ':') != NULL) {
        return refuse(why, text, "write an IPv6 address in brackets: [ADDRESS]:PORT");
    }
    if (set_v4(address)) {
        return 0;
    }
    if (!is_name(address->host)) {
        return refuse(why, text, "this is no host name");
    }
    address->kind = BOW__ADDRESS_NAME;
    return 0;
}

/* Schemes */

/* "dns:53" is a host of that name, and its port. */
static bool has_scheme(const char *text, const char *scheme)
{
    size_t len = strlen(scheme);

    if (strncasecmp(text, scheme, len) != 0) {
        return false;
    }
    const char *behind = text + len + strspn(text + len, "0123456789");
    return *behind != '\0' && *behind != ',';
}

/* Those of gRPC's naming (https://github.com/grpc/grpc/blob/master/doc/naming.md)
 * that say what HOST:PORT says as well. */
static const char *const plain_schemes[] = {"dns:", "ipv4:", "ipv6:", "passthrough:"};

const char *bow__address_scheme(const char *text, size_t *ret_len)
{
    for (size_t i = 0; i < sizeof(plain_schemes) / sizeof(plain_schemes[0]); i++) {
        size_t len = strlen(plain_schemes[i]);
        if (has_scheme(text, plain_schemes[i])) {
            *ret_len = len + (strncmp(text + len, "///", 3) == 0 ? 3 : 0);
            return plain_schemes[i];
        }
    }
    *ret_len = 0;
    return NULL;
}

#define WRITE_TLS                                                                                  \
    "TLS is no part of an address: write HOST:PORT (a client of gRPC: grpc:HOST:PORT), and set "   \
    "options.security"

/* What people write who come from elsewhere, and what to write here. */
static const struct {
    const char *scheme;
    const char *advice;
} foreign_schemes[] = {
    {"https:", WRITE_TLS},
    {"grpcs:", WRITE_TLS},
    {"tls:", WRITE_TLS},
    {"ssl:", WRITE_TLS},
    {"http:", "this is a URL: write HOST:PORT alone (a client of gRPC: grpc:HOST:PORT)"},
    {"vsock:", "there are no sockets of that kind here: write HOST:PORT or unix:PATH"},
    {"xds:", "there is no xDS here: write the addresses, a client several as list:ADDRESS,ADDRESS"},
    {"tcp:", "write HOST:PORT alone"},
};

/* NULL: it is not for its scheme that the address is none. */
static const char *advise_on_scheme(const char *text)
{
    for (size_t i = 0; i < sizeof(foreign_schemes) / sizeof(foreign_schemes[0]); i++) {
        if (has_scheme(text, foreign_schemes[i].scheme)) {
            return foreign_schemes[i].advice;
        }
    }
    return strstr(text, "://") != NULL ? "this is a URL: write HOST:PORT alone" : NULL;
}

static int check_family(const char *text, const char *scheme, const struct bow__address *address,
                        bool is_v6, struct bow__text *why)
{
    if (strcmp(scheme, "ipv4:") == 0 && (address->kind != BOW__ADDRESS_NUMERIC || is_v6)) {
        return refuse(why, text, "an IPv4 address must follow \"ipv4:\", as ipv4:192.0.2.1:443");
    }
    if (strcmp(scheme, "ipv6:") == 0 && !is_v6) {
        return refuse(why, text,
                      "an IPv6 address must follow \"ipv6:\", as ipv6:[2001:db8::1]:443");
    }
    return 0;
}

static int parse_host(const char *text, struct bow__address *address, struct bow__text *why)
{
    size_t n_scheme = 0;
    const char *scheme = bow__address_scheme(text, &n_scheme);

    if (scheme != NULL && strncmp(text + n_scheme, "//", 2) == 0) {
        return refuse(why, text,
                      "which name server is asked is the system's to say: write dns:///HOST:PORT");
    }
    const char *advice = scheme == NULL ? advise_on_scheme(text) : NULL;
    if (advice != NULL) {
        return refuse(why, text, advice);
    }
    int rc = parse_inet(text, text + n_scheme, address, why);
    bool is_v6 = text[n_scheme] == '['; /* in brackets there is nothing else */
    return rc == 0 && scheme != NULL ? check_family(text, scheme, address, is_v6, why) : rc;
}

int bow__address_parse(const char *text, struct bow__address *ret_address, struct bow__text *why)
{
    struct bow__address address = {.kind = BOW__ADDRESS_NAME};
    int rc;

    if (text == NULL) {
        bow__text_printf(why, "no address given");
        return -EINVAL;
    }
    if (strncmp(text, ABSTRACT_PREFIX, strlen(ABSTRACT_PREFIX)) == 0) {
        rc = parse_unix(text, text + strlen(ABSTRACT_PREFIX), true, &address, why);
    } else if (strncmp(text, FD_PREFIX, strlen(FD_PREFIX)) == 0) {
        rc = parse_fd(text, text + strlen(FD_PREFIX), &address, why);
    } else if (strncmp(text, INPROC_PREFIX, strlen(INPROC_PREFIX)) == 0) {
        rc = parse_inproc(text, text + strlen(INPROC_PREFIX), &address, why);
    } else if (strncmp(text, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0) {
        rc = parse_unix(text, unix_path(text + strlen(UNIX_PREFIX)), false, &address, why);
    } else {
        rc = parse_host(text, &address, why);
    }
    if (rc == 0) {
        *ret_address = address;
    }
    return rc;
}

static void format_unix(const struct bow_sockaddr *address, char *text)
{
    const struct sockaddr_un *un = (const struct sockaddr_un *)(const void *)&address->storage;
    size_t len = address->len > PATH_OFFSET ? address->len - PATH_OFFSET : 0;
    bool abstract = len > 1 && un->sun_path[0] == '\0';
    const char *name = abstract ? un->sun_path + 1 : un->sun_path;
    struct bow__text shown;

    len = abstract ? len - 1 : strnlen(name, len);
    bow__text_clear(&shown);
    bow__text_escape(&shown, (struct bow_slice){(const uint8_t *)name, len}, len);
    /* Escapes may make it longer than there is room for. */
    snprintf(text, BOW__ADDRESS_TEXT_BYTES, "%s%.*s", abstract ? ABSTRACT_PREFIX : UNIX_PREFIX,
             (int)sizeof(un->sun_path), shown.bytes);
}

/* RFC 4007, section 11: "%eth0", or the number of an interface that has gone; "" without a zone. */
static void format_zone(uint32_t scope_id, char zone[ZONE_BYTES])
{
    char name[IF_NAMESIZE];

    zone[0] = '\0';
    if (scope_id == 0) {
        return;
    }
    if (if_indextoname(scope_id, name) != NULL) {
        snprintf(zone, ZONE_BYTES, "%%%s", name);
    } else {
        snprintf(zone, ZONE_BYTES, "%%%u", scope_id);
    }
}

void bow__address_format(const struct bow_sockaddr *address, char text[BOW__ADDRESS_TEXT_BYTES])
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)&address->storage;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)&address->storage;
    char host[INET6_ADDRSTRLEN] = "?";
    char zone[ZONE_BYTES];

    if (bow__address_inproc_name(address) != NULL) {
        snprintf(text, BOW__ADDRESS_TEXT_BYTES, INPROC_PREFIX "%.*s", INPROC_NAME_BYTES,
                 bow__address_inproc_name(address));
        return;
    }
    switch (address->storage.ss_family) {
    case AF_INET:
        inet_ntop(AF_INET, &in->sin_addr, host, sizeof(host));
        snprintf(text, BOW__ADDRESS_TEXT_BYTES, "%s:%u", host, ntohs(in->sin_port));
        return;
    case AF_INET6:
        inet_ntop(AF_INET6, &in6->sin6_addr, host, sizeof(host));
        format_zone(in6->sin6_scope_id, zone);
        snprintf(text, BOW__ADDRESS_TEXT_BYTES, "[%s%s]:%u", host, zone, ntohs(in6->sin6_port));
        return;
    case AF_UNIX:
        format_unix(address, text);
        return;
    default:
        snprintf(text, BOW__ADDRESS_TEXT_BYTES, "unknown");
    }
}

void bow__sockaddr_set_port(struct bow_sockaddr *address, uint16_t port)
{
    struct sockaddr_in *in = (struct sockaddr_in *)(void *)&address->storage;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)&address->storage;

    if (in->sin_family == AF_INET) {
        in->sin_port = htons(port);
    } else if (in6->sin6_family == AF_INET6) {
        in6->sin6_port = htons(port);
    }
}

/* The number of an interface, or its name; 0: there is none such. */
static uint32_t parse_zone(const char *zone)
{
    char *end = NULL;
    unsigned long number = strtoul(zone, &end, 10);

    if (*zone >= '0' && *zone <= '9' && *end == '\0') {
        return number <= UINT32_MAX ? (uint32_t)number : 0;
    }
    return if_nametoindex(zone);
}

int bow__sockaddr_parse_ip(const char *text, struct bow_sockaddr *ret_address)
{
    struct bow__address address = {.kind = BOW__ADDRESS_NAME};
    const char *zone = strchr(text, '%');
    size_t len = zone != NULL ? (size_t)(zone - text) : strlen(text);

    if (len >= sizeof(address.host)) {
        return -EINVAL;
    }
    memcpy(address.host, text, len);
    if (!set_v6(&address) && (zone != NULL || !set_v4(&address))) {
        return -EINVAL;
    }
    if (zone != NULL) {
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)&address.sockaddr.storage;
        in6->sin6_scope_id = parse_zone(zone + 1);
        if (in6->sin6_scope_id == 0) {
            return -EINVAL;
        }
    }
    *ret_address = address.sockaddr;
    return 0;
}

const char *bow__address_unix_path(const struct bow_sockaddr *address)
{
    const struct sockaddr_un *un = (const struct sockaddr_un *)(const void *)&address->storage;

    if (un->sun_family != AF_UNIX || un->sun_path[0] == '\0') {
        return NULL;
    }
    return un->sun_path;
}

const char *bow__address_inproc_name(const struct bow_sockaddr *address)
{
    const char *name = (const char *)&address->storage + INPROC_OFFSET;

    if (address->storage.ss_family != AF_UNSPEC || address->len <= INPROC_OFFSET) {
        return NULL;
    }
    return name[0] != '\0' ? name : NULL;
}

bool bow__address_is_hostless(const char *text)
{
    return strncmp(text, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0 ||
           strncmp(text, ABSTRACT_PREFIX, strlen(ABSTRACT_PREFIX)) == 0 ||
           strncmp(text, INPROC_PREFIX, strlen(INPROC_PREFIX)) == 0;
}

static bool is_loopback(const struct bow_sockaddr *address)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)&address->storage;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)&address->storage;

    if (in->sin_family == AF_INET) {
        return (ntohl(in->sin_addr.s_addr) >> 24) == 127;
    }
    return IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr) ||
           (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr) && in6->sin6_addr.s6_addr[12] == 127);
}

static int is_local_socket(int fd)
{
    struct bow_sockaddr bound = {.len = sizeof(bound.storage)};

    if (getsockname(fd, (struct sockaddr *)&bound.storage, &bound.len) < 0) {
        return -errno;
    }
    bool is_ip = bound.storage.ss_family == AF_INET || bound.storage.ss_family == AF_INET6;
    return bound.storage.ss_family == AF_UNIX || (is_ip && is_loopback(&bound)) ? 1 : 0;
}

int bow_address_is_local(const char *text)
{
    struct bow__address address;
    struct bow__text why;

    bow__text_clear(&why);
    int rc = bow__address_parse(text, &address, &why);
    if (rc < 0) {
        return rc;
    }
    switch (address.kind) {
    case BOW__ADDRESS_NUMERIC:
        return is_loopback(&address.sockaddr) ? 1 : 0;
    case BOW__ADDRESS_NAME:
        return strcasecmp(address.host, "localhost") == 0 ? 1 : 0;
    case BOW__ADDRESS_ANY:
        return 0;
    case BOW__ADDRESS_UNIX:
    case BOW__ADDRESS_INPROC:
        return 1;
    case BOW__ADDRESS_FD:
        return is_local_socket(address.fd);
    }
    return 0;
}
