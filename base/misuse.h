/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_MISUSE_H
#define BOWLINE_BASE_MISUSE_H

/*
 * What happens to a program that uses what it has given back, where that can be seen. It has no
 * caller who could act on it in time, so it is said aloud: in the log always, and where somebody
 * looks for faults, which is a build with assertions or a context of libbowline-testing, the
 * process ends there. Who writes a program reads it in <bowline/call.h>.
 *
 *     build or context        seen                                       then
 *     NDEBUG                  while the memory waits to be used again    logged, -EINVAL
 *     assertions              the same                                   abort()
 *     -O0, libbowline-testing for BOW__QUARANTINED_CALLS calls longer    abort()
 *     AddressSanitizer        as long as that remembers                  its report
 */

#include "base/shared.h"
#include <bowline/context.h>

/** How many calls a worker lets go by before it uses a call's memory again, where faults are looked
 * for. */
#define BOW__QUARANTINED_CALLS 64u

/** What memory that is kept from use is filled with. */
#define BOW__GONE_BYTE 0xdd

/** Say what the program did; `format` begins with what it did it to. Returns -EINVAL. */
int bow__misuse(struct bow_context *context, const char *format, ...) BOW_PRINTF(2, 3);

/** Look for faults in what uses `context`, whatever the build. Before anything else uses it. */
BOW__SHARED void bow__look_for_misuse(struct bow_context *context);

/** Whether memory of what has ended is to be kept from use for a while. */
bool bow__quarantines(const struct bow_context *context);

#endif
