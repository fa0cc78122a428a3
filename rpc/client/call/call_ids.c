/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The table of slots. Knows nothing of a call but its address.
 */

#include "rpc/client/call/call_ids.h"
#include "base/alloc.h"

#define SLOT_BITS 24
#define MAX_SLOTS (UINT32_C(1) << SLOT_BITS)
#define MIN_SLOTS 64u

struct bow__call_slot {
    struct bow__client_call *call; /* NULL: free */
    uint64_t generation;
    uint32_t next_free; /* index + 1 */
};

void bow__call_ids_init(struct bow__call_ids *ids, struct bow_context *context)
{
    *ids = (struct bow__call_ids){.context = context};
    pthread_mutex_init(&ids->lock, NULL);
}

void bow__call_ids_fini(struct bow__call_ids *ids)
{
    bow__free(ids->context, ids->slots, ids->n_slots * sizeof(*ids->slots));
    pthread_mutex_destroy(&ids->lock);
}

static bool grow(struct bow__call_ids *ids)
{
    uint32_t n = ids->n_slots > 0 ? ids->n_slots * 2 : MIN_SLOTS;

    if (n > MAX_SLOTS) {
        return false;
    }
    struct bow__call_slot *slots =
        bow__resize(ids->context, ids->slots, ids->n_slots * sizeof(*slots), n * sizeof(*slots));
    if (slots == NULL) {
        return false;
    }
    for (uint32_t i = n; i-- > ids->n_slots;) {
        slots[i] = (struct bow__call_slot){.next_free = ids->first_free};
        ids->first_free = i + 1;
    }
    ids->slots = slots;
    ids->n_slots = n;
    return true;
}

uint64_t bow__call_ids_put(struct bow__call_ids *ids, struct bow__client_call *call)
{
    uint64_t id = 0;

    pthread_mutex_lock(&ids->lock);
    if (ids->first_free != 0 || grow(ids)) {
        uint32_t index = ids->first_free - 1;
        struct bow__call_slot *slot = &ids->slots[index];
        ids->first_free = slot->next_free;
        slot->call = call;
        slot->generation++;
        id = slot->generation << SLOT_BITS | index;
    }
    pthread_mutex_unlock(&ids->lock);
    return id;
}

static struct bow__call_slot *find(struct bow__call_ids *ids, uint64_t id)
{
    uint32_t index = (uint32_t)(id & (MAX_SLOTS - 1));

    if (index >= ids->n_slots || ids->slots[index].call == NULL ||
        ids->slots[index].generation != id >> SLOT_BITS) {
        return NULL;
    }
    return &ids->slots[index];
}

void bow__call_ids_remove(struct bow__call_ids *ids, uint64_t id)
{
    pthread_mutex_lock(&ids->lock);
    struct bow__call_slot *slot = find(ids, id);
    if (slot != NULL) {
        slot->call = NULL;
        slot->next_free = ids->first_free;
        ids->first_free = (uint32_t)(id & (MAX_SLOTS - 1)) + 1;
    }
    pthread_mutex_unlock(&ids->lock);
}

void bow__call_ids_with(struct bow__call_ids *ids, uint64_t id,
                        void (*fn)(struct bow__client_call *call))
{
    pthread_mutex_lock(&ids->lock);
    const struct bow__call_slot *slot = find(ids, id);
    if (slot != NULL) {
        fn(slot->call);
    }
    pthread_mutex_unlock(&ids->lock);
}
