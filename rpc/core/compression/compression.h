/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_COMPRESSION_COMPRESSION_H
#define BOWLINE_RPC_CORE_COMPRESSION_COMPRESSION_H

/*
 * Compression of the messages of calls: which encoding, whether it pays, and the way back.
 * One per loop and side (a server's worker, a client's balancer), for all calls there. Knows
 * sessions, and neither calls nor loops.
 *
 * Messages are compressed as they go to the session, where it is known what the peer takes,
 * and inflated as they are delivered: what waits, on either side, is small.
 */

#include "rpc/core/compression/encodings.h"
#include <bowline/compression.h>

struct bow__queued_message;

struct bow__compression {
    struct bow__coders coders;
    size_t max_message_bytes;  /* that a message may inflate to */
    size_t threshold_bytes;    /* below it messages go as they are */
    int level;                 /* 0: the encoding's default */
    enum bow_compression mode; /* unless a call says otherwise; DEFAULT for none at all */
    bool used;                 /* since its owner last looked */
    /** NULL, or told when `used` becomes true. */
    void (*on_use)(struct bow__compression *compression);
};

/** The best encoding that the stream's peer can decode and we have; identity when there is none. */
enum bow__encoding bow__compression_choose(const struct bow__session *session, uint64_t key);

/** Whether a message of `len` bytes is to be compressed, as far as that is known before it is.
 * `encoding` and `mode` are an enum bow__encoding and an enum bow_compression. */
static inline bool bow__compression_wants(const struct bow__compression *compression,
                                          unsigned encoding, unsigned mode, size_t len)
{
    return encoding != BOW__ENCODING_IDENTITY && mode >= BOW_COMPRESSION_AUTO &&
           (mode == BOW_COMPRESSION_ON || len >= compression->threshold_bytes);
}

/**
 * Send a message compressed that is wanted so, if it gets smaller. Returns 0 and its length as
 * sent; 1 when it is to go as it is; or as the session's send().
 */
int bow__compression_send(struct bow__compression *compression, struct bow__session *session,
                          uint64_t key, enum bow__encoding encoding, uint32_t flags,
                          struct bow_slice bytes, size_t *ret_len);

/** The same for one that waits, if it is wanted, and stays the caller's. A payload's is compressed
 * once for all that send it in that encoding and level. */
int bow__compression_send_queued(struct bow__compression *compression, struct bow__session *session,
                                 uint64_t key, enum bow__encoding encoding, uint32_t flags,
                                 struct bow__queued_message *held, size_t *ret_len);

/** Inflate a message that came compressed: its bytes, and the block that holds them, are others
 * then. Returns 0, or as bow__inflate() with the message as it was. */
int bow__compression_unpack(struct bow__compression *compression, struct bow__message *message,
                            struct bow__text *reason);

/** bow__compression_unpack(), where the message may not be compressed. */
static inline int bow__compression_inflate(struct bow__compression *compression,
                                           struct bow__message *message, struct bow__text *reason)
{
    return message->compressed ? bow__compression_unpack(compression, message, reason) : 0;
}

#endif
