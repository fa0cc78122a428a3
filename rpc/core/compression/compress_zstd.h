/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_COMPRESSION_COMPRESS_ZSTD_H
#define BOWLINE_RPC_CORE_COMPRESSION_COMPRESS_ZSTD_H

/*
 * zstd (RFC 8878).
 */

#include "rpc/core/compression/coder.h"

extern const struct bow__coder bow__zstd_coder;

#endif
