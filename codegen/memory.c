/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The plugin's arena and the one place where it ends for want of memory.
 */

#include "codegen/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void out_of_memory(void)
{
    fputs("protoc-gen-bowline: out of memory\n", stderr);
    exit(1);
}

void memory_check(int rc)
{
    if (rc < 0) {
        out_of_memory();
    }
}

static void *allocator_alloc(void *user, size_t size)
{
    return memory_alloc(user, size);
}

static void allocator_free(void *user, void *pointer)
{
    (void)user;
    (void)pointer;
}

void memory_init(struct memory *memory)
{
    struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;

    memory_check(bow_context_new(&options, &memory->context));
    bow__arena_init(&memory->arena, memory->context, NULL, 0, SIZE_MAX);
    memory->allocator = (ProtobufCAllocator){
        .alloc = allocator_alloc,
        .free = allocator_free,
        .allocator_data = memory,
    };
}

void memory_fini(struct memory *memory)
{
    bow__arena_fini(&memory->arena);
    memory->context = bow_context_unref(memory->context);
}

void *memory_alloc(struct memory *memory, size_t size)
{
    void *pointer = bow__arena_alloc(&memory->arena, size);
    if (pointer == NULL) {
        out_of_memory();
    }
    return memset(pointer, 0, size);
}

void *memory_array(struct memory *memory, size_t count, size_t size)
{
    size_t total = 0;

    if (__builtin_mul_overflow(count, size, &total)) {
        out_of_memory();
    }
    return memory_alloc(memory, total);
}

char *memory_dup(struct memory *memory, const char *text, size_t len)
{
    char *copy = bow__arena_dup(&memory->arena, text, len);
    if (copy == NULL) {
        out_of_memory();
    }
    return copy;
}

char *memory_printf(struct memory *memory, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    char *text = bow__arena_vprintf(&memory->arena, format, args);
    va_end(args);
    if (text == NULL) {
        out_of_memory();
    }
    return text;
}
