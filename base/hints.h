/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_HINTS_H
#define BOWLINE_BASE_HINTS_H

/*
 * Hints to the compiler, for where a profile shows that it needs one.
 */

#include <stdbool.h>
#include <string.h>

/** The long way of a function whose short one runs for each frame: inlined, it would make that save
 * the registers which only the long one uses. */
#define BOW__LONG_WAY __attribute__((noinline))

/** The short way, for the caller that runs it for each field of each message. Another one beside it
 * makes gcc call a function of this size instead, and each time it saves six registers. */
#define BOW__SHORT_WAY inline __attribute__((always_inline))

/** Where a branch of what runs for each field of each message nearly always goes one way: that way
 * is then laid out straight on. Without, encoding takes a tenth longer, for the jumps. */
static BOW__SHORT_WAY bool bow__likely(bool condition)
{
    return __builtin_expect(condition, 1);
}

static BOW__SHORT_WAY bool bow__unlikely(bool condition)
{
    return __builtin_expect(condition, 0);
}

/** Where a switch has a case for each value of an enum: it need not ask then whether there are
 * others.
 */
_Noreturn static BOW__SHORT_WAY void bow__unreachable(void)
{
    __builtin_unreachable();
}

/** A function whose loop runs for each field of each message. Where else it begins is up to the
 * functions before it, and with that its loop takes up to a tenth longer. */
#define BOW__ON_A_CACHE_LINE __attribute__((aligned(64)))

/** Zero a struct of each call, whose size the compiler knows, by stores. Of one memset() gcc makes
 * "rep stos", which takes longer to start than such a struct to fill. */
static inline void bow__zero_struct(void *memory, size_t size)
{
    unsigned char *at = memory;

    for (; size > 64; size -= 64, at += 64) {
        memset(at, 0, 64);
    }
    memset(at, 0, size);
}

#endif
