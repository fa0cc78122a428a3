/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_TRIM_H
#define BOWLINE_BASE_TRIM_H

/*
 * When what malloc keeps of freed blocks goes back to the system. malloc gives back the top of its
 * heap alone: one small block up there, and all that was freed below it stays in the process.
 *
 * How much that is, is estimated from what was in malloc's blocks at most and what is now, both
 * counted by the context. Thread: any. Knows nothing of ceilings, and of no other user of malloc,
 * whose memory malloc_trim() gives back, too.
 */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bow_system;

#define BOW__TRIM_QUIET_NS UINT64_C(500000000) /* unwanted for so long, and it goes */

/* A look that took long, for many free pieces between blocks in use are a system call each, puts
 * the next off by so many times as much: it is for about a twentieth of a loop's time at most. */
#define BOW__TRIM_REST 20u

struct bow__malloc_trim {
    bool is_on; /* constant */
    /* Hints, that publish nothing, so relaxed: one that is lost costs a trim, or puts one off. */
    atomic_size_t most;          /* in malloc's blocks since the last trim, up to the last look */
    atomic_size_t most_lately;   /* since the last look */
    _Atomic uint64_t look_at_ns; /* whoever moves it looks */
};

void bow__trim_init(struct bow__malloc_trim *trim, bool is_on);

/** So many bytes are in use in malloc's blocks, some of them just taken. */
static inline void bow__trim_note(struct bow__malloc_trim *trim, size_t n_bytes)
{
    if (n_bytes > atomic_load_explicit(&trim->most_lately, memory_order_relaxed)) {
        atomic_store_explicit(&trim->most_lately, n_bytes, memory_order_relaxed);
    }
}

/** About how many bytes malloc keeps beside `n_bytes`, those in use and the spares; 0 when it is
 * not to be asked for them. */
size_t bow__trim_kept(const struct bow__malloc_trim *trim, size_t n_bytes);

/** Give back what was not wanted since the last look, if it is BOW_LIMIT_KEPT_BYTES or more.
 * `n_used`: as for bow__trim_note(); `n_bytes`: as for bow__trim_kept(). The last look must have
 * been BOW__TRIM_QUIET_NS ago, or nothing happens. `system` has the clock that tells how long it
 * took. */
void bow__trim_look(struct bow__malloc_trim *trim, size_t n_used, size_t n_bytes,
                    const struct bow_system *system, uint64_t now_ns);

/** Give all back now. */
void bow__trim_now(struct bow__malloc_trim *trim, size_t n_bytes);

#endif
