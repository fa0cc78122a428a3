/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_CHANNEL_CHANNEL_CORE_H
#define BOWLINE_TRANSPORT_CHANNEL_CHANNEL_CORE_H

/*
 * What a channel is: its fields, its references, what it asks of its loop. For the files
 * that make it up; what each of those does for the others stands in channel.h.
 *
 * Phases. Everything that asks for output, for a change of interest or for the
 * end only notes it and puts `phase` on the loop's list (bow__channel_schedule_phase).
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
/** How long we wait, after our last byte was taken or the peer's last one came, for the peer to end
 * its side: closing earlier would answer what it still sends with a reset, and that may overtake
 * bytes of ours. */
#define BOW__CHANNEL_LINGER_NS (UINT64_C(1) * 1000000000u)

/** The user's data follows the channel. */
#define BOW__CHANNEL_DATA_AT ((sizeof(struct bow_channel) + (size_t)15) & ~(size_t)15)

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
struct bow__channel_startup {
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
        struct bow__channel_startup start;
        struct {
            struct bow_task flush_task; /* from other threads */
            uint64_t resumed_ns;        /* when reading was last resumed */
            uint64_t sent_ns;           /* when output last moved; 0: never yet */
            uint64_t progress_ns;   /* when output last moved, or began to wait; 0: none waits */
            uint64_t linger_end_ns; /* until when it lingers at most */
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

    bool has_watchdog;        /* bow__watchdog_is_on() of the loop */
    bool has_credentials : 1; /* these two in one byte: there is no other hole for what follows */
    bool is_renamed : 1;      /* `peer` is a block of its own */
    bool is_paused;           /* by the user */
    bool is_eof;              /* the peer's side has ended */
    bool is_out_of_poller;    /* hung up while paused: out of the poller until resumed */
    bool wants_turn;          /* goes on in the next turn, with delivery or output */
    bool wants_delivery;      /* then */
    bool wants_output;        /* a flush was asked for, or its bytes are still on their way */
    bool is_blocked;          /* the socket is full: waiting for POLL_OUT */
    bool is_over_high;        /* not writable */
    bool is_over_told;        /* handlers were told so */
    bool wants_shut;          /* shut our side down when all has left */
    bool is_shut;
    bool is_closing; /* close when all has left */
    bool is_lingering;
    bool was_active;    /* on_active has run, so on_inactive will */
    bool has_ended;     /* on_inactive has run */
    bool is_reaped;     /* on_removed of the last handlers runs, and that is all */
    int16_t read_error; /* came while bytes before it waited for a pause to end; 0: none. -errno */
    int16_t lost_error; /* the connection is broken; told behind what was received. 0: it is not */

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

/** When output last moved, or began to wait; 0: none waits for the peer. */
static inline uint64_t bow__channel_stalled_since(const struct bow_channel *channel)
{
    return channel->is_blocked ? channel->progress_ns : 0;
}

/** Put the channel on the loop's list for the end of this phase. */
void bow__channel_schedule_phase(struct bow_channel *channel);
/** Have it reaped: handlers to tell that they were removed, or the channel's end. */
void bow__channel_schedule_reap(struct bow_channel *channel);
/** Go on in the next turn. */
void bow__channel_schedule_turn(struct bow_channel *channel);

/* Bytes say little of time: where their memory is fresh, 64 KiB may take longer than a megabyte. */
#define BOW__CHANNEL_TURN_NS UINT64_C(100000)
#define BOW__CHANNEL_UNTIMED_BYTES ((size_t)32 << 10)

/** Whether others are to have their turn: `n_moved` bytes came or left in this one, and it is long.
 * What few bytes take is not looked at, for the clock costs something, too. */
static inline bool bow__channel_turn_is_long(const struct bow_channel *channel, size_t n_moved)
{
    return n_moved > BOW__CHANNEL_UNTIMED_BYTES &&
           bow__loop_read_clock(channel->loop) >=
               bow_loop_now(channel->loop) + BOW__CHANNEL_TURN_NS;
}

void bow__channel_hold(struct bow_channel *channel);
void bow__channel_release(struct bow_channel *channel);

/** What bow_channel_peer() says from now on; what it said before stays valid. Copies `name`. Once.
 * Returns 0, -ENOMEM, -EALREADY. Thread: loop. */
int bow__channel_name_peer(struct bow_channel *channel, const char *name);

#endif
