/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_CEILING_H
#define BOWLINE_BASE_CEILING_H

/*
 * How near a context is to its ceiling. What is new is refused from nine tenths of it on, so
 * that what has begun finds memory to end with.
 */

#include "base/text.h"
#include <bowline/context.h>

/** Whether there is a ceiling and nine tenths of it are in use. Thread: any; a snapshot. */
bool bow__is_near_ceiling(const struct bow_context *context);

/** Append how much is in use of which ceiling, and what to do. */
void bow__describe_ceiling(const struct bow_context *context, struct bow__text *text);

#endif
