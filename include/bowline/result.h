/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RESULT_H
#define BOWLINE_RESULT_H

/*
 * What came back from a remote call: its status, its reply, and the memory both
 * live in.
 *
 *     blocking call     the caller's result is filled; bow_result_fini() when done with it
 *     callback          the result is borrowed until the callback returns;
 *                       bow_result_move() keeps it longer
 *
 * After bow_result_fini(), or the callback that lent it, all of it is gone as after a free():
 * AddressSanitizer reports who reads it.
 *
 * Invariant: `reply` is not NULL exactly when `status.code` is BOW_OK (but for streaming methods
 * whose replies came before).
 */

#include <bowline/status.h>
#include <protobuf-c/protobuf-c.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_arena;
struct bow_result_memory; /* private */

/** How a call ended. Begin with BOW_RESULT_INIT. */
struct bow_result {
    struct bow_status status;         /* public, read-only */
    const ProtobufCMessage *reply;    /* public, read-only */
    struct bow_metadata initial;      /* public, read-only: what the server sent first */
    struct bow_result_memory *memory; /* private */
};

#define BOW_RESULT_INIT                                                                            \
    {                                                                                              \
        BOW_STATUS_OK_INIT, NULL, {NULL, 0}, NULL                                                  \
    }

/** Free the reply and the status's texts; `result` is BOW_RESULT_INIT again. Thread: any. */
BOW_EXPORT void bow_result_fini(struct bow_result *result);

/** Whether the reply came compressed; false when there is none. Thread: any. */
BOW_EXPORT bool bow_result_reply_was_compressed(const struct bow_result *result);

/**
 * The memory of a result as an arena (<bowline/arena.h>): what a program makes of the reply may lie
 * beside it, and goes with it.
 *
 * Thread:  any; one user of the result at a time
 * Owns:    it is the result's, and goes with it
 * Returns: NULL when the result has no memory: it is empty, or was made when there was none
 */
BOW_EXPORT struct bow_arena *bow_result_arena(struct bow_result *result);

/** Move what `from` holds into `to` (which must be empty); `from` keeps nothing. Thread: any. */
BOW_EXPORT void bow_result_move(struct bow_result *to, struct bow_result *from);

#ifdef __cplusplus
}
#endif
#endif
