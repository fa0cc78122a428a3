/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_ARENA_H
#define BOWLINE_ARENA_H

/*
 * Memory that is freed at once. Messages are built in it, decoded into it and copied into it
 * (<bowline/message.h>), and none of them is freed alone.
 *
 *     bow_arena_new ──► alloc, alloc, .. ──► bow_arena_reset ──► alloc, .. ──► bow_arena_free
 *
 *     struct bow_arena *arena = bow_arena_new(NULL, 0);
 *     char *text = bow_arena_alloc(arena, 80);
 *     ...
 *     bow_arena_free(arena);
 *
 * A call and a result have one of their own, which goes with them: bow_call_arena(),
 * bow_result_arena().
 *
 * Invariant: an allocation that fails is remembered. So a message is built without an `if` for
 * each of its fields, and whoever builds it asks once, at the end.
 */

#include <bowline/context.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_arena;

/**
 * Make an arena, with its first block of some 2 KiB.
 *
 * With a `context` its memory comes from there, and counts there; NULL: from malloc(), without a
 * ceiling. `max_bytes` is what it may take at most, rounded up to its first block; 0: no limit of
 * its own.
 *
 * Thread:  any
 * Owns:    shares `context`; gives the arena, to be freed with bow_arena_free()
 * Returns: NULL out of memory, or above the context's ceiling
 */
BOW_EXPORT BOW_MUST_USE struct bow_arena *bow_arena_new(struct bow_context *context,
                                                        size_t max_bytes);

/**
 * Free an arena with all that lies in it. NULL is allowed. Not for the arena of a call or a
 * result: that is logged, and nothing is freed.
 *
 * Thread:  any; one user at a time
 */
BOW_EXPORT void bow_arena_free(struct bow_arena *arena);

/**
 * Free what lies in an arena, and forget that it failed. It keeps its first block, so that one
 * which is used again and again for what is small takes no memory any more. NULL is allowed. Not
 * for the arena of a call or a result, as bow_arena_free().
 *
 * Thread:  any; one user at a time
 */
BOW_EXPORT void bow_arena_reset(struct bow_arena *arena);

/**
 * Take `n` bytes, aligned for any type and not zeroed. Of 0 bytes the pointer is valid, too.
 *
 * Thread:  any; one user at a time
 * Owns:    they live until the arena is reset or freed
 * Returns: NULL when its limit or the context's ceiling is reached, or out of memory, which the
 *          arena remembers; and for an `arena` that is NULL
 */
BOW_EXPORT void *bow_arena_alloc(struct bow_arena *arena, size_t n);

/** Whether an allocation failed since the arena was made or reset; of NULL, true. Thread: any; one
 * user at a time. */
BOW_EXPORT bool bow_arena_failed(const struct bow_arena *arena);

/** Bytes that an arena has taken beyond its first block; of what was decoded with a large message
 * they include the block it came in. Thread: any; one user at a time. */
BOW_EXPORT size_t bow_arena_used(const struct bow_arena *arena);

#ifdef __cplusplus
}
#endif
#endif
