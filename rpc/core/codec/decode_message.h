/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CODEC_DECODE_MESSAGE_H
#define BOWLINE_RPC_CORE_CODEC_DECODE_MESSAGE_H

/*
 * The beginning and the end of each message.
 */

#include "rpc/core/codec/decoder.h"

/** A new message of `type`, initialised; NULL without a reason (the arena has none). */
ProtobufCMessage *bow__decode_new(struct bow__decoder *d, const ProtobufCMessageDescriptor *type);

/** The message of the top frame ends at `at`: note what it lacks, complete a map entry. Returns
 * `at`, or NULL. */
const uint8_t *bow__decode_complete(struct bow__decoder *d, const uint8_t *at);

#endif
