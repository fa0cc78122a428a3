/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_CHANNEL_CHANNEL_H
#define BOWLINE_TRANSPORT_CHANNEL_CHANNEL_H

/*
 * The channel from inside, for the files that make it up:
 *
 *     channel.c          birth, references, close, end
 *     channel_read.c     from the socket into the pipeline
 *     channel_write.c    from the queue and the pipeline into the socket
 *     filter.c           for handlers that change the bytes
 *     channel_ops.c      what may be called from any thread
 *     pipeline.c         handlers: adding, removing, passing events on
 *     pipeline_bytes.c   and bytes
 *
 * Phases. Everything that asks for output, for a change of interest or for the
 * end only notes it and puts `phase` on the loop's list (bow__channel_touch).
 * That runs once the ready channels, or the tasks, of the turn are through: it sends, runs
 * completions, reports on_inactive. `reap` runs in the loop's last phase: on_removed
 * of handlers, and the end of the memory. So no callback runs inside the call
 * that causes it, and nothing is freed under a running callback.
 *
 * Design
 *
 * Fields belong to the loop's thread but for these:
 *
 *     atomic             order                                         partner
 *     refs               relaxed up, acq_rel down                      each other
 *     state              release by the loop                           acquire loads, any thread
 *     n_flush_requests   acq_rel                                       each other
 *     close_requested    acq_rel; the winner's `close_request_error`
 *                        is published by the post that follows         the loop's take
 *     shut_requested     acq_rel                                       each other
 *     peer               release by the loop                           acquire loads, any thread
 */

#include "transport/channel/socket.h"
#include "transport/channel/unread.h"

#include <bowline/channel.h>
#include <bowline/timer.h>
#include <stdatomic.h>

/** How long a channel without on_eof may take to send its last bytes, once the peer is done. */
#define BOW__CHANNEL_EOF_FLUSH_NS (UINT64_C(10) * 1000000000u)
/** How long we wait, after our last byte, for the peer to end its side: closing earlier would
 * answer what it still sends with a reset, and that may overtake bytes of ours. */
#define BOW__CHANNEL_LINGER_NS (UINT64_C(1) * 1000000000u)

enum bow__channel_state {
    BOW__CHANNEL_NEW = 0,    /* not on its loop yet */
    BOW__CHANNEL_ACTIVE = 1, /* on its loop */
    BOW__CHANNEL_CLOSED = 2, /* the descriptor is closed */
};

/** One queued write. A borrowed buf was copied behind it. */
struct bow__write {
    struct bow__write *next;
    struct bow_buf buf; /* what has not left yet; its block is this write's reference */
    bow_write_fn done;
    void *user;
    int error;
    uint64_t end_at; /* of a filter: where its bytes end in the filter's output */
    bool flush;      /* posted from another thread: flush after it */
    size_t n_inline; /* room in inline_bytes[]; small writes that follow may fill it */
    struct bow_task task;
    struct bow_channel *channel;
    uint8_t inline_bytes[];
};

struct bow__write_list {
    struct bow__write *first;
    struct bow__write *last;
};

/** What a channel's start needs, and nothing later. */
struct bow__channel_start {
    struct bow_task task;
    bow_channel_init_fn on_channel;
    void *on_channel_user;
    void (*on_started)(struct bow_channel *channel, int error, void *user); /* user: owner_user */
};

struct bow_channel {
    struct bow_loop *loop;
    struct bow_context *context;
    const struct bow_system *system;
    atomic_uint refs; /* the loop's one, those of users, one for each posted task */
    atomic_int state;
    struct bow__watch watch;
    struct bow__deferred phase;
    struct bow__deferred reap;
    size_t alloc_bytes;
    _Atomic(const char *) peer;
    void (*on_gone)(void *user);
    void *owner_user;
    struct bow_peer_credentials credentials;
    uint32_t n_removed; /* handlers so far: tells that the pipeline has changed under a delivery */

    /* While it is NEW nobody but its maker knows it, so nothing can be asked of it that needs what
     * shares memory with `start`. */
    union {
        struct bow__channel_start start;
        struct {
            struct bow_task flush_task; /* from other threads */
            uint64_t resumed_ns;        /* when reading was last resumed */
            uint64_t sent_ns;           /* when output last moved; 0: never yet */
            uint64_t progress_ns; /* when output last moved, or began to wait; 0: none waits */
        };
    };

    /* pipeline */
    struct bow_handler head;
    struct bow_handler tail;
    struct bow_handler *gone; /* removed ones whose on_removed is due, by `gone_next` */
    struct bow_handler **gone_end;

    /* reading */
    struct bow__unread *unread; /* what the first handler has not consumed */
    size_t recv_bytes;          /* how much is asked for at once; adapts */
    size_t max_bytes_per_turn;
    uint32_t max_reads_per_turn;
    uint32_t n_pauses; /* why reading pauses: the user's, and one for each hold */

    /* writing */
    struct bow__write_list writes;
    struct bow__write_list completed;
    uint32_t n_writes;  /* each is a block: memory ends before the count does */
    uint32_t n_flushed; /* writes at the front of the queue that may leave */
    size_t queued_bytes;
    size_t low_bytes;
    size_t high_bytes;
    struct bow_timer timer; /* for the next turn when `wants_turn`, else for close_at_ns */
    uint64_t close_at_ns;   /* the deadline of close_after_flush; BOW_NEVER: none */

    int close_error;
    int flush_close_error; /* how an end by close_after_flush is reported */

    bool is_held_to_time; /* bow__watchdog_is_on() of the loop */
    bool has_credentials;
    bool is_renamed;     /* `peer` is a block of its own */
    bool is_paused;      /* by the user */
    bool is_eof;         /* the peer's side has ended */
    bool is_parked;      /* hung up while paused: out of the poller until resumed */
    bool wants_turn;     /* goes on in the next turn, with delivery or output */
    bool wants_delivery; /* then */
    bool wants_output;   /* a flush was asked for, or its bytes are still on their way */
    bool is_blocked;     /* the socket is full: waiting for POLL_OUT */
    bool is_over_high;   /* not writable */
    bool is_over_told;   /* handlers were told so */
    bool wants_shut;     /* shut our side down when all has left */
    bool is_shut;
    bool is_closing; /* close when all has left */
    bool is_lingering;
    bool was_active; /* on_active has run, so on_inactive will */
    bool has_ended;  /* on_inactive has run */
    bool is_reaped;  /* on_removed of the last handlers runs, and that is all */

    /* from other threads */
    atomic_bool close_requested;
    atomic_bool shut_requested;
    atomic_uint n_flush_requests;
    int close_request_error;
    struct bow_task close_task;
    struct bow_task shut_task;
};

static inline enum bow__channel_state bow__channel_state(const struct bow_channel *channel)
{
    return (enum bow__channel_state)atomic_load_explicit(&channel->state, memory_order_acquire);
}

static inline bool bow__channel_is_open(const struct bow_channel *channel)
{
    return bow__channel_state(channel) != BOW__CHANNEL_CLOSED;
}

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

/** Close the descriptor now, without asking handlers. Idempotent. Thread: loop. */
void bow__channel_close_now(struct bow_channel *channel, int error);
/** Tell handlers of `error`, then close. */
void bow__channel_fail(struct bow_channel *channel, int error);

/** Put the channel on the loop's list for the end of this phase. */
void bow__channel_touch(struct bow_channel *channel);
/** Have it reaped: handlers to tell that they were removed, or the channel's end. */
void bow__channel_touch_reap(struct bow_channel *channel);
/** Go on in the next turn. */
void bow__channel_again(struct bow_channel *channel);
/** Close at `deadline_ns`, whatever has left by then. */
void bow__channel_close_at(struct bow_channel *channel, uint64_t deadline_ns);

/** Both ways have ended: nothing more can come or go. */
void bow__channel_close_if_over(struct bow_channel *channel);

/** What bow_channel_peer() says from now on; what it said before stays valid. Copies `name`. Once.
 * Returns 0, -ENOMEM, -EALREADY. Thread: loop. */
int bow__channel_name_peer(struct bow_channel *channel, const char *name);

void bow__channel_hold(struct bow_channel *channel);
void bow__channel_release(struct bow_channel *channel);

/* channel_read.c */

void bow__channel_on_events(struct bow__watch *watch, uint32_t events);
/** Deliver what was kept, without new I/O. */
void bow__channel_redeliver(struct bow_channel *channel);
/** Deliver all that the kernel still holds of a connection that is broken. */
void bow__channel_read_rest(struct bow_channel *channel);
void bow__channel_update_interest(struct bow_channel *channel);
/** Pause reading for a reason of the library's own, beside the user's; resume for that one. */
void bow__channel_hold_read(struct bow_channel *channel);
void bow__channel_release_read(struct bow_channel *channel);

/* channel_write.c */

void bow__channel_send(struct bow_channel *channel);
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

/** When output last moved, or began to wait; 0: none waits for the peer. */
static inline uint64_t bow__channel_stalled_since(const struct bow_channel *channel)
{
    return channel->is_blocked ? channel->progress_ns : 0;
}

/* channel_ops.c */

void bow__channel_ops_init(struct bow_channel *channel);

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

/* pipeline_bytes.c */

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
/** Deliver what was kept for single handlers. */
void bow__pipeline_redeliver(struct bow_channel *channel);

#endif
