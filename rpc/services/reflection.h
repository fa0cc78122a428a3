/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVICES_REFLECTION_H
#define BOWLINE_RPC_SERVICES_REFLECTION_H

/*
 * grpc.reflection.v1.ServerReflection, and v1alpha, which differs in its name alone: a server's
 * services and their descriptors, for tools that have no .proto. What is answered is made from
 * constant tables, so a call takes the same memory however much it asks.
 *
 *     init ──► add each service that is served, its own two too ──► seal ──► (calls) ──► fini
 */

#include "rpc/services/reflection_index.h"

#define BOW__N_REFLECTION_SERVICES 2

struct bow__reflection {
    struct bow_context *context;
    struct bow__reflection_index index;
    struct bow_service services[BOW__N_REFLECTION_SERVICES]; /* to be registered */
    struct bow_method alpha_method;
    struct bow__reflected_service *served; /* in `index`'s arena; newest first */
    size_t n_served;
    void *listing; /* the answer to who asks for them, once sealed */
};

void bow__reflection_init(struct bow__reflection *reflection, struct bow_context *context);
void bow__reflection_fini(struct bow__reflection *reflection);

/** Nothing is shown; it may be filled anew. */
void bow__reflection_clear(struct bow__reflection *reflection);

/** The handlers of its services, which are to have `reflection` for their user. */
const void *bow__reflection_handlers(size_t *ret_size);

/** Show `service`. Returns 0 or -ENOMEM. */
int bow__reflection_add(struct bow__reflection *reflection, const struct bow_service *service);
/** As bow__reflection_index_seal(). */
int bow__reflection_seal(struct bow__reflection *reflection, const char **ret_bad);

#endif
