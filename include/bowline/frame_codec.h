/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_FRAME_CODEC_H
#define BOWLINE_FRAME_CODEC_H

/*
 * Length-field framing: cuts inbound bytes into frames, each delivered whole to
 * the next handler's on_read, which must consume it all.
 *
 * A length below what stands before its end is on_error(-EBADMSG), and the channel
 * closes. When the peer's side ends within a frame, on_error(-EBADMSG) comes before on_eof.
 *
 *     | … length_offset … | length field | … |←─ length + adjustment bytes after the field ─→|
 */

#include <bowline/handler.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How frames look; what is not set is zero. Only max_frame_bytes and length_bytes are needed. */
struct bow_frame_codec_options {
    size_t max_frame_bytes; /* of the whole frame; over it: on_error(-EMSGSIZE), and the channel
                               closes */
    size_t length_offset;   /* bytes in front of the length field */
    uint32_t length_bytes;  /* 1, 2, 3, 4 or 8 */
    int64_t adjustment;     /* added to the length field's value */
    size_t strip_bytes;     /* left out at the front of what is delivered */
    bool little_endian;     /* the length field; false: big-endian */
};

/** The handler, embedded in what a connection has. Inbound only: the sender writes the length. */
struct bow_frame_codec {
    struct bow_handler handler;             /* public: add this */
    struct bow_frame_codec_options options; /* read-only */
    size_t n_unread;                        /* private: bytes of a frame that is not all there */
};

/**
 * Set up a codec, before it is added. Memory is the caller's until on_removed: in the channel's
 * own (bow_channel_data) it needs no care.
 *
 * Thread:  any
 * Owns:    copies `options`
 * Returns: 0; -EINVAL (length_bytes, a field or strip_bytes beyond max_frame_bytes)
 */
BOW_EXPORT BOW_MUST_USE int bow_frame_codec_init(struct bow_frame_codec *codec,
                                                 const struct bow_frame_codec_options *options);

#ifdef __cplusplus
}
#endif
#endif
