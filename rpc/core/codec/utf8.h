/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CODEC_UTF8_H
#define BOWLINE_RPC_CORE_CODEC_UTF8_H

/*
 * UTF-8 as RFC 3629 has it: no overlong forms, no surrogates, nothing above
 * U+10FFFF. Fast where text is mostly ASCII.
 */

#include "base/shared.h"
#include <bowline/slice.h>
#include <stdbool.h>

/**
 * How many bytes at the front of `bytes` are whole, valid characters: `len` when
 * all of it is UTF-8, else the offset of the first character that is not. Unless
 * `allow_nul`, a NUL counts as not valid.
 */
BOW__SHARED size_t bow__utf8_prefix(struct bow_slice bytes, bool allow_nul);

/**
 * Copy `len` bytes to `to`. Returns whether all of them are plain: ASCII and not
 * NUL. When false, the bytes are copied all the same and need bow__utf8_prefix().
 */
bool bow__utf8_copy(uint8_t *to, const uint8_t *from, size_t len);

#endif
