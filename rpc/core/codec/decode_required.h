/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CODEC_DECODE_REQUIRED_H
#define BOWLINE_RPC_CORE_CODEC_DECODE_REQUIRED_H

/*
 * The required fields of proto2.
 */

#include "rpc/core/codec/decoder.h"

/** Bytes in front of each message of `type` for its required fields; 0 when it has none. */
size_t bow__decode_required_size(struct bow__decoder *d, const ProtobufCMessageDescriptor *type);

/** What is in front of `message`, or NULL. */
struct bow__decode_required *bow__decode_required_of(struct bow__decoder *d,
                                                     ProtobufCMessage *message);

/** A piece of `message` (NULL is allowed) ends at `at`: note whether required fields are missing.
 */
void bow__decode_note_required(struct bow__decoder *d, ProtobufCMessage *message,
                               const uint8_t *at);

/** After the whole: refuse if a required field is missing anywhere. Returns 0 or -EBADMSG. */
int bow__decode_check_required(struct bow__decoder *d);

#endif
