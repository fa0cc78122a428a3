/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * "dns:" in a build without c-ares: refused, with what to do.
 */

#include "rpc/client/resolve/dns.h"
#include "rpc/client/resolve/dns_name.h"

#include <errno.h>

static int check(const char *name, struct bow__text *why)
{
    (void)name;
    bow__text_printf(why,
                     "this build of the library looks up no names by itself, for it is without "
                     "c-ares (libc-ares-dev, meson's option dns): write HOST:PORT, which the "
                     "system looks up for each attempt to connect");
    return -EINVAL;
}

const struct bow__scheme bow__scheme_dns = {
    .table = {.size = sizeof(struct bow_resolver), .scheme = "dns"},
    .check = check,
    .resolves = bow__dns_name_resolves,
    .names_host = true,
};
