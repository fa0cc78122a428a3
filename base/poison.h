/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_POISON_H
#define BOWLINE_BASE_POISON_H

/*
 * Memory that is ours and that nobody is to touch for now: AddressSanitizer reports who does, at
 * the line. Nothing in a build without it. What is handed back to an allocator that maps memory
 * must have been unpoisoned: a later mapping may come to lie there.
 */

#include <stddef.h>

#if defined(__SANITIZE_ADDRESS__)
#define BOW__POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BOW__POISONS 1
#endif
#endif

#ifdef BOW__POISONS
#include <sanitizer/asan_interface.h>

static inline void bow__poison(const void *memory, size_t n)
{
    __asan_poison_memory_region(memory, n);
}

static inline void bow__unpoison(const void *memory, size_t n)
{
    __asan_unpoison_memory_region(memory, n);
}
#else
#define BOW__POISONS 0

static inline void bow__poison(const void *memory, size_t n)
{
    (void)memory;
    (void)n;
}

static inline void bow__unpoison(const void *memory, size_t n)
{
    (void)memory;
    (void)n;
}
#endif

#endif
