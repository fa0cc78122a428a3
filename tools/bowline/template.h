/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TOOLS_BOWLINE_TEMPLATE_H
#define BOWLINE_TOOLS_BOWLINE_TEMPLATE_H

/*
 * Data that differs from call to call: {{seq}} is the number of the call, from 0 on, {{time_ns}}
 * the time since 1970, {{random}} a number below 2^31, {{uuid}} a random UUID.
 */

#include <bowline/arena.h>
#include <bowline/slice.h>
#include <stdbool.h>

/** Whether there is anything to fill in. */
bool template_is(struct bow_slice text);

/** Say whether all of it is known; `*ret_unknown` is then what is not, a copy of at most 40 bytes.
 */
bool template_check(struct bow_slice text, char unknown[41]);

/** The text of call `seq`, in `arena`; its data is NULL without memory. */
struct bow_slice template_fill(struct bow_slice text, uint64_t seq, struct bow_arena *arena);

#endif
