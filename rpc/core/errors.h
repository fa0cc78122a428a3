/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CORE_ERRORS_H
#define BOWLINE_RPC_CORE_ERRORS_H

/*
 * The one place where a negative errno becomes a status code, and where times
 * and texts of statuses take their form for people.
 */

#include "base/text.h"
#include <bowline/status.h>

/** The code that says best what `error` (a negative errno, or 0) means to a caller. Thread: any. */
enum bow_code bow__code_from_errno(int error);

/** Append a duration in the unit that shows it best: "100 ms", "2.5 s", "30 us". */
void bow__text_duration(struct bow__text *text, uint64_t ns);

/** The length of `text` cut to `max` bytes at most, not in the middle of a UTF-8 character. */
size_t bow__utf8_cut(const char *text, size_t len, size_t max);

#endif
