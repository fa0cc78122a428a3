/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The objects that upper layers keep in a context. Two threads may ask for the
 * same one at once: both make it, one is put in, the other is ended again.
 */

#include "base/slot.h"
#include "base/context.h"

#include <string.h>

struct entry {
    const struct bow__slot_ops *ops;
    struct entry *parents; /* of the process that this one was forked from: memory, no more */
    int made_by;           /* a process */
    _Alignas(max_align_t) unsigned char object[];
};

static void free_memory(struct bow_context *context, struct entry *entry)
{
    size_t size = sizeof(*entry) + entry->ops->size;

    context->allocator.free(context->allocator.user, entry, size);
}

static bool is_ours(struct bow_context *context, const struct entry *entry)
{
    const struct bow__slot_ops *ops = entry->ops;

    if (ops->is_foreign != NULL && ops->is_foreign(entry->object)) {
        return false;
    }
    return !ops->has_thread || entry->made_by == bow__process_id(&context->process);
}

static void free_entry(struct bow_context *context, struct entry *entry)
{
    if (is_ours(context, entry)) {
        entry->ops->fini(entry->object);
    }
    free_memory(context, entry);
}

static struct entry *new_entry(struct bow_context *context, const struct bow__slot_ops *ops)
{
    size_t size = sizeof(struct entry) + ops->size;
    struct entry *entry = context->allocator.alloc(context->allocator.user, size);

    if (entry == NULL) {
        return NULL;
    }
    memset(entry, 0, size);
    entry->ops = ops;
    entry->made_by = bow__process_id(&context->process);
    ops->init(entry->object, context);
    return entry;
}

void *bow__context_slot(struct bow_context *context, enum bow__slot slot,
                        const struct bow__slot_ops *ops)
{
    /* acquire pairs with the release of the exchange below: who finds it sees it whole */
    struct entry *found = atomic_load_explicit(&context->slots[slot], memory_order_acquire);

    if (found != NULL && is_ours(context, found)) {
        return found->object;
    }
    struct entry *made = new_entry(context, ops);
    if (made == NULL) {
        return NULL;
    }
    void *expected = found;
    made->parents = found;
    if (!atomic_compare_exchange_strong_explicit(&context->slots[slot], &expected, made,
                                                 memory_order_acq_rel, memory_order_acquire)) {
        free_entry(context, made);
        found = expected;
        return found->object;
    }
    return made->object;
}

void bow__context_end_slots(struct bow_context *context)
{
    for (int i = 0; i < BOW__N_SLOTS; i++) {
        /* relaxed: the last reference is ours, and dropping the others has ordered it */
        struct entry *entry = atomic_load_explicit(&context->slots[i], memory_order_relaxed);
        while (entry != NULL) {
            struct entry *parents = entry->parents;
            free_entry(context, entry);
            entry = parents;
        }
    }
}
