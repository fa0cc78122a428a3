/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_SUPPORT_CODEC_ORACLE_H
#define BOWLINE_TESTS_SUPPORT_CODEC_ORACLE_H

/*
 * Holds bow__decode() against protobuf_c_message_unpack() on any bytes. The two
 * must agree on what is accepted and on the content, except where protobuf-c is
 * known to be wrong: that is found by reading the bytes independently of both.
 */

#include "base/arena.h"
#include "base/text.h"
#include <bowline/slice.h>
#include <protobuf-c/protobuf-c.h>

/** Why the two may differ on some bytes. */
enum codec_oracle_excuse {
    CODEC_MERGES = 1, /* a singular sub-message or a oneof comes more than once */
    CODEC_WIRE = 2,   /* a known field with another wire type, or any group */
    CODEC_ENTRY = 4,  /* a map entry that lacks what the decoder fills in */
    CODEC_LEVELS = 8, /* deeper than BOW_LIMIT_MESSAGE_DEPTH */
};

/** All excuses that `bytes` give, as far as they can be read. */
unsigned codec_oracle_excuses(const ProtobufCMessageDescriptor *type, struct bow_slice bytes);

/**
 * Decode `bytes` both ways and compare. `arena` is used and not reset. Returns
 * whether the two agree or have an excuse; if not, `fault` says how they differ.
 */
bool codec_oracle_agrees(const ProtobufCMessageDescriptor *type, struct bow_slice bytes,
                         struct bow__arena *arena, struct bow__text *fault);

#endif
