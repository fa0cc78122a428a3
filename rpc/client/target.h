/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_TARGET_H
#define BOWLINE_RPC_CLIENT_TARGET_H

/*
 * What a client's target names: a protocol, and the addresses of servers or who is to be asked for
 * them.
 *
 *     [grpc:]ADDRESS     [grpc:]list:ADDRESS,ADDRESS,…     [grpc:]SCHEME:///NAME
 *
 * An address is one of <transport/address/address.h>'s; a list has at most BOW_LIMIT_LIST_ADDRESSES
 * of them, none with a comma in it. Which schemes there are is resolve/scheme.h's to say. Constant
 * once made. Resolves and connects nothing.
 */

#include "base/text.h"
#include "rpc/client/resolve/scheme.h"
#include <bowline/client.h>

struct bow__target_address {
    char *text;        /* to connect to */
    char *server_name; /* whom the server must prove to be, with security; without a zone */
    char *authority;   /* whom HTTP/2 asks for; without a zone */
    char *locality;    /* as a resolver says; NULL: not said */
    uint32_t weight;   /* likewise; 1 */
};

struct bow__target {
    char *text; /* as it was given */
    bool http2;
    uint32_t n_addresses; /* 0: a resolver says */
    struct bow__target_address *addresses;
    const struct bow_resolver *resolver; /* NULL: `addresses` are all there is */
    const char *name;                    /* what it is asked for; in `text` */
    char *server_name;       /* of addresses that name none; NULL: as each of them says itself */
    char *authority;         /* of all of them; NULL: likewise */
    struct bow_resolver own; /* `resolver`, of the library's own schemes; with what follows */
    struct bow__scheme_options own_options;
    char *dns_servers;
};

/** Fill options->error with why there is no client for the target. Returns `rc`. */
int bow__target_refuse(const struct bow_client_options *options, int rc, const char *reason);

/** Whether options->target can be had with these options. Returns as bow_client_new(), with
 * options->error filled. */
int bow__target_check(const struct bow_client_options *options);

/** Make one of options->target, which was checked. Returns 0 or -ENOMEM. */
int bow__target_init(struct bow__target *target, struct bow_context *context,
                     const struct bow_client_options *options);
/** Takes zeroed memory, and what a failed init has left. */
void bow__target_fini(struct bow__target *target, struct bow_context *context);

/** Of what a resolver has said of the target. Returns 0 or -ENOMEM. */
int bow__target_address_init(struct bow__target_address *address, struct bow_context *context,
                             const struct bow__target *target,
                             const struct bow_resolver_address *said);
void bow__target_address_fini(struct bow__target_address *address, struct bow_context *context);

/** Whether it may have several addresses. */
static inline bool bow__target_is_list(const struct bow__target *target)
{
    return target->n_addresses != 1;
}

/** Append what stands for the target in a sentence: its first address, and how many others; or the
 * target as it was given. */
void bow__target_describe(const struct bow__target *target, struct bow__text *text);

#endif
