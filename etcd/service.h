/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_ETCD_SERVICE_H
#define BOWLINE_ETCD_SERVICE_H

/*
 * A service's servers as etcd has them: all keys below its own read, then watched; read again when
 * changes were forgotten. One for all who watch it; the last who leaves ends it. All on the loop.
 *
 *     join ──► pages ──► watch ──► tell … ──► leave
 *                ▲         │
 *                └ compacted
 *
 * Whatever fails, the servers that were known stay, and are told with the error.
 */

#include "etcd/op.h"
#include <bowline/etcd.h>

struct bow__etcd_service;

/** Somebody who watches. */
struct bow__etcd_watcher {
    struct bow__link link;
    void (*on_update)(struct bow__etcd_watcher *watcher, const struct bow_etcd_update *update);
    struct bow__etcd_service *service; /* NULL: none */
    bool is_told;                      /* of what is known */
};

/** Watch `service`; what is known is told later. Returns 0 or -ENOMEM. */
int bow__etcd_service_join(struct bow_etcd *etcd, const char *service,
                           struct bow__etcd_watcher *watcher);
/** Inside an update that could not be taken: it is told again, after a pause. */
void bow__etcd_service_again(struct bow__etcd_watcher *watcher);
/** Idempotent. Not inside an update. */
void bow__etcd_service_leave(struct bow__etcd_watcher *watcher);

#endif
