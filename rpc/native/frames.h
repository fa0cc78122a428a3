/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_NATIVE_FRAMES_H
#define BOWLINE_RPC_NATIVE_FRAMES_H

/*
 * What the frames of calls have in common.
 */

#include "rpc/native/state.h"

/** A frame with `n_message` message bytes for a call that has ended: skipped, the credit goes back.
 */
ssize_t bow__native_take_late(struct bow__native *session, const struct bow__frame *frame,
                              size_t n_message);
/** The header block at the front of a body, behind its length. */
ssize_t bow__native_take_block(struct bow__native *session, const struct bow__frame *frame,
                               const uint8_t *body, size_t n, struct bow_slice *ret_block);
/** The next one's long way. */
int bow__native_check_large_header(struct bow__native *session, const struct bow__frame *frame,
                                   size_t n_block, const struct bow__header_entries *entries,
                                   bool *ret_too_large);
/** What was read of a block of `n_block` bytes, against the limits of headers. Returns 0, with
 * whether its call is to be refused, or what breaks. */
static inline int bow__native_check_header(struct bow__native *session,
                                           const struct bow__frame *frame, size_t n_block,
                                           const struct bow__header_entries *entries,
                                           bool *ret_too_large)
{
    *ret_too_large = false;
    bow__work_spend(&session->base.work, entries->n * BOW__WORK_FIELD_BYTES);
    if (n_block + entries->n_bytes <= BOW_LIMIT_HEADER_BYTES_MIN) {
        return 0;
    }
    return bow__native_check_large_header(session, frame, n_block, entries, ret_too_large);
}
/** Why one is refused. */
void bow__native_describe_header(const struct bow__native *session, size_t n_block,
                                 const struct bow__header_entries *entries, struct bow__text *text);
int bow__native_break_block(struct bow__native *session, const struct bow__frame *frame,
                            const struct bow__header_error *error);
/** The next one's long way, for any flags. */
int bow__native_check_rare_flags(struct bow__native *session, const struct bow__frame *frame,
                                 size_t n);
/** Whether the flags of a frame with `n` message bytes go together. Returns 0 or what breaks. */
static inline int bow__native_check_flags(struct bow__native *session,
                                          const struct bow__frame *frame, size_t n)
{
    bool is_whole_message =
        (frame->flags & (BOW__FRAME_HAS_MESSAGE | BOW__FRAME_MORE)) == BOW__FRAME_HAS_MESSAGE;

    return is_whole_message ? 0 : bow__native_check_rare_flags(session, frame, n);
}
/**
 * Take a message of `len` bytes that is all in `frame`; `n` of them are there. It is
 * said to the host at once as it lies, or assembled.
 */
ssize_t bow__native_take_whole_message(struct bow__native *session,
                                       struct bow__native_stream *stream,
                                       const struct bow__frame *frame, const uint8_t *bytes,
                                       size_t n, size_t len);
/** END alone, after whole messages: the host is told unless it has answered. */
void bow__native_take_half_close(struct bow__native *session, struct bow__native_stream *stream);
/** All message bytes of the frame under way have come. */
int bow__native_end_body(struct bow__native *session);
/** Client: the call ends with `wire`. */
void bow__native_end_call(struct bow__native *session, struct bow__native_stream *stream,
                          const struct bow__header_status *wire);

/* Metadata that came. */

struct bow__native_metadata {
    struct bow__block *chunk; /* NULL: there is none */
    struct bow_metadata list;
};

int bow__native_metadata_copy(struct bow__native *session, struct bow__header_entries entries,
                              struct bow__native_metadata *ret_metadata);

/** The entries that keep the rules. Returns 0, or -ENOMEM and none. */
static inline int bow__native_metadata_take(struct bow__native *session,
                                            const struct bow__header_entries *entries,
                                            struct bow__native_metadata *ret_metadata)
{
    *ret_metadata = (struct bow__native_metadata){NULL, BOW_METADATA_INIT};
    return entries->n == 0 ? 0 : bow__native_metadata_copy(session, *entries, ret_metadata);
}

/** Nobody looks at it any more. */
static inline void bow__native_metadata_give(struct bow__native *session,
                                             struct bow__native_metadata *metadata)
{
    if (metadata->chunk == NULL) {
        return;
    }
    if (metadata->chunk->cap == BOW__CHUNK_BYTES) {
        bow__pool_put(session->out.pool, metadata->chunk);
    } else {
        bow__block_unref(metadata->chunk);
    }
}

#endif
