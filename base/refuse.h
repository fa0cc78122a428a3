/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_REFUSE_H
#define BOWLINE_BASE_REFUSE_H

/*
 * Words for who misuses the API where a negative errno is all that is returned: no text of the
 * object's, no `error` in the options. They go to the context's log as an error, at most
 * BOW__REFUSALS_AT_ONCE and then one in a second, for what a peer sent may be what is refused.
 * Not for what happens in good programs too (full, ended, late), and not after fork(), for the
 * sink's lock may be held there.
 */

#include "base/shared.h"
#include <bowline/context.h>

#include <errno.h>

#define BOW__REFUSALS_AT_ONCE 64

/** Say why. `format` begins with the function's name, or the object's. Returns `rc`. Thread: any.
 */
BOW__SHARED int bow__refuse(struct bow_context *context, int rc, const char *format, ...)
    __attribute__((cold)) BOW_PRINTF(3, 4);

/** The size of an options struct is none that is known. Returns -EINVAL. Thread: any. */
static inline int bow__refuse_options(struct bow_context *context, const char *function,
                                      const char *init)
{
    return bow__refuse(context, -EINVAL,
                       "%s: begin its options with %s: their size is none that this library knows",
                       function, init);
}

#endif
