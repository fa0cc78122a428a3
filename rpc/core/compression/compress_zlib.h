/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_COMPRESSION_COMPRESS_ZLIB_H
#define BOWLINE_RPC_CORE_COMPRESSION_COMPRESS_ZLIB_H

/*
 * gzip (RFC 1952), and deflate as HTTP and gRPC mean it: the zlib format (RFC 1950).
 */

#include "rpc/core/compression/coder.h"

extern const struct bow__coder bow__gzip_coder;
extern const struct bow__coder bow__deflate_coder;

#endif
