/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_BASE64_H
#define BOWLINE_BASE_BASE64_H

/* Base64 (RFC 4648), for JSON, for header values and for bodies that are texts. */

#include <bowline/slice.h>
#include <stddef.h>
#include <stdint.h>

/** Characters that bow__base64_encode() writes for `n` bytes. */
static inline size_t bow__base64_size(size_t n)
{
    return n / 3 * 4 + (n % 3 > 0 ? n % 3 + 1 : 0);
}

/** Write `bytes` in the standard alphabet, without padding. Returns the length. */
size_t bow__base64_encode(struct bow_slice bytes, char *out);

/** The same with padding: 4 characters for each 3 bytes begun. */
size_t bow__base64_encode_padded(struct bow_slice bytes, char *out);

/** Bytes that `len` characters have at most. */
static inline size_t bow__base64_bytes(size_t len)
{
    return len / 4 * 3 + len % 4;
}

/**
 * Read either alphabet, with padding or without, into `out` (bow__base64_bytes() of the length),
 * which may be where the text is. Returns 0, or -EBADMSG, and then what is in `out` is of no use.
 */
int bow__base64_decode(struct bow_slice text, uint8_t *out, size_t *ret_len);

#endif
