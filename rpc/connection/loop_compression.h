/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CONNECTION_LOOP_COMPRESSION_H
#define BOWLINE_RPC_CONNECTION_LOOP_COMPRESSION_H

/*
 * A loop's share of compression: the coders of rpc/core/compression/compression.h, given back when
 * no message has needed them for a while. Loop only.
 */

#include "rpc/core/compression/compression.h"
#include <bowline/compression.h>
#include <bowline/loop.h>
#include <bowline/timer.h>

struct bow__loop_compression {
    struct bow__compression compression;
    struct bow_timer timer; /* runs while there may be coders */
};

struct bow__compression_options {
    enum bow_compression compression;
    size_t threshold_bytes; /* 0: the default */
    int level;
    size_t max_message_bytes;
};

/** Nothing is allocated. Thread: any. */
void bow__loop_compression_init(struct bow__loop_compression *own, struct bow_context *context,
                                struct bow_loop *loop,
                                const struct bow__compression_options *options);
/** Free the coders, and look at them no more; it may be used again. Loop. */
void bow__loop_compression_stop(struct bow__loop_compression *own);

static inline bool bow__compression_is_known(enum bow_compression compression)
{
    return (unsigned)compression <= BOW_COMPRESSION_ON;
}

#endif
