/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_RESOLVE_ADDRESS_LINES_H
#define BOWLINE_RPC_CLIENT_RESOLVE_ADDRESS_LINES_H

/*
 * Addresses as a file has them, one a line:
 *
 *     # the shop
 *     192.0.2.1:50051 weight=2 locality=zone-a
 *     unix:/run/shop
 *
 * Blanks around a line, empty lines and what stands behind a "#" that begins a word do not count.
 */

#include "base/text.h"
#include <bowline/context.h>
#include <bowline/resolver.h>

/**
 * Read `text`, which has a NUL at its end and is altered. `*ret_addresses` points into it; free it
 * with bow__free(), `*ret_n_room` of them.
 *
 * Returns 0; -EINVAL with the number of the first bad line, and what is wrong with it, appended to
 * `why`; -ENOMEM.
 */
int bow__address_lines_parse(struct bow_context *context, char *text,
                             struct bow_resolver_address **ret_addresses, size_t *ret_n,
                             size_t *ret_n_room, struct bow__text *why);

#endif
