/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_QUIET_H
#define BOWLINE_RPC_CORE_QUIET_H

/*
 * When large messages may go in large pieces: a small one queues behind the piece before it, so
 * pieces are large only while no small message is about. Kept for each connection; knows nothing
 * of how a protocol frames its messages.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A message up to this size that comes or goes is one that large ones are not to hold up. */
#define BOW__SMALL_MESSAGE_BYTES ((size_t)16 << 10)
/** Without a small message for so long, large ones go in large pieces. */
#define BOW__QUIET_NS (UINT64_C(10) * 1000000u)

/** A message of `n` bytes comes or goes. `small_ns`: when a small one last did. */
static inline void bow__quiet_note(uint64_t *small_ns, size_t n, uint64_t now_ns)
{
    if (n <= BOW__SMALL_MESSAGE_BYTES) {
        *small_ns = now_ns;
    }
}

/** Whether no small messages are about, to the best of our knowledge. */
static inline bool bow__is_quiet(uint64_t small_ns, uint64_t now_ns)
{
    return now_ns - small_ns >= BOW__QUIET_NS;
}

#endif
