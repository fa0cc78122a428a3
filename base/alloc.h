/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_ALLOC_H
#define BOWLINE_BASE_ALLOC_H

/*
 * Memory through the context: counted, and refused above its ceiling. Frees are
 * sized, so a block carries no header. Knows nothing of what the memory is for.
 */

#include "base/shared.h"
#include <bowline/context.h>
#include <stdbool.h>

/** Allocate `size` (> 0) bytes; NULL above the ceiling or out of memory. Thread: any. */
BOW__SHARED void *bow__alloc(struct bow_context *context, size_t size);

/** The same, zeroed. */
BOW__SHARED void *bow__alloc_zero(struct bow_context *context, size_t size);

/** Allocate `count` × `size` zeroed bytes; NULL also when the product overflows. */
BOW__SHARED void *bow__alloc_array(struct bow_context *context, size_t count, size_t size);

/** Resize; on failure NULL, and `memory` stays as it was. `memory` may be NULL with old_size 0. */
void *bow__resize(struct bow_context *context, void *memory, size_t old_size, size_t new_size);

/** Give back; NULL is allowed. `size` is what was asked for. */
BOW__SHARED void bow__free(struct bow_context *context, void *memory, size_t size);

/** Count `size` bytes that another library allocates, in small blocks, for something of ours.
 * False: that would be above the ceiling. Thread: any. */
BOW__SHARED bool bow__charge_foreign(struct bow_context *context, size_t size);
/** It has freed them. */
BOW__SHARED void bow__discharge_foreign(struct bow_context *context, size_t size);

/**
 * Memory for `size` bytes that an earlier block has left, with its pages; `*ret_size`, at most
 * twice as much, is what it counts as and is given back with. NULL: there is none, which is no
 * reason not to allocate.
 */
void *bow__alloc_spare(struct bow_context *context, size_t size, size_t *ret_size);

/** Of a fresh block of bow__alloc() that is about to be written, all of it: take its pages at once.
 */
void bow__populate(struct bow_context *context, void *memory, size_t size);

/** Bytes that wait for the next large blocks, beside those that are counted. Thread: any. */
size_t bow__spare_bytes(struct bow_context *context);
/** Blocks of `size` bytes will come and go: some of them may wait, too. */
void bow__expect_large(struct bow_context *context, size_t size);
/** Whether something waits that bow__trim() may give back. */
bool bow__may_trim(struct bow_context *context);
/** Give back to the system what nobody wanted: spares for a second, what malloc keeps for half of
 * one. May be called at any time; often enough is each half second while bow__may_trim(). */
void bow__trim(struct bow_context *context, uint64_t now_ns);

/** Copy `len` bytes and a NUL after them; free with bow__free(.., len + 1). */
BOW__SHARED char *bow__dup(struct bow_context *context, const char *text, size_t len);

/** The system table of `context`: the operating system's unless options named another. */
BOW__SHARED const struct bow_system *bow__context_system(const struct bow_context *context);

/** Which process uses `context`, see base/process.h. */
BOW__SHARED const struct bow__process *bow__context_process(const struct bow_context *context);

#endif
