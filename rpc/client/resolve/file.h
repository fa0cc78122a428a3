/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_RESOLVE_FILE_H
#define BOWLINE_RPC_CLIENT_RESOLVE_FILE_H

/*
 * "file:" names: a file of addresses (address_lines.h), read again as it changes.
 */

#include "rpc/client/resolve/scheme.h"

extern const struct bow__scheme bow__scheme_file;

#endif
