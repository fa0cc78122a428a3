/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_HANDLER_H
#define BOWLINE_HANDLER_H

/*
 * A handler: one station of a channel's pipeline, embedded in the structure of
 * whoever wrote it.
 *
 *     socket ─► head ─► handler ─► handler ─► … ─► tail     inbound: on_read, on_eof, on_error …
 *     socket ◄─ head ◄─ handler ◄─ handler ◄─ …             outbound: on_write, on_flush, on_close
 *
 * What travels is bytes (<bowline/buf.h>), borrowed until the callback returns.
 * on_read says how much it consumed; what is left is delivered again, with more
 * behind it. Any callback may be NULL: the event then goes to the next handler
 * in its direction. All callbacks run on the channel's loop, and any may add,
 * remove, pause or close. (One bound to an executor: see bow_channel_add_last_on().)
 *
 * Output leaves in two ways: pushed (bow_handler_write: buffers queued in the channel) or,
 * without a copy, pulled: when the queue is empty, a flush asks the handler
 * nearest to the head that has on_drain for pieces, and tells on_sent what has left.
 */

#include <bowline/buf.h>
#include <stdbool.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_channel;
struct bow_handler;
struct bow__kept;

/** Completion of one write: 0 when the bytes were handed to the kernel, else a negative errno. */
typedef void (*bow_write_fn)(struct bow_channel *channel, int error, void *user);

struct bow_handler_ops {
    const char *name; /* for logs */

    void (*on_added)(struct bow_handler *handler);
    /** The last callback; the handler's memory is its owner's again. */
    void (*on_removed)(struct bow_handler *handler);

    void (*on_active)(struct bow_handler *handler);
    /** Returns how many of the bytes were consumed, from the front. */
    size_t (*on_read)(struct bow_handler *handler, const struct bow_buf *bytes);
    /** The read batch of this turn is over: flush what it produced. */
    void (*on_read_complete)(struct bow_handler *handler);
    /** The peer shut its side down; all its bytes were delivered before. NULL at every handler: the
     * channel closes. */
    void (*on_eof)(struct bow_handler *handler);
    void (*on_writable)(struct bow_handler *handler, bool writable);
    /** Something failed (negative errno); an error nobody handles is logged, a socket error then
     * closes. */
    void (*on_error)(struct bow_handler *handler, int error);
    /** The channel is closed; `error` is why, 0 for an orderly end. on_removed follows. */
    void (*on_inactive)(struct bow_handler *handler, int error);

    /** Queue `buf` towards the head. Takes `buf` (a counted or borrowed one) on success. */
    int (*on_write)(struct bow_handler *handler, struct bow_buf *buf, bow_write_fn done,
                    void *user);
    void (*on_flush)(struct bow_handler *handler);
    void (*on_close)(struct bow_handler *handler, int error);

    /** Pieces that want to leave now, in order; they stay in place until on_sent passed them.
     * Returns how many, 0 for none, -EAGAIN for none yet: the handler flushes when it has some, and
     * the end of our side waits for that. */
    int (*on_drain)(struct bow_handler *handler, struct iovec *pieces, int max);
    void (*on_sent)(struct bow_handler *handler, size_t n);
};

struct bow_handler {
    const struct bow_handler_ops *ops; /* public: set before it is added */
    struct bow_channel *channel;       /* read-only */
    struct bow_handler *next;          /* private */
    struct bow_handler *prev;          /* private */
    struct bow__kept *kept;            /* private: bytes it has not consumed */
    struct bow_handler *gone_next;     /* private */
    uint32_t flags;                    /* private */
};

/** Pass an inbound event to the next handler. Thread: loop. */
BOW_EXPORT void bow_handler_fire_active(struct bow_handler *handler);
/**
 * Deliver `bytes` to the next handler that has on_read. What it does not consume
 * is kept for it and delivered again with more behind it, so a handler that only
 * looks returns this function's result.
 *
 * Thread:  loop
 * Returns: bytes->len; or 0 when delivery has stopped (the channel is paused or closed, or
 * no handler follows that reads): nothing was taken, the bytes are still the caller's to keep
 */
BOW_EXPORT size_t bow_handler_fire_read(struct bow_handler *handler, const struct bow_buf *bytes);
BOW_EXPORT void bow_handler_fire_read_complete(struct bow_handler *handler);
BOW_EXPORT void bow_handler_fire_eof(struct bow_handler *handler);
BOW_EXPORT void bow_handler_fire_writable(struct bow_handler *handler, bool writable);
BOW_EXPORT void bow_handler_fire_error(struct bow_handler *handler, int error);

/** Pass an outbound operation to the previous handler. Thread: loop. */
BOW_EXPORT BOW_MUST_USE int bow_handler_write(struct bow_handler *handler, struct bow_buf *buf,
                                              bow_write_fn done, void *user);
BOW_EXPORT void bow_handler_flush(struct bow_handler *handler);
BOW_EXPORT void bow_handler_close(struct bow_handler *handler, int error);

/** For a handler that changes what it pulls: ask the next handler that has on_drain, and tell it
 * how much was taken, before anything else is called. Thread: loop. */
BOW_EXPORT BOW_MUST_USE int bow_handler_drain(struct bow_handler *handler, struct iovec *pieces,
                                              int max);
BOW_EXPORT void bow_handler_sent(struct bow_handler *handler, size_t n);

#ifdef __cplusplus
}
#endif
#endif
