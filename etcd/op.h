/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_ETCD_OP_H
#define BOWLINE_ETCD_OP_H

/*
 * Something that asks etcd one thing after the other and does not give up: a call, a stream, a
 * pause or the wait for a token is under way, and its end begins the next. What is asked, its kind
 * knows.
 *
 *     go ──► timer ──► kind->begin ──► a call or stream ──► ended(): true, and the kind goes on
 *             ▲                                         └─► false: it failed, or was halted
 *             └── pause, token ◄── failed() ◄───────────────┘
 *
 * halt(): what is under way is cancelled, and nothing begins any more; on_idle when that is so.
 * reset(): what is under way is cancelled, and what comes of it is not looked at; begin again.
 */

#include "etcd/token.h"
#include <bowline/client.h>
#include <bowline/stream.h>
#include <bowline/timer.h>

struct bow_etcd;
struct Bow__Etcd__WatchResponse;
struct bow__etcd_op;

struct bow__etcd_op_kind {
    /** Begin the next call, in `op->call`, or stream; or nothing, and something else will go(). */
    int (*begin)(struct bow__etcd_op *op);
    /** Something failed; it is tried again. */
    void (*on_error)(struct bow__etcd_op *op, const struct bow_status *status);
    /** After halt(): nothing is under way any more. The op may be gone afterwards. */
    void (*on_idle)(struct bow__etcd_op *op);
    /** Of bow__etcd_op_watch(). */
    void (*on_watched)(struct bow__etcd_op *op, const struct Bow__Etcd__WatchResponse *response);
    /** Its stream has ended, because `compact_revision` and what was before is forgotten. */
    void (*on_compacted)(struct bow__etcd_op *op, int64_t compact_revision);
};

struct bow__etcd_op {
    const struct bow__etcd_op_kind *kind;
    struct bow_etcd *etcd;
    struct bow_timer timer;  /* begins */
    struct bow_timer answer; /* a stream has to have said something by then */
    struct bow__etcd_waiter waiter;
    uint64_t call; /* 0: none */
    struct bow_stream *stream;
    uint64_t generation; /* of the token that it began with */
    uint64_t pause_ns;
    bool has_new_token; /* it tries again with one: is that refused, too, a pause comes first */
    bool is_halted;
    bool is_stale;
    bool is_cancelled; /* the stream, with `status` */
    struct bow_status status;
    int64_t compact_revision;
    char reason[256];
};

void bow__etcd_op_init(struct bow__etcd_op *op, const struct bow__etcd_op_kind *kind,
                       struct bow_etcd *etcd);
/** Begin after `delay_ns`, unless something is under way or it is halted. */
void bow__etcd_op_go(struct bow__etcd_op *op, uint64_t delay_ns);
void bow__etcd_op_reset(struct bow__etcd_op *op);
/** Idempotent. on_idle may run inside. */
void bow__etcd_op_halt(struct bow__etcd_op *op);

/** The call has ended so. Returns whether that is good, and the op is to go on. */
bool bow__etcd_op_ended(struct bow__etcd_op *op, const struct bow_status *status);
/** The stream has been closed so; what follows is begun. */
void bow__etcd_op_closed(struct bow__etcd_op *op, const struct bow_status *status);
/** It failed so, and nothing is under way: try again, after a pause or with another token. */
void bow__etcd_op_failed(struct bow__etcd_op *op, const struct bow_status *status);
/** etcd has answered: the next pause is a short one. */
void bow__etcd_op_good(struct bow__etcd_op *op);
/** End the stream; it is as if etcd had ended it with `code` and `reason`, cut. */
void bow__etcd_op_cancel(struct bow__etcd_op *op, enum bow_code code, const char *reason);
/** Options of a call, or of a stream. Lives as long as `op`. */
struct bow_call_options bow__etcd_op_options(const struct bow__etcd_op *op, bool is_stream);
/** After a stream was opened: it has to answer in time. */
void bow__etcd_op_await(struct bow__etcd_op *op);

/** Open a stream that watches [key, range_end) from `revision` on. */
int bow__etcd_op_watch(struct bow__etcd_op *op, ProtobufCBinaryData key,
                       ProtobufCBinaryData range_end, int64_t revision);

#endif
