/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_BASE_SLOT_H
#define BOWLINE_BASE_SLOT_H

/*
 * A place in the context for what an upper layer shares between its loops: made
 * by the first who asks, ended by the last reference of the context. Its memory counts
 * as the context's own, not in bow_context_bytes(). Knows nothing of what is in it.
 */

#include <bowline/context.h>

enum bow__slot {
    BOW__SLOT_RESOLVER = 0,
    BOW__SLOT_INPROC,
    BOW__N_SLOTS,
};

struct bow__slot_ops {
    size_t size;
    bool has_thread; /* which a child process lacks: it makes an object of its own */
    /* NULL: none is. One that a forked process cannot use: it makes another. */
    bool (*is_foreign)(const void *object);
    void (*init)(void *object, struct bow_context *context); /* `object` is zeroed */
    void (*fini)(void *object); /* may block; the context can still allocate and free */
};

/** The object in `slot`; NULL out of memory. Thread: any. */
void *bow__context_slot(struct bow_context *context, enum bow__slot slot,
                        const struct bow__slot_ops *ops);

/** End all objects. For the last unref of the context. */
void bow__context_end_slots(struct bow_context *context);

#endif
