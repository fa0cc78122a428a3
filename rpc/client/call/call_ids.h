/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_CLIENT_CALL_CALL_IDS_H
#define BOWLINE_RPC_CLIENT_CALL_CALL_IDS_H

/*
 * Names for a client's calls in flight that stay harmless for ever: a slot and how
 * often it was used.
 *
 *     | generation, 40 bits | slot, 24 bits |      never 0
 *
 * Design. One lock; a call leaves under it, so one that is found is alive while
 * the lock is held.
 */

#include <bowline/context.h>
#include <pthread.h>

struct bow__client_call;
struct bow__call_slot;

struct bow__call_ids {
    struct bow_context *context;
    pthread_mutex_t lock;
    struct bow__call_slot *slots;
    uint32_t n_slots;
    uint32_t first_free; /* index + 1; 0: none */
};

void bow__call_ids_init(struct bow__call_ids *ids, struct bow_context *context);
void bow__call_ids_fini(struct bow__call_ids *ids);

/** Name `call`. Returns 0 out of memory or slots. Thread: any. */
uint64_t bow__call_ids_put(struct bow__call_ids *ids, struct bow__client_call *call);
/** The name ends. Thread: any. */
void bow__call_ids_remove(struct bow__call_ids *ids, uint64_t id);
/** Call `fn(call)` under the lock when `id` names one. Thread: any. */
void bow__call_ids_with(struct bow__call_ids *ids, uint64_t id,
                        void (*fn)(struct bow__client_call *call));

#endif
