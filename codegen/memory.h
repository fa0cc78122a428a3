/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CODEGEN_MEMORY_H
#define BOWLINE_CODEGEN_MEMORY_H

/*
 * The one arena that a run of the plugin lives in: nothing is freed before the
 * end. A plugin without memory has nothing to hand back, so these functions do
 * not fail: they say so on stderr and exit with 1.
 */

#include "base/arena.h"

#include <protobuf-c/protobuf-c.h>

struct memory {
    struct bow_context *context;
    struct bow__arena arena;
    ProtobufCAllocator allocator; /* over the arena, for protobuf-c */
};

void memory_init(struct memory *memory);
void memory_fini(struct memory *memory);

/** Zeroed. */
void *memory_alloc(struct memory *memory, size_t size);
void *memory_array(struct memory *memory, size_t count, size_t size);
char *memory_dup(struct memory *memory, const char *text, size_t len);
char *memory_printf(struct memory *memory, const char *format, ...) BOW_PRINTF(2, 3);

/** For a call into base/ that returned -ENOMEM: exit if it did. */
void memory_check(int rc);

#endif
