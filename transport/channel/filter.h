/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_CHANNEL_FILTER_H
#define BOWLINE_TRANSPORT_CHANNEL_FILTER_H

/*
 * What a handler that changes the bytes on their way (a filter: TLS) needs of its
 * channel beyond the public headers. Such a handler queues the writes it receives, makes
 * its output of them and of what it pulls from the handlers behind it, and offers that by
 * on_drain alone, so that there is one order of output. Seen from outside, its queue
 * is part of the channel's: it counts for the water marks, its writes complete as others do.
 *
 * All on the loop's thread.
 */

#include "base/shared.h"
#include "transport/channel/channel.h"

/** Whether inbound events are delivered: the channel is open and not paused. */
BOW__SHARED bool bow__filter_can_read(const struct bow_channel *channel);
/** The first handler of `channel` with these ops, or NULL. */
BOW__SHARED struct bow_handler *bow__filter_find(const struct bow_channel *channel,
                                                 const struct bow_handler_ops *ops);

/** A write as bow__write_new() makes it, or NULL; when the channel takes no more, `*ret_error` says
 * -EPIPE, else -ENOMEM. Its bytes count as queued until bow__filter_taken(). */
BOW__SHARED struct bow__write *bow__filter_queue(struct bow_channel *channel, struct bow_buf *buf,
                                                 bow_write_fn done, void *user, int *ret_error);
/** `n` queued bytes are in the filter's output now. Inside on_drain, as the water marks are looked
 * at after it. */
BOW__SHARED void bow__filter_taken(struct bow_channel *channel, size_t n);
/** Complete a write, inside on_drain or on_sent; `done` runs at the end of the phase. Takes
 * `write`. */
BOW__SHARED void bow__filter_complete(struct bow_channel *channel, struct bow__write *write,
                                      int error);
/** Complete a write of a channel that is closed: `done` runs now. Takes `write`. */
BOW__SHARED void bow__filter_abandon(struct bow_channel *channel, struct bow__write *write,
                                     int error);

/** Whether our side ends once all has been sent: the filter's last words are due then. */
BOW__SHARED bool bow__filter_is_ending(const struct bow_channel *channel);
/** Send these bytes now if the socket takes them; a channel that closes at once can't wait. */
BOW__SHARED void bow__filter_send_now(struct bow_channel *channel, struct iovec *pieces, int n);
/** bow_channel_close_after_flush() whose end is reported as `error`. */
BOW__SHARED void bow__filter_close_after_flush(struct bow_channel *channel, uint64_t timeout_ns,
                                               int error);
/** Both sides have said their last words: end in order, unless the end is under way. */
BOW__SHARED void bow__filter_end(struct bow_channel *channel);

#endif
