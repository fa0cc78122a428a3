/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_HANDLERS_PROXY_HEADER_H
#define BOWLINE_TRANSPORT_HANDLERS_PROXY_HEADER_H

/*
 * The header of the PROXY protocol as bytes.
 *
 *     1: "PROXY TCP4 198.51.100.7 203.0.113.1 56324 443\r\n"      at most 107 bytes
 *     2: signature 12 | version 4 bits, command 4 | family 4, transport 4 | length u16 |
 *        source address | destination address | ports | extensions (type u8, length u16, bytes)
 */

#include <bowline/slice.h>
#include <bowline/system.h>
#include <stdbool.h>

struct bow__proxy_header {
    size_t len;                 /* bytes of the header */
    bool has_addresses;         /* not: the proxy speaks for itself, or could not tell */
    struct bow_sockaddr source; /* the client */
    struct bow_sockaddr destination;
};

/**
 * Parse the header at the front of `bytes`; one of version 2 has at most `max_bytes`. Never reads
 * beyond `bytes`.
 *
 * Returns 0; -EAGAIN when it is not all there; -EMSGSIZE or -EBADMSG with a text that lives for
 * ever in `*ret_reason`.
 */
int bow__proxy_header_parse(struct bow_slice bytes, size_t max_bytes,
                            struct bow__proxy_header *ret_header, const char **ret_reason);

#endif
