/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Parsing both versions of the PROXY protocol's header. A length is checked before
 * anything is done with it; of the extensions the checksum is verified, the others are
 * skipped, but must fit.
 */

#include "transport/handlers/proxy_header.h"

#include "base/crc32c.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/un.h>

#define V1_PREFIX "PROXY "
#define V1_MAX_BYTES 107
#define V2_SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define V2_SIGNATURE_BYTES 12
#define V2_FIXED_BYTES 16
#define V2_UNIX_BYTES 108
#define V2_EXTENSION_BYTES 3
#define V2_CHECKSUM 3 /* the type of this extension, */
#define V2_CHECKSUM_BYTES 4

enum { FAMILY_NONE = 0, FAMILY_INET = 1, FAMILY_INET6 = 2, FAMILY_UNIX = 3 };

static int refuse(int error, const char *reason, const char **ret_reason)
{
    *ret_reason = reason;
    return error;
}

static void set_inet(struct bow_sockaddr *address, const void *bytes, uint16_t port)
{
    struct sockaddr_in *in = (struct sockaddr_in *)(void *)&address->storage;

    in->sin_family = AF_INET;
    in->sin_port = htons(port);
    memcpy(&in->sin_addr, bytes, 4);
    address->len = sizeof(*in);
}

static void set_inet6(struct bow_sockaddr *address, const void *bytes, uint16_t port)
{
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)&address->storage;

    in6->sin6_family = AF_INET6;
    in6->sin6_port = htons(port);
    memcpy(&in6->sin6_addr, bytes, 16);
    address->len = sizeof(*in6);
}

/* Version 1 */

/* Cut the next word off the line; words are separated by one space. */
static bool next_word(struct bow_slice *line, char *word, size_t size)
{
    const uint8_t *space = line->len > 0 ? memchr(line->data, ' ', line->len) : NULL;
    size_t len = space != NULL ? (size_t)(space - line->data) : line->len;

    if (len == 0 || len >= size || memchr(line->data, '\0', len) != NULL) {
        return false;
    }
    memcpy(word, line->data, len);
    word[len] = '\0';
    size_t cut = space != NULL ? len + 1 : len;
    line->data += cut;
    line->len -= cut;
    return true;
}

static bool read_port(struct bow_slice *line, uint16_t *ret_port)
{
    char word[6];
    uint32_t port = 0;

    if (!next_word(line, word, sizeof(word)) || (word[0] == '0' && word[1] != '\0')) {
        return false;
    }
    for (const char *c = word; *c != '\0'; c++) {
        if (*c < '0' || *c > '9') {
            return false;
        }
        port = port * 10 + (uint32_t)(*c - '0');
    }
    *ret_port = (uint16_t)port;
    return port <= UINT16_MAX;
}

static bool read_address(struct bow_slice *line, int family, uint8_t bytes[16])
{
    char word[INET6_ADDRSTRLEN];

    return next_word(line, word, sizeof(word)) && inet_pton(family, word, bytes) == 1;
}

/* The four words behind the family. A space at the end would begin a fifth. */
static bool read_addresses(struct bow_slice line, int family, struct bow__proxy_header *header)
{
    void (*set)(struct bow_sockaddr *, const void *, uint16_t) =
        family == AF_INET ? set_inet : set_inet6;
    uint8_t source[16];
    uint8_t destination[16];
    uint16_t source_port = 0;
    uint16_t destination_port = 0;

    if (line.data[line.len - 1] == ' ' || !read_address(&line, family, source) ||
        !read_address(&line, family, destination) || !read_port(&line, &source_port) ||
        !read_port(&line, &destination_port) || line.len > 0) {
        return false;
    }
    set(&header->source, source, source_port);
    set(&header->destination, destination, destination_port);
    header->has_addresses = true;
    return true;
}

static int parse_line(struct bow_slice line, struct bow__proxy_header *header,
                      const char **ret_reason)
{
    char word[8];

    if (!next_word(&line, word, sizeof(word))) {
        return refuse(-EBADMSG, "version 1: no family", ret_reason);
    }
    if (strcmp(word, "UNKNOWN") == 0) {
        return 0; /* whatever follows says nothing */
    }
    bool is_inet = strcmp(word, "TCP4") == 0;
    if (!is_inet && strcmp(word, "TCP6") != 0) {
        return refuse(-EBADMSG, "version 1: the family is not TCP4, TCP6 or UNKNOWN", ret_reason);
    }
    if (line.len == 0 || !read_addresses(line, is_inet ? AF_INET : AF_INET6, header)) {
        return refuse(-EBADMSG, "version 1: not two addresses and two ports", ret_reason);
    }
    return 0;
}

static int parse_v1(struct bow_slice bytes, struct bow__proxy_header *header,
                    const char **ret_reason)
{
    const size_t prefix = strlen(V1_PREFIX);
    size_t max = bytes.len < V1_MAX_BYTES ? bytes.len : V1_MAX_BYTES;

    const uint8_t *end = memchr(bytes.data, '\n', max);
    if (end == NULL && max < V1_MAX_BYTES) {
        return -EAGAIN;
    }
    if (end == NULL) {
        return refuse(-EMSGSIZE, "version 1: no end of line in 107 bytes", ret_reason);
    }
    header->len = (size_t)(end - bytes.data) + 1;
    if (header->len < prefix + 2 || end[-1] != '\r') {
        return refuse(-EBADMSG, "version 1: the line does not end with CR LF", ret_reason);
    }
    return parse_line((struct bow_slice){bytes.data + prefix, header->len - prefix - 2}, header,
                      ret_reason);
}

/* Version 2 */

static uint16_t read_u16(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

/* The field is filled up with NULs. An abstract name begins with one. */
static void set_unix(struct bow_sockaddr *address, const uint8_t *field)
{
    struct sockaddr_un *un = (struct sockaddr_un *)(void *)&address->storage;
    size_t len = V2_UNIX_BYTES;

    while (len > 0 && field[len - 1] == '\0') {
        len--;
    }
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, field, len);
    address->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
}

static size_t addresses_bytes(unsigned family)
{
    static const size_t sizes[] = {0, 12, 36, (size_t)2 * V2_UNIX_BYTES};
    return sizes[family];
}

static void set_addresses(const uint8_t *body, unsigned family, struct bow__proxy_header *header)
{
    header->has_addresses = true;
    switch (family) {
    case FAMILY_INET:
        set_inet(&header->source, body, read_u16(body + 8));
        set_inet(&header->destination, body + 4, read_u16(body + 10));
        return;
    case FAMILY_INET6:
        set_inet6(&header->source, body, read_u16(body + 32));
        set_inet6(&header->destination, body + 16, read_u16(body + 34));
        return;
    default:
        set_unix(&header->source, body);
        set_unix(&header->destination, body + V2_UNIX_BYTES);
    }
}

/* Over the whole header, with the bytes of the sum itself, at `at`, as zero. */
static bool is_sum_of(struct bow_slice header, size_t at)
{
    static const uint8_t zero[V2_CHECKSUM_BYTES];
    const uint8_t *sum = header.data + at;
    const size_t end = at + V2_CHECKSUM_BYTES;
    uint32_t claimed = (uint32_t)read_u16(sum) << 16 | read_u16(sum + 2);

    uint32_t crc = bow__crc32c(0, header.data, at);
    crc = bow__crc32c(crc, zero, sizeof(zero));
    return bow__crc32c(crc, header.data + end, header.len - end) == claimed;
}

static int check_extensions(struct bow_slice header, size_t at, const char **ret_reason)
{
    bool is_right = true;

    while (at < header.len) {
        size_t left = header.len - at;
        size_t len = left >= V2_EXTENSION_BYTES ? read_u16(header.data + at + 1) : left;
        if (len + V2_EXTENSION_BYTES > left) {
            return refuse(-EBADMSG, "version 2: an extension is longer than the header",
                          ret_reason);
        }
        if (header.data[at] == V2_CHECKSUM) {
            is_right =
                is_right && len == V2_CHECKSUM_BYTES && is_sum_of(header, at + V2_EXTENSION_BYTES);
        }
        at += V2_EXTENSION_BYTES + len;
    }
    return is_right ? 0 : refuse(-EBADMSG, "version 2: the checksum is wrong", ret_reason);
}

static int parse_body(struct bow_slice bytes, unsigned family, unsigned transport,
                      struct bow__proxy_header *header, const char **ret_reason)
{
    const size_t end = V2_FIXED_BYTES + addresses_bytes(family);

    if (bytes.len < end) {
        return refuse(-EBADMSG, "version 2: too short for its addresses", ret_reason);
    }
    /* With family or transport unknown, the layout of what follows is not known either. */
    if (family == FAMILY_NONE || transport == 0) {
        return 0;
    }
    int rc = check_extensions(bytes, end, ret_reason);
    if (rc == 0) {
        set_addresses(bytes.data + V2_FIXED_BYTES, family, header);
    }
    return rc;
}

static int parse_v2(struct bow_slice bytes, size_t max_bytes, struct bow__proxy_header *header,
                    const char **ret_reason)
{
    if (bytes.len < V2_FIXED_BYTES) {
        return -EAGAIN;
    }
    const unsigned version = bytes.data[12] >> 4;
    const unsigned command = bytes.data[12] & 15;
    const unsigned family = bytes.data[13] >> 4;
    const unsigned transport = bytes.data[13] & 15;
    if (version != 2 || command > 1) {
        return refuse(-EBADMSG, "version 2: unknown version or command", ret_reason);
    }
    if (family > FAMILY_UNIX || transport > 2) {
        return refuse(-EBADMSG, "version 2: unknown family or transport", ret_reason);
    }
    header->len = V2_FIXED_BYTES + (size_t)read_u16(bytes.data + 14);
    if (header->len > max_bytes) {
        return refuse(-EMSGSIZE, "version 2: longer than the limit", ret_reason);
    }
    if (bytes.len < header->len) {
        return -EAGAIN;
    }
    if (command == 0) {
        return 0; /* LOCAL: of the proxy itself, whatever else it holds */
    }
    return parse_body((struct bow_slice){bytes.data, header->len}, family, transport, header,
                      ret_reason);
}

static bool begins(struct bow_slice bytes, const char *with, size_t len)
{
    return memcmp(bytes.data, with, bytes.len < len ? bytes.len : len) == 0;
}

int bow__proxy_header_parse(struct bow_slice bytes, size_t max_bytes,
                            struct bow__proxy_header *ret_header, const char **ret_reason)
{
    struct bow__proxy_header header = {.len = 0};
    int rc;

    if (bytes.len == 0) {
        return -EAGAIN;
    }
    if (begins(bytes, V1_PREFIX, strlen(V1_PREFIX))) {
        rc = parse_v1(bytes, &header, ret_reason);
    } else if (begins(bytes, V2_SIGNATURE, V2_SIGNATURE_BYTES)) {
        rc = parse_v2(bytes, max_bytes, &header, ret_reason);
    } else {
        rc = refuse(-EBADMSG, "neither version 1 nor version 2", ret_reason);
    }
    if (rc == 0) {
        *ret_header = header;
    }
    return rc;
}
