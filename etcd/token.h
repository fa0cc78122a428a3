/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#ifndef BOWLINE_ETCD_TOKEN_H
#define BOWLINE_ETCD_TOKEN_H

/*
 * A user's token: asked for when etcd wants one, and again when it takes it for none any more; one
 * request for all who wait. Knows nothing of what they do with it. All on the loop.
 *
 * etcd refuses also the request for a token when an old one goes along, so that is forgotten first.
 */

#include "base/list.h"
#include <bowline/status.h>
#include <stdbool.h>
#include <stdint.h>

struct bow_client;
struct bow_etcd;
struct bow_metadata_interceptor;

struct bow__etcd_token {
    struct bow_metadata_interceptor *interceptor; /* NULL: there is no user */
    char *user;
    char *password;
    uint64_t generation; /* goes up with each that was got */
    uint64_t call;
    bool is_asked;
    struct bow__link waiters;
};

struct bow__etcd_waiter {
    struct bow__link link;
    /** OK: there is another token. Runs once, later, not after leave(). */
    void (*fn)(struct bow__etcd_waiter *waiter, const struct bow_status *status);
};

/** Ask for another one. Returns 0; or as bow_client_start(). */
int bow__etcd_token_want(struct bow_etcd *etcd, struct bow__etcd_waiter *waiter);
/** Wait no longer. Idempotent. */
void bow__etcd_token_leave(struct bow_etcd *etcd, struct bow__etcd_waiter *waiter);
/** Whether a text of etcd's (all that tells these apart) says that a token would help. */
bool bow__etcd_wants_token(const char *text);

#endif
