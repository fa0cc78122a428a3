/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_TRANSPORT_ADDRESS_RESOLVER_H
#define BOWLINE_TRANSPORT_ADDRESS_RESOLVER_H

/*
 * Names to addresses, off the loop: the system table's resolve() blocks, so each name is looked up
 * on a thread of the context's, once for all who want it at a time. Slow names hold up nobody else
 * up to BOW_LIMIT_LOOKUPS of them, and the end of the context waits for none.
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

/** Whether it waits for a thread, since BOW_LIMIT_LOOKUPS names are being looked up. Thread: loop.
 */
bool bow__resolve_is_waiting(const struct bow__resolve *resolve);

/** `done` will not run; `resolve` is gone. Thread: loop. */
void bow__resolve_cancel(struct bow__resolve *resolve);

#endif
