/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_MESSAGES_REASON_H
#define BOWLINE_RPC_MESSAGES_REASON_H

/*
 * Reasons on their way to a program's own room.
 */

#include "base/text.h"
#include <stdio.h>

/** Give `text` to a program, cut to `size` bytes with its NUL; `reason` may be NULL. */
static inline void bow__reason_give(const struct bow__text *text, char *reason, size_t size)
{
    if (reason != NULL && size > 0) {
        (void)snprintf(reason, size, "%s", text->bytes);
    }
}

#endif
