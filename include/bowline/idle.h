/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_IDLE_H
#define BOWLINE_IDLE_H

/*
 * Tells when nothing was received, nothing was sent, or neither, for some time.
 *
 *     bytes   bytes
 *       ▼       ▼
 *     ──┴───────┴── reader_ns ──► on_idle(READER, 0) ── reader_ns ──► on_idle(READER, 1)
 *
 * Received are bytes that pass this handler, so its place matters: in front it hears
 * any byte, behind a frame codec only whole frames. Sent is what the kernel
 * took of the channel's output, from wherever it came; a peer that does not read
 * lets it grow idle. While reading is paused the peer has nothing to answer for:
 * that time does not count for READER and ALL. WRITER goes on, and finds the peer that
 * does not read.
 *
 * Data costs no timer: one timer stands at the nearest deadline, and moves itself
 * on when it fires and finds that something came meanwhile.
 *
 *     bow_idle_init(&conn->idle, &(struct bow_idle_options){
 *         .reader_ns = 60 * 1000000000ull, .writer_ns = 20 * 1000000000ull,
 *         .on_idle = ping_or_close, .user = conn });
 *     bow_channel_add_first(channel, &conn->idle.handler);
 */

#include <bowline/handler.h>
#include <bowline/timer.h>

#ifdef __cplusplus
extern "C" {
#endif

/** What did not happen: nothing received, nothing sent, neither. */
enum bow_idle_kind {
    BOW_IDLE_READER = 0,
    BOW_IDLE_WRITER = 1,
    BOW_IDLE_ALL = 2,
};

#define BOW_IDLE_N_KINDS 3

struct bow_idle;

/** Idle for the `n`-th time in a row, from 0. May remove the handler and close. Thread: loop. */
typedef void (*bow_idle_fn)(struct bow_idle *idle, enum bow_idle_kind kind, uint32_t n, void *user);

/** How long is too long; what is not set is zero. */
struct bow_idle_options {
    uint64_t reader_ns; /* 0: not asked for, as the two below */
    uint64_t writer_ns;
    uint64_t all_ns;
    bow_idle_fn on_idle; /* NULL: the channel closes with -ETIMEDOUT, which is logged */
    void *user;
};

/** The handler, embedded in what a connection has. */
struct bow_idle {
    struct bow_handler handler;         /* public: add this */
    struct bow_idle_options options;    /* read-only */
    struct bow_timer timer;             /* private, as all below */
    uint64_t read_ns;                   /* when bytes last came */
    uint64_t told_ns[BOW_IDLE_N_KINDS]; /* when it was last told, or began */
    uint32_t n_told[BOW_IDLE_N_KINDS];  /* in a row */
};

/** Set up an idle handler; the time begins when it is added. Memory is the caller's until
 * on_removed: in the channel's own (bow_channel_data) it needs no care. Copies `options`. Thread:
 * any. */
BOW_EXPORT void bow_idle_init(struct bow_idle *idle, const struct bow_idle_options *options);

#ifdef __cplusplus
}
#endif
#endif
