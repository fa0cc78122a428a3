/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * The list of a parent's children and the lock around it. Knows neither side's
 * structure.
 */

#include "rpc/core/family.h"
#include "base/alloc.h"

#include <pthread.h>

struct bow__family {
    struct bow_context *context;
    pthread_mutex_t lock;
    size_t refs; /* under the lock */
    bool ended;  /* under the lock */
    struct bow__link children;
};

struct bow__family *bow__family_new(struct bow_context *context)
{
    struct bow__family *family = bow__alloc_zero(context, sizeof(*family));

    if (family == NULL) {
        return NULL;
    }
    family->context = context;
    family->refs = 1;
    pthread_mutex_init(&family->lock, NULL);
    bow__list_init(&family->children);
    return family;
}

void bow__family_unref(struct bow__family *family)
{
    if (family == NULL) {
        return;
    }
    pthread_mutex_lock(&family->lock);
    bool last = --family->refs == 0;
    pthread_mutex_unlock(&family->lock);
    if (last) {
        pthread_mutex_destroy(&family->lock);
        bow__free(family->context, family, sizeof(*family));
    }
}

void bow__family_join(struct bow__family *family, struct bow__child *child)
{
    pthread_mutex_lock(&family->lock);
    family->refs++;
    child->family = family;
    bow__list_push_back(&family->children, &child->link);
    if (family->ended) {
        child->cancel(child);
    }
    pthread_mutex_unlock(&family->lock);
}

void bow__family_leave(struct bow__child *child)
{
    struct bow__family *family = child->family;

    if (family == NULL) {
        return;
    }
    pthread_mutex_lock(&family->lock);
    bow__list_remove(&child->link);
    pthread_mutex_unlock(&family->lock);
    child->family = NULL;
    bow__family_unref(family);
}

void bow__family_end(struct bow__family *family)
{
    pthread_mutex_lock(&family->lock);
    family->ended = true;
    for (struct bow__link *at = family->children.next; at != &family->children; at = at->next) {
        struct bow__child *child = BOW__CONTAINER(at, struct bow__child, link);
        child->cancel(child);
    }
    pthread_mutex_unlock(&family->lock);
}
