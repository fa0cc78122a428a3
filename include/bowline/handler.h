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
 *
 *     static size_t on_read(struct bow_handler *handler, const struct bow_buf *bytes)
 *     {
 *         struct conn *conn = (struct conn *)handler;        the handler is its first member
 *         ... use bytes->data, bytes->len: valid until this returns ...
 *         return n;                                          0: all of it again, with more
 *     }
 *
 *     static const struct bow_handler_ops ops = {.name = "mine", .on_read = on_read};
 *
 * A handler that waits for many bytes, and has the memory for them, may have them read straight
 * into that (on_read_room): they are not copied out of what on_read is given.
 */

#include <bowline/buf.h>
#include <stdbool.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_channel;
struct bow_handler;
struct bow__unread;

/** Completion of one write: 0 when the bytes were handed to the kernel, else a negative errno. */
typedef void (*bow_write_fn)(struct bow_channel *channel, int error, void *user);

/** Where a handler wants the next bytes. */
struct bow_read_room {
    uint8_t *bytes;
    size_t len;      /* that it waits for; at least 1 */
    size_t n_behind; /* behind those, that may be written over with what follows them */
};

/** What a handler does: constant, shared by all handlers of its kind. Members may be NULL. */
struct bow_handler_ops {
    const char *name; /* for logs */

    /** It is in the pipeline, and `handler->channel` is set. */
    void (*on_added)(struct bow_handler *handler);
    /** The last callback; the handler's memory is its owner's again. */
    void (*on_removed)(struct bow_handler *handler);

    /** The channel is connected and set up; bytes may come and go from now on. */
    void (*on_active)(struct bow_handler *handler);
    /** Returns how many of the bytes were consumed, from the front. What is left comes again when
     * more has come behind it. */
    size_t (*on_read)(struct bow_handler *handler, const struct bow_buf *bytes);
    /** The read batch of this turn is over: flush what it produced. */
    void (*on_read_complete)(struct bow_handler *handler);
    /** The peer shut its side down; all its bytes were delivered before. NULL at every handler: the
     * channel closes. */
    void (*on_eof)(struct bow_handler *handler);
    /** More than the high water mark is queued (false), or less than the low one again. */
    void (*on_writable)(struct bow_handler *handler, bool writable);
    /** Something failed (negative errno); an error nobody handles is logged, a socket error then
     * closes. */
    void (*on_error)(struct bow_handler *handler, int error);
    /** The channel is closed; `error` is why, 0 for an orderly end. on_removed follows. */
    void (*on_inactive)(struct bow_handler *handler, int error);

    /** Queue `buf` towards the head. Takes `buf` (a counted or borrowed one) on success. */
    int (*on_write)(struct bow_handler *handler, struct bow_buf *buf, bow_write_fn done,
                    void *user);
    /** Send what is queued: pass it on with bow_handler_flush(). */
    void (*on_flush)(struct bow_handler *handler);
    /** Close: pass it on with bow_handler_close(), when it is time. */
    void (*on_close)(struct bow_handler *handler, int error);

    /** Pieces that want to leave now, in order; they stay in place until on_sent passed them.
     * Returns how many, 0 for none, -EAGAIN for none yet: the handler flushes when it has some, and
     * the end of our side waits for that. */
    int (*on_drain)(struct bow_handler *handler, struct iovec *pieces, int max);
    /** The first `n` bytes of those pieces have left. */
    void (*on_sent)(struct bow_handler *handler, size_t n);

    /** Whether the handler has room of its own for what comes next. Asked right before each read
     * while nothing waits to be delivered, and of the first handler that has on_read alone; no
     * other callback comes between this and on_read_filled, or the end of that read. */
    bool (*on_read_room)(struct bow_handler *handler, struct bow_read_room *ret_room);
    /** The first `n` bytes of that room have come, at most its `len`, instead of by on_read. */
    void (*on_read_filled)(struct bow_handler *handler, size_t n);
};

/** A handler, embedded in the structure of whoever wrote it. Set `ops`, then add it to a channel.
 */
struct bow_handler {
    const struct bow_handler_ops *ops; /* public: set before it is added */
    struct bow_channel *channel;       /* read-only */
    struct bow_handler *next;          /* private */
    struct bow_handler *prev;          /* private */
    struct bow__unread *unread;        /* private: bytes it has not consumed */
    struct bow_handler *gone_next;     /* private */
    uint32_t flags;                    /* private */
};

/** Pass on_active to the next handler. Thread: loop, as all below. */
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
/**
 * Whether bow_handler_fire_read() would deliver now, and `handler` has not been removed. For who
 * cuts the bytes into pieces: asked before each one, for the receiver of the last may have paused
 * the channel, closed it, or taken `handler` out, and then the rest is not consumed. Unlike a
 * result of bow_handler_fire_read() it also tells for a piece of no bytes.
 *
 *     while (find_piece(bytes, done, &piece) && bow_handler_can_fire_read(handler)) {
 *         bow_handler_fire_read(handler, &piece);
 *         done += ...
 *     }
 *     return done;
 *
 * Thread:  loop; the executor's for a handler bound to one: true, for what it passes on is queued
 */
BOW_EXPORT bool bow_handler_can_fire_read(struct bow_handler *handler);
/**
 * Ask the next handler that has on_read for room, for one that changes what it reads.
 *
 * Thread:  loop
 * Returns: whether it has some, for bytes that could be delivered now: fill it before anything else
 *          is called, then say so with bow_handler_fire_read_filled(). Else use
 *          bow_handler_fire_read().
 */
BOW_EXPORT bool bow_handler_read_room(struct bow_handler *handler, struct bow_read_room *ret_room);
/** Tell that handler that the first `n` bytes of its room are there: at least 1, at most its `len`.
 * What was read behind them follows by bow_handler_fire_read(), from a copy: the room may be gone.
 */
BOW_EXPORT void bow_handler_fire_read_filled(struct bow_handler *handler, size_t n);
/** Pass on_read_complete to the next handler. */
BOW_EXPORT void bow_handler_fire_read_complete(struct bow_handler *handler);
/** Pass on_eof to the next handler; at the tail the channel closes once what is queued was sent. */
BOW_EXPORT void bow_handler_fire_eof(struct bow_handler *handler);
/** Pass on_writable to the next handler. */
BOW_EXPORT void bow_handler_fire_writable(struct bow_handler *handler, bool writable);
/** Tell the next handler of an error, a negative errno; at the tail it is logged. Nothing closes by
 * it. */
BOW_EXPORT void bow_handler_fire_error(struct bow_handler *handler, int error);

/**
 * Queue bytes from this handler's place: the handlers in front of it see them (on_write).
 * Otherwise as bow_channel_write(). To answer with bytes that on_read was given:
 *
 *     struct bow_buf answer = bow_buf_borrow(bytes->data, bytes->len);
 *     int rc = bow_handler_write(handler, &answer, NULL, NULL);
 *
 * Thread:  loop
 * Owns:    takes `buf` on success: the reference of a counted one; a borrowed one is copied
 * Returns: 0; -ENOMEM; -EPIPE when the channel is closed or our side shut down; what a handler's
 *          on_write returned
 */
BOW_EXPORT BOW_MUST_USE int bow_handler_write(struct bow_handler *handler, struct bow_buf *buf,
                                              bow_write_fn done, void *user);
/** Send what is queued, from this handler's place. */
BOW_EXPORT void bow_handler_flush(struct bow_handler *handler);
/** Close, from this handler's place: those in front may put it off. Otherwise as
 * bow_channel_close(). */
BOW_EXPORT void bow_handler_close(struct bow_handler *handler, int error);

/** Ask the next handler that has on_drain, for one that changes what it pulls. bow_handler_sent()
 * follows before anything else is called. Returns as on_drain; 0 when nobody has it. */
BOW_EXPORT BOW_MUST_USE int bow_handler_drain(struct bow_handler *handler, struct iovec *pieces,
                                              int max);
/** Tell that handler how much of it was taken. */
BOW_EXPORT void bow_handler_sent(struct bow_handler *handler, size_t n);

#ifdef __cplusplus
}
#endif
#endif
