/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_RESOLVE_DNS_H
#define BOWLINE_RPC_CLIENT_RESOLVE_DNS_H

/*
 * "dns:" names: HOST[:PORT][?srv], or //SERVER/ in front of that for who is to be asked. In a build
 * without c-ares there are none.
 */

#include "rpc/client/resolve/scheme.h"

extern const struct bow__scheme bow__scheme_dns;

#endif
