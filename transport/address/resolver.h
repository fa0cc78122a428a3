/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_ADDRESS_RESOLVER_H
#define BOWLINE_TRANSPORT_ADDRESS_RESOLVER_H

/*
 * Names to addresses, off the loop: the system table's resolve() blocks, so it runs on
 * one thread of the context that is started when there is something to resolve
 * and ends when there is nothing left. One name after the other.
 *
 *     start ──► done (on the loop)
 *         └───► cancel: at once; the answer, when it comes, is dropped
 */

#include "transport/loop/loop.h"

#include <bowline/system.h>

#define BOW__RESOLVE_MAX 32

struct bow__resolve;

struct bow__resolved {
    int n; /* addresses, or a negative errno */
    const char *reason;
    struct bow_sockaddr addresses[BOW__RESOLVE_MAX];
};

/** `resolved` is valid during the call. */
typedef void (*bow__resolve_fn)(const struct bow__resolved *resolved, void *user);

/**
 * Resolve `host`; `done` runs on `loop`, later. Returns 0, -ENOMEM, or what starting
 * the thread failed with. Thread: loop.
 */
int bow__resolve_start(struct bow_loop *loop, const char *host, uint16_t port, bow__resolve_fn done,
                       void *user, struct bow__resolve **ret_resolve);

/** `done` will not run; `resolve` is gone. Thread: loop. */
void bow__resolve_cancel(struct bow__resolve *resolve);

#endif
