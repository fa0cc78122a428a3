/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CODEC_DECODE_REASON_H
#define BOWLINE_RPC_CORE_CODEC_DECODE_REASON_H

/*
 * Reading a tag, and what the decoder says of what it refuses.
 */

#include "rpc/core/codec/decoder.h"
#include "rpc/core/codec/wire.h"

/** Refuse: "PATH at byte N: what". `field` NULL: the fault is the top message's own. */
const uint8_t *bow__decode_refuse(struct bow__decoder *d, const ProtobufCFieldDescriptor *field,
                                  const uint8_t *at, const char *what, ...) BOW_PRINTF(4, 5);

/** The same for field `number` that the descriptor does not have. */
const uint8_t *bow__decode_refuse_number(struct bow__decoder *d, uint32_t number, const uint8_t *at,
                                         const char *what);

/** Refuse the tag at `at`: unreadable, or of a number that can't be. */
const uint8_t *bow__decode_refuse_tag(struct bow__decoder *d, const uint8_t *at);

/** Refuse a length or a value of `field` that could not be read from [at, end). */
const uint8_t *bow__decode_refuse_value(struct bow__decoder *d,
                                        const ProtobufCFieldDescriptor *field, const uint8_t *at,
                                        const uint8_t *end);

/** The arena gave NULL: -ENOMEM, naming its cap. `field` may be NULL. */
const uint8_t *bow__decode_no_memory(struct bow__decoder *d, const ProtobufCFieldDescriptor *field,
                                     const uint8_t *at);

/** The tag at `at`: its number is one that can be. Returns the first byte after it, or NULL. */
static inline const uint8_t *bow__decode_read_tag(struct bow__decoder *d, const uint8_t *at,
                                                  uint64_t *ret_tag)
{
    const uint8_t *body = bow__wire_read_varint(at, d->top->end, ret_tag);
    if (body == NULL || *ret_tag > UINT32_MAX || *ret_tag < 8 || body - at > BOW__WIRE_TAG_BYTES) {
        bow__decode_refuse_tag(d, at);
        return NULL;
    }
    return body;
}

#endif
