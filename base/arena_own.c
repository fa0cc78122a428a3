/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * <bowline/arena.h>: the arenas that programs make for themselves. Such a one lies at the
 * beginning of its first block, which a reset keeps. Knows nothing of the calls and results that
 * have arenas, too, but that theirs are not to be freed alone.
 */

#include "base/alloc.h"
#include "base/arena.h"
#include "base/refuse.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#define OWN_BYTES ((size_t)2048) /* of the first block with what leads it */

struct own_arena {
    struct bow__arena arena; /* the first, so that the pointers are one */
    _Alignas(BOW__ARENA_ALIGNMENT) uint8_t slab[];
};

struct bow_arena *bow_arena_new(struct bow_context *context, size_t max_bytes)
{
    size_t n_slab = OWN_BYTES - sizeof(struct own_arena);
    struct own_arena *own = context != NULL ? bow__alloc(context, OWN_BYTES) : malloc(OWN_BYTES);
    if (own == NULL) {
        return NULL;
    }
    size_t max_grown = max_bytes > n_slab ? max_bytes - n_slab : 0;
    bow__arena_init(&own->arena, context != NULL ? bow_context_ref(context) : NULL, own->slab,
                    n_slab, max_bytes != 0 ? max_grown : SIZE_MAX);
    own->arena.is_own = true;
    return bow__arena_as_public(&own->arena);
}

/* Whether it may be freed alone: else who does so frees what a call or a result still needs. */
static bool is_own(const struct bow__arena *arena, const char *function)
{
    if (!arena->is_own) {
        (void)bow__refuse(arena->context, -EINVAL,
                          "%s: the arena of a call or a result goes with it", function);
    }
    return arena->is_own;
}

void bow_arena_free(struct bow_arena *arena)
{
    if (arena == NULL || !is_own(bow__arena_of(arena), "bow_arena_free")) {
        return;
    }
    struct own_arena *own = (struct own_arena *)(void *)arena;
    struct bow_context *context = own->arena.context;
    bow__arena_fini(&own->arena);
    if (context == NULL) {
        free(own);
        return;
    }
    bow__free(context, own, OWN_BYTES);
    bow_context_unref(context);
}

void bow_arena_reset(struct bow_arena *arena)
{
    if (arena != NULL && is_own(bow__arena_of(arena), "bow_arena_reset")) {
        bow__arena_reset(bow__arena_of(arena));
    }
}

void *bow_arena_alloc(struct bow_arena *arena, size_t n)
{
    return arena != NULL ? bow__arena_alloc(bow__arena_of(arena), n) : NULL;
}

bool bow_arena_failed(const struct bow_arena *arena)
{
    return arena == NULL || bow__arena_has_failed((const struct bow__arena *)arena);
}

size_t bow_arena_used(const struct bow_arena *arena)
{
    return arena != NULL ? ((const struct bow__arena *)arena)->used : 0;
}
