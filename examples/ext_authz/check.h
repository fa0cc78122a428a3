/* SPDX-License-Identifier: 0BSD */
#ifndef BOWLINE_EXAMPLES_EXT_AUTHZ_CHECK_H
#define BOWLINE_EXAMPLES_EXT_AUTHZ_CHECK_H

/*
 * Whether a request may pass, in Envoy's words.
 *
 *     no x-api-key, or one that nobody has     401, www-authenticate
 *     a key that does not open the path        403, x-client-name
 *     else                                     on to the upstream, with x-client-name instead of
 *                                              x-api-key
 *
 * Both denials have a body that says why.
 */

#include "external_auth.bow.h"
#include "keys.h"

/** Answer `call`. */
void check(struct bow_call *call, const Envoy__Service__Auth__V3__CheckRequest *request,
           const struct keys *keys);

#endif
