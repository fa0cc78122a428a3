/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What nghttp2 gets from us beside callbacks: memory from the pool of its loop, and options that
 * not every version of it has.
 */

#include "base/pool.h"
#include "rpc/http2/internal.h"

#include <stdalign.h>
#include <string.h>

/* Memory. Our frees are sized and nghttp2's are not, so each block carries its size in front. */

struct sized {
    alignas(max_align_t) size_t size; /* of the whole allocation */
};

static struct sized *sized_of(void *memory)
{
    return (struct sized *)memory - 1;
}

static void *sized_malloc(size_t size, void *user)
{
    size_t whole = 0;

    if (__builtin_add_overflow(size, sizeof(struct sized), &whole)) {
        return NULL;
    }
    struct sized *block = bow__pool_alloc(user, whole);
    if (block == NULL) {
        return NULL;
    }
    block->size = whole;
    return block + 1;
}

static void sized_free(void *memory, void *user)
{
    if (memory != NULL) {
        bow__pool_free(user, sized_of(memory), sized_of(memory)->size);
    }
}

static void *sized_calloc(size_t count, size_t size, void *user)
{
    size_t n_bytes = 0;

    if (__builtin_mul_overflow(count, size, &n_bytes)) {
        return NULL;
    }
    void *memory = sized_malloc(n_bytes, user);
    return memory == NULL ? NULL : memset(memory, 0, n_bytes);
}

static void *sized_realloc(void *memory, size_t size, void *user)
{
    size_t whole = 0;

    if (memory == NULL) {
        return sized_malloc(size, user);
    }
    if (__builtin_add_overflow(size, sizeof(struct sized), &whole)) {
        return NULL;
    }
    struct sized *block = bow__pool_resize(user, sized_of(memory), sized_of(memory)->size, whole);
    if (block == NULL) {
        return NULL;
    }
    block->size = whole;
    return block + 1;
}

nghttp2_mem bow__http2_memory(struct bow__pool *pool)
{
    return (nghttp2_mem){pool, sized_malloc, sized_free, sized_calloc, sized_realloc};
}

#ifdef BOW__HAVE_NGHTTP2_RESET_LIMIT

void bow__http2_option_no_reset_limit(nghttp2_option *option)
{
    nghttp2_option_set_stream_reset_rate_limit(option, UINT64_MAX / 2, UINT64_MAX / 2);
}

#else

void bow__http2_option_no_reset_limit(nghttp2_option *option)
{
    (void)option;
}

#endif

#ifdef BOW__HAVE_NGHTTP2_BLANKS

void bow__http2_option_blanks(nghttp2_option *option)
{
    nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(option, 1);
}

#else

void bow__http2_option_blanks(nghttp2_option *option)
{
    (void)option;
}

#endif
