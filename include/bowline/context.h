/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_CONTEXT_H
#define BOWLINE_CONTEXT_H

/*
 * The context holds what would else be global: the allocator, the log sink, the
 * ceiling on memory, and the table through which everything that is not
 * deterministic comes (<bowline/system.h>). Loops, servers and clients hold a
 * reference to theirs; several contexts may live in one process.
 *
 *     struct bow_context_options options = BOW_CONTEXT_OPTIONS_INIT;
 *     struct bow_context *context;
 *     options.max_bytes = 64 << 20;
 *     int rc = bow_context_new(&options, &context);
 *     ...
 *     bow_context_unref(context);
 *
 * Invariant: the library allocates through the context only, so
 * bow_context_bytes() is 0 again when the last object of it is gone.
 */

#include <bowline/visibility.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bow_context;
struct bow_system;

/**
 * Where memory comes from. `alloc` returns NULL on failure and memory aligned
 * for any type otherwise; `resize` behaves as realloc() does, and is never asked for 0
 * bytes; `free` is given the size that was asked for, and never NULL. All three may be
 * called from any thread.
 */
struct bow_allocator {
    void *(*alloc)(void *user, size_t size);
    void *(*resize)(void *user, void *memory, size_t old_size, size_t new_size);
    void (*free)(void *user, void *memory, size_t size);
    void *user;
};

/** How grave a line of the log is; a sink gets those up to its context's log_level. */
enum bow_log_level {
    BOW_LOG_ERROR = 0,
    BOW_LOG_WARNING = 1,
    BOW_LOG_INFO = 2,
    BOW_LOG_DEBUG = 3,
};

/** Receives one line without a line feed; may be called from any thread. */
typedef void (*bow_log_fn)(enum bow_log_level level, const char *line, void *user);

/** What a context is made with; begin with BOW_CONTEXT_OPTIONS_INIT. */
struct bow_context_options {
    size_t size;                           /* sizeof this struct, set by the INIT */
    const struct bow_allocator *allocator; /* NULL: malloc, mmap for large blocks; copied */
    const struct bow_system *system;       /* NULL: the operating system; borrowed, must outlive */
    size_t max_bytes;                      /* ceiling of all allocations; 0: none */
    bow_log_fn log;                        /* NULL: nothing is logged */
    void *log_user;
    enum bow_log_level log_level; /* the most detailed level that reaches `log` */
    /* Never call malloc_trim(). By default a loop, and whoever allocates near max_bytes, does when
     * much was freed (BOW_LIMIT_KEPT_BYTES), and that is for the heap of the whole process. Nothing
     * happens with an `allocator` of your own. */
    bool keep_freed;
};

#define BOW_CONTEXT_OPTIONS_INIT                                                                   \
    BOW__INIT(struct bow_context_options, BOW__SET(log_level, BOW_LOG_WARNING))

/**
 * Make a context with one reference, the caller's. `options` NULL: the defaults.
 *
 * Thread:  any
 * Owns:    gives `*ret_context`; drop it with bow_context_unref()
 * Returns: 0; -ENOMEM; -EINVAL when the size of `options` or of its system is not a known
 *          one, or its allocator lacks a function
 */
BOW_EXPORT BOW_MUST_USE int bow_context_new(const struct bow_context_options *options,
                                            struct bow_context **ret_context);

/** Take one more reference to a context. Thread: any. Returns: `context`. */
BOW_EXPORT struct bow_context *bow_context_ref(struct bow_context *context);

/** Drop a reference to a context; the last one frees it. NULL is allowed. Thread: any. Returns:
 * NULL. */
BOW_EXPORT struct bow_context *bow_context_unref(struct bow_context *context);

/**
 * Bytes allocated now through `context`, without the context itself; with TLS also what OpenSSL
 * keeps for each connection, by rule of thumb.
 *
 * Thread:  any; a snapshot
 */
BOW_EXPORT size_t bow_context_bytes(const struct bow_context *context);

/** Bytes that `context` may allocate at most; 0 means no ceiling. Thread: any. */
BOW_EXPORT size_t bow_context_max_bytes(const struct bow_context *context);

#ifdef __cplusplus
}
#endif
#endif
