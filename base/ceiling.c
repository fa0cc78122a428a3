/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * When a context's memory counts as short, and how that is said. The ceiling itself is kept in
 * alloc.c.
 */

#include "base/ceiling.h"

bool bow__is_near_ceiling(const struct bow_context *context)
{
    size_t max = bow_context_max_bytes(context);

    return max > 0 && bow_context_bytes(context) >= max - max / 10;
}

void bow__describe_ceiling(const struct bow_context *context, struct bow__text *text)
{
    bow__text_printf(text,
                     "%zu bytes are in use, over nine tenths of the context's max_bytes (%zu); "
                     "raise it, or send less at once",
                     bow_context_bytes(context), bow_context_max_bytes(context));
}
