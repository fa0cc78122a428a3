/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_RESOLVE_SCHEME_H
#define BOWLINE_RPC_CLIENT_RESOLVE_SCHEME_H

/*
 * Which resolver a target is for: "SCHEME:NAME", "SCHEME:///NAME". Schemes of a program come before
 * the library's own, and addresses' before both. Knows no connections, and resolves nothing.
 */

#include "base/text.h"
#include <bowline/resolver.h>
#include <bowline/slice.h>

/** What the `user` of a table of the library's own points to. */
struct bow__scheme_options {
    const char *dns_servers; /* NULL: the system's */
    uint64_t dns_min_ttl_ns; /* 0: BOW_LIMIT_DNS_TTL_MIN_NS */
};

/** A scheme of the library's own. */
struct bow__scheme {
    struct bow_resolver table; /* without `user` */
    /** Whether `name` can be asked for. Returns 0, or -EINVAL with the reason appended. */
    int (*check)(const char *name, struct bow__text *why);
    /** Whether it has to be asked for `name`, which may say an address as it is; NULL: always. */
    bool (*resolves)(const char *name);
    bool names_host; /* its names begin with "HOST[:PORT]", or "//SERVER/HOST[:PORT]" */
};

/** The resolver of `text`, which is a target without "grpc:", and what it is to be asked for; NULL:
 * it is for none. `own`: the library's, up to a NULL; `*ret_own`: one of these, or NULL. */
const struct bow_resolver *bow__scheme_find(const struct bow__scheme *const *own,
                                            const struct bow_resolver *const *resolvers, size_t n,
                                            const char *text, const char **ret_name,
                                            const struct bow__scheme **ret_own);

/** Whether a program may have such tables. Returns 0, or -EINVAL with the reason appended. */
int bow__scheme_check_tables(const struct bow_resolver *const *resolvers, size_t n,
                             struct bow__text *why);

/** What stands in a name between "//SERVER/" and "?": "HOST:PORT" of "a.example:80?srv". */
struct bow_slice bow__scheme_authority(const char *name);
/** The host that such a text begins with, without its port, brackets and zone. */
struct bow_slice bow__scheme_host(struct bow_slice authority);

#endif
