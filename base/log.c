/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One line, formatted on the stack, so that logging works when memory is out.
 * Knows nothing of where the sink writes.
 */

#include "base/log.h"
#include "base/clock.h"
#include "base/context.h"
#include "base/text.h"

#define AGAIN_NS (UINT64_C(10) * 1000000000u)

/* relaxed: who takes the turn publishes nothing by it */
bool bow__log_is_due(_Atomic(uint64_t) *due_ns, uint64_t now_ns)
{
    uint64_t at_ns = atomic_load_explicit(due_ns, memory_order_relaxed);

    return now_ns >= at_ns &&
           atomic_compare_exchange_strong_explicit(due_ns, &at_ns, bow__time_add(now_ns, AGAIN_NS),
                                                   memory_order_relaxed, memory_order_relaxed);
}

bool bow__log_shows(const struct bow_context *context, enum bow_log_level level)
{
    return context->log != NULL && level <= context->log_level;
}

void bow__log(struct bow_context *context, enum bow_log_level level, const char *format, ...)
{
    struct bow__text line;
    va_list args;

    if (!bow__log_shows(context, level)) {
        return;
    }
    bow__text_clear(&line);
    va_start(args, format);
    bow__text_vprintf(&line, format, args);
    va_end(args);
    context->log(level, line.bytes, context->log_user);
}
