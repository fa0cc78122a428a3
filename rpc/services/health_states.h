/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_RPC_SERVICES_HEALTH_STATES_H
#define BOWLINE_RPC_SERVICES_HEALTH_STATES_H

/*
 * What state each service of a server is in, by name. Set by the program, never by a peer: asking
 * for a name that is not known leaves nothing behind.
 *
 * Design. All of it is under the lock, which is taken for a lookup and nothing else.
 */

#include "base/map.h"
#include <bowline/health.h>
#include <pthread.h>

/** Of a name that is not known, as grpc.health.v1 numbers it. */
#define BOW__HEALTH_SERVICE_UNKNOWN 3

struct bow__health_state;

struct bow__health_states {
    struct bow_context *context;
    pthread_mutex_t lock;
    struct bow__bytes_map by_name;   /* → struct bow__health_state */
    struct bow__health_state *first; /* all of them */
    bool draining;                   /* what is known is NOT_SERVING */
};

void bow__health_states_init(struct bow__health_states *states, struct bow_context *context);
void bow__health_states_fini(struct bow__health_states *states);

/** Set, or with `is_default` only if nothing was said of the name. Returns 0 or -ENOMEM. Thread:
 * any. */
int bow__health_states_set(struct bow__health_states *states, const char *name,
                           enum bow_health_state state, bool is_default);
/** Returns 0 or -ENOENT. Thread: any. */
int bow__health_states_unset(struct bow__health_states *states, const char *name);
/** From now on all that is known is NOT_SERVING. Thread: any. */
void bow__health_states_drain(struct bow__health_states *states);

/** A state of enum bow_health_state, or BOW__HEALTH_SERVICE_UNKNOWN. Thread: any. */
int bow__health_states_get(struct bow__health_states *states, const char *name);

/** Call `fn` for all that are known, under the lock, until it returns false. Thread: any. */
void bow__health_states_each(struct bow__health_states *states,
                             bool (*fn)(const char *name, int state, void *user), void *user);

#endif
