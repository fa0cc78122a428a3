/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_JSON_BASE64_H
#define BOWLINE_RPC_JSON_BASE64_H

/* Base64 (RFC 4648). */

#include <bowline/slice.h>

/** Write `bytes` in the standard alphabet with padding: 4 characters for each 3 bytes begun.
 * Returns the first character after. */
char *bow__base64_write(char *to, struct bow_slice bytes);

/** Bytes that `len` characters have at most. */
static inline size_t bow__base64_bytes(size_t len)
{
    return len / 4 * 3 + len % 4;
}

/** Read either alphabet, with padding or without, to `to`, which may be where the text is. Returns
 * the number of bytes, or SIZE_MAX when the text is no base64. */
size_t bow__base64_read(uint8_t *to, struct bow_slice text);

#endif
