/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CODEC_DECODE_INTERNAL_H
#define BOWLINE_RPC_CORE_CODEC_DECODE_INTERNAL_H

/*
 * What the decoder's files share: the stack of messages under way and the parts
 * that are seldom run.
 *
 *     decode.c           the loop over fields, values
 *     decode_message.c   making a message, completing it
 *     decode_required.c  the required fields of proto2
 *     decode_array.c     arrays in the arena
 *     decode_unknown.c   fields that the descriptor does not have; groups
 *     decode_reason.c    texts for what is refused
 *
 * Functions that return a position return NULL after they have set `error` and
 * written the reason.
 */

#include "rpc/core/codec/decode.h"
#include "rpc/core/codec/value.h"
#include "rpc/core/codec/wire.h"

/* Lies in front of a message whose type has required fields. */
struct bow__decode_required {
    uint32_t end;   /* offset where the message's last occurrence ends */
    uint8_t seen[]; /* a bit for each field of the descriptor; set for required ones only */
};

/* A message under way, and where the message one frame below holds it. */
struct bow__decode_frame {
    ProtobufCMessage *message;
    const uint8_t *end;                    /* of the message's bytes */
    const ProtobufCFieldDescriptor *guess; /* the field that probably comes next */
    const ProtobufCFieldDescriptor *last;  /* of the descriptor */
    struct bow__decode_required *required; /* NULL: no field is required */
    const ProtobufCFieldDescriptor *field; /* NULL in the first frame */
    size_t index;                          /* in a repeated field */
    size_t next;                           /* bow__decode_check_required()'s: the next element */
};

struct bow__decoder {
    const ProtobufCMessageDescriptor *type; /* of the whole */
    const uint8_t *begin;
    struct bow__arena *arena;
    struct bow__text *reason;
    struct bow__decode_frame *frames;
    struct bow__decode_frame *top;
    struct bow__decode_frame *last;            /* the deepest that is allowed */
    const ProtobufCMessageDescriptor *relaxed; /* a type without required fields, or NULL */
    int error;
    bool borrows_bytes; /* of the block that the arena has adopted */
    bool allow_nul;
    bool incomplete; /* a message ended without all of its required fields */
};

/* decode_message.c */

/** A new message of `type`, initialised; NULL without a reason (the arena has none). */
ProtobufCMessage *bow__decode_new(struct bow__decoder *d, const ProtobufCMessageDescriptor *type);

/** The message of the top frame ends at `at`: note what it lacks, complete a map entry. Returns
 * `at`, or NULL. */
const uint8_t *bow__decode_complete(struct bow__decoder *d, const uint8_t *at);

/* decode_required.c */

/** Bytes in front of each message of `type` for its required fields; 0 when it has none. */
size_t bow__decode_required_size(struct bow__decoder *d, const ProtobufCMessageDescriptor *type);

/** What is in front of `message`, or NULL. */
struct bow__decode_required *bow__decode_required(struct bow__decoder *d,
                                                  ProtobufCMessage *message);

/** A piece of `message` (NULL is allowed) ends at `at`: note whether required fields are missing.
 */
void bow__decode_note_required(struct bow__decoder *d, ProtobufCMessage *message,
                               const uint8_t *at);

/** After the whole: refuse if a required field is missing anywhere. Returns 0 or -EBADMSG. */
int bow__decode_check_required(struct bow__decoder *d);

/* decode_array.c */

/**
 * Make room for `n_more` elements behind the `n` of `array` (made by this function,
 * or NULL with n == 0). Returns the array, perhaps moved, or NULL out of memory.
 */
void *bow__decode_reserve(struct bow__arena *arena, void *array, size_t n, size_t n_more,
                          size_t element_size);

/** How many elements `array` (of bow__decode_reserve()) has room for. */
static inline size_t bow__decode_capacity(const void *array)
{
    size_t capacity;
    memcpy(&capacity, (const char *)array - sizeof capacity, sizeof capacity);
    return capacity;
}

/* decode_unknown.c */

/** Keep the field whose value is at `at`, or skip it if it is a group. Returns the first byte after
 * it. */
const uint8_t *bow__decode_unknown(struct bow__decoder *d, uint32_t number, unsigned wire_type,
                                   const uint8_t *at);

/* decode_reason.c */

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
