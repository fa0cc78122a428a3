/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A program's watch of a service. What is asked of etcd is service.c's. */

#include "etcd/watch.h"
#include "base/alloc.h"
#include "etcd/core.h"
#include "etcd/service.h"

#include <errno.h>
#include <string.h>

struct bow_etcd_watch {
    struct bow__etcd_object object;
    struct bow__etcd_watcher watcher;
    struct bow_timer again; /* when there was no memory to begin */
    char *service;
    const struct bow_etcd_watch_events *events;
    void *user;
};

static struct bow_etcd_watch *of_object(struct bow__etcd_object *object)
{
    return BOW__CONTAINER(object, struct bow_etcd_watch, object);
}

static void on_update(struct bow__etcd_watcher *watcher, const struct bow_etcd_update *update)
{
    struct bow_etcd_watch *watch = BOW__CONTAINER(watcher, struct bow_etcd_watch, watcher);

    if (bow__etcd_object_listens(&watch->object)) {
        watch->events->on_update(watch, update, watch->user);
    }
}

static void start(struct bow__etcd_object *object)
{
    struct bow_etcd_watch *watch = of_object(object);

    if (bow__etcd_service_join(object->etcd, watch->service, &watch->watcher) < 0) {
        bow_timer_start(&watch->again, object->etcd->backoff_min_ns);
    }
}

static void on_again(struct bow_timer *timer, void *user)
{
    struct bow_etcd_watch *watch = user;

    (void)timer;
    start(&watch->object);
}

static void stop(struct bow__etcd_object *object)
{
    struct bow_etcd_watch *watch = of_object(object);

    bow_timer_stop(&watch->again);
    bow__etcd_service_leave(&watch->watcher);
    bow__etcd_object_close(object);
}

static void on_closed(struct bow__etcd_object *object)
{
    struct bow_etcd_watch *watch = of_object(object);

    if (watch->events->on_closed != NULL) {
        watch->events->on_closed(watch, watch->user);
    }
}

static void free_watch(struct bow_context *context, struct bow_etcd_watch *watch)
{
    if (watch->service != NULL) {
        bow__free(context, watch->service, strlen(watch->service) + 1);
    }
    bow__free(context, watch, sizeof(*watch));
}

static void free_it(struct bow__etcd_object *object)
{
    free_watch(object->etcd->context, of_object(object));
}

static const struct bow__etcd_object_kind kind = {
    .start = start,
    .stop = stop,
    .on_closed = on_closed,
    .free = free_it,
};

int bow_etcd_watch(struct bow_etcd *etcd, const char *service,
                   const struct bow_etcd_watch_events *events, void *user,
                   struct bow_etcd_watch **ret_watch)
{
    if (service == NULL || *service == '\0' || events == NULL || events->on_update == NULL) {
        return -EINVAL;
    }
    struct bow_etcd_watch *watch = bow__alloc_zero(etcd->context, sizeof(*watch));
    if (watch == NULL) {
        return -ENOMEM;
    }
    watch->service = bow__dup(etcd->context, service, strlen(service));
    watch->watcher.on_update = on_update;
    bow__list_init(&watch->watcher.link);
    watch->events = events;
    watch->user = user;
    bow_timer_init(&watch->again, etcd->loop, on_again, watch);
    int rc = watch->service != NULL ? bow__etcd_object_open(&watch->object, &kind, etcd) : -ENOMEM;
    if (rc < 0) {
        free_watch(etcd->context, watch);
        return rc;
    }
    *ret_watch = watch;
    return 0;
}

void bow_etcd_unwatch(struct bow_etcd_watch *watch)
{
    if (watch != NULL) {
        bow__etcd_object_release(&watch->object);
    }
}

void bow__etcd_watch_again(struct bow_etcd_watch *watch)
{
    bow__etcd_service_again(&watch->watcher);
}
