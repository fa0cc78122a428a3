/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CODEC_DECODE_UNKNOWN_H
#define BOWLINE_RPC_CORE_CODEC_DECODE_UNKNOWN_H

/*
 * Fields that a descriptor does not have.
 */

#include "rpc/core/codec/decoder.h"

/** Keep the field whose value is at `at`; of an end tag, which has none, leave the group that it
 * ends. Returns the first byte after it. */
const uint8_t *bow__decode_unknown(struct bow__decoder *d, uint32_t number, unsigned wire_type,
                                   const uint8_t *at);

#endif
