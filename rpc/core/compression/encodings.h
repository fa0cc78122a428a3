/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_COMPRESSION_ENCODINGS_H
#define BOWLINE_RPC_CORE_COMPRESSION_ENCODINGS_H

/*
 * Compression of whole messages: zstd, and gzip and deflate for peers that speak gRPC. Which
 * encoding a message travels in is negotiated above; here are only bytes.
 *
 * Inflating is done into a block that doubles by what has come out, never by what
 * was announced, up to a limit: a message that inflates to more is refused before it has.
 */

#include "base/block.h"
#include "base/text.h"
#include "rpc/core/session.h"

/** A loop's encoders and decoders: made when first used, kept for the next message. */
struct bow__coders {
    struct bow_context *context;
    void *encoders[BOW__N_ENCODINGS];
    void *decoders[BOW__N_ENCODINGS];
};

void bow__coders_init(struct bow__coders *coders, struct bow_context *context);
/** Free them; new ones are made when they are needed. */
void bow__coders_trim(struct bow__coders *coders);

/** The encodings of this build, as bits; identity is always among them. */
uint32_t bow__encodings_built(void);
/** "identity", "zstd", "gzip", "deflate"; NULL for a number that is none. */
const char *bow__encoding_name(enum bow__encoding encoding);
/** Append the names of this build's encodings: "identity,zstd,gzip,deflate". */
void bow__encodings_describe(struct bow__text *text);
/** BOW__ENCODING_UNKNOWN for a name that is none of them, or not in this build. */
enum bow__encoding bow__encoding_of(struct bow_slice name);
/** The known ones of a list of names with commas and blanks between, as a set. The first that is
 * not known is `*ret_unknown` (may be NULL), which is empty when there is none. */
uint32_t bow__encodings_of(struct bow_slice list, struct bow_slice *ret_unknown);

/**
 * Compress into a new block that is smaller than `bytes`. `level` 0: the library's default.
 * Returns 0; -ENOBUFS when it would not be smaller; -ENOMEM; -ENOTSUP for an encoding that is not
 * built.
 */
int bow__deflate(struct bow__coders *coders, enum bow__encoding encoding, int level,
                 struct bow_slice bytes, struct bow__block **ret_block, size_t *ret_len);

/**
 * Decompress into a new block of at most `max_bytes`. Returns 0 (the block is NULL for an empty
 * message); or, with `reason` set: -EBADMSG (not what it says, cut, or followed by more), -EMSGSIZE
 * (the limit), -ENOMEM, -ENOTSUP. `*ret_len` tells how far it came then, too.
 */
int bow__inflate(struct bow__coders *coders, enum bow__encoding encoding, struct bow_slice bytes,
                 size_t max_bytes, struct bow__block **ret_block, size_t *ret_len,
                 struct bow__text *reason);

#endif
