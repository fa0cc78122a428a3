/* SPDX-License-Identifier: 0BSD */
#ifndef BOWLINE_EXAMPLES_GOBGP_PATH_H
#define BOWLINE_EXAMPLES_GOBGP_PATH_H

/*
 * A path to an IPv4 prefix, as GoBGP's API has it. What it is made of is packed: an Any has a
 * message's name and its bytes, so that the API need not know all kinds of attributes there are.
 *
 *     10.1.0.0/16, 192.0.2.1 ──► path_init ──► AddPath        ListPath ──► path_print
 */

#include "gobgp.pb-c.h"

#define PATH_PACKED_BYTES 32u   /* more than a prefix or an address takes */
#define PATH_TYPE_URL_BYTES 64u /* more than the longest name of attribute.proto does */

/** A message, packed. Its `any` points into it. */
struct path_packed {
    Apipb__Any any;
    char type_url[PATH_TYPE_URL_BYTES];
    uint8_t bytes[PATH_PACKED_BYTES];
};

/** A path with all that it points to: it is not to be moved. */
struct path {
    Apipb__Path path; /* to be sent */
    Apipb__Family family;
    struct path_packed prefix;
    struct path_packed origin;
    struct path_packed next_hop;
    Apipb__Any *attributes[2];
};

/** The family of all paths here. */
Apipb__Family path_family(void);

/** Make a path to `prefix` ("10.1.0.0/16") by way of `next_hop` ("192.0.2.1"), which are borrowed.
 * Returns: 0, or -EINVAL when they are no such texts. */
int path_init(struct path *path, const char *prefix, const char *next_hop);

/** Write a path to `prefix` to standard output, a line. */
void path_print(const char *prefix, const Apipb__Path *path);

#endif
