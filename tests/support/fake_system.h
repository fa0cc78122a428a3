/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_SUPPORT_FAKE_SYSTEM_H
#define BOWLINE_TESTS_SUPPORT_FAKE_SYSTEM_H

/* The virtual clock of libbowline-testing, under the names that our own tests use. */

#include "testing/fake_system.h"

static inline void fake_system_init(struct fake_system *fake)
{
    bow__fake_system_init(fake);
}

static inline void fake_system_advance(struct fake_system *fake, uint64_t by_ns)
{
    bow__fake_system_advance(fake, by_ns);
}

#endif
