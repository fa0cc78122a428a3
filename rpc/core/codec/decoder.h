/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_CODEC_DECODER_H
#define BOWLINE_RPC_CORE_CODEC_DECODER_H

/*
 * A message under way: the stack of messages that decoding it has open. Each of the decoder's files
 * works on it; what they do is in their own headers.
 *
 *     decode.c            the loop over fields, values
 *     decode_unknown.c    fields that the descriptor does not have
 *     decode_group.c      the end of a message; groups
 *     decode_message.c    making a message, completing it
 *     decode_required.c   the required fields of proto2
 *     decode_array.c      arrays in the arena
 *     decode_reason.c     tags, and the texts for what is refused
 *
 * Functions that return a position return NULL after they have set `error` and
 * written the reason.
 */

#include "rpc/core/codec/decode.h"

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

/* A string that is left where it came, and still lacks the NUL behind it: the next field's tag may
 * lie there, which is to be read first. */
struct bow__decode_string {
    struct bow__decode_string *next;
    uint8_t *end;
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
    struct bow__block *block;           /* NULL, or what the arena has adopted: bytes stay in it */
    struct bow__decode_string *strings; /* that stay in it, too */
    bool allow_nul;
    bool incomplete; /* a message ended without all of its required fields */
};

#endif
