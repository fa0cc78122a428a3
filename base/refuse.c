/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * How many refusals are told of. Knows nothing of what was refused.
 */

#include "base/refuse.h"
#include "base/clock.h"
#include "base/context.h"
#include "base/log.h"
#include "base/text.h"

#include <bowline/system.h>

#define EACH_NS (UINT64_C(1000000000))
#define AT_ONCE_NS (BOW__REFUSALS_AT_ONCE * EACH_NS)

/* Each line books its second; the bookings may be so many ahead of the clock. Relaxed: nothing is
 * published by it. */
static bool is_due(struct bow_context *context)
{
    uint64_t now_ns = context->system->now_ns(context->system->user);
    uint64_t booked_ns = atomic_load_explicit(&context->refusals_ns, memory_order_relaxed);
    uint64_t next_ns;

    do {
        uint64_t from_ns = booked_ns > now_ns ? booked_ns : now_ns;
        next_ns = bow__time_add(from_ns, EACH_NS);
        if (bow__time_left(next_ns, now_ns) > AT_ONCE_NS) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&context->refusals_ns, &booked_ns, next_ns,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

int bow__refuse(struct bow_context *context, int rc, const char *format, ...)
{
    struct bow__text text;
    va_list args;

    if (!bow__log_shows(context, BOW_LOG_ERROR) || !is_due(context)) {
        return rc;
    }
    bow__text_clear(&text);
    va_start(args, format);
    bow__text_vprintf(&text, format, args);
    va_end(args);
    bow__log(context, BOW_LOG_ERROR, "refused: %s", text.bytes);
    return rc;
}
