/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * When a loop's coders go: not with each message, for they are expensive to make, and not
 * only at the end, for they are large.
 */

#include "rpc/connection/loop_compression.h"
#include "base/alloc.h"
#include "base/list.h"

#define IDLE_NS UINT64_C(10000000000)

static void on_timer(struct bow_timer *timer, void *user)
{
    struct bow__compression *compression = user;

    if (compression->used) {
        compression->used = false;
        bow_timer_start(timer, IDLE_NS);
        return;
    }
    bow__coders_trim(&compression->coders);
}

static void on_use(struct bow__compression *compression)
{
    struct bow__loop_compression *own =
        BOW__CONTAINER(compression, struct bow__loop_compression, compression);

    bow_timer_start(&own->timer, IDLE_NS);
}

void bow__loop_compression_init(struct bow__loop_compression *own, struct bow_context *context,
                                struct bow_loop *loop,
                                const struct bow__compression_options *options)
{
    own->compression = (struct bow__compression){
        .max_message_bytes = options->max_message_bytes,
        .threshold_bytes = options->threshold_bytes > 0 ? options->threshold_bytes
                                                        : BOW_COMPRESSION_THRESHOLD_BYTES,
        .level = options->level,
        .mode = options->compression >= BOW_COMPRESSION_AUTO ? options->compression
                                                             : BOW_COMPRESSION_DEFAULT,
        .on_use = on_use,
    };
    bow__coders_init(&own->compression.coders, context);
    bow__expect_large(context, options->max_message_bytes);
    bow_timer_init(&own->timer, loop, on_timer, &own->compression);
}

void bow__loop_compression_stop(struct bow__loop_compression *own)
{
    bow_timer_stop(&own->timer);
    own->compression.used = false;
    bow__coders_trim(&own->compression.coders);
}
