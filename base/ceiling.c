/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * When a context's memory counts as short, and how that is said. The ceiling itself is kept in
 * alloc.c.
 */

#include "base/ceiling.h"

#include <bowline/limits.h>

bool bow__is_near_ceiling(const struct bow_context *context)
{
    size_t max = bow_context_max_bytes(context);

    return max > 0 && bow_context_bytes(context) >= max / 100 * BOW_LIMIT_CEILING_PERCENT;
}

void bow__describe_ceiling(const struct bow_context *context, struct bow__text *text)
{
    bow__text_printf(
        text,
        "%zu bytes are in use, over %u %% of the context's max_bytes (%zu); raise it, or "
        "send less at once",
        bow_context_bytes(context), BOW_LIMIT_CEILING_PERCENT, bow_context_max_bytes(context));
}
