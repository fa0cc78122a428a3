/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_COMPRESSION_COMPRESS_GZIP_H
#define BOWLINE_RPC_CORE_COMPRESSION_COMPRESS_GZIP_H

/*
 * gzip (RFC 1952).
 */

#include "rpc/core/compression/coder.h"

extern const struct bow__coder bow__gzip_coder;

#endif
