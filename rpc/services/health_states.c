/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Names of services, and the state that is shown for each: NOT_SERVING for all that are known while
 * the server drains. Knows nothing of who asks.
 */

#include "rpc/services/health_states.h"
#include "base/alloc.h"

#include <errno.h>
#include <string.h>

struct bow__health_state {
    struct bow__health_state *next;
    bool is_known;
    enum bow_health_state state;
    size_t n_name;
    char name[];
};

static struct bow_slice slice_of(const char *name)
{
    return (struct bow_slice){(const uint8_t *)name, strlen(name)};
}

/* Names are the program's: nobody can aim for collisions. */
void bow__health_states_init(struct bow__health_states *states, struct bow_context *context)
{
    *states = (struct bow__health_states){.context = context};
    pthread_mutex_init(&states->lock, NULL);
    bow__bytes_map_init(&states->by_name, context, 0);
}

void bow__health_states_fini(struct bow__health_states *states)
{
    if (states->context == NULL) {
        return;
    }
    bow__bytes_map_fini(&states->by_name);
    while (states->first != NULL) {
        struct bow__health_state *state = states->first;
        states->first = state->next;
        bow__free(states->context, state, sizeof(*state) + state->n_name + 1);
    }
    pthread_mutex_destroy(&states->lock);
}

static struct bow__health_state *find(const struct bow__health_states *states, const char *name)
{
    return bow__bytes_map_get(&states->by_name, slice_of(name));
}

static int add(struct bow__health_states *states, const char *name,
               struct bow__health_state **ret_state)
{
    size_t n_name = strlen(name);
    struct bow__health_state *state = bow__alloc_zero(states->context, sizeof(*state) + n_name + 1);

    if (state == NULL) {
        return -ENOMEM;
    }
    memcpy(state->name, name, n_name + 1);
    state->n_name = n_name;
    int rc = bow__bytes_map_put(&states->by_name, slice_of(state->name), state);
    if (rc < 0) {
        bow__free(states->context, state, sizeof(*state) + n_name + 1);
        return rc;
    }
    state->next = states->first;
    states->first = state;
    *ret_state = state;
    return 0;
}

static int set(struct bow__health_states *states, const char *name, enum bow_health_state state,
               bool is_default)
{
    struct bow__health_state *found = find(states, name);
    bool is_new = found == NULL;
    int rc = is_new ? add(states, name, &found) : 0;

    if (rc == 0 && (is_new || !is_default)) {
        found->is_known = true;
        found->state = state;
    }
    return rc;
}

int bow__health_states_set(struct bow__health_states *states, const char *name,
                           enum bow_health_state state, bool is_default)
{
    pthread_mutex_lock(&states->lock);
    int rc = set(states, name, state, is_default);
    pthread_mutex_unlock(&states->lock);
    return rc;
}

int bow__health_states_unset(struct bow__health_states *states, const char *name)
{
    pthread_mutex_lock(&states->lock);
    struct bow__health_state *found = find(states, name);
    bool was_known = found != NULL && found->is_known;
    if (was_known) {
        found->is_known = false;
    }
    pthread_mutex_unlock(&states->lock);
    return was_known ? 0 : -ENOENT;
}

void bow__health_states_drain(struct bow__health_states *states)
{
    pthread_mutex_lock(&states->lock);
    states->draining = true;
    pthread_mutex_unlock(&states->lock);
}

static int shown(const struct bow__health_states *states, const struct bow__health_state *state)
{
    return states->draining ? BOW_HEALTH_NOT_SERVING : (int)state->state;
}

int bow__health_states_get(struct bow__health_states *states, const char *name)
{
    int state = BOW__HEALTH_SERVICE_UNKNOWN;

    pthread_mutex_lock(&states->lock);
    const struct bow__health_state *found = find(states, name);
    if (found != NULL && found->is_known) {
        state = shown(states, found);
    }
    pthread_mutex_unlock(&states->lock);
    return state;
}

void bow__health_states_each(struct bow__health_states *states,
                             bool (*fn)(const char *name, int state, void *user), void *user)
{
    bool more = true;

    pthread_mutex_lock(&states->lock);
    for (const struct bow__health_state *s = states->first; s != NULL && more; s = s->next) {
        if (s->is_known) {
            more = fn(s->name, shown(states, s), user);
        }
    }
    pthread_mutex_unlock(&states->lock);
}
