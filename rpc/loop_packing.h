/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_LOOP_PACKING_H
#define BOWLINE_RPC_LOOP_PACKING_H

/*
 * A loop's share of compression: the coders of rpc/core/packing.h, given back when
 * no message has needed them for a while. Loop only.
 */

#include "rpc/core/packing.h"
#include <bowline/compression.h>
#include <bowline/loop.h>
#include <bowline/timer.h>

struct bow__loop_packing {
    struct bow__packing packing;
    struct bow_timer timer; /* runs while there may be coders */
};

struct bow__packing_options {
    enum bow_compression compression;
    size_t threshold_bytes; /* 0: the default */
    int level;
    size_t max_message_bytes;
};

/** Nothing is allocated. Thread: any. */
void bow__loop_packing_init(struct bow__loop_packing *own, struct bow_context *context,
                            struct bow_loop *loop, const struct bow__packing_options *options);
/** Free the coders, and look at them no more; it may be used again. Loop. */
void bow__loop_packing_stop(struct bow__loop_packing *own);

static inline bool bow__compression_is_known(enum bow_compression compression)
{
    return (unsigned)compression <= BOW_COMPRESSION_AUTO;
}

#endif
