/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_OTEL_SENDER_H
#define BOWLINE_OTEL_SENDER_H

/*
 * Batches of one signal on their way to the collector, one at a time: sent, sent again after a
 * pause, or given up. What is in a batch, and when there is one, is the signal's business.
 *
 *     IDLE ──go──► SENDING ──taken, refused for good──► IDLE, on_idle
 *                   ▲    └──cannot now──► PAUSING
 *                   └──────────timer─────────┘ └──give_up_ns──► IDLE, on_idle
 *
 * Which errors mean that it cannot now is OTLP's table
 * (https://opentelemetry.io/docs/specs/otlp/#failures). All on the loop of its client.
 */

#include <bowline/arena.h>
#include <bowline/client.h>
#include <bowline/timer.h>
#include <stdatomic.h>

struct bow__otel_sender;

/** How a batch ended. */
enum bow__otel_fate {
    BOW__OTEL_TAKEN,
    BOW__OTEL_LOST,
};

/** A signal: spans; metrics. */
struct bow__otel_signal {
    const char *items; /* "spans" */
    /** Make the request of the next batch in `arena`, which lasts until `ended`; NULL: there is no
     * memory. Returns how many items are in it; 0: there is none now, or it has ended already, for
     * want of memory. */
    uint64_t (*take)(struct bow__otel_sender *sender, struct bow_arena *arena,
                     const ProtobufCMessage **ret_request);
    /** Returns how many items the collector did not keep, with its text, maybe "". */
    int64_t (*rejected)(const ProtobufCMessage *reply, const char **ret_text);
    /** The batch is over; of a taken one `n_rejected` were not kept. */
    void (*ended)(struct bow__otel_sender *sender, enum bow__otel_fate fate, uint64_t n_items,
                  uint64_t n_rejected);
    /** Ready for another; the last thing that is done. */
    void (*on_idle)(struct bow__otel_sender *sender);
};

enum bow__otel_sender_state {
    BOW__OTEL_IDLE,
    BOW__OTEL_SENDING,
    BOW__OTEL_PAUSING,
};

struct bow__otel_sender_options {
    uint64_t timeout_ns;
    uint64_t backoff_min_ns;
    uint64_t backoff_max_ns;
    uint64_t give_up_ns;
};

struct bow__otel_sender {
    const struct bow__otel_signal *signal;
    const struct bow_method *method;
    struct bow_context *context;
    struct bow_client *client;
    const char *target; /* for logs */
    struct bow__otel_sender_options options;
    enum bow__otel_sender_state state;
    struct bow_timer timer;
    struct bow_arena *arena;         /* of the batch, as the next ones */
    const ProtobufCMessage *request; /* NULL: there is none */
    uint64_t n_items;
    uint64_t call_id;
    uint64_t first_try_ns;
    uint64_t pause_ns;              /* 0: none yet */
    bool is_failing;                /* the log knows */
    bool is_ending;                 /* nothing is tried again */
    atomic_uint_fast64_t n_batches; /* relaxed */
    atomic_uint_fast64_t n_retries;
};

/** `options` are copied, all else is kept. */
void bow__otel_sender_init(struct bow__otel_sender *sender, const struct bow__otel_signal *signal,
                           const struct bow_method *method, struct bow_context *context,
                           struct bow_client *client, struct bow_loop *loop, const char *target,
                           const struct bow__otel_sender_options *options);

/** Begin to send, if it is idle and there is something. */
void bow__otel_sender_go(struct bow__otel_sender *sender);

/** Nothing is sent any more: what is being sent is cancelled, and ends later; what is not, is over,
 * and on_idle is called from here. */
void bow__otel_sender_end(struct bow__otel_sender *sender);

#endif
