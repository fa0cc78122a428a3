/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The allocator for tests: each block carries its size and whether it is alive.
 */

#include "testing/alloc.h"

#include <execinfo.h>
#include <stdlib.h>
#include <string.h>

#define ALIVE UINT64_C(0x616c6976655f626c)
#define FREED UINT64_C(0x66726565645f626c)
#define JUNK 0xA5
#define MAX_FRAMES 10
#define OWN_FRAMES 2 /* of this file: no news */

struct header {
    uint64_t state;
    size_t size;
    struct bow__link link; /* with `traces` */
    int n_frames;
    void *frames[MAX_FRAMES];
    _Alignas(16) uint8_t data[];
};

static void broken(const char *what, size_t size, size_t said)
{
    fprintf(stderr, "test allocator: %s: block of %zu bytes, caller says %zu\n", what, size, said);
    abort();
}

static struct header *header_of(void *memory)
{
    return (struct header *)(void *)((uint8_t *)memory - offsetof(struct header, data));
}

static bool must_fail(struct test_alloc *alloc)
{
    size_t n = atomic_fetch_add(&alloc->n_calls, 1) + 1;
    bool fails =
        alloc->fail_at != 0 && (n == alloc->fail_at || (alloc->fail_after && n > alloc->fail_at));
    if (fails) {
        atomic_fetch_add(&alloc->n_failed, 1);
    }
    return fails;
}

static void remember(struct test_alloc *alloc, struct header *header)
{
    header->n_frames = backtrace(header->frames, MAX_FRAMES);
    pthread_mutex_lock(&alloc->mutex);
    bow__list_push_back(&alloc->blocks, &header->link);
    pthread_mutex_unlock(&alloc->mutex);
}

static void forget(struct test_alloc *alloc, struct header *header)
{
    pthread_mutex_lock(&alloc->mutex);
    bow__list_remove(&header->link);
    pthread_mutex_unlock(&alloc->mutex);
}

static void *counted_alloc(void *user, size_t size)
{
    struct test_alloc *alloc = user;
    size_t n_bytes = 0;

    if (size == 0) {
        broken("alloc of nothing", 0, size);
    }
    if (must_fail(alloc) || __builtin_add_overflow(sizeof(struct header), size, &n_bytes)) {
        return NULL;
    }
    struct header *header = malloc(n_bytes);
    if (header == NULL) {
        return NULL;
    }
    header->state = ALIVE;
    header->size = size;
    memset(header->data, JUNK, size);
    atomic_fetch_add(&alloc->n_blocks, 1);
    atomic_fetch_add(&alloc->n_bytes, size);
    if (alloc->traces) {
        remember(alloc, header);
    }
    return header->data;
}

static void check(const char *verb, void *memory, size_t said)
{
    struct header *header = header_of(memory);

    if (header->state != ALIVE) {
        broken(verb, 0, said);
    }
    if (header->size != said) {
        broken(verb, header->size, said);
    }
}

static void counted_free(void *user, void *memory, size_t size)
{
    struct test_alloc *alloc = user;

    if (memory == NULL) {
        broken("free of NULL", 0, size);
    }
    check("free", memory, size);
    if (alloc->traces) {
        forget(alloc, header_of(memory));
    }
    header_of(memory)->state = FREED;
    memset(memory, JUNK, size);
    atomic_fetch_sub(&alloc->n_blocks, 1);
    atomic_fetch_sub(&alloc->n_bytes, size);
    free(header_of(memory));
}

/* Always moves, so that a pointer kept across a resize is found. */
static void *counted_resize(void *user, void *memory, size_t old_size, size_t new_size)
{
    check("resize", memory, old_size);
    void *moved = counted_alloc(user, new_size);
    if (moved == NULL) {
        return NULL;
    }
    memcpy(moved, memory, old_size < new_size ? old_size : new_size);
    counted_free(user, memory, old_size);
    return moved;
}

void bow__test_alloc_init(struct test_alloc *alloc)
{
    memset(alloc, 0, sizeof(*alloc));
    alloc->allocator = (struct bow_allocator){
        .alloc = counted_alloc,
        .resize = counted_resize,
        .free = counted_free,
        .user = alloc,
    };
    pthread_mutex_init(&alloc->mutex, NULL);
    bow__list_init(&alloc->blocks);
}

static void print_block(const struct header *header, FILE *out)
{
    int skipped = header->n_frames < OWN_FRAMES ? header->n_frames : OWN_FRAMES;
    char **names = backtrace_symbols(header->frames + skipped, header->n_frames - skipped);

    fprintf(out, "  %zu bytes, asked for by\n", header->size);
    for (int i = 0; names != NULL && i < header->n_frames - skipped; i++) {
        fprintf(out, "    %s\n", names[i]);
    }
    free(names);
}

void bow__test_alloc_print(struct test_alloc *alloc, FILE *out, size_t max)
{
    size_t n = 0;

    pthread_mutex_lock(&alloc->mutex);
    for (struct bow__link *at = alloc->blocks.next; at != &alloc->blocks; at = at->next) {
        if (++n <= max) {
            print_block(BOW__CONTAINER(at, struct header, link), out);
        }
    }
    pthread_mutex_unlock(&alloc->mutex);
    if (n > max) {
        fprintf(out, "  and %zu more\n", n - max);
    }
}
