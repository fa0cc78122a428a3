/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_DETECT_H
#define BOWLINE_DETECT_H

/*
 * Several protocols on one port: looks at the first bytes without consuming them, and
 * asks a function of yours which handlers to put in. Then it takes itself
 * out, and the bytes go to what was put in.
 *
 *     first bytes ──► decide: need more (-EAGAIN) ──► … ──► handlers added, 0 ──► detect is gone
 *                        └── neither of mine (negative errno), max_bytes, timeout_ns ──► closed
 *
 * Handlers behind it see on_active when the decision has fallen, before the bytes;
 * those that were never reached may see on_inactive alone.
 *
 *     static int choose(struct bow_detect *detect, struct bow_slice bytes, void *user)
 *     {
 *         struct conn *conn = user;
 *         if (bow_detect_is_tls(bytes)) {
 *             bow_channel_add_after(&detect->handler, &conn->tls.handler);
 *         }
 *         return 0;
 *     }
 */

#include <bowline/handler.h>
#include <bowline/slice.h>
#include <bowline/timer.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_detect;

/**
 * Decide by the first bytes; at least one is there. Called again with more behind them after
 * -EAGAIN.
 *
 * Thread:  loop
 * Returns: 0 when decided (the handlers were added); -EAGAIN for more bytes; another negative
 * errno, which closes the channel
 */
typedef int (*bow_detect_fn)(struct bow_detect *detect, struct bow_slice bytes, void *user);

/** Who decides, and until when; what is not set is zero. */
struct bow_detect_options {
    bow_detect_fn decide; /* needed */
    /** Closing without a decision (may be NULL): -ETIMEDOUT, -EMSGSIZE (undecided by max_bytes),
     * -EBADMSG (the peer ended within them), or what decide returned. A peer that ends without
     * a byte is closed without a word. */
    void (*on_failed)(struct bow_detect *detect, int error, void *user);
    void *user;
    size_t max_bytes;    /* 0: 64 */
    uint64_t timeout_ns; /* for all of it, from being added; 0: BOW_LIMIT_FIRST_FRAME_NS */
};

/** The handler, embedded in what a connection has. */
struct bow_detect {
    struct bow_handler handler;        /* public: add this */
    struct bow_detect_options options; /* read-only */
    struct bow_timer timer;            /* private, as all below */
    size_t n_seen;
    bool holds_active; /* on_active has come, and waits for the decision */
    bool is_over;
};

/** Set up a detector. Memory is the caller's until on_removed: in the channel's own
 * (bow_channel_data) it needs no care. Copies `options`. Thread: any. Returns: 0, or -EINVAL
 * without `decide`. */
BOW_EXPORT BOW_MUST_USE int bow_detect_init(struct bow_detect *detect,
                                            const struct bow_detect_options *options);

/** Whether these first bytes (at least one) open a TLS connection: a handshake record. No protocol
 * that begins with text does. */
static inline bool bow_detect_is_tls(struct bow_slice bytes)
{
    return bytes.len > 0 && bytes.data[0] == 0x16;
}

#ifdef __cplusplus
}
#endif
#endif
