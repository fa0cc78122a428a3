/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Memory that large blocks leave waits, with its pages, for the next ones: the spares. They go when
 * nobody has wanted them for a while (BOW__LARGE_QUIET_NS, large.h): loops call bow__large_trim().
 *
 * A block's length follows from the size that was asked for, which is told again with resize
 * and free. Small ones are malloc's as they are. Middle ones are malloc's, too, the next multiple
 * of 2 KiB long, and wait like the large ones: some of them freed together are a top of the heap
 * that malloc gives back, to take it again with the next call. Large ones are mappings, the next
 * multiple of 64 KiB long, from 1 MiB on the next of eight steps to twice as much. Only pages that
 * were written to take memory; those of mappings from 2 MiB on are huge where the kernel has such.
 *
 * Under AddressSanitizer all blocks are malloc's, for it watches the borders of those. Under
 * ThreadSanitizer, which does not see mremap(), bytes are moved, not pages.
 *
 * Design. A flag guards the lists of spares, for a few loads and stores and no system call. Who
 * finds it set looks again, gives its turn away now and then, and after a while does without a
 * spare: so nobody waits for a thread that does not run, or that a fork() left behind. For middle
 * blocks nobody looks twice, since malloc is at hand, which threads do not share. Setting is
 * acquire and clearing release, partners of each other: with a spare come the bytes that its last
 * owner wrote.
 */

#include "base/large.h"
#include "base/poison.h"

#include <bowline/limits.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SMALL_BYTES ((size_t)4096) /* and less are malloc's alone */
#define MIDDLE_STEP ((size_t)2048)
#define N_MIDDLE ((unsigned)((BOW__LARGE_BYTES - 1 - SMALL_BYTES) / MIDDLE_STEP))
#define PAGE_BYTES ((size_t)65536) /* of the largest that Linux has; lengths are multiples */
#define HUGE_PAGE_BYTES ((size_t)2 << 20)
#define STEPS 8u           /* from a length to its double */
#define EXPECTED_BLOCKS 8u /* of an expected size that may wait */
#define LOOKS_A_TURN 100u
#define MAX_LOOKS 10000u

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

#ifndef __has_feature
#define __has_feature(feature) 0
#endif

#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define MOVES_PAGES 0
#else
#define MOVES_PAGES 1
#endif

#define LARGEST_SMALL (BOW__POISONS ? SIZE_MAX : SMALL_BYTES)

static bool is_small(size_t size)
{
    return size <= LARGEST_SMALL;
}

static bool is_mapping(size_t length)
{
    return length >= BOW__LARGE_BYTES;
}

/* Lies in the block itself, whose length its class says. */
struct bow__spare {
    struct bow__spare *newer;
    struct bow__spare *older;
    uint64_t kept_at; /* n_kept, then */
};

/* Of blocks that are not small. */
struct class
{
    unsigned n;    /* rises with the length; BOW__LARGE_CLASSES and more never wait */
    size_t length; /* 0: there is no such length */
};

static struct class class_of(size_t size)
{
    if (!is_mapping(size)) {
        size_t n_steps = (size - 1) / MIDDLE_STEP + 1;
        return (struct class){(unsigned)(n_steps - SMALL_BYTES / MIDDLE_STEP - 1),
                              n_steps * MIDDLE_STEP};
    }
    size_t n_pages = size / PAGE_BYTES + (size % PAGE_BYTES > 0);
    unsigned shift = 0;
    while (n_pages > (size_t)(2 * STEPS) << shift) {
        shift++;
    }
    size_t step = ((n_pages - 1) >> shift) + 1;
    size_t length = 0;
    if (__builtin_mul_overflow(step << shift, PAGE_BYTES, &length)) {
        length = 0;
    }
    return (struct class){N_MIDDLE + shift * STEPS + (unsigned)step - 1, length};
}

static size_t length_of_class(unsigned n)
{
    if (n < N_MIDDLE) {
        return SMALL_BYTES + (n + 1) * MIDDLE_STEP;
    }
    n -= N_MIDDLE;
    unsigned shift = n < 2 * STEPS ? 0 : n / STEPS - 1;
    return (((size_t)(n - shift * STEPS) + 1) << shift) * PAGE_BYTES;
}

static bool lock(struct bow__large *large, unsigned max_looks)
{
    for (unsigned i = 1; atomic_flag_test_and_set_explicit(&large->busy, memory_order_acquire);
         i++) {
        if (i == max_looks) {
            return false;
        }
        if (i % LOOKS_A_TURN == 0) {
            sched_yield();
        }
    }
    return true;
}

static void unlock(struct bow__large *large)
{
    atomic_flag_clear_explicit(&large->busy, memory_order_release);
}

static unsigned looks_for(unsigned n)
{
    return n < N_MIDDLE ? 1 : MAX_LOOKS;
}

/* From here to the next such line the flag is set. */

static void count(struct bow__large *large, unsigned n, size_t n_bytes)
{
    atomic_store_explicit(&large->n_bytes, bow__large_spare_bytes(large) + n_bytes,
                          memory_order_relaxed);
    if (n < N_MIDDLE) {
        atomic_store_explicit(&large->n_middle_bytes, bow__large_middle_bytes(large) + n_bytes,
                              memory_order_relaxed);
    }
}

static void push(struct bow__large *large, unsigned n, struct bow__spare *spare)
{
    struct bow__spares *spares = &large->spares[n];

    *spare = (struct bow__spare){.older = spares->newest, .kept_at = ++large->n_kept};
    *(spares->newest != NULL ? &spares->newest->newer : &spares->oldest) = spare;
    spares->newest = spare;
    count(large, n, length_of_class(n));
}

static struct bow__spare *pop_newest(struct bow__large *large, unsigned n)
{
    struct bow__spares *spares = &large->spares[n];
    struct bow__spare *spare = spares->newest;

    spares->newest = spare->older;
    *(spare->older != NULL ? &spare->older->newer : &spares->oldest) = NULL;
    count(large, n, -length_of_class(n));
    return spare;
}

/* The one that waits longest, if since before `kept_before`, for who unmaps it. */
static struct bow__spare *pop_oldest(struct bow__large *large, uint64_t kept_before,
                                     size_t *ret_length)
{
    struct bow__spares *worst = NULL;

    for (unsigned n = 0; n < BOW__LARGE_CLASSES; n++) {
        struct bow__spare *oldest = large->spares[n].oldest;
        if (oldest != NULL && oldest->kept_at < kept_before) {
            kept_before = oldest->kept_at;
            worst = &large->spares[n];
        }
    }
    if (worst == NULL) {
        return NULL;
    }
    struct bow__spare *spare = worst->oldest;
    worst->oldest = spare->newer;
    *(spare->newer != NULL ? &spare->newer->older : &worst->newest) = NULL;
    unsigned n = (unsigned)(worst - large->spares);
    *ret_length = length_of_class(n);
    count(large, n, -*ret_length);
    return spare;
}

/* From here on it is not. */

static void *map(size_t length)
{
    void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Begins where a huge page may. The first touch of one costs less than that of two hundred small
 * ones, here and, when it is sent, in the kernel. Its last part has small ones, so that it takes no
 * more memory than its length. */
static void *map_aligned(size_t length)
{
    uint8_t *memory = map(length + HUGE_PAGE_BYTES);

    if (memory == NULL) {
        return map(length);
    }
    size_t before = -(uintptr_t)memory & (HUGE_PAGE_BYTES - 1);
    if (before > 0) {
        (void)munmap(memory, before);
    }
    (void)munmap(memory + before + length, HUGE_PAGE_BYTES - before);
    (void)madvise(memory + before, length, MADV_HUGEPAGE);
    return memory + before;
}

static void *obtain(size_t length)
{
    if (!is_mapping(length)) {
        return malloc(length);
    }
    return length < HUGE_PAGE_BYTES ? map(length) : map_aligned(length);
}

static void give_back(void *memory, size_t length)
{
    if (is_mapping(length)) {
        (void)munmap(memory, length);
    } else {
        free(memory);
    }
}

/* Until no more than `max_bytes` wait, or none from before `kept_before`. */
static void shrink(struct bow__large *large, size_t max_bytes, uint64_t kept_before)
{
    while (bow__large_spare_bytes(large) > max_bytes && lock(large, MAX_LOOKS)) {
        size_t length = 0;
        struct bow__spare *spare = pop_oldest(large, kept_before, &length);
        unlock(large);
        if (spare == NULL) {
            return;
        }
        give_back(spare, length);
    }
}

/* The first of the classes from `*n` to `last` that has one; `*n` is which that was. */
static void *take(struct bow__large *large, unsigned *n, unsigned last)
{
    void *memory = NULL;

    if (bow__large_spare_bytes(large) == 0 || !lock(large, looks_for(*n))) {
        return NULL;
    }
    large->n_taken++;
    last = last < BOW__LARGE_CLASSES ? last : BOW__LARGE_CLASSES - 1;
    while (*n < last && large->spares[*n].newest == NULL) {
        ++*n;
    }
    if (*n <= last && large->spares[*n].newest != NULL) {
        memory = pop_newest(large, *n);
    }
    unlock(large);
    return memory;
}

static void *take_exactly(struct bow__large *large, struct class class)
{
    return take(large, &class.n, class.n);
}

void *bow__large_take(struct bow__large *large, size_t size, size_t *ret_size)
{
    if (is_small(size) || size > SIZE_MAX / 2) {
        return NULL;
    }
    unsigned n = class_of(size).n;
    void *memory = take(large, &n, class_of(2 * size).n);
    *ret_size = memory != NULL ? length_of_class(n) : *ret_size;
    return memory;
}

static void keep(struct bow__large *large, struct class class, void *memory)
{
    size_t max = atomic_load_explicit(&large->max_bytes, memory_order_relaxed);

    if (class.n >= BOW__LARGE_CLASSES || class.length > max || !lock(large, looks_for(class.n))) {
        give_back(memory, class.length);
        return;
    }
    push(large, class.n, memory);
    unlock(large);
    shrink(large, max, UINT64_MAX);
}

static void *large_alloc(void *user, size_t size)
{
    if (is_small(size)) {
        return malloc(size);
    }
    struct class class = class_of(size);
    if (class.length == 0) {
        return NULL;
    }
    void *memory = take_exactly(user, class);
    return memory != NULL ? memory : obtain(class.length);
}

static void large_free(void *user, void *memory, size_t size)
{
    if (is_small(size)) {
        free(memory);
    } else {
        keep(user, class_of(size), memory);
    }
}

static void *move(void *user, void *memory, size_t old_size, size_t new_size)
{
    void *moved = large_alloc(user, new_size);

    if (moved != NULL) {
        memcpy(moved, memory, old_size < new_size ? old_size : new_size);
        large_free(user, memory, old_size);
    }
    return moved;
}

/* Where the kernel cannot, or has no memory, the pages come as they are written. */
static void populate(void *memory, size_t size)
{
    (void)madvise(memory, size, MADV_POPULATE_WRITE);
}

/* What is new is about to be written: who grows fills. */
static void *move_pages(void *memory, size_t old_length, size_t new_length, size_t new_size)
{
    void *moved = mremap(memory, old_length, new_length, MREMAP_MAYMOVE);

    if (moved == MAP_FAILED) {
        return NULL;
    }
    populate((uint8_t *)moved + old_length, new_size - old_length);
    return moved;
}

/* A block that shrinks moves: what it leaves is worth more whole. One that grows moves to a spare,
 * or its pages do. */
static void *large_resize(void *user, void *memory, size_t old_size, size_t new_size)
{
    if (is_small(old_size) && is_small(new_size)) {
        return realloc(memory, new_size);
    }
    if (is_small(old_size) || is_small(new_size)) {
        return move(user, memory, old_size, new_size);
    }
    struct class from = class_of(old_size);
    struct class to = class_of(new_size);
    if (from.n == to.n) {
        return memory;
    }
    if (MOVES_PAGES && is_mapping(from.length) && to.length > from.length) {
        void *spare = take_exactly(user, to);
        if (spare == NULL) {
            return move_pages(memory, from.length, to.length, new_size);
        }
        memcpy(spare, memory, old_size);
        keep(user, from, memory);
        return spare;
    }
    return move(user, memory, old_size, new_size);
}

struct bow_allocator bow__large_allocator(struct bow__large *large)
{
    return (struct bow_allocator){
        .alloc = large_alloc,
        .resize = large_resize,
        .free = large_free,
        .user = large,
    };
}

void bow__large_populate(void *memory, size_t size)
{
    if (!is_small(size) && is_mapping(size)) {
        populate(memory, size);
    }
}

void bow__large_expect(struct bow__large *large, size_t size)
{
    size_t max = atomic_load_explicit(&large->max_bytes, memory_order_relaxed);
    size_t wanted = size > SIZE_MAX / (2 * EXPECTED_BLOCKS) ? SIZE_MAX : size * EXPECTED_BLOCKS;

    while (wanted > max &&
           !atomic_compare_exchange_weak_explicit(&large->max_bytes, &max, wanted,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
}

void bow__large_release(struct bow__large *large, size_t n_bytes)
{
    size_t n_spares = bow__large_spare_bytes(large);

    shrink(large, n_spares > n_bytes ? n_spares - n_bytes : 0, UINT64_MAX);
}

void bow__large_trim(struct bow__large *large, uint64_t now_ns)
{
    if (!lock(large, MAX_LOOKS)) {
        return;
    }
    bool is_wanted = large->n_taken != large->n_taken_at_trim;
    large->n_taken_at_trim = large->n_taken;
    large->wanted_at_ns = is_wanted ? now_ns : large->wanted_at_ns;
    bool is_quiet = now_ns >= large->wanted_at_ns + BOW__LARGE_QUIET_NS;
    bool is_due = now_ns >= large->trimmed_at_ns + BOW__LARGE_QUIET_NS;
    uint64_t *oldest = &large->n_kept_at_trim[large->n_trims % BOW__LARGE_TRIMS];
    uint64_t kept_before = *oldest + 1;
    if (is_due) {
        large->trimmed_at_ns = now_ns;
        *oldest = large->n_kept;
        large->n_trims++;
    }
    unlock(large);
    if (is_due || is_quiet) {
        shrink(large, 0, is_quiet ? UINT64_MAX : kept_before);
    }
}

void bow__large_init(struct bow__large *large)
{
    *large = (struct bow__large){.busy = ATOMIC_FLAG_INIT};
    atomic_init(&large->n_bytes, 0);
    atomic_init(&large->n_middle_bytes, 0);
    atomic_init(&large->max_bytes, BOW_LIMIT_SPARE_BYTES);
}

void bow__large_fini(struct bow__large *large)
{
    shrink(large, 0, UINT64_MAX);
}
