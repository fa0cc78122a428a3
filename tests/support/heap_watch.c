/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the linker puts in place of malloc() and its like. */

#include "tests/support/heap_watch.h"

#include <stdbool.h>
#include <stdlib.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void __real_free(void *memory);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void __wrap_free(void *memory);

struct heap_watch *heap_watch(void)
{
    static struct heap_watch watch;

    return &watch;
}

static bool is_refused(void)
{
    return ++heap_watch()->n_calls == heap_watch()->fail_at;
}

static void *counted(void *memory)
{
    heap_watch()->n_blocks += memory != NULL;
    return memory;
}

void *__wrap_malloc(size_t size)
{
    return is_refused() ? NULL : counted(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return is_refused() ? NULL : counted(__real_calloc(count, size));
}

void *__wrap_realloc(void *memory, size_t size)
{
    if (is_refused()) {
        return NULL;
    }
    return memory == NULL ? counted(__real_malloc(size)) : __real_realloc(memory, size);
}

void __wrap_free(void *memory)
{
    heap_watch()->n_blocks -= memory != NULL;
    __real_free(memory);
}
