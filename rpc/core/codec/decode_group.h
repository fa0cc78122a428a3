/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CODEC_DECODE_GROUP_H
#define BOWLINE_RPC_CORE_CODEC_DECODE_GROUP_H

/*
 * Where a message ends that is under way: one with a length by its bytes, a group by its end tag.
 */

#include "rpc/core/codec/decoder.h"

/** An end tag of `number` came, and `at` follows it: the top message is left if it is that group.
 * Returns `at`, or NULL. */
const uint8_t *bow__decode_end_group(struct bow__decoder *d, uint32_t number, const uint8_t *at);

/** The bytes of the top message end at `at`; whoever calls leaves its frame. Returns `at`, or NULL
 * when it is a group, or could not be completed. */
const uint8_t *bow__decode_leave(struct bow__decoder *d, const uint8_t *at);

#endif
