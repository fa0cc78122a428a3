/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_ADDRESS_ADDRESS_H
#define BOWLINE_TRANSPORT_ADDRESS_ADDRESS_H

/*
 * Addresses as people write them: parsed into what can be bound or connected to, and
 * formatted back. Knows nothing of descriptors, and resolves nothing.
 *
 *     127.0.0.1:80   [::1]:80   example.org:80   *:80   unix:/run/x   unix-abstract:name   fd:3
 *     inproc:name
 *
 * and with a scheme of gRPC's in front of what it names: dns:///example.org:80, ipv6:[::1]:80.
 */

#include "base/text.h"

#include <bowline/system.h>
#include <stdbool.h>

#define BOW__HOST_BYTES 256 /* a DNS name has at most 253 */

/** Enough for "unix-abstract:" and a whole sun_path, and for any IPv6 address with its port. */
#define BOW__ADDRESS_TEXT_BYTES 128

enum bow__address_kind {
    BOW__ADDRESS_NUMERIC, /* `sockaddr` is set */
    BOW__ADDRESS_NAME,    /* `host` has to be resolved */
    BOW__ADDRESS_ANY,     /* "*": every local address */
    BOW__ADDRESS_UNIX,    /* `sockaddr` is set; a path or an abstract name */
    BOW__ADDRESS_FD,      /* `fd`: a socket that was inherited */
    BOW__ADDRESS_INPROC,  /* a name within the context, in `sockaddr` */
};

struct bow__address {
    enum bow__address_kind kind;
    uint16_t port;
    int fd;
    char host[BOW__HOST_BYTES];
    struct bow_sockaddr sockaddr;
};

/** Parse `text`. Returns 0, or -EINVAL with the reason, a sentence, appended to `why`. */
int bow__address_parse(const char *text, struct bow__address *ret_address, struct bow__text *why);

/** The scheme of gRPC's naming that `text` begins with and that says nothing which the rest does
 * not say, as "dns:" of dns:///HOST:PORT, with the length that is to be skipped; NULL: none. */
const char *bow__address_scheme(const char *text, size_t *ret_len);

/** "127.0.0.1:80", "[::1]:80", "inproc:name", "unix:/run/x", "unix-abstract:name", "unix:" for a
 * nameless one. */
void bow__address_format(const struct bow_sockaddr *address, char text[BOW__ADDRESS_TEXT_BYTES]);

/** Of an address of IP. */
void bow__sockaddr_set_port(struct bow_sockaddr *address, uint16_t port);

/** An address of IP alone, without a port: "192.0.2.1", "2001:db8::1", "fe80::1%eth0". Returns 0 or
 * -EINVAL. */
int bow__sockaddr_parse_ip(const char *text, struct bow_sockaddr *ret_address);

/** The path in the file system that `address` names, or NULL. */
const char *bow__address_unix_path(const struct bow_sockaddr *address);

/** The name of an end within the process, or NULL. No kernel knows such an address. */
const char *bow__address_inproc_name(const struct bow_sockaddr *address);

/** Whether `text`, which can be parsed, names no host: a Unix socket, or inproc. */
bool bow__address_is_hostless(const char *text);

#endif
