/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * When a loop's coders go: not with each message, for they are expensive to make, and not
 * only at the end, for they are large.
 */

#include "rpc/loop_packing.h"
#include "base/list.h"

#define IDLE_NS UINT64_C(10000000000)

static void on_timer(struct bow_timer *timer, void *user)
{
    struct bow__packing *packing = user;

    if (packing->used) {
        packing->used = false;
        bow_timer_start(timer, IDLE_NS);
        return;
    }
    bow__coders_trim(&packing->coders);
}

static void on_use(struct bow__packing *packing)
{
    struct bow__loop_packing *own = BOW__CONTAINER(packing, struct bow__loop_packing, packing);

    bow_timer_start(&own->timer, IDLE_NS);
}

void bow__loop_packing_init(struct bow__loop_packing *own, struct bow_context *context,
                            struct bow_loop *loop, const struct bow__packing_options *options)
{
    own->packing = (struct bow__packing){
        .max_message_bytes = options->max_message_bytes,
        .threshold_bytes = options->threshold_bytes > 0 ? options->threshold_bytes
                                                        : BOW_COMPRESSION_THRESHOLD_BYTES,
        .level = options->level,
        .on = options->compression == BOW_COMPRESSION_AUTO,
        .on_use = on_use,
    };
    bow__coders_init(&own->packing.coders, context);
    bow_timer_init(&own->timer, loop, on_timer, &own->packing);
}

void bow__loop_packing_stop(struct bow__loop_packing *own)
{
    bow_timer_stop(&own->timer);
    own->packing.used = false;
    bow__coders_trim(&own->packing.coders);
}
