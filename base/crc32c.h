/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_CRC32C_H
#define BOWLINE_BASE_CRC32C_H

/* The checksum CRC-32C (Castagnoli), as of RFC 3720, appendix B.4. */

#include <stddef.h>
#include <stdint.h>

/** The checksum of what `crc` is of, followed by `bytes`; that of nothing is 0. */
uint32_t bow__crc32c(uint32_t crc, const void *bytes, size_t len);

#endif
