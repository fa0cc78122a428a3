/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_HANDLERS_FRAME_H
#define BOWLINE_TRANSPORT_HANDLERS_FRAME_H

#include <bowline/frame_codec.h>

/**
 * Find the frame at the front of `bytes`; `options` were accepted by
 * bow_frame_codec_init(). Returns 0 with its whole size, -EAGAIN when it is not all
 * there, -EMSGSIZE over the maximum, -EBADMSG for a length that is below what
 * stands before its end. Never reads beyond `bytes`.
 */
int bow__frame_next(const struct bow_frame_codec_options *options, struct bow_slice bytes,
                    size_t *ret_frame_bytes);

#endif
