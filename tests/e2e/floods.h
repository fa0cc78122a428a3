/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_E2E_FLOODS_H
#define BOWLINE_TESTS_E2E_FLOODS_H

/*
 * Floods and bombs that a server meets (F22, F30), as units to be sent one after the other behind
 * the opening of a connection.
 */

#include "hostile.h"

struct flood {
    const char *name;
    bool http2;
    /** Put the `i`-th unit. */
    void (*put)(struct hostile_bytes *to, uint32_t i);
    uint32_t n;         /* units at most */
    const char *reason; /* what the victim's last words contain; NULL: is put up with, for it costs
                           less to read than to send */
};

extern const struct flood floods[];
extern const size_t n_floods;

#endif
