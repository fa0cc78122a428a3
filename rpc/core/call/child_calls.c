/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The list of a parent's children and the lock around it. Knows neither side's
 * structure.
 */

#include "rpc/core/call/child_calls.h"
#include "base/alloc.h"

#include <pthread.h>

struct bow__child_calls {
    struct bow_context *context;
    pthread_mutex_t lock;
    size_t refs; /* under the lock */
    bool ended;  /* under the lock */
    struct bow__link children;
};

struct bow__child_calls *bow__child_calls_new(struct bow_context *context)
{
    struct bow__child_calls *child_calls = bow__alloc_zero(context, sizeof(*child_calls));

    if (child_calls == NULL) {
        return NULL;
    }
    child_calls->context = context;
    child_calls->refs = 1;
    pthread_mutex_init(&child_calls->lock, NULL);
    bow__list_init(&child_calls->children);
    return child_calls;
}

void bow__child_calls_unref(struct bow__child_calls *child_calls)
{
    if (child_calls == NULL) {
        return;
    }
    pthread_mutex_lock(&child_calls->lock);
    bool last = --child_calls->refs == 0;
    pthread_mutex_unlock(&child_calls->lock);
    if (last) {
        pthread_mutex_destroy(&child_calls->lock);
        bow__free(child_calls->context, child_calls, sizeof(*child_calls));
    }
}

void bow__child_calls_join(struct bow__child_calls *child_calls, struct bow__child *child)
{
    pthread_mutex_lock(&child_calls->lock);
    child_calls->refs++;
    child->child_calls = child_calls;
    bow__list_push_back(&child_calls->children, &child->link);
    if (child_calls->ended) {
        child->cancel(child);
    }
    pthread_mutex_unlock(&child_calls->lock);
}

void bow__child_calls_leave(struct bow__child *child)
{
    struct bow__child_calls *child_calls = child->child_calls;

    if (child_calls == NULL) {
        return;
    }
    pthread_mutex_lock(&child_calls->lock);
    bow__list_remove(&child->link);
    pthread_mutex_unlock(&child_calls->lock);
    child->child_calls = NULL;
    bow__child_calls_unref(child_calls);
}

void bow__child_calls_end(struct bow__child_calls *child_calls)
{
    pthread_mutex_lock(&child_calls->lock);
    child_calls->ended = true;
    for (struct bow__link *at = child_calls->children.next; at != &child_calls->children;
         at = at->next) {
        struct bow__child *child = BOW__CONTAINER(at, struct bow__child, link);
        child->cancel(child);
    }
    pthread_mutex_unlock(&child_calls->lock);
}
