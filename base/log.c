/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One line, formatted on the stack, so that logging works when memory is out.
 * Knows nothing of where the sink writes.
 */

#include "base/log.h"
#include "base/context.h"
#include "base/text.h"

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
