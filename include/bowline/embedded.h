/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_EMBEDDED_H
#define BOWLINE_EMBEDDED_H

/*
 * A channel without a socket, for tests of handlers: the test is the peer, and
 * moves the clock. Loop, pipeline, reading and writing are those of any channel;
 * only the system below them (<bowline/system.h>) is replaced.
 *
 *     test ── feed ──► [ head ─► handler ─► … ─► tail ]
 *     test ◄─ output ─ [ head ◄─ handler ◄─ …         ]      advance: timers
 *
 *     struct bow_embedded_options options = BOW_EMBEDDED_OPTIONS_INIT;
 *     struct bow_embedded *embedded;
 *     options.channel.on_channel = add_my_handlers;
 *     int rc = bow_embedded_new(context, &options, &embedded);
 *     rc = bow_embedded_feed(embedded, "ping", 4);
 *     struct bow_slice reply = bow_embedded_output(embedded);     … compare, then
 *     bow_embedded_consume(embedded, reply.len);
 *     bow_embedded_advance(embedded, 60 * 1000000000ull);         a minute, at once
 *     bow_embedded_free(embedded);
 *
 * Everything runs on the calling thread, inside feed, end, reset, advance, run
 * and free, until nothing is left to do at that time of the clock. Called by a handler, they
 * only note what happens, and the run that is under way goes on with it. Tasks may be
 * posted to the loop from other threads; the next run finds them.
 */

#include <bowline/channel.h>
#include <bowline/slice.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_embedded;

/** What it is made with; begin with BOW_EMBEDDED_OPTIONS_INIT. */
struct bow_embedded_options {
    size_t size; /* sizeof this struct, set by the INIT */
    struct bow_channel_options channel;
    const char *peer;    /* as bow_channel_peer() shows it: "10.0.0.1:4711", "[::1]:80", "unix:";
                            NULL: "unix:" */
    size_t socket_bytes; /* the socket takes no more while that much output is not consumed; 0: any
                            amount */
    const struct bow_peer_credentials *credentials; /* of a "unix:" peer; NULL: there are none */
};

#define BOW_EMBEDDED_OPTIONS_INIT                                                                  \
    BOW__INIT(struct bow_embedded_options, BOW__SET(channel, BOW_CHANNEL_OPTIONS_INIT))

/**
 * Make a loop and a channel on it, and start it: on_channel and on_active have run on
 * return. The clock begins at one hour.
 *
 * Thread:  any; all other functions on the same one
 * Owns:    shares `context`; gives `*ret_embedded`, free with bow_embedded_free() when nobody else
 *          refers to its loop and channel any more
 * Returns: 0; -ENOMEM; -EINVAL (options, peer); what on_channel returned
 */
BOW_EXPORT BOW_MUST_USE int bow_embedded_new(struct bow_context *context,
                                             const struct bow_embedded_options *options,
                                             struct bow_embedded **ret_embedded);

/** Shut the loop down: an open channel closes with -ESHUTDOWN, its last callbacks run. NULL is
 * allowed. Not inside a callback. Thread: the one that made it, as all below. */
BOW_EXPORT void bow_embedded_free(struct bow_embedded *embedded);

/** The channel under test; its memory lives as long as `embedded`, also when it is closed. */
BOW_EXPORT struct bow_channel *bow_embedded_channel(const struct bow_embedded *embedded);
/** The channel's loop: for timers and tasks, never to be run by hand. */
BOW_EXPORT struct bow_loop *bow_embedded_loop(const struct bow_embedded *embedded);

/* Being the peer */

/**
 * The peer sends `len` bytes, in one piece. Bytes that no read takes now (paused) wait.
 *
 * Returns: 0; -ENOMEM; -EMSGSIZE when more than BOW_LIMIT_UNREAD_BYTES wait; -EPIPE after end,
 * reset, or the channel's close; -ELOOP as bow_embedded_run(), with the bytes taken
 */
BOW_EXPORT BOW_MUST_USE int bow_embedded_feed(struct bow_embedded *embedded, const void *bytes,
                                              size_t len);
/** The peer shuts its side down, behind what it has sent. Idempotent. Returns: 0 or -ELOOP. */
BOW_EXPORT int bow_embedded_end(struct bow_embedded *embedded);
/** The connection breaks: reading is -ECONNRESET once what was sent is read, writing -EPIPE.
 * Returns: 0 or -ELOOP. */
BOW_EXPORT int bow_embedded_reset(struct bow_embedded *embedded);

/** What the channel has sent and was not consumed yet; valid until the next call of a function of
 * this header. */
BOW_EXPORT struct bow_slice bow_embedded_output(const struct bow_embedded *embedded);
/** Take `len` bytes off the front of the output. A full socket has room again, which the next run
 * finds. */
BOW_EXPORT void bow_embedded_consume(struct bow_embedded *embedded, size_t len);

/** Whether the channel has shut its side down (or closed): no more output will come. */
BOW_EXPORT bool bow_embedded_is_ended(const struct bow_embedded *embedded);
/** Whether the channel is closed: on_inactive has run. */
BOW_EXPORT bool bow_embedded_is_closed(const struct bow_embedded *embedded);
/** Why it closed, as on_inactive is told; 0 while it is open too. */
BOW_EXPORT int bow_embedded_close_error(const struct bow_embedded *embedded);

/* Time */

/** Run what is due or ready now. Returns: 0; -ELOOP when it is not done after 10,000 turns;
 * -EBUSY inside a callback. */
BOW_EXPORT int bow_embedded_run(struct bow_embedded *embedded);
/** Move the clock by `by_ns`, from timer to timer: each runs at its own time. Returns as
 * bow_embedded_run(); the clock stands where it failed. */
BOW_EXPORT int bow_embedded_advance(struct bow_embedded *embedded, uint64_t by_ns);
/** The time, as bow_loop_now() of its loop says it. */
BOW_EXPORT uint64_t bow_embedded_now(const struct bow_embedded *embedded);
/** Nanoseconds until the next timer; 0 when there is work; BOW_NEVER. */
BOW_EXPORT uint64_t bow_embedded_next_timeout(const struct bow_embedded *embedded);

#ifdef __cplusplus
}
#endif
#endif
