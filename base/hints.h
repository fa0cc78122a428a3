/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_HINTS_H
#define BOWLINE_BASE_HINTS_H

/*
 * Hints to the compiler, for where a profile shows that it needs one.
 */

/** The long way of a function whose short one runs for each frame: inlined, it would make that save
 * the registers which only the long one uses. */
#define BOW__LONG_WAY __attribute__((noinline))

#endif
