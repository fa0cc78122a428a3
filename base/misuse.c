/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Saying of a program that it used what it had given back. Knows nothing of what that was. */

#include "base/misuse.h"
#include "base/context.h"
#include "base/log.h"
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int bow__misuse(struct bow_context *context, const char *format, ...)
{
    struct bow__text text;
    va_list args;

    bow__text_clear(&text);
    va_start(args, format);
    bow__text_vprintf(&text, format, args);
    va_end(args);
    bow__log(context, BOW_LOG_ERROR, "misuse: %s", text.bytes);
    if (context->aborts_on_misuse) {
        /* As a failed assertion does. */
        (void)fprintf(stderr, "bowline: misuse: %s\n", text.bytes);
        abort();
    }
    return -EINVAL;
}

void bow__look_for_misuse(struct bow_context *context)
{
    context->aborts_on_misuse = true;
    context->quarantines = true;
}

bool bow__quarantines(const struct bow_context *context)
{
    return context->quarantines;
}
