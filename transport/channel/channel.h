/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_CHANNEL_CHANNEL_H
#define BOWLINE_TRANSPORT_CHANNEL_CHANNEL_H

/*
 * The channel from inside. What its files do for each other, lowest first; none uses a
 * higher one:
 *
 *     channel_core.c     what it is, its references
 *     write_queue.c      writes that wait
 *     channel_close.c    closing
 *     pipeline.c         handlers: adding, removing, passing events and bytes on
 *     channel_read.c     from the socket into the pipeline
 *     channel_write.c    from the queue and the pipeline into the socket
 *     channel_ops.c      what may be called from any thread
 *     channel.c          birth, start, the phases, the end
 *
 * and on top of those filter.c, for handlers that change the bytes, and bound.c, for handlers
 * that run on an executor.
 */

#include "transport/address/address.h"
#include "transport/channel/channel_core.h"

/* write_queue.c */

void bow__channel_run_completions(struct bow_channel *channel);
/** All writes end with `error`; their completions are due. */
void bow__channel_fail_writes(struct bow_channel *channel, int error);
/** All that is queued may leave, and what handlers have is pulled. */
void bow__channel_flush_all(struct bow_channel *channel);
/** A write that may be queued: a copy of a borrowed buf, or a reference of its own to a counted
 * one. NULL: out of memory. Thread: any. */
struct bow__write *bow__write_new(struct bow_context *context, const struct bow_buf *buf,
                                  bow_write_fn done, void *user);
void bow__write_free(struct bow_context *context, struct bow__write *write);
/** `n` more bytes are queued, here or in a filter; for the water marks. */
void bow__channel_count_queued(struct bow_channel *channel, size_t n);
/** The write is done; its completion is due. */
void bow__channel_complete(struct bow_channel *channel, struct bow__write *write, int error);
void bow__channel_enqueue(struct bow_channel *channel, struct bow__write *write);
/** Make a write of `buf` and enqueue it; takes a counted buf on success. Returns 0, -ENOMEM,
 * -EPIPE. */
int bow__channel_queue(struct bow_channel *channel, struct bow_buf *buf, bow_write_fn done,
                       void *user);
/** The first write is done; its completion is due. */
void bow__channel_complete_first(struct bow_channel *channel, int error);
/** Whether writes may be queued. */
bool bow__channel_accepts_writes(const struct bow_channel *channel);

/* channel.c */

/** The address of our end, as text. Returns 0, or a negative errno (it has none, or none any more)
 * with an empty text. */
int bow__channel_local(const struct bow_channel *channel, char text[BOW__ADDRESS_TEXT_BYTES]);

/* channel_close.c */

/** Close the descriptor now, without asking handlers. Idempotent. Thread: loop. */
void bow__channel_close_now(struct bow_channel *channel, int error);
/** Close at `deadline_ns`, whatever has left by then. */
void bow__channel_close_at(struct bow_channel *channel, uint64_t deadline_ns);

/** Shut our side of the socket down. */
void bow__channel_shut_socket(struct bow_channel *channel);
/** All has left that is to leave before the close: wait for the peer's end. */
void bow__channel_linger(struct bow_channel *channel);
/** The peer has shown that it is there: wait anew. */
void bow__channel_linger_on(struct bow_channel *channel);
/** It has not for a while. Returns whether that is waited for all the same. */
bool bow__channel_lingers_on(struct bow_channel *channel);

/** Both ways have ended: nothing more can come or go. */
void bow__channel_close_if_over(struct bow_channel *channel);

/* pipeline.c */

void bow__pipeline_init(struct bow_channel *channel);
/** `handler` has been added, and not removed. */
bool bow__pipeline_is_in(const struct bow_handler *handler);
void bow__pipeline_inactive(struct bow_channel *channel, int error);
/** on_removed of those removed so far. */
void bow__pipeline_run_removed(struct bow_channel *channel);
/** Remove all, tail to head. */
void bow__pipeline_clear(struct bow_channel *channel);
/** The handler nearest to the head that has on_drain, or NULL. */
struct bow_handler *bow__pipeline_drain_handler(struct bow_channel *channel);
/** Whether a handler sees writes on their way to the queue. */
bool bow__pipeline_filters_writes(struct bow_channel *channel);

/** Whether bytes may be delivered. */
bool bow__pipeline_can_read(const struct bow_channel *channel);
bool bow__pipeline_has_reader(struct bow_channel *channel);
/** Offer bytes to the first handler; returns how many were consumed. The rest is the caller's. */
size_t bow__pipeline_offer(struct bow_channel *channel, const struct bow_buf *bytes);
/** bow_handler_can_fire_read() and bow_handler_fire_read() in one, for one that is bound to no
 * executor: false when nothing was taken. */
bool bow__pipeline_fire(struct bow_handler *handler, const struct bow_buf *bytes);
/** Keep bytes for whoever reads behind `handler`; they are delivered with those that follow, or
 * when reading resumes. */
void bow__pipeline_keep_behind(struct bow_handler *handler, const struct bow_buf *bytes);
/** Deliver what is unread, of single handlers. */
void bow__pipeline_redeliver(struct bow_channel *channel);
/** Tell handlers of `error`, then close. */
void bow__channel_fail(struct bow_channel *channel, int error);

/* channel_read.c */

/** The poller found `events`, beside POLL_OUT. */
void bow__channel_on_readable(struct bow_channel *channel, uint32_t events);
/** Deliver what is unread, without new I/O. */
void bow__channel_redeliver(struct bow_channel *channel);
/** The connection is broken, and `error` says so: deliver all that its peer had sent, then fail. A
 * hold, or a pause that is over in the next turn, only makes that longer; a pause that lasts ends
 * with the channel, for it may be until something is sent. */
void bow__channel_read_out(struct bow_channel *channel, int error);
void bow__channel_update_interest(struct bow_channel *channel);
/** Pause reading for a reason of the library's own, beside the user's; resume for that one. It is
 * to end by itself: what has come by then is delivered then, though the connection is lost. */
void bow__channel_hold_read(struct bow_channel *channel);
void bow__channel_release_read(struct bow_channel *channel);

/* channel_write.c */

void bow__channel_send(struct bow_channel *channel);

/* channel_ops.c */

void bow__channel_ops_init(struct bow_channel *channel);

/* channel.c */

struct bow__channel_birth {
    struct bow_loop *loop;
    const struct bow__socket *socket; /* borrowed */
    const struct bow_sockaddr *peer;
    const struct bow_channel_options *options;
    /** The channel has started (0), or could not (negative errno): then it ends by itself. */
    void (*on_started)(struct bow_channel *channel, int error, void *user);
    /** The channel's last sign of life: its memory goes. Any thread. May be NULL. */
    void (*on_gone)(void *user);
    void *user;
};

/** Make a channel of a connected socket. Thread: any. Takes the socket on success. Returns 0 or
 * -ENOMEM. */
int bow__channel_new(const struct bow__channel_birth *birth, struct bow_channel **ret_channel);

/** Start on the channel's loop: now when this is its thread, else through a task. When it can't be
 * posted, the channel is gone and on_started has not run. Thread: any. */
int bow__channel_start(struct bow_channel *channel);

#endif
