/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_RPC_FEED_IN_TURNS_H
#define BOWLINE_TESTS_RPC_FEED_IN_TURNS_H

/*
 * A session is fed as a connection feeds it, for tests that are their own connection: what is
 * enough for one turn of a loop goes on in the next.
 */

#include "rpc/core/session.h"

/** Returns as feed() does; the rest is what it will take only with more behind it. */
static inline ssize_t feed_in_turns(struct bow__session *session, const uint8_t *bytes, size_t n,
                                    uint64_t now_ns)
{
    size_t at = 0;
    bool is_enough = false;

    session->work.came_ns = now_ns;
    do {
        ssize_t used = session->ops->feed(session, bytes + at, n - at, now_ns);
        if (used < 0) {
            return used;
        }
        at += (size_t)used;
        is_enough = bow__work_is_enough(&session->work);
        (void)bow__work_next_turn(&session->work);
    } while (is_enough && at < n);
    return (ssize_t)at;
}

#endif
