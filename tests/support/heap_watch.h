/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TESTS_SUPPORT_HEAP_WATCH_H
#define BOWLINE_TESTS_SUPPORT_HEAP_WATCH_H

/*
 * malloc() of the program's own objects, counted, and failing where it is told to. A test that uses
 * it is linked with heap_watch_link_args. Shared libraries (protobuf-c, cmocka) are not watched.
 */

#include <stddef.h>

struct heap_watch {
    size_t n_calls; /* of malloc, calloc and realloc */
    size_t fail_at; /* the call that fails, by its number; 0: none */
    long n_blocks;  /* allocated and not freed */
};

/** The one there is. One thread. */
struct heap_watch *heap_watch(void);

#endif
