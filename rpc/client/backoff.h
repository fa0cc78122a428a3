/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_BACKOFF_H
#define BOWLINE_RPC_CLIENT_BACKOFF_H

/*
 * The pauses between attempts that fail: from backoff_min_ns to backoff_max_ns of a client's
 * options, each 1.6 times the one before. Who waits adds jitter.
 */

#include "base/clock.h"
#include <bowline/client.h>

/** The pause after one of `pause_ns`; 0: no attempt has failed before. However short it is, it is
 * not 0, unless backoff_min_ns is. */
static inline uint64_t bow__backoff_next(const struct bow_client_options *options,
                                         uint64_t pause_ns)
{
    uint64_t next =
        pause_ns == 0 ? options->backoff_min_ns : bow__time_add(pause_ns, pause_ns / 10 * 6);

    return bow__time_min(next, options->backoff_max_ns);
}

#endif
